//! What to put in a bug report: adapters, monitors, sound, gamepads, versions, paths, variables.
//!
//! It never fails for a missing device: that a device is missing is what it reports. Sound is asked
//! for in a process of its own ([`sound`]), because ALSA prints to standard error by itself and a
//! broken driver should not take the rest of the report with it.

use super::offline::raster_name;
use super::paths;
use crate::gpu::{Context, RasterMethod};
use serde_json::{Map, Value, json};
use std::process::{Command, Stdio};
use winit::application::ApplicationHandler;
use winit::event::WindowEvent;
use winit::event_loop::{ActiveEventLoop, EventLoop};
use winit::window::WindowId;

/// Flag by which `doctor` calls itself for [`sound`] alone.
pub const SOUND_FLAG: &str = "--sound-only";

/// Variables that change which display or driver is taken.
const VARIABLES: [&str; 12] = [
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XDG_SESSION_TYPE",
    "XDG_RUNTIME_DIR",
    "VK_DRIVER_FILES",
    "VK_ICD_FILENAMES",
    "LIBGL_ALWAYS_SOFTWARE",
    "WGPU_BACKEND",
    "WGPU_ADAPTER_NAME",
    "CUDA_VISIBLE_DEVICES",
    "RUST_LOG",
    "NO_COLOR",
];

/// The whole report.
#[must_use]
pub fn report() -> Value {
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "versions": versions(),
        "system": {
            "os": std::env::consts::OS,
            "arch": std::env::consts::ARCH,
            "threads": std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        },
        "adapters": adapters(),
        "monitors": monitors(),
        "sound": sound_by_process(),
        "gamepads": gamepads(),
        "paths": {
            "config": paths::config_folder(),
            "cache": paths::cache_folder(),
        },
        "variables": variables(),
    })
}

/// Versions of the libraries that matter in a bug report, as this build was locked.
#[must_use]
pub fn versions() -> Map<String, Value> {
    const LOCK: &str = include_str!("../../Cargo.lock");
    let mut versions = Map::new();
    for (package, shown) in [
        ("wgpu", "wgpu"),
        ("luau0-src", "luau"),
        ("mlua", "mlua"),
        ("winit", "winit"),
        ("rodio", "rodio"),
    ] {
        let heading = format!("name = \"{package}\"\nversion = \"");
        let found = LOCK
            .split_once(&heading)
            .and_then(|(_, rest)| rest.split_once('"'))
            .map(|(version, _)| version);
        if let Some(version) = found {
            // `0.22.0+luau740`: what people know is Luau's own number.
            let version = version.split_once("+luau").map_or(version, |(_, own)| own);
            versions.insert(shown.to_owned(), json!(version));
        }
    }
    versions
}

/// Adapters in the order of `--gpu N`, with the limits that decide what can be drawn.
fn adapters() -> Value {
    let all = Context::adapters();
    let list = all.into_iter().enumerate().map(|(index, info)| {
        let raster = match info.device_type {
            wgpu::DeviceType::Cpu => RasterMethod::Quads,
            _ => RasterMethod::Tiles,
        };
        let mut about = json!({
            "index": index,
            "name": info.name,
            "type": format!("{:?}", info.device_type),
            "backend": format!("{:?}", info.backend),
            "driver": info.driver,
            "driver_info": info.driver_info,
            "subgroup_size": [info.subgroup_min_size, info.subgroup_max_size],
            "raster": raster_name(raster),
        });
        match Context::headless(Some(index)) {
            Ok(context) => {
                let limits = context.device.limits();
                about["limits"] = json!({
                    "max_buffer_size": limits.max_buffer_size,
                    "max_storage_buffer_binding_size": limits.max_storage_buffer_binding_size,
                    "max_texture_dimension_2d": limits.max_texture_dimension_2d,
                    "max_compute_workgroup_storage_size":
                        limits.max_compute_workgroup_storage_size,
                    "max_compute_invocations_per_workgroup":
                        limits.max_compute_invocations_per_workgroup,
                });
                let features = context.device.features();
                about["timestamps"] = json!(features.contains(wgpu::Features::TIMESTAMP_QUERY));
                about["subgroups"] = json!(features.contains(wgpu::Features::SUBGROUP));
                about["f16"] = json!(features.contains(wgpu::Features::SHADER_F16));
            }
            Err(error) => about["error"] = json!(error.to_string()),
        }
        about
    });
    Value::Array(list.collect())
}

