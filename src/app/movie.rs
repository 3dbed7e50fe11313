//! Pictures into files: PNG (one or a numbered sequence), GIF and WebP loops, Y4M, and whatever
//! ffmpeg makes.
//!
//! Nothing half-made ever has the final name: each file is written beside it and renamed when it is
//! whole; when writing stops early the temporary file goes. Formats without alpha get the picture
//! over black.
//!
//! Y4M is 4:4:4, 8 bit, BT.709, limited range (ITU-R BT.709-6 section 3): every pixel keeps its own
//! chroma and any size is allowed. MP4, MKV and WebM are 4:2:0 with the same matrix and range.
//! Animated WebP follows Google's "WebP Container Specification"; the frames are lossless.

use crate::gpu::Picture;
use anyhow::{Context as _, bail};
use image::{ExtendedColorType, ImageEncoder as _};
use std::ffi::OsStr;
use std::io::{BufWriter, Read as _, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use tempfile::{NamedTempFile, TempPath};

/// What a file name's ending asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One picture.
    Png,
    /// `name-%05d.png`: one numbered picture a frame.
    PngSequence,
    /// An endless loop of 256 colours a frame.
    Gif,
    /// One lossless picture, or an endless loop of them.
    Webp,
    /// Raw video, see the module's docs.
    Y4m,
    /// Encoded by ffmpeg.
    Ffmpeg,
    /// Sound alone, no picture; [`super::soundtrack`] writes it.
    Wav,
}

impl Kind {
    /// Told by the ending of `path`.
    ///
    /// # Errors
    /// An ending that cannot be written, with those that can.
    pub fn of(path: &Path) -> Result<Self, String> {
        let extension = path
            .extension()
            .and_then(OsStr::to_str)
            .unwrap_or_default()
            .to_ascii_lowercase();
        match extension.as_str() {
            "png" if Pattern::parse(&name_of(path)).is_some() => Ok(Self::PngSequence),
            "png" => Ok(Self::Png),
            "gif" => Ok(Self::Gif),
            "webp" => Ok(Self::Webp),
            "y4m" => Ok(Self::Y4m),
            "mp4" | "mkv" | "webm" => Ok(Self::Ffmpeg),
            "wav" => Ok(Self::Wav),
            _ => Err(format!(
                "{}: cannot write this kind of file: give a name that ends in .png (%05d in it \
                 for a sequence), .gif, .webp, .y4m, .mp4, .mkv, .webm or .wav",
                path.display()
            )),
        }
    }

    /// Whether one file holds one picture only.
    #[must_use]
    pub fn is_still(self) -> bool {
        self == Self::Png
    }

    /// Whether a WAV file with the scene's sound comes beside it.
    #[must_use]
    pub fn has_sound(self) -> bool {
        matches!(self, Self::Y4m | Self::Ffmpeg | Self::Wav)
    }

    /// Shown again and again by whoever shows it.
    #[must_use]
    pub fn is_loop(self) -> bool {
        matches!(self, Self::Gif | Self::Webp)
    }
}

/// A file, or a sequence of them, being written.
pub struct Movie {
    path: PathBuf,
    size: [u32; 2],
    fps: f64,
    written: u64,
    body: Body,
}

enum Body {
    Png,
    PngSequence(Pattern),
    Gif(Box<gif::Encoder<BufWriter<NamedTempFile>>>),
    Webp(Vec<WebpFrame>),
    Y4m(BufWriter<NamedTempFile>),
    Ffmpeg(Ffmpeg),
}

impl Movie {
    /// Starts writing `path` with pictures of `size` pixels, `fps` of them a second.
    ///
    /// # Errors
    /// The folder cannot be written, or ffmpeg is needed and not there.
    pub fn create(path: &Path, size: [u32; 2], fps: f64) -> anyhow::Result<Self> {
        Self::create_with_sound(path, size, fps, None)
    }

