//! Sound files as assets: bytes in, a [`Clip`] out that voices read samples of.
//!
//! Ogg Vorbis, WAV, FLAC and MP3 are decoded by rodio's decoders; what comes from outside is checked
//! here first, since those skip what they cannot read. A clip up to [`HELD_MAX_S`] is held decoded at
//! [`RATE_HZ`]. A longer one keeps its file's bytes and is decoded again by each voice that plays it,
//! a little ahead; going back starts over from the beginning, so that every sample is the same however
//! it was reached (a jump far into a long file costs about 1/300 of the time skipped).
//!
//! Other sample rates are converted by a windowed sinc that is looked up by exact fractions: a sample
//! depends on its number alone, as everything here must; that is why no resampling crate is used,
//! they carry state from call to call. A file cannot panic, hang or exhaust the host: sizes are
//! checked before allocation, and a decoder that panics is an error.

use super::{Error, RATE_HZ, Stereo};
use rodio::Source as _;
use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A file larger than this is refused.
pub const FILE_BYTES_MAX: u64 = 256 << 20;

/// A clip up to this length is held decoded (23 MB a minute), seconds.
pub const HELD_MAX_S: f64 = 60.0;

/// A file that decodes to more than this is refused, seconds.
pub const LENGTH_MAX_S: f64 = 4.0 * 3600.0;

/// Blend from the end of a looped clip into its beginning, seconds.
pub const LOOP_FADE_S: f64 = 0.05;

/// Sample rates that are read, hertz.
pub const RATES_HZ: std::ops::RangeInclusive<u32> = 4_000..=192_000;

/// Channels that are read; of more than two the first two play.
pub const CHANNELS_MAX: u16 = 8;

/// The beginning of a long clip that is held decoded all the same, for loops to come round to.
const HEAD_SAMPLES: usize = RATE_HZ as usize;

/// A decoded sound, or one that can be decoded at any time.
pub struct Clip {
    name: String,
    /// Of the file.
    rate_hz: u32,
    channels: u16,
    length: i64,
    body: Body,
    warnings: Vec<String>,
}

enum Body {
    Held(Vec<Stereo>),
    Streamed {
        bytes: Arc<[u8]>,
        head: Vec<Stereo>,
        resampler: Arc<Resampler>,
    },
}

impl std::fmt::Debug for Clip {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Clip")
            .field("name", &self.name)
            .field("length", &self.length)
            .field("is_held", &self.is_held())
            .finish_non_exhaustive()
    }
}

impl Clip {
    /// Reads a whole file once. `name` is the file as the user named it.
    ///
    /// # Errors
    /// No sound that is read here, a header that contradicts the bytes, or a size over a limit.
    pub fn decode(name: &str, bytes: Arc<[u8]>) -> Result<Self, Error> {
        Self::decode_holding(name, bytes, HELD_MAX_S)
    }

