//! The command line: its arguments, its log, its answers.
//!
//! Answers go to standard output, everything else to standard error. What a command does is in
//! `splatstage::app`; here it is only asked for and printed.

mod args;
mod text;
mod tools;

use anyhow::{Context as _, bail};
pub use args::Args;
use args::{
    BenchArgs, BundleArgs, Command, ConvertArgs, DoctorArgs, InspectArgs, PlayArgs, RenderArgs,
    SurveyArgs, TraceArgs,
};
use clap::CommandFactory as _;
use serde_json::{Value, json};
use splatstage::app::progress::Progress;
use splatstage::app::window::NoDisplay;
use splatstage::app::{self, DrawOptions, SceneOptions, Usage, doctor, interrupt, movie, offline};
use splatstage::formats::{ConvertOptions, LoadOptions, splattie};
use splatstage::{formats, script};
use std::io::{ErrorKind, IsTerminal as _, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::sync::LazyLock;
use tracing_subscriber::EnvFilter;

/// Version, build and the libraries that matter, for `--version`.
pub fn long_version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(|| {
        let versions = doctor::versions();
        let libraries: Vec<String> = versions
            .iter()
            .map(|(name, version)| format!("{name} {}", version.as_str().unwrap_or_default()))
            .collect();
        let build = if cfg!(debug_assertions) {
            "debug"
        } else {
            "release"
        };
        format!(
            "{} ({build}, {}-{}; {})",
            env!("CARGO_PKG_VERSION"),
            std::env::consts::ARCH,
            std::env::consts::OS,
            libraries.join(", ")
        )
    });
    &VERSION
}

/// Sends the log to standard error: warnings, what scenes print, and with a window what it does.
pub fn start_log(args: &Args) {
    let own = match (args.verbose, args.is_play()) {
        (0, false) => "warn",
        (0, true) | (1, _) => "info",
        (_, _) => "debug",
    };
    // wgpu and its parts report what this program reports itself, in their own words.
    let default = format!(
        "warn,winit=error,wgpu_core=error,wgpu_hal=off,naga=error,scene=info,splatstage={own}"
    );
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    let is_coloured = std::io::stderr().is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(is_coloured)
        .with_target(args.verbose > 0);
    if args.verbose > 0 {
        log.init();
    } else {
        log.without_time().init();
    }
}

/// Prints an error: one line on standard error with its causes, and with `--json` a document on
/// standard output. Returns the exit code.
pub fn report(error: &anyhow::Error, is_json: bool) -> ExitCode {
    if let Some(broken) = error.downcast_ref::<std::io::Error>()
        && broken.kind() == ErrorKind::BrokenPipe
    {
        // Whoever read the answer has seen enough (`trace | head`).
        return ExitCode::SUCCESS;
    }
    if error.is::<tools::Told>() {
        return ExitCode::FAILURE;
    }
    if is_json {
        // Without standard output there is still the line below.
        let _ = print_json(&json!({ "error": error_json(error) }));
    }
    eprintln!("error: {error:#}");
    if error.is::<Usage>() {
        ExitCode::from(2)
    } else {
        ExitCode::FAILURE
    }
}

fn error_json(error: &anyhow::Error) -> Value {
    if let Some(error) = error.downcast_ref::<formats::Error>() {
        return json!({
            "code": error.code.as_str(),
            "message": error.message,
            "file": error.file,
            "entry": error.entry,
        });
    }
    if let Some(error) = error.downcast_ref::<script::Error>() {
        return json!({
            "code": "script",
            "message": error.message,
            "file": error.file,
            "line": error.line,
        });
    }
    let code = if error.is::<Usage>() {
        "usage"
    } else {
        "failed"
    };
    json!({ "code": code, "message": format!("{error:#}") })
}