    /// As [`Movie::create`]; what ffmpeg makes gets the sound of a file that is there.
    ///
    /// # Errors
    /// As there.
    pub fn create_with_sound(
        path: &Path,
        size: [u32; 2],
        fps: f64,
        sound: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let body = match Kind::of(path).map_err(anyhow::Error::msg)? {
            Kind::Png => Body::Png,
            Kind::PngSequence => {
                Body::PngSequence(Pattern::parse(&name_of(path)).context("no %d in the name")?)
            }
            Kind::Gif => {
                let [width, height] = gif_size(size)?;
                let file = BufWriter::new(temporary(path)?);
                let mut encoder = gif::Encoder::new(file, width, height, &[])?;
                encoder.set_repeat(gif::Repeat::Infinite)?;
                if fps > 50.0 {
                    tracing::warn!("GIF players slow down above 50 pictures a second");
                }
                Body::Gif(Box::new(encoder))
            }
            Kind::Webp => Body::Webp(Vec::new()),
            Kind::Y4m => {
                let mut file = BufWriter::new(temporary(path)?);
                let [width, height] = size;
                let [rate, base] = rational(fps);
                writeln!(
                    file,
                    "YUV4MPEG2 W{width} H{height} F{rate}:{base} Ip A1:1 C444 XCOLORRANGE=LIMITED"
                )?;
                Body::Y4m(file)
            }
            Kind::Ffmpeg => Body::Ffmpeg(Ffmpeg::start(path, size, fps, sound)?),
            Kind::Wav => bail!("{}: a sound file holds no pictures", path.display()),
        };
        Ok(Self {
            path: path.to_owned(),
            size,
            fps,
            written: 0,
            body,
        })
    }

    /// Adds the next picture. `number` is what a sequence calls it; `keep_alpha` says that the
    /// picture's alpha means something.
    ///
    /// # Errors
    /// The disk is full, the folder is gone, ffmpeg has stopped.
    pub fn add(&mut self, picture: &Picture, number: u64, keep_alpha: bool) -> anyhow::Result<()> {
        debug_assert_eq!(picture.size, self.size, "one size a movie");
        // Frame times are rounded, not durations, so that a loop keeps its length.
        let tick = |k: u64, per_second: f64| (k as f64 / self.fps * per_second).round() as u32;
        let ticks =
            |per_second| tick(self.written + 1, per_second) - tick(self.written, per_second);
        match &mut self.body {
            Body::Png => write_png(&self.path, picture, keep_alpha)?,
            Body::PngSequence(pattern) => {
                let path = self.path.with_file_name(pattern.name(number));
                write_png(&path, picture, keep_alpha)?;
            }
            Body::Gif(encoder) => {
                let [width, height] = gif_size(self.size)?;
                // 10 of 1 (best) to 30 (fastest) is what the quantiser's author recommends.
                let mut frame = if keep_alpha {
                    gif::Frame::from_rgba_speed(width, height, &mut clear_or_solid(picture), 10)
                } else {
                    gif::Frame::from_rgb_speed(width, height, &over_black(picture), 10)
                };
                if keep_alpha {
                    // Each picture is whole: nothing of the last one stays behind its clear parts.
                    frame.dispose = gif::DisposalMethod::Background;
                }
                frame.delay = u16::try_from(ticks(100.0)).unwrap_or(u16::MAX);
                encoder.write_frame(&frame)?;
            }
            Body::Webp(frames) => frames.push(WebpFrame {
                chunk: webp_chunk(picture, keep_alpha)?,
                duration_ms: ticks(1000.0),
                has_alpha: keep_alpha,
            }),
            Body::Y4m(file) => {
                file.write_all(b"FRAME\n")?;
                file.write_all(&yuv444(picture))?;
            }
            Body::Ffmpeg(ffmpeg) => ffmpeg.add(picture)?,
        }
        self.written += 1;
        Ok(())
    }

    /// Completes the file and gives it its name.
    ///
    /// # Errors
    /// The disk is full, ffmpeg says no, the name cannot be taken.
    pub fn finish(self) -> anyhow::Result<()> {
        match self.body {
            Body::Png | Body::PngSequence(_) => Ok(()),
            Body::Gif(encoder) => persist(encoder.into_inner()?, &self.path),
            Body::Webp(frames) => {
                let mut file = BufWriter::new(temporary(&self.path)?);
                file.write_all(&webp_file(self.size, &frames)?)?;
                persist(file, &self.path)
            }
            Body::Y4m(file) => persist(file, &self.path),
            Body::Ffmpeg(ffmpeg) => ffmpeg.finish(&self.path),
        }
    }
}