    /// As [`Clip::decode`], holding decoded what is at most `held_max_s` long.
    ///
    /// # Errors
    /// As there.
    pub fn decode_holding(name: &str, bytes: Arc<[u8]>, held_max_s: f64) -> Result<Self, Error> {
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(too_large(
                name,
                "the file",
                &format!("{} bytes", bytes.len()),
                &format!("{FILE_BYTES_MAX} bytes"),
            ));
        }
        let stated = check_header(name, &bytes)?;
        let read = catch_unwind(AssertUnwindSafe(|| read_all(name, &bytes, held_max_s)));
        let (mut track, native, count) = read.unwrap_or_else(|_| {
            Err(Error::UnknownFormat {
                file: name.to_owned(),
                found: "content that its decoder gives up on".to_owned(),
            })
        })?;
        let resampler = Arc::new(Resampler::new(track.rate_hz));
        let length = resampler.length(count);
        let seconds = count as f64 / f64::from(track.rate_hz);
        if let Some(warning) = stated.cut(name, count, seconds) {
            track.warnings.push(warning);
        }
        let is_held = native.len() as u64 == count;
        let samples = if is_held {
            length as usize
        } else {
            HEAD_SAMPLES
        };
        let decoded = (0..samples as i64)
            .map(|n| resampler.sample(n, &native, 0))
            .collect();
        let body = if is_held {
            Body::Held(decoded)
        } else {
            Body::Streamed {
                bytes,
                head: decoded,
                resampler,
            }
        };
        Ok(Self {
            name: name.to_owned(),
            rate_hz: track.rate_hz,
            channels: track.channels,
            length,
            body,
            warnings: track.warnings,
        })
    }

    /// A clip from samples that are there already, at [`RATE_HZ`].
    #[must_use]
    pub fn from_samples(name: &str, samples: Vec<Stereo>) -> Self {
        Self {
            name: name.to_owned(),
            rate_hz: RATE_HZ,
            channels: 2,
            length: samples.len() as i64,
            body: Body::Held(samples),
            warnings: Vec::new(),
        }
    }

    /// The file as the user named it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Channels of the file.
    #[must_use]
    pub fn channels(&self) -> u16 {
        self.channels
    }

    /// Sample rate of the file, hertz.
    #[must_use]
    pub fn rate_hz(&self) -> u32 {
        self.rate_hz
    }

    /// Length at [`RATE_HZ`].
    #[must_use]
    pub fn length_samples(&self) -> i64 {
        self.length
    }

    /// Whether all samples are held decoded.
    #[must_use]
    pub fn is_held(&self) -> bool {
        matches!(self.body, Body::Held(_))
    }

    /// What a person should know about the file: sentences that name it.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// All samples of a clip that is held.
    pub(super) fn held(&self) -> Option<&[Stereo]> {
        match &self.body {
            Body::Held(samples) => Some(samples),
            Body::Streamed { .. } => None,
        }
    }

    /// The error of a use that needs random access.
    pub(super) fn too_long_for(&self, what: &str) -> Error {
        Error::Unfit {
            file: self.name.clone(),
            why: format!(
                "{:.0} s are too long for {what}; use a piece of at most {HELD_MAX_S:.0} s",
                self.length as f64 / f64::from(RATE_HZ)
            ),
        }
    }

    /// Something to read samples with; each voice has its own. It can go back by `back` samples
    /// without starting over.
    pub(super) fn reader(self: &Arc<Self>, back: i64) -> Reader {
        Reader {
            clip: Arc::clone(self),
            back,
            stream: None,
            near: Vec::new(),
            far: Vec::new(),
        }
    }
}

fn too_large(file: &str, what: &'static str, found: &str, most: &str) -> Error {
    Error::TooLarge {
        file: file.to_owned(),
        what,
        found: found.to_owned(),
        most: most.to_owned(),
    }
}

/// A decoder over a file's bytes.
type Decoder = rodio::Decoder<Cursor<Arc<[u8]>>>;

/// What is known of the stream of samples in a file.
struct Track {
    rate_hz: u32,
    channels: u16,
    warnings: Vec<String>,
}

fn open(name: &str, bytes: &Arc<[u8]>) -> Result<(Decoder, Track), Error> {
    let decoder = rodio::Decoder::builder()
        .with_data(Cursor::new(Arc::clone(bytes)))
        .with_byte_len(bytes.len() as u64)
        .build()
        .map_err(|error| Error::UnknownFormat {
            file: name.to_owned(),
            found: error.to_string(),
        })?;
    let (rate_hz, channels) = (decoder.sample_rate().get(), decoder.channels().get());
    if !RATES_HZ.contains(&rate_hz) || channels > CHANNELS_MAX {
        return Err(Error::Malformed {
            file: name.to_owned(),
            what: "the header".to_owned(),
            found: format!("{rate_hz} Hz, {channels} channels"),
            expected: format!(
                "{} to {} Hz, 1 to {CHANNELS_MAX} channels",
                RATES_HZ.start(),
                RATES_HZ.end()
            ),
        });
    }
    let track = Track {
        rate_hz,
        channels,
        warnings: Vec::new(),
    };
    Ok((decoder, track))
}

/// The next sample of each channel as left and right; `None` at the end.
fn next_stereo(decoder: &mut Decoder, channels: u16) -> Option<Stereo> {
    let left = finite(decoder.next()?);
    if channels == 1 {
        return Some([left; 2]);
    }
    let right = finite(decoder.next()?);
    for _ in 2..channels {
        decoder.next()?;
    }
    Some([left, right])
}

