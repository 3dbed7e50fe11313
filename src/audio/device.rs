//! Devices that samples go to: the system's, and any that a test brings along.
//!
//! A device is handed a [`Feed`] and takes samples out of it at its own pace, on its own thread.
//! Taking one allocates nothing, locks nothing and waits for nobody: samples come through a lock-free
//! ring (rtrb); where there are none it is silence, and counted.

use super::{RATE_HZ, Stereo};
use rodio::cpal::ErrorKind;
use rodio::cpal::traits::HostTrait as _;
use rodio::{ChannelCount, DeviceSinkBuilder, SampleRate, cpal};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Samples that are asked for at a time, where the system lets us choose: 21 ms.
const BUFFER_SAMPLES: u32 = 1024;

/// Something that plays samples.
pub trait Device: Send {
    /// Whether it is worth trying to open it. Must be quick and print nothing.
    fn is_there(&self) -> bool;

    /// Starts playing what the feed gives. Called on the sound thread, may take its time.
    ///
    /// # Errors
    /// Why it cannot be opened, as a sentence without a full stop.
    fn open(&mut self, feed: Feed) -> Result<Box<dyn Playing>, String>;
}

/// A device that plays; dropping it stops it.
pub trait Playing {
    /// What plays, for the log.
    fn name(&self) -> String;
}

/// What the sound thread and a device tell each other.
#[derive(Debug, Default)]
pub(super) struct Status {
    /// Samples that the device has taken.
    pub(super) taken: AtomicU64,
    /// Samples that were not there when the device wanted them.
    pub(super) missed: AtomicU64,
    pub(super) is_lost: AtomicBool,
    why_lost: Mutex<String>,
}

impl Status {
    pub(super) fn lose(&self, why: String) {
        *self.why_lost.lock().unwrap_or_else(PoisonError::into_inner) = why;
        self.is_lost.store(true, Ordering::Release);
    }

    pub(super) fn why_lost(&self) -> String {
        self.why_lost
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// Where a device takes samples from.
#[derive(Debug)]
pub struct Feed {
    samples: rtrb::Consumer<Stereo>,
    status: Arc<Status>,
    is_begun: bool,
}

impl Feed {
    pub(super) fn new(samples: rtrb::Consumer<Stereo>, status: Arc<Status>) -> Self {
        Self {
            samples,
            status,
            is_begun: false,
        }
    }

    /// The next sample, at [`RATE_HZ`].
    pub fn take(&mut self) -> Stereo {
        if let Ok(sample) = self.samples.pop() {
            self.is_begun = true;
            self.status.taken.fetch_add(1, Ordering::Relaxed);
            return sample;
        }
        // Before the first sample nothing is late.
        if self.is_begun {
            self.status.missed.fetch_add(1, Ordering::Relaxed);
        }
        [0.0; 2]
    }

    /// Something to say with, from any thread, that the device is gone.
    #[must_use]
    pub fn alarm(&self) -> Alarm {
        Alarm(Arc::clone(&self.status))
    }
}

/// Says that a device is gone.
#[derive(Clone, Debug)]
pub struct Alarm(Arc<Status>);

impl Alarm {
    /// The device is gone; `why` as a sentence without a full stop.
    pub fn lose(&self, why: impl Into<String>) {
        self.0.lose(why.into());
    }
}

/// The system's default output.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemDevice;

impl Device for SystemDevice {
    /// On Linux, asking ALSA for a card that is not there prints twenty lines; so first it is looked
    /// for where cards and sound servers show. Elsewhere asking is silent.
    fn is_there(&self) -> bool {
        if !cfg!(target_os = "linux") || std::env::var_os("PULSE_SERVER").is_some() {
            return true;
        }
        let exists = |path: &str| std::path::Path::new(path).exists();
        let servers = std::env::var("XDG_RUNTIME_DIR").unwrap_or_default();
        exists(&format!("{servers}/pulse/native"))
            || exists(&format!("{servers}/pipewire-0"))
            || (0..8).any(|card| exists(&format!("/proc/asound/card{card}")))
    }

    fn open(&mut self, feed: Feed) -> Result<Box<dyn Playing>, String> {
        let device = cpal::default_host()
            .default_output_device()
            .ok_or("there is no output device")?;
        let alarm = feed.alarm();
        let on_error = move |error: cpal::Error| match error.kind() {
            // The stream goes on after these.
            ErrorKind::DeviceChanged | ErrorKind::RealtimeDenied | ErrorKind::Xrun => {}
            _ => alarm.lose(error.to_string()),
        };
        let builder = || {
            DeviceSinkBuilder::from_device(device.clone())
                .map(|builder| builder.with_error_callback(on_error.clone()))
        };
        let mut sink = builder()
            .map(|wished| {
                wished
                    .with_buffer_size(cpal::BufferSize::Fixed(BUFFER_SAMPLES))
                    .with_sample_rate(RATE)
                    .with_channels(STEREO)
            })
            .and_then(rodio::DeviceSinkBuilder::open_stream)
            // Not every device has this layout; then rodio converts.
            .or_else(|_| builder()?.open_sink_or_fallback())
            .map_err(|error| sentence(&error))?;
        sink.log_on_drop(false);
        sink.mixer().add(Interleaved { feed, right: None });
        Ok(Box::new(SystemPlaying(sink)))
    }
}

/// An error and what it came from in one line.
fn sentence(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

const STEREO: ChannelCount = ChannelCount::new(2).expect("2 is not 0");
const RATE: SampleRate = SampleRate::new(RATE_HZ).expect("the rate is not 0");

struct SystemPlaying(rodio::MixerDeviceSink);

impl Playing for SystemPlaying {
    fn name(&self) -> String {
        let config = self.0.config();
        format!(
            "{} Hz, {} channels",
            config.sample_rate(),
            config.channel_count()
        )
    }
}

/// The feed as rodio takes it: left and right in turn, for ever.
struct Interleaved {
    feed: Feed,
    right: Option<f32>,
}

impl Iterator for Interleaved {
    type Item = f32;

    fn next(&mut self) -> Option<f32> {
        if let Some(right) = self.right.take() {
            return Some(right);
        }
        let [left, right] = self.feed.take();
        self.right = Some(right);
        Some(left)
    }
}

impl rodio::Source for Interleaved {
    fn current_span_len(&self) -> Option<usize> {
        None
    }

    fn channels(&self) -> ChannelCount {
        STEREO
    }

    fn sample_rate(&self) -> SampleRate {
        RATE
    }

    fn total_duration(&self) -> Option<Duration> {
        None
    }
}