/// Writes one picture as PNG, with alpha only where it means something.
///
/// # Errors
/// The file cannot be written.
pub fn write_png(path: &Path, picture: &Picture, keep_alpha: bool) -> anyhow::Result<()> {
    let mut file = BufWriter::new(temporary(path)?);
    let [width, height] = picture.size;
    let encoder = image::codecs::png::PngEncoder::new(&mut file);
    if keep_alpha {
        encoder.write_image(&picture.rgba, width, height, ExtendedColorType::Rgba8)?;
    } else {
        encoder.write_image(&over_black(picture), width, height, ExtendedColorType::Rgb8)?;
    }
    persist(file, path)
}

fn name_of(path: &Path) -> String {
    path.file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// A temporary file beside `path`, removed when dropped; its folder is made where it is missing.
pub(super) fn temporary(path: &Path) -> anyhow::Result<NamedTempFile> {
    let folder = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    std::fs::create_dir_all(folder)
        .with_context(|| format!("{}: cannot make this folder", folder.display()))?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(".splatstage-").suffix(".partial");
    #[cfg(unix)]
    let permissions = {
        use std::os::unix::fs::PermissionsExt as _;
        // What any program's new file gets; the umask takes its part away.
        std::fs::Permissions::from_mode(0o666)
    };
    #[cfg(unix)]
    builder.permissions(permissions);
    builder
        .tempfile_in(folder)
        .with_context(|| format!("{}: cannot write into this folder", folder.display()))
}

pub(super) fn persist(file: BufWriter<NamedTempFile>, path: &Path) -> anyhow::Result<()> {
    let file = file
        .into_inner()
        .map_err(std::io::IntoInnerError::into_error)
        .with_context(|| format!("{}: cannot write", path.display()))?;
    file.persist(path)
        .map(drop)
        .with_context(|| format!("{}: cannot write under this name", path.display()))
}

/// `frame-%05d.png` taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pattern {
    before: String,
    digits: usize,
    after: String,
}

impl Pattern {
    /// `None` without exactly one `%d` or `%0Nd`.
    fn parse(name: &str) -> Option<Self> {
        let (before, rest) = name.split_once('%')?;
        let (width, after) = rest.split_once('d')?;
        let digits = match width {
            "" => 1,
            _ => width.strip_prefix('0')?.parse().ok().filter(|n| *n < 20)?,
        };
        (!after.contains('%')).then(|| Self {
            before: before.to_owned(),
            digits,
            after: after.to_owned(),
        })
    }

    fn name(&self, number: u64) -> String {
        let digits = self.digits;
        format!("{}{number:0digits$}{}", self.before, self.after)
    }
}

/// Straight-alpha pixels over black, three bytes a pixel.
fn over_black(picture: &Picture) -> Vec<u8> {
    let mut rgb = Vec::with_capacity(picture.rgba.len() / 4 * 3);
    for &[r, g, b, a] in picture.rgba.as_chunks::<4>().0 {
        rgb.extend([r, g, b].map(|c| scaled(c, a)));
    }
    rgb
}

/// Straight-alpha pixels for GIF, which knows clear and solid and nothing between.
fn clear_or_solid(picture: &Picture) -> Vec<u8> {
    let mut rgba = picture.rgba.clone();
    for pixel in rgba.as_chunks_mut::<4>().0 {
        let [r, g, b, a] = *pixel;
        *pixel = if a >= 128 { [r, g, b, 255] } else { [0; 4] };
    }
    rgba
}

/// GIF counts sides in 16 bits.
fn gif_size(size: [u32; 2]) -> anyhow::Result<[u16; 2]> {
    let [width, height] = size;
    match (u16::try_from(width), u16::try_from(height)) {
        (Ok(width), Ok(height)) => Ok([width, height]),
        _ => bail!("{width}x{height} is too large for GIF, which ends at 65535"),
    }
}