fn finite(sample: f32) -> f32 {
    if sample.is_finite() { sample } else { 0.0 }
}

/// Decodes once through. Gives all samples at the file's own rate, or of a long file as many as its
/// head needs, and their true count.
fn read_all(
    name: &str,
    bytes: &Arc<[u8]>,
    held_max_s: f64,
) -> Result<(Track, Vec<Stereo>, u64), Error> {
    let (mut decoder, mut track) = open(name, bytes)?;
    let rate = f64::from(track.rate_hz);
    let (held_max, most) = ((held_max_s * rate) as u64, (LENGTH_MAX_S * rate) as u64);
    let head = track.rate_hz as usize + 2 * Resampler::reach(track.rate_hz) as usize;
    let mut native = Vec::new();
    let mut count = 0_u64;
    while let Some(sample) = next_stereo(&mut decoder, track.channels) {
        count += 1;
        if count <= held_max.max(head as u64) {
            native.push(sample);
        }
        if count > most {
            let most_s = format!("{LENGTH_MAX_S} s");
            return Err(too_large(name, "the length", "more than that", &most_s));
        }
        // A chained file may go on in another layout; what follows would be noise.
        if count.is_multiple_of(1024)
            && (decoder.channels().get(), decoder.sample_rate().get())
                != (track.channels, track.rate_hz)
        {
            track.warnings.push(format!(
                "{name}: rate or channels change after {:.2} s; what comes before plays",
                count as f64 / rate
            ));
            break;
        }
    }
    if count == 0 {
        return Err(Error::Malformed {
            file: name.to_owned(),
            what: "the file".to_owned(),
            found: "0 samples".to_owned(),
            expected: "at least 1".to_owned(),
        });
    }
    if count > held_max {
        native.truncate(head);
        native.shrink_to_fit();
    }
    if track.channels > 2 {
        track.warnings.push(format!(
            "{name}: {} channels; the first two play",
            track.channels
        ));
    }
    Ok((track, native, count))
}

/// What a header says about the length, to compare with what was decoded.
enum Stated {
    /// Nothing, or nothing that can be checked.
    Nothing,
    /// The place where the file breaks off.
    Cut(String),
    /// Samples a channel.
    Samples(u64),
}

impl Stated {
    /// The warning of a file that ends early.
    fn cut(&self, name: &str, count: u64, seconds: f64) -> Option<String> {
        match self {
            Self::Cut(place) => Some(format!(
                "{name}: cut off ({place}); the {seconds:.2} s that are there play"
            )),
            Self::Samples(stated) if *stated > count => Some(format!(
                "{name}: cut off (the header says {stated} samples, {count} are there); \
                 the {seconds:.2} s that are there play"
            )),
            _ => None,
        }
    }
}

/// Looks at what a header claims before anybody believes it.
fn check_header(name: &str, bytes: &[u8]) -> Result<Stated, Error> {
    if bytes.starts_with(b"RIFF") {
        return check_wav(name, bytes).map(|()| Stated::Nothing);
    }
    if bytes.starts_with(b"OggS") {
        return check_ogg(name, bytes);
    }
    if bytes.starts_with(b"fLaC") {
        // STREAMINFO comes first; its total is the low 36 bits of bytes 10 to 17 (RFC 9639, 8.2).
        let total = bytes.get(18..26).map(|field| {
            field
                .iter()
                .fold(0_u64, |all, byte| all << 8 | u64::from(*byte))
                & ((1 << 36) - 1)
        });
        return Ok(total.map_or(Stated::Nothing, Stated::Samples));
    }
    let is_mp3 =
        bytes.starts_with(b"ID3") || matches!(bytes, [0xFF, second, ..] if second & 0xE0 == 0xE0);
    if is_mp3 {
        return Ok(Stated::Nothing);
    }
    let first: Vec<String> = bytes.iter().take(8).map(|b| format!("{b:02x}")).collect();
    Err(Error::UnknownFormat {
        file: name.to_owned(),
        found: if first.is_empty() {
            "an empty file".to_owned()
        } else {
            format!("a file that begins with {}", first.join(" "))
        },
    })
}