/// Monitors, or why they cannot be asked for.
fn monitors() -> Value {
    struct Asking(Vec<Value>);
    impl ApplicationHandler for Asking {
        fn resumed(&mut self, event_loop: &ActiveEventLoop) {
            let primary = event_loop.primary_monitor();
            let monitors = event_loop.available_monitors().enumerate();
            self.0 = monitors
                .map(|(index, monitor)| {
                    let size = monitor.size();
                    json!({
                        "index": index,
                        "name": monitor.name(),
                        "size": [size.width, size.height],
                        "scale": monitor.scale_factor(),
                        "hz": monitor
                            .refresh_rate_millihertz()
                            .map(|mhz| f64::from(mhz) / 1e3),
                        "primary": primary.as_ref() == Some(&monitor),
                    })
                })
                .collect();
            event_loop.exit();
        }
        fn window_event(&mut self, _: &ActiveEventLoop, _: WindowId, _: WindowEvent) {}
    }

    if !super::has_display() {
        return json!({ "error": "no display: neither DISPLAY nor WAYLAND_DISPLAY is set" });
    }
    let mut asking = Asking(Vec::new());
    let asked = EventLoop::new().and_then(|event_loop| event_loop.run_app(&mut asking));
    match asked {
        Ok(()) => Value::Array(asking.0),
        Err(error) => json!({ "error": super::display_error(&error) }),
    }
}

/// Sound devices as this process finds them: `{output, devices[]}`.
#[must_use]
pub fn sound() -> Value {
    use rodio::cpal::traits::{DeviceTrait as _, HostTrait as _};
    let host = rodio::cpal::default_host();
    let name = |device: &rodio::cpal::Device| {
        device
            .description()
            .map_or_else(|error| error.to_string(), |d| d.name().to_owned())
    };
    let default = host.default_output_device().map(|device| {
        let config = device.default_output_config().ok();
        json!({
            "name": name(&device),
            "hz": config.as_ref().map(rodio::cpal::SupportedStreamConfig::sample_rate),
            "channels": config.as_ref().map(rodio::cpal::SupportedStreamConfig::channels),
        })
    });
    match host.output_devices() {
        Ok(devices) => json!({
            "host": host.id().name(),
            "output": default,
            "devices": devices.map(|d| name(&d)).collect::<Vec<_>>(),
        }),
        Err(error) => json!({ "host": host.id().name(), "error": error.to_string() }),
    }
}

fn sound_by_process() -> Value {
    let asked = std::env::current_exe().and_then(|program| {
        Command::new(program)
            .args(["doctor", "--json", SOUND_FLAG])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
    });
    match asked {
        Ok(output) => serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| json!({ "error": format!("the driver ended: {}", output.status) })),
        Err(error) => json!({ "error": error.to_string() }),
    }
}

fn gamepads() -> Value {
    match gilrs::Gilrs::new() {
        Ok(gilrs) => gilrs
            .gamepads()
            .map(|(_, pad)| json!({ "name": pad.name(), "mapping": format!("{:?}", pad.mapping_source()) }))
            .collect(),
        Err(error) => json!({ "error": error.to_string() }),
    }
}

fn variables() -> Map<String, Value> {
    VARIABLES
        .iter()
        .filter_map(|name| {
            let value = std::env::var_os(name)?;
            Some(((*name).to_owned(), json!(value.to_string_lossy())))
        })
        .collect()
}