/// `c * a / 255`, rounded.
fn scaled(c: u8, a: u8) -> u8 {
    ((u32::from(c) * u32::from(a) + 127) / 255) as u8
}

/// Planes Y, Cb, Cr of BT.709 in limited range: 16 to 235, and 16 to 240 around 128.
fn yuv444(picture: &Picture) -> Vec<u8> {
    let rgb = over_black(picture);
    let pixels = rgb.len() / 3;
    let mut planes = vec![0; pixels * 3];
    let (luma, chroma) = planes.split_at_mut(pixels);
    let (blue, red) = chroma.split_at_mut(pixels);
    for (i, pixel) in rgb.as_chunks::<3>().0.iter().enumerate() {
        let [y, cb, cr] = bt709_limited(*pixel);
        luma[i] = y;
        blue[i] = cb;
        red[i] = cr;
    }
    planes
}

fn bt709_limited(rgb: [u8; 3]) -> [u8; 3] {
    let [r, g, b] = rgb.map(|c| f32::from(c) / 255.0);
    let y = 0.2126 * r + 0.7152 * g + 0.0722 * b;
    // The divisors bring both differences to -0.5..0.5: 2 (1 - 0.0722) and 2 (1 - 0.2126).
    let (cb, cr) = ((b - y) / 1.8556, (r - y) / 1.5748);
    [16.0 + 219.0 * y, 128.0 + 224.0 * cb, 128.0 + 224.0 * cr].map(|v| v.round() as u8)
}

/// `fps` as a fraction: whole, or the television rates over 1001, else thousandths.
fn rational(fps: f64) -> [u64; 2] {
    let whole = fps.round();
    if (fps - whole).abs() < 1e-9 {
        return [whole as u64, 1];
    }
    let nominal = (fps * 1.001).round();
    if (fps - nominal * 1000.0 / 1001.0).abs() < 1e-3 {
        return [nominal as u64 * 1000, 1001];
    }
    [(fps * 1000.0).round().max(1.0) as u64, 1000]
}

struct WebpFrame {
    /// A whole `VP8L` chunk.
    chunk: Vec<u8>,
    duration_ms: u32,
    has_alpha: bool,
}

/// The `VP8L` chunk of one picture, taken out of the simple file that the encoder writes.
fn webp_chunk(picture: &Picture, keep_alpha: bool) -> anyhow::Result<Vec<u8>> {
    let [width, height] = picture.size;
    let mut file = Vec::new();
    let encoder = image_webp::WebPEncoder::new(&mut file);
    if keep_alpha {
        encoder.encode(&picture.rgba, width, height, image_webp::ColorType::Rgba8)?;
    } else {
        encoder.encode(
            &over_black(picture),
            width,
            height,
            image_webp::ColorType::Rgb8,
        )?;
    }
    // RIFF, size, WEBP: 12 bytes before the first chunk.
    match file.get(12..) {
        Some(chunk) if chunk.starts_with(b"VP8L") => Ok(chunk.to_vec()),
        _ => bail!("the WebP encoder wrote something that is no lossless picture"),
    }
}