fn little_16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes
        .get(at..)?
        .first_chunk()
        .map(|b| u16::from_le_bytes(*b))
}

fn little_32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes
        .get(at..)?
        .first_chunk()
        .map(|b| u32::from_le_bytes(*b))
}

/// Walks the chunks of a RIFF file (Multimedia Programming Interface and Data Specifications 1.0).
fn check_wav(name: &str, bytes: &[u8]) -> Result<(), Error> {
    let malformed = |what: &str, found: String, expected: String| Error::Malformed {
        file: name.to_owned(),
        what: what.to_owned(),
        found,
        expected,
    };
    if bytes.get(8..12) != Some(b"WAVE") {
        return Err(malformed(
            "the RIFF header",
            "another kind than WAVE".to_owned(),
            "WAVE".to_owned(),
        ));
    }
    let (mut at, mut has_format) = (12_usize, false);
    while let (Some(id), Some(size)) = (bytes.get(at..at + 4), little_32(bytes, at + 4)) {
        let (body, left) = (at + 8, bytes.len() - at - 8);
        if size as usize > left {
            let id = String::from_utf8_lossy(id).trim().to_owned();
            return Err(malformed(
                &format!("the size of chunk {id:?}"),
                format!("{size} bytes"),
                format!("at most the {left} bytes that follow"),
            ));
        }
        if id == b"fmt " {
            let field = |offset| little_16(bytes, body + offset).map_or(0, u32::from);
            let rate_hz = little_32(bytes, body + 4).unwrap_or(0);
            let (channels, align, bits) = (field(2), field(12), field(14));
            if size < 16 || channels == 0 || channels > u32::from(CHANNELS_MAX) {
                return Err(malformed(
                    "the format chunk",
                    format!("{channels} channels in {size} bytes"),
                    format!("1 to {CHANNELS_MAX} channels in 16 bytes or more"),
                ));
            }
            if !RATES_HZ.contains(&rate_hz) {
                return Err(malformed(
                    "the sample rate",
                    format!("{rate_hz} Hz"),
                    format!("{} to {} Hz", RATES_HZ.start(), RATES_HZ.end()),
                ));
            }
            // Plain and extensible PCM and floats; packed kinds align as they like.
            if matches!(field(0), 1 | 3 | 0xFFFE) && align != channels * bits.div_ceil(8) {
                return Err(malformed(
                    "the block size",
                    format!("{align} bytes"),
                    format!(
                        "{} for {channels} channels of {bits} bits",
                        channels * bits.div_ceil(8)
                    ),
                ));
            }
            has_format = true;
        }
        if id == b"data" {
            if !has_format {
                break;
            }
            return Ok(());
        }
        // Chunks are padded to even sizes.
        at = body + size as usize + (size as usize & 1);
    }
    Err(malformed(
        "the list of chunks",
        if has_format {
            "no data chunk".to_owned()
        } else {
            "no format chunk before the data".to_owned()
        },
        "a format chunk and then a data chunk".to_owned(),
    ))
}

/// Walks the pages of an Ogg file (RFC 3533, section 6).
fn check_ogg(name: &str, bytes: &[u8]) -> Result<Stated, Error> {
    let (mut at, mut is_ended) = (0_usize, false);
    while at < bytes.len() {
        let rest = &bytes[at..];
        if !rest.starts_with(b"OggS") {
            return Ok(Stated::Cut(format!("no page at byte {at}")));
        }
        let segments = rest.get(26).map_or(0, |&count| usize::from(count));
        let Some(table) = rest.get(27..27 + segments) else {
            return Ok(Stated::Cut(format!("in the page at byte {at}")));
        };
        let size = 27 + segments + table.iter().map(|&s| usize::from(s)).sum::<usize>();
        let Some(page) = rest.get(..size) else {
            return Ok(Stated::Cut(format!(
                "in the page at byte {at}: {size} bytes, {} are there",
                rest.len()
            )));
        };
        if at == 0 {
            let packet = &page[27 + segments..];
            if !packet.starts_with(b"\x01vorbis") {
                let magic = String::from_utf8_lossy(&packet[..packet.len().min(8)]).into_owned();
                return Err(Error::UnknownFormat {
                    file: name.to_owned(),
                    found: format!("an Ogg file with {magic:?} in it"),
                });
            }
        }
        is_ended = rest[5] & 4 != 0;
        at += size;
    }
    Ok(if is_ended {
        Stated::Nothing
    } else {
        Stated::Cut("the last page is not marked as the end".to_owned())
    })
}