/// Does what the command line says.
pub fn run(args: Args) -> anyhow::Result<()> {
    match args.command {
        None => play(&args.play),
        Some(Command::Play(args)) => play(&args),
        Some(Command::Render(args)) => render(&args),
        Some(Command::Trace(args)) => trace(&args),
        Some(Command::Inspect(args)) => inspect(&args),
        Some(Command::Convert(args)) => convert(&args),
        Some(Command::Bundle(args)) => bundle(&args),
        Some(Command::Survey(args)) => survey(&args),
        Some(Command::Bench(args)) => bench(&args),
        Some(Command::Doctor(args)) => run_doctor(&args),
        Some(Command::New(args)) => tools::run_new(&args),
        Some(Command::Check(args)) => tools::run_check(&args),
        Some(Command::Test(args)) => tools::run_test(&args),
        Some(Command::Pack(args)) => tools::run_pack(&args),
        Some(Command::Api(args)) => tools::run_api(&args),
        Some(Command::Graph(args)) => tools::run_graph(&args),
        Some(Command::Params(args)) => tools::run_params(&args),
        Some(Command::Completions { shell }) => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Args::command(), "splatstage", &mut script);
            std::io::stdout().write_all(&script)?;
            Ok(())
        }
    }
}

fn print_json(document: &Value) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, document)?;
    writeln!(out)
}

fn print_text(text: &str) -> std::io::Result<()> {
    std::io::stdout().lock().write_all(text.as_bytes())
}

/// Size of what is rendered where there is no display, px: such a machine often has no GPU either.
const SAMPLE_PX: [u32; 2] = [640, 360];

fn play(args: &PlayArgs) -> anyhow::Result<()> {
    let options = args.options();
    let scene = options.scene.clone();
    let reason = if app::has_display() {
        match app::play(options) {
            Err(error) if error.is::<NoDisplay>() => format!("{error:#}"),
            played => return played,
        }
    } else {
        "no display: neither DISPLAY nor WAYLAND_DISPLAY is set".to_owned()
    };
    interrupt::listen();
    let length_s = offline::SAMPLE_S;
    eprintln!(
        "{reason}\nrendering {length_s} s of {} to out/ instead",
        args.scene
    );
    let draw = args.draw.options_with_default(SAMPLE_PX);
    for path in offline::render_sample(&scene, &draw, Path::new("out"))? {
        print_text(&format!("{}\n", path.display()))?;
    }
    Ok(())
}

fn render(args: &RenderArgs) -> anyhow::Result<()> {
    interrupt::listen();
    let mut scene = args.replay.applied(args.flags.options(&args.scene));
    scene.loop_s = args.loop_s;
    let out = args.out.as_deref();
    let is_still = out
        .and_then(|path| movie::Kind::of(path).ok())
        .is_some_and(movie::Kind::is_still);
    let span = args.span(is_still);
    let draw = args.draw.options();
    let report = offline::render(&scene, &draw, span, args.fps, out, &args.sound())?;
    if args.json {
        print_json(&report)?;
    } else if let Some(out) = out {
        if let Some(frames) = report["frames"].as_array() {
            eprintln!("{}: {}", out.display(), text::pictures(frames.len()));
        }
        if report["sound"].is_object() {
            eprintln!("{}", text::sound(&report["sound"]));
        }
    }
    Ok(())
}

fn trace(args: &TraceArgs) -> anyhow::Result<()> {
    interrupt::listen();
    let scene = args.replay.applied(args.flags.options(&args.scene));
    let draw = args.draw.options();
    let span = args.span.span();
    if args.json {
        let mut frames = Vec::new();
        offline::trace(&scene, &draw, span, args.rate(), |line| {
            frames.push(line.clone());
            Ok(())
        })?;
        return Ok(print_json(&json!({ "frames": frames }))?);
    }
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    offline::trace(&scene, &draw, span, args.rate(), |line| {
        Ok(writeln!(out, "{line}")?)
    })?;
    Ok(out.flush()?)
}

fn bench(args: &BenchArgs) -> anyhow::Result<()> {
    interrupt::listen();
    let scene = args.replay.applied(args.flags.options(&args.scene));
    let report = offline::bench(&scene, &args.draw.options(), args.at, args.count as usize)?;
    if args.json {
        print_json(&report)?;
    } else {
        print_text(&text::bench(&report))?;
    }
    Ok(())
}