/// One frame: a simple file. Several: `VP8X`, `ANIM` (endless), one `ANMF` a frame.
fn webp_file(size: [u32; 2], frames: &[WebpFrame]) -> anyhow::Result<Vec<u8>> {
    const ANIMATION: u8 = 1 << 1;
    const ALPHA: u8 = 1 << 4;
    // Each frame replaces what was there, instead of being blended over it.
    const DO_NOT_BLEND: u8 = 1 << 1;
    let u24 = |v: u32| -> anyhow::Result<[u8; 3]> {
        let [a, b, c, high] = v.to_le_bytes();
        anyhow::ensure!(high == 0, "too large for WebP: {v}");
        Ok([a, b, c])
    };
    let mut body = b"WEBP".to_vec();
    let mut chunk = |name: &[u8; 4], parts: &[&[u8]]| -> anyhow::Result<()> {
        let bytes: usize = parts.iter().map(|p| p.len()).sum();
        body.extend(name);
        body.extend(u32::try_from(bytes)?.to_le_bytes());
        parts.iter().for_each(|p| body.extend(*p));
        if bytes % 2 == 1 {
            body.push(0);
        }
        Ok(())
    };
    let extent = [u24(size[0] - 1)?, u24(size[1] - 1)?].concat();
    match frames {
        [] => bail!("no picture to write"),
        [only] => body.extend(&only.chunk),
        _ => {
            let has_alpha = frames.iter().any(|f| f.has_alpha);
            let flags = ANIMATION | if has_alpha { ALPHA } else { 0 };
            chunk(b"VP8X", &[&[flags, 0, 0, 0], &extent])?;
            // Background colour (unused by players), loop count 0: endless.
            chunk(b"ANIM", &[&[0; 4], &[0; 2]])?;
            for frame in frames {
                let duration = u24(frame.duration_ms)?;
                chunk(
                    b"ANMF",
                    &[&[0; 6], &extent, &duration, &[DO_NOT_BLEND], &frame.chunk],
                )?;
            }
        }
    }
    let mut file = b"RIFF".to_vec();
    file.extend(u32::try_from(body.len())?.to_le_bytes());
    file.extend(body);
    Ok(file)
}

/// ffmpeg reading raw pictures from its standard input.
struct Ffmpeg {
    child: Child,
    /// What it says on standard error; taken when that is asked for.
    errors: Option<JoinHandle<String>>,
    /// Taken when it gets its name.
    output: Option<TempPath>,
}

impl Ffmpeg {
    fn start(path: &Path, size: [u32; 2], fps: f64, sound: Option<&Path>) -> anyhow::Result<Self> {
        let output = temporary(path)?.into_temp_path();
        let extension = path.extension().and_then(OsStr::to_str).unwrap_or("mp4");
        let [width, height] = size;
        let [rate, base] = rational(fps);
        // 4:2:0 needs even sides; the edge is repeated rather than the picture scaled.
        let filter = "pad=ceil(iw/2)*2:ceil(ih/2)*2,\
                      scale=out_color_matrix=bt709:out_range=tv,format=yuv420p";
        let mut command = Command::new("ffmpeg");
        command
            .args(["-hide_banner", "-loglevel", "error", "-nostdin", "-y"])
            .args(["-f", "rawvideo", "-pix_fmt", "rgb24"])
            .args(["-s", &format!("{width}x{height}")])
            .args(["-r", &format!("{rate}/{base}"), "-i", "pipe:0"]);
        if let Some(sound) = sound {
            // 192 kbit/s of either is as good as the original to most ears.
            let codec = match extension.to_ascii_lowercase().as_str() {
                "webm" => "libopus",
                _ => "aac",
            };
            command
                .arg("-i")
                .arg(sound)
                .args(["-map", "0:v", "-map", "1:a"])
                .args(["-c:a", codec, "-b:a", "192k"]);
        }
        command
            .args(["-vf", filter, "-colorspace", "bt709"])
            .args(["-color_primaries", "bt709", "-color_trc", "bt709"])
            .args(["-color_range", "tv", "-fflags", "+bitexact"]);
        // Rate factors that are visually clean: 16 of x264, 24 of VP9.
        match extension.to_ascii_lowercase().as_str() {
            "webm" => command
                .args(["-c:v", "libvpx-vp9", "-crf", "24", "-b:v", "0"])
                .args(["-row-mt", "1", "-f", "webm"]),
            "mkv" => command.args(["-c:v", "libx264", "-crf", "16", "-f", "matroska"]),
            _ => command.args(["-c:v", "libx264", "-crf", "16"]).args([
                "-movflags",
                "+faststart",
                "-f",
                "mp4",
            ]),
        };
        let mut child = command
            .arg(&*output)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| match error.kind() {
                std::io::ErrorKind::NotFound => anyhow::anyhow!(
                    "{}: .{extension} is made by ffmpeg, which is not installed (Debian and \
                     Ubuntu: apt install ffmpeg, Fedora: dnf install ffmpeg-free, Arch: pacman -S \
                     ffmpeg, macOS: brew install ffmpeg); .y4m and .gif need nothing",
                    path.display()
                ),
                _ => anyhow::Error::new(error).context("cannot start ffmpeg"),
            })?;
        // Read at once: a full pipe would stop both programs.
        let errors = child.stderr.take().map(|mut pipe| {
            std::thread::spawn(move || {
                let mut text = Vec::new();
                // What could be read is shown; a pipe that breaks has nothing more to say.
                let _ = pipe.read_to_end(&mut text);
                String::from_utf8_lossy(&text).trim().to_owned()
            })
        });
        Ok(Self {
            child,
            errors,
            output: Some(output),
        })
    }

    fn add(&mut self, picture: &Picture) -> anyhow::Result<()> {
        let written = self
            .child
            .stdin
            .as_mut()
            .map_or(Ok(()), |pipe| pipe.write_all(&over_black(picture)));
        match written {
            Ok(()) => Ok(()),
            Err(error) => Err(self.failed(&error.to_string())),
        }
    }

    /// Ends ffmpeg and says what it said.
    fn failed(&mut self, otherwise: &str) -> anyhow::Error {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let said = self.errors.take().and_then(|thread| thread.join().ok());
        let said = said.filter(|text| !text.is_empty());
        anyhow::anyhow!("ffmpeg: {}", said.as_deref().unwrap_or(otherwise))
    }

    fn finish(mut self, path: &Path) -> anyhow::Result<()> {
        drop(self.child.stdin.take());
        let status = self.child.wait().context("waiting for ffmpeg")?;
        if !status.success() {
            return Err(self.failed(&status.to_string()));
        }
        self.output
            .take()
            .map_or(Ok(()), |output| output.persist(path))
            .with_context(|| format!("{}: cannot write under this name", path.display()))
    }
}