/// Converts sample rates by a windowed sinc (Kaiser, beta 8: -80 dB), sample by sample.
struct Resampler {
    /// The native position of sample n is n * `step.0` / `step.1`.
    step: (i64, i64),
    /// Native samples on each side of a position that count.
    reach: i64,
    /// A row of `2 * reach` weights for each fraction.
    weights: Vec<f32>,
}

impl Resampler {
    /// Zero crossings of the sinc on each side.
    const CROSSINGS: f64 = 32.0;

    /// The middle of the edge, as a share of the lower of both half rates: the edge is 0.16 wide.
    const EDGE: f64 = 0.92;

    fn reach(rate_hz: u32) -> i64 {
        let slower = (f64::from(RATE_HZ) / f64::from(rate_hz)).min(1.0);
        (Self::CROSSINGS / (slower * Self::EDGE)).ceil() as i64
    }

    fn new(rate_hz: u32) -> Self {
        let (mut a, mut b) = (rate_hz, RATE_HZ);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        let step = (i64::from(rate_hz / a), i64::from(RATE_HZ / a));
        let reach = Self::reach(rate_hz);
        let cutoff = (f64::from(RATE_HZ) / f64::from(rate_hz)).min(1.0) * Self::EDGE;
        let mut weights = Vec::new();
        if rate_hz != RATE_HZ {
            for phase in 0..step.1 {
                let fraction = phase as f64 / step.1 as f64;
                let row: Vec<f64> = (1 - reach..=reach)
                    .map(|offset| {
                        let x = offset as f64 - fraction;
                        sinc(x * cutoff) * kaiser(x / reach as f64, 8.0)
                    })
                    .collect();
                // Rows that sum to 1 keep a constant constant.
                let sum: f64 = row.iter().sum();
                weights.extend(row.iter().map(|w| (w / sum) as f32));
            }
        }
        Self {
            step,
            reach,
            weights,
        }
    }

    /// Samples at [`RATE_HZ`] that `native` samples make.
    fn length(&self, native: u64) -> i64 {
        (native * self.step.1.unsigned_abs()).div_ceil(self.step.0.unsigned_abs()) as i64
    }

    /// First and last native sample that samples `first..=last` need.
    fn needs(&self, first: i64, last: i64) -> (i64, i64) {
        if self.weights.is_empty() {
            return (first, last);
        }
        let at = |n: i64| (n * self.step.0).div_euclid(self.step.1);
        (at(first) + 1 - self.reach, at(last) + self.reach)
    }

    /// Sample `n`; `native` begins with native sample `start`, what lies outside of it is silent.
    fn sample(&self, n: i64, native: &[Stereo], start: i64) -> Stereo {
        let native_at = |i: i64| {
            usize::try_from(i - start)
                .ok()
                .and_then(|i| native.get(i))
                .copied()
                .unwrap_or_default()
        };
        if self.weights.is_empty() {
            return native_at(n);
        }
        let position = n * self.step.0;
        let (whole, phase) = (
            position.div_euclid(self.step.1),
            position.rem_euclid(self.step.1),
        );
        let taps = 2 * self.reach as usize;
        let row = &self.weights[phase as usize * taps..][..taps];
        let first = whole + 1 - self.reach;
        let mut sum = [0.0_f32; 2];
        let inside = usize::try_from(first - start)
            .ok()
            .and_then(|begin| native.get(begin..begin + taps));
        if let Some(samples) = inside {
            for (weight, sample) in row.iter().zip(samples) {
                sum[0] += weight * sample[0];
                sum[1] += weight * sample[1];
            }
        } else {
            for (weight, i) in row.iter().zip(first..) {
                let sample = native_at(i);
                sum[0] += weight * sample[0];
                sum[1] += weight * sample[1];
            }
        }
        sum
    }
}