fn run_doctor(args: &DoctorArgs) -> anyhow::Result<()> {
    if args.sound_only {
        return Ok(print_json(&doctor::sound())?);
    }
    let report = doctor::report();
    if args.json {
        print_json(&report)?;
    } else {
        print_text(&text::tree(&report))?;
    }
    Ok(())
}

/// Width and height of `inspect --thumbnail`, px.
const THUMBNAIL_PX: [u32; 2] = [512, 512];

fn inspect(args: &InspectArgs) -> anyhow::Result<()> {
    let file = &args.file;
    let thumbnail = args.thumbnail.as_deref();
    if let Some(path) = thumbnail
        && movie::Kind::of(path) != Ok(movie::Kind::Png)
    {
        let shown = path.display();
        bail!(Usage(format!("{shown}: a thumbnail's name ends in .png")));
    }
    let report = {
        let bar = Progress::new("loading");
        let options = LoadOptions {
            unpacked_bytes_max: args.max_unpacked,
            ..LoadOptions::default()
        };
        let loaded = formats::load(file, &options, &|share| bar.set(share))?;
        formats::inspect::report(&loaded)
    };
    if let Some(path) = thumbnail {
        let scene = SceneOptions {
            scene: file
                .to_str()
                .context("the file's name is not Unicode")?
                .to_owned(),
            unpacked_bytes_max: args.max_unpacked,
            ..SceneOptions::default()
        };
        offline::thumbnail(&scene, &DrawOptions::of_size(THUMBNAIL_PX), path)?;
    }
    if args.json {
        print_json(&report)?;
    } else {
        print_text(&text::tree(&report))?;
    }
    Ok(())
}

fn convert(args: &ConvertArgs) -> anyhow::Result<()> {
    let options = ConvertOptions {
        load: LoadOptions {
            level: args.level,
            axes: args.axes,
            unpacked_bytes_max: args.max_unpacked,
            ..LoadOptions::default()
        },
        to_axes: args.to_axes,
    };
    let bar = Progress::new("converting");
    let converted = formats::convert(&args.input, &args.output, &options, &|share| bar.set(share))?;
    let report = json!({
        "from": converted.from.as_str(),
        "to": converted.to.as_str(),
        "output": args.output,
        "count": converted.count,
        "axes": converted.axes.to_string(),
        "warnings": converted.warnings,
        "lost": converted.lost,
    });
    if args.json {
        print_json(&report)?;
    } else {
        print_text(&text::tree(&report))?;
    }
    Ok(())
}

fn bundle(args: &BundleArgs) -> anyhow::Result<()> {
    // Whole seconds are enough for "made at".
    let now = jiff::Timestamp::now().round(jiff::Unit::Second)?;
    let options = args.options(now.to_string());
    let bar = Progress::new("bundling");
    let bundled = splattie::bundle(&args.inputs, &args.out, &options, &|share| bar.set(share))?;
    let entries = bundled.entries.iter();
    let entries: Vec<Value> = entries
        .map(|(name, bytes)| json!({ "name": name, "bytes": bytes }))
        .collect();
    let report = json!({
        "output": args.out,
        "format_version": bundled.version,
        "asset_type": bundled.asset_type.as_str(),
        "count": bundled.count,
        "bones": bundled.bones,
        "weights": bundled.weights,
        "shapes": bundled.shapes,
        "entries": entries,
        "warnings": bundled.warnings,
        "lost": bundled.lost,
    });
    if args.json {
        print_json(&report)?;
    } else {
        print_text(&text::tree(&report))?;
    }
    Ok(())
}

fn survey(args: &SurveyArgs) -> anyhow::Result<()> {
    let report = app::survey(&args.options())?;
    if args.json {
        print_json(&report)?;
    } else {
        print_text(&text::survey(&report))?;
    }
    Ok(())
}