impl Drop for Ffmpeg {
    /// Does not leave the program behind when rendering stops early.
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_number_frames() {
        let name = |pattern: &str| Pattern::parse(pattern).map(|p| p.name(7));
        assert_eq!(name("a-%05d.png").as_deref(), Some("a-00007.png"));
        assert_eq!(name("%d.png").as_deref(), Some("7.png"));
        assert_eq!(name("a.png"), None);
        assert_eq!(name("%5x.png"), None);
        assert_eq!(name("%d-%d.png"), None);
    }

    #[test]
    fn colours_follow_bt709_in_limited_range() {
        assert_eq!(bt709_limited([0, 0, 0]), [16, 128, 128]);
        assert_eq!(bt709_limited([255, 255, 255]), [235, 128, 128]);
        assert_eq!(bt709_limited([0, 0, 255]), [32, 240, 118]);
        assert_eq!(bt709_limited([255, 0, 0]), [63, 102, 240]);
    }

    #[test]
    fn rates_become_fractions() {
        assert_eq!(rational(30.0), [30, 1]);
        assert_eq!(rational(29.97), [30000, 1001]);
        assert_eq!(rational(12.5), [12500, 1000]);
    }

    #[test]
    fn an_animated_webp_reads_back() {
        let picture = |level: u8| Picture {
            size: [3, 2],
            rgba: [level, 0, 255 - level, 255].repeat(6),
        };
        let frames: Vec<WebpFrame> = [10, 200]
            .map(|level| WebpFrame {
                chunk: webp_chunk(&picture(level), false).expect("encodes"),
                duration_ms: 40,
                has_alpha: false,
            })
            .into();
        let file = webp_file([3, 2], &frames).expect("muxes");
        let mut decoder =
            image_webp::WebPDecoder::new(std::io::Cursor::new(file)).expect("a WebP file");
        assert!(decoder.is_animated());
        assert_eq!(decoder.num_frames(), 2);
        let mut buffer = vec![0; decoder.output_buffer_size().expect("has a size")];
        for level in [10, 200] {
            let duration_ms = decoder.read_frame(&mut buffer).expect("a frame");
            assert_eq!((duration_ms, buffer[0]), (40, level));
        }
    }
}