pub(super) fn sinc(x: f64) -> f64 {
    let angle = std::f64::consts::PI * x;
    if angle.abs() < 1e-9 {
        1.0
    } else {
        angle.sin() / angle
    }
}

/// Kaiser's window over -1 to 1.
pub(super) fn kaiser(x: f64, beta: f64) -> f64 {
    // The modified Bessel function of order 0 by its series; 32 terms are exact for beta up to 12.
    let bessel = |x: f64| {
        let (mut sum, mut term) = (1.0, 1.0);
        for k in 1..32 {
            term *= (x / 2.0 / f64::from(k)).powi(2);
            sum += term;
        }
        sum
    };
    if x.abs() > 1.0 {
        return 0.0;
    }
    bessel(beta * (1.0 - x * x).sqrt()) / bessel(beta)
}

/// Reads samples of a clip for one voice.
pub(super) struct Reader {
    clip: Arc<Clip>,
    back: i64,
    stream: Option<Stream>,
    near: Vec<Stereo>,
    far: Vec<Stereo>,
}

/// A decoder somewhere in a long file, with the samples around that place.
struct Stream {
    /// `None` after the end.
    decoder: Option<Decoder>,
    /// Native samples.
    window: Vec<Stereo>,
    /// Number of the window's first.
    start: i64,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader")
            .field("clip", &self.clip)
            .finish_non_exhaustive()
    }
}

impl Reader {
    /// Samples `first..` of a voice that starts at sample `from` of the clip.
    pub(super) fn fill(
        &mut self,
        from: f64,
        speed: f64,
        is_looped: bool,
        first: i64,
        out: &mut [[f64; 2]],
    ) {
        if speed != 1.0 {
            self.fill_at_speed(from, speed, is_looped, first, out);
            return;
        }
        let mut at = from.round() as i64 + first;
        if !is_looped {
            self.copy(at, out);
            return;
        }
        // Cut at the places where a loop goes from blend to plain and from plain to blend.
        let fade = self.fade();
        let period = self.clip.length - fade;
        let mut rest = out;
        while !rest.is_empty() {
            let (round, in_loop) = (at.div_euclid(period), at.rem_euclid(period));
            let is_blend = in_loop < fade && round > 0;
            let until = if is_blend { fade } else { period };
            let count = rest.len().min((until - in_loop) as usize);
            let (piece, after) = rest.split_at_mut(count);
            self.copy(in_loop, piece);
            if is_blend {
                let mut tail = std::mem::take(&mut self.far);
                tail.resize(count, [0.0; 2]);
                self.read(period + in_loop, &mut tail);
                for ((i, sample), tail) in (in_loop..).zip(piece).zip(&tail) {
                    let (up, down) = loop_weights(i as f64, fade);
                    for (value, tail) in sample.iter_mut().zip(tail) {
                        *value = *value * up + f64::from(*tail) * down;
                    }
                }
                self.far = tail;
            }
            rest = after;
            at += count as i64;
        }
    }

    /// Samples of the blend of a loop; a clip shorter than two blends has a shorter one.
    fn fade(&self) -> i64 {
        ((LOOP_FADE_S * f64::from(RATE_HZ)) as i64).min(self.clip.length / 2)
    }

    fn copy(&mut self, first: i64, out: &mut [[f64; 2]]) {
        let mut near = std::mem::take(&mut self.near);
        near.resize(out.len(), [0.0; 2]);
        self.read(first, &mut near);
        for (sample, read) in out.iter_mut().zip(&near) {
            *sample = read.map(f64::from);
        }
        self.near = near;
    }

    /// Cubic Hermite between the samples: a little dull above 15 kHz, which is what a step that is
    /// slowed down sounds like anyway.
    fn fill_at_speed(
        &mut self,
        from: f64,
        speed: f64,
        is_looped: bool,
        first: i64,
        out: &mut [[f64; 2]],
    ) {
        let (fade, length) = (self.fade(), self.clip.length);
        let period = length - fade;
        // `Source::check` lets only held clips through.
        let Some(held) = self.clip.held() else { return };
        let plain = |i: i64| {
            let sample = usize::try_from(i).ok().and_then(|i| held.get(i));
            sample.copied().unwrap_or_default().map(f64::from)
        };
        let at = |i: i64| {
            if !is_looped || i < fade {
                return plain(i);
            }
            let in_loop = i.rem_euclid(period);
            let sample = plain(in_loop);
            if in_loop >= fade || i < period {
                return sample;
            }
            let (up, down) = loop_weights(in_loop as f64, fade);
            let tail = plain(period + in_loop);
            [
                sample[0] * up + tail[0] * down,
                sample[1] * up + tail[1] * down,
            ]
        };
        for (n, sample) in (first..).zip(out) {
            let position = from + n as f64 * speed;
            let whole = position.floor();
            let (i, f) = (whole as i64, position - whole);
            let [p0, p1, p2, p3] = [at(i - 1), at(i), at(i + 1), at(i + 2)];
            for lane in 0..2 {
                let (m1, m2) = (0.5 * (p2[lane] - p0[lane]), 0.5 * (p3[lane] - p1[lane]));
                let step = p2[lane] - p1[lane];
                sample[lane] = p1[lane]
                    + f * (m1 + f * (3.0 * step - 2.0 * m1 - m2 + f * (m1 + m2 - 2.0 * step)));
            }
        }
    }

    /// Samples of the clip itself; outside of it is silence.
    fn read(&mut self, first: i64, out: &mut [Stereo]) {
        match &self.clip.body {
            Body::Held(samples) => copy_from(samples, 0, first, out),
            Body::Streamed {
                bytes,
                head,
                resampler,
            } => {
                let last = (first + out.len() as i64).min(self.clip.length) - 1;
                if last < head.len() as i64 {
                    copy_from(head, 0, first, out);
                    return;
                }
                let stream = self.stream.get_or_insert_with(|| Stream {
                    decoder: None,
                    window: Vec::new(),
                    start: i64::MAX,
                });
                let (from, to) = resampler.needs(first.max(0), last);
                let (keep, _) = resampler.needs(first - self.back, last);
                stream.reach(&self.clip, bytes, [keep, from.max(0), to]);
                for (n, sample) in (first..).zip(out) {
                    *sample = if n < 0 || n > last {
                        [0.0; 2]
                    } else if let Some(held) = head.get(n as usize) {
                        *held
                    } else {
                        resampler.sample(n, &stream.window, stream.start)
                    };
                }
            }
        }
    }
}

/// Shares of beginning and end in the blend of a loop: of equal power.
fn loop_weights(in_loop: f64, fade: i64) -> (f64, f64) {
    let (up, down) = (std::f64::consts::FRAC_PI_2 * in_loop / fade as f64).sin_cos();
    (up, down)
}

/// Copies what `samples`, which begin with number `start`, have of `first..`.
fn copy_from(samples: &[Stereo], start: i64, first: i64, out: &mut [Stereo]) {
    for (n, sample) in (first - start..).zip(out) {
        let held = usize::try_from(n).ok().and_then(|n| samples.get(n));
        *sample = held.copied().unwrap_or_default();
    }
}

impl Stream {
    /// Native samples that are decoded in one go.
    const STRETCH: usize = 4096;

    /// Makes the window hold native samples `from..=to`, as far as there are any; what lies before
    /// `keep` may go.
    fn reach(&mut self, clip: &Clip, bytes: &Arc<[u8]>, [keep, from, to]: [i64; 3]) {
        if from < self.start {
            // The bytes were decoded once before, so this cannot fail; if it did, silence follows.
            self.decoder = open(&clip.name, bytes).ok().map(|(decoder, _)| decoder);
            self.window.clear();
            self.start = 0;
        }
        while self.start + self.window.len() as i64 <= to {
            let Some(decoder) = &mut self.decoder else {
                return;
            };
            let passed = usize::try_from(keep - self.start).unwrap_or(0);
            if passed >= Self::STRETCH {
                let passed = passed.min(self.window.len());
                self.window.drain(..passed);
                self.start += passed as i64;
            }
            for _ in 0..Self::STRETCH {
                let Some(sample) = next_stereo(decoder, clip.channels) else {
                    self.decoder = None;
                    return;
                };
                self.window.push(sample);
            }
        }
    }
}
