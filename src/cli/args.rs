//! What the command line looks like. Values are checked here, as far as that needs no file.

use super::tools::{ApiArgs, CheckArgs, GraphArgs, NewArgs, PackArgs, ParamsArgs, TestArgs};
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use splatstage::app::offline::{Rate, Span};
use splatstage::app::{
    CameraOptions, DrawOptions, FilmMode, MicChoice, PlayOptions, SceneOptions, SoundOptions,
    SurveyOptions,
};
use splatstage::formats::AssetType;
use splatstage::formats::splattie::{BundleOptions, FormatVersion};
use splatstage::gpu::{Packing, RasterMethod};
use splatstage::scene::Axes;
use splatstage::script::{Given, ParamValue};
use std::path::PathBuf;

const SCENES: &str = "\
A SCENE is a folder with scene.luau, a .stage file (a zip of such a folder), any splat file (.ply,
.spz, .sog, .splat, .ksplat, .glb, .splattie, lod-meta.json, a folder of SOG files), or a built-in
scene: @avatar, @room, @hello, @viewer. Times are seconds; ranges do not include their end.";

/// A native player and live-coding stage for Gaussian splats.
#[derive(Debug, Parser)]
#[command(
    name = "splatstage",
    version,
    long_version = super::long_version(),
    args_conflicts_with_subcommands = true,
    after_help = SCENES,
    after_long_help = format!("{SCENES}\n\n\
Examples:
  splatstage                            the built-in avatar, @avatar
  splatstage flat.sog                   look at a scan
  splatstage my-scene                   play a folder with scene.luau, reloading what you save
  splatstage new my-scene               begin a scene of your own
  splatstage render flat.sog -o flat.png
  splatstage doctor                     what to put in a bug report")
)]
pub struct Args {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub play: PlayArgs,
    /// More of the log on standard error; twice for all of it (RUST_LOG wins).
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

impl Args {
    /// Whether standard output is promised to be one JSON document.
    pub fn is_json(&self) -> bool {
        match &self.command {
            Some(Command::Render(args)) => args.json,
            Some(Command::Trace(args)) => args.json,
            Some(Command::Inspect(args)) => args.json,
            Some(Command::Convert(args)) => args.json,
            Some(Command::Bundle(args)) => args.json,
            Some(Command::Survey(args)) => args.json,
            Some(Command::Bench(args)) => args.json,
            Some(Command::Doctor(args)) => args.json,
            Some(Command::New(args)) => args.json,
            Some(Command::Check(args)) => args.json,
            Some(Command::Test(args)) => args.json,
            Some(Command::Pack(args)) => args.json,
            Some(Command::Graph(args)) => args.json,
            Some(Command::Params(args)) => args.json,
            Some(Command::Play(_) | Command::Api(_) | Command::Completions { .. }) | None => false,
        }
    }

    /// Whether a window is asked for.
    pub fn is_play(&self) -> bool {
        matches!(self.command, None | Some(Command::Play(_)))
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Play(PlayArgs),
    New(NewArgs),
    Check(CheckArgs),
    Test(TestArgs),
    Pack(PackArgs),
    Api(ApiArgs),
    Graph(GraphArgs),
    Params(ParamsArgs),
    Render(RenderArgs),
    Trace(TraceArgs),
    Inspect(InspectArgs),
    Convert(ConvertArgs),
    Bundle(BundleArgs),
    Survey(SurveyArgs),
    Bench(BenchArgs),
    Doctor(DoctorArgs),
    /// Print a completion script for a shell.
    #[command(after_help = "Examples:
  splatstage completions bash > ~/.local/share/bash-completion/completions/splatstage
  splatstage completions fish > ~/.config/fish/completions/splatstage.fish")]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// Play a scene in a window; without a display, render 3 s of it to out/.
///
/// Files that are saved while it plays are loaded anew; when the new version is broken, the last
/// good one stays, with the error over the picture.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  splatstage play @hello
  splatstage play my-scene --size 1280x720 --no-watch
  splatstage play my-scene --record act.log && splatstage render my-scene -o act.mp4 --input act.log
  splatstage play flat.sog --axes z-up --eye 0,1.6,3 --target 0,1.2,0")]
pub struct PlayArgs {
    /// What to play.
    #[arg(default_value = "@avatar")]
    pub scene: String,
    #[command(flatten)]
    pub flags: SceneFlags,
    #[command(flatten)]
    pub draw: DrawFlags,
    /// Start on the whole screen.
    #[arg(long)]
    pub fullscreen: bool,
    /// Which monitor, as `doctor` numbers them.
    #[arg(long, value_name = "N")]
    pub monitor: Option<usize>,
    /// Do not reload what is saved.
    #[arg(long)]
    pub no_watch: bool,
    /// At most so many pictures a second [default: as many as the monitor shows].
    #[arg(long, value_name = "N", value_parser = positive)]
    pub fps_cap: Option<f64>,
    /// Listen for OSC on this UDP port: /gyro x y z, /pointer x y, /event NAME. Whoever reaches the
    /// port can send.
    #[arg(long, value_name = "PORT")]
    pub osc: Option<u16>,
    /// Write what comes in (pointer, keys, pads, OSC) to this file; `render --input LOG` and
    /// `trace --input LOG` make it come in again, exactly.
    #[arg(long, value_name = "LOG")]
    pub record: Option<PathBuf>,
    /// Start without sound; key u brings it.
    #[arg(long)]
    pub mute: bool,
    /// Evaluate lines of the terminal against the running scene; Ctrl-D ends that, not the scene.
    #[arg(long)]
    pub repl: bool,
    #[command(flatten)]
    pub sound: SoundFlags,
}

impl PlayArgs {
    pub fn options(&self) -> PlayOptions {
        PlayOptions {
            scene: self.flags.options(&self.scene),
            draw: self.draw.options(),
            fullscreen: self.fullscreen,
            monitor: self.monitor,
            watch: !self.no_watch,
            fps_cap: self.fps_cap,
            osc: self.osc,
            is_muted: self.mute,
            record: self.record.clone(),
            mic: self.sound.choice(),
            repl: self.repl,
        }
    }
}

/// Draw a scene into a picture, a sequence, a loop or a video; the same every time.
///
/// OUT ends in .png (alpha is kept where the background has it; %05d in the name numbers a
/// sequence), .gif or .webp (endless loops), .y4m (4:4:4, 8 bit, BT.709, limited range), .mp4,
/// .mkv, .webm (by ffmpeg, which has to be installed), or .wav (sound alone: 48 kHz, 16 bit, stereo).
/// Beside the video of a scene that makes sound a .wav of the same name is written; ffmpeg puts it
/// into the video too. A file gets its name when it is whole.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  splatstage render flat.sog -o flat.png --eye 1,1.6,4 --target 0,1,0 --size 1920x1080
  splatstage render my-scene -o still.png --at 2.5
  splatstage render my-scene -o 'out/frame-%05d.png' --from 1 --to 3 --fps 25
  splatstage render @hello -o hello.mp4 --fps 60
  splatstage render @avatar -o loop.webp --loop 6 --size 320x320 --background '#00000000'
  splatstage render face.splattie -o smile.png --arg state=hover
  splatstage render my-scene -o steps.wav --stem footsteps --mic off
  splatstage render @hello --json --frames 0..10        hashes only, nothing is written")]
pub struct RenderArgs {
    /// What to draw.
    pub scene: String,
    /// The file to write.
    #[arg(short, long, value_name = "OUT", required_unless_present = "json")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub span: SpanFlags,
    /// The picture at this time alone, seconds [default for a single .png: 0].
    #[arg(long, value_name = "T", value_parser = finite, allow_negative_numbers = true,
          conflicts_with_all = ["from", "to", "frames"])]
    pub at: Option<f64>,
    /// Pictures N from A on and before B, counted from time 0: picture k is at k / fps.
    #[arg(long, value_name = "A..B", value_parser = frames, conflicts_with_all = ["from", "to"])]
    pub frames: Option<(u64, u64)>,
    /// A sequence that closes: ends after so many seconds as it began. GIF and WebP always close,
    /// where the scene can.
    #[arg(long = "loop", value_name = "SECONDS", value_parser = positive,
          conflicts_with_all = ["at", "frames", "to"])]
    pub loop_s: Option<f64>,
    /// Pictures a second.
    #[arg(long, default_value = "30", value_parser = positive)]
    pub fps: f64,
    /// Print `adapter, raster, size, fps, output, frames[{t, hash, gpu_ms, sorted}]`. The hash is
    /// SHA-256 over the size and the final RGBA bytes. With sound also `sound.{output, hz, channels,
    /// samples, seconds, voices, lufs, range_lu, true_peak_dbtp, warnings[]}`.
    #[arg(long)]
    pub json: bool,
    /// No sound beside a video.
    #[arg(long, conflicts_with_all = ["stem", "mic"])]
    pub no_sound: bool,
    /// One group of sounds alone, by the name that the scene gives it.
    #[arg(long, value_name = "NAME", help_heading = "Sound")]
    pub stem: Option<String>,
    #[command(flatten)]
    pub sound: SoundFlags,
    #[command(flatten)]
    pub replay: ReplayFlags,
    #[command(flatten)]
    pub flags: SceneFlags,
    #[command(flatten)]
    pub draw: DrawFlags,
}

impl RenderArgs {
    pub fn sound(&self) -> SoundOptions {
        SoundOptions {
            mic: self.sound.choice(),
            stem: self.stem.clone(),
            is_off: self.no_sound,
        }
    }

    pub fn span(&self, is_still: bool) -> Span {
        if let Some(loop_s) = self.loop_s {
            let from_s = self.span.from.unwrap_or(0.0);
            return Span::Range {
                from_s,
                to_s: Some(from_s + loop_s),
            };
        }
        match (self.at, self.frames, self.span.is_given()) {
            (Some(t_s), ..) => Span::At(t_s),
            (None, Some((first, end)), _) => Span::Frames { first, end },
            (None, None, false) if is_still => Span::At(0.0),
            _ => self.span.span(),
        }
    }
}

/// Print what a scene does, one JSON line for each instant; nothing is drawn.
///
/// Each line has `t`, `camera.{position, yaw_deg, pitch_deg, roll_deg, fov_deg}`, `state`, `cues`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  splatstage trace @hello --to 2 --step 0.5
  splatstage trace my-scene | jq .camera.position")]
pub struct TraceArgs {
    /// What to run.
    pub scene: String,
    #[command(flatten)]
    pub span: SpanFlags,
    /// Seconds between two lines [default: a thirtieth].
    #[arg(long, value_parser = positive)]
    pub step: Option<f64>,
    /// One document `{\"frames\": [...]}` instead of lines.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub replay: ReplayFlags,
    #[command(flatten)]
    pub flags: SceneFlags,
    #[command(flatten)]
    pub draw: DrawFlags,
}

/// Say what a splat file holds.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  splatstage inspect flat.sog
  splatstage inspect --json scans/lod-meta.json | jq .count
  splatstage inspect flat.ply --thumbnail flat.png")]
pub struct InspectArgs {
    /// A splat file, or a folder of SOG files.
    pub file: PathBuf,
    /// Also draw it, framed, into this PNG.
    #[arg(long, value_name = "OUT.png")]
    pub thumbnail: Option<PathBuf>,
    /// Print `format, version, count, sh_degree, bounds.min, bounds.max, non_finite, warnings[]`,
    /// for streamed scans also `levels[{level, count, present}]`; for a refused file
    /// `{\"error\": {code, message, file, entry}}`. For avatars also `format_version, asset_type,
    /// bones[{name, parent, position}], weights, shapes[], states[], manifest`.
    #[arg(long)]
    pub json: bool,
    /// Most that an archive may hold unpacked, instead of the built-in limits: bytes, or 4GiB,
    /// 512MiB.
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub max_unpacked: Option<u64>,
}

/// Write a splat file in another format, and say what is lost.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  splatstage convert flat.ply flat.sog
  splatstage convert scans/lod-meta.json flat.spz --level 2
  splatstage convert face.spz face.ply --to-axes RDF")]
pub struct ConvertArgs {
    /// What to read: any splat file.
    #[arg(value_name = "IN")]
    pub input: PathBuf,
    /// What to write: .ply, .spz, .splat or .sog.
    #[arg(value_name = "OUT")]
    pub output: PathBuf,
    /// Level of a streamed scan; 0 is the finest [default: the finest that fits].
    #[arg(long, value_name = "N")]
    pub level: Option<u32>,
    /// Where x, y and z of the input point, where the file does not tell the truth.
    #[arg(long, value_name = "AXES")]
    pub axes: Option<Axes>,
    /// Axes of the rows that are written. A PLY keeps those of the input and states them in its
    /// header, which other programs may not read: RDF is what they expect.
    #[arg(long, value_name = "AXES")]
    pub to_axes: Option<Axes>,
    /// Print what was read, written and lost as JSON.
    #[arg(long)]
    pub json: bool,
    /// Most that an archive may hold unpacked, instead of the built-in limits: bytes, or 4GiB,
    /// 512MiB.
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub max_unpacked: Option<u64>,
}

/// Find floor, walls and a way to walk in a scan, and write them as a scene to edit.
///
/// Which way is up, the floor, rooms and free space come from the splats alone; the way is the longest
/// one through the rooms, or goes through the points that are given. DIR gets `scene.luau` (a walker
/// who films the way), `walk.json` (way, looks, heights of the floor; what you lay by hand in the window
/// is saved there) and the scan. Points are in the axes of the levelled scan: y up, metres.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  splatstage survey flat.sog -o flat-walk && splatstage flat-walk
  splatstage survey scans/lod-meta.json -o flat-walk --level 1 --json
  splatstage survey plaza.ply -o plaza --up -y --from 0,0,0 --via 4,0,2 --to 9,0,-3")]
pub struct SurveyArgs {
    /// A splat file, a streamed scan, or a scene, which is taken as it stands at its beginning.
    #[arg(value_name = "SCAN")]
    pub scan: String,
    /// The folder of the scene.
    #[arg(short, long, value_name = "DIR")]
    pub out: PathBuf,
    /// Level of a streamed scan; 0 is the finest [default: the finest that fits].
    #[arg(long, value_name = "N")]
    pub level: Option<u32>,
    /// Where x, y and z of the file point, where the file does not tell the truth.
    #[arg(long, value_name = "AXES")]
    pub axes: Option<Axes>,
    /// Which direction is up as the scan is shown: x, -x, y, -y, z, -z or X,Y,Z [default: found].
    #[arg(long, value_name = "DIRECTION", value_parser = direction, allow_hyphen_values = true)]
    pub up: Option<Vector>,
    /// Where the way begins.
    #[arg(long, value_name = "X,Y,Z", value_parser = vector, allow_hyphen_values = true)]
    pub from: Option<Vector>,
    /// Where it ends.
    #[arg(long, value_name = "X,Y,Z", value_parser = vector, allow_hyphen_values = true)]
    pub to: Option<Vector>,
    /// A point between; may be repeated, in order.
    #[arg(long, value_name = "X,Y,Z", value_parser = vector, allow_hyphen_values = true)]
    pub via: Vec<Vector>,
    /// Room that is kept to each side, metres [default: 0.3].
    #[arg(long, value_name = "M", value_parser = clearance)]
    pub clearance: Option<f64>,
    /// How many metres one unit of the scan is, where it is not in metres.
    #[arg(long, value_name = "TIMES", value_parser = positive)]
    pub scale: Option<f64>,
    /// An argument for the script of a scene (`stage.args.NAME`): JSON, or text where it is none; may be
    /// repeated.
    #[arg(long = "arg", value_name = "NAME=VALUE", value_parser = argument)]
    pub arguments: Vec<Argument>,
    /// Write over a scene that is in DIR.
    #[arg(long)]
    pub force: bool,
    /// Print what was found as JSON: `up, floor_m, clearance_m, rooms[], length_m, duration_s,
    /// timings_s`, ...
    #[arg(long)]
    pub json: bool,
    /// Most that an archive may hold unpacked, instead of the built-in limits: bytes, or 4GiB,
    /// 512MiB.
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub max_unpacked: Option<u64>,
}

impl SurveyArgs {
    pub fn options(&self) -> SurveyOptions {
        let point = |v: Vector| glam::Vec3::from_array(v.0.map(|c| c as f32));
        SurveyOptions {
            scan: self.scan.clone(),
            out: self.out.clone(),
            level: self.level,
            axes: self.axes,
            up: self.up.map(point),
            from: self.from.map(point),
            to: self.to.map(point),
            via: self.via.iter().copied().map(point).collect(),
            clearance_m: self.clearance.map(|m| m as f32),
            scale: self.scale.map(|s| s as f32),
            args: (self.arguments.iter())
                .map(|Argument(name, value)| (name.clone(), value.clone()))
                .collect(),
            force: self.force,
            unpacked_bytes_max: self.max_unpacked,
        }
    }
}

/// Make an avatar, a .splattie bundle, of a splat file and its bones, weights, shapes and states.
///
/// Inputs are files, told apart by what they hold: a splat file (PLY, compressed PLY, SPZ),
/// bone_tree.json or skeleton.json, weights (JSON or LBSW), expression_basis.bin with
/// expression_basis.json, states.json, a licence; or a folder of such files, as exporters write it;
/// or a .splattie, whose parts the files named beside it replace. Rows are never reordered: weights
/// and basis have to have as many as there are splats. What the program does not know is kept.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  splatstage bundle lam-export -o anna.splattie
  splatstage bundle head.ply bone_tree.json lbs_weight_20k.json states.json -o head.splattie
  splatstage bundle head.splattie new/states.json -o head.splattie
  splatstage bundle head.splattie -o old.splattie --format-version 0.1.1")]
pub struct BundleArgs {
    /// Files, folders, or a bundle.
    #[arg(value_name = "IN", required = true)]
    pub inputs: Vec<PathBuf>,
    /// The bundle to write.
    #[arg(short, long, value_name = "OUT.splattie")]
    pub out: PathBuf,
    /// What the avatar is [default: what a bundle says; else by the rig of skeleton.json, or head].
    #[arg(long = "type", value_enum, value_name = "TYPE")]
    pub asset_type: Option<AssetTypeName>,
    /// Version to write: 0.1.0 and 0.1.1 hold the basis in f32, 0.2.0 and 0.3.0 in f16 [default:
    /// that of a bundle; else 0.3.0].
    #[arg(long, value_name = "VERSION")]
    pub format_version: Option<FormatVersion>,
    /// Under which licence it may be used.
    #[arg(long, value_name = "TEXT")]
    pub license: Option<String>,
    /// Whom to name.
    #[arg(long, value_name = "TEXT")]
    pub attribution: Option<String>,
    /// Who made it.
    #[arg(long, value_name = "TEXT")]
    pub author: Option<String>,
    /// Print what was written, seen and lost as JSON.
    #[arg(long)]
    pub json: bool,
    /// Most that an archive may hold unpacked, instead of the built-in limits: bytes, or 4GiB,
    /// 512MiB.
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub max_unpacked: Option<u64>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum AssetTypeName {
    /// A head: neck, jaw and eyes move.
    Head,
    /// A whole person.
    Body,
    /// Anything else with bones.
    Object,
}

impl BundleArgs {
    /// `now` is the present, for the fields that say when.
    pub fn options(&self, now: String) -> BundleOptions {
        BundleOptions {
            asset_type: self.asset_type.map(|name| match name {
                AssetTypeName::Head => AssetType::Head,
                AssetTypeName::Body => AssetType::Body,
                AssetTypeName::Object => AssetType::Object,
            }),
            version: self.format_version,
            license: self.license.clone(),
            attribution: self.attribution.clone(),
            author: self.author.clone(),
            now: Some(now),
            unpacked_bytes_max: self.max_unpacked,
        }
    }
}

/// Measure one picture: time by stage, medians.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  splatstage bench flat.sog --size 1920x1080
  splatstage bench @hello --raster quads --json")]
pub struct BenchArgs {
    /// What to draw.
    pub scene: String,
    /// The picture's time, seconds.
    #[arg(long, default_value = "0", value_name = "T", value_parser = finite,
          allow_negative_numbers = true)]
    pub at: f64,
    /// How many pictures are measured, after a few that are not.
    #[arg(long, default_value = "30", value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub count: u32,
    /// Print `adapter, raster, count, visible, size, stages{name: ms}, gpu_ms, total_ms, cpu_ms,
    /// script_ms, bytes_per_splat, frames, load_ms`.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub replay: ReplayFlags,
    #[command(flatten)]
    pub flags: SceneFlags,
    #[command(flatten)]
    pub draw: DrawFlags,
}

/// List adapters, monitors, sound, gamepads and versions: what to put in a bug report.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  splatstage doctor
  splatstage doctor --json > report.json")]
pub struct DoctorArgs {
    /// Print it as JSON.
    #[arg(long)]
    pub json: bool,
    /// Sound alone, by which `doctor` asks a process of its own.
    #[arg(long, hide = true)]
    pub sound_only: bool,
}

/// From when to when.
#[derive(Debug, ClapArgs)]
pub struct SpanFlags {
    /// First instant, seconds [default: 0].
    #[arg(long, value_name = "T", value_parser = finite, allow_negative_numbers = true)]
    pub from: Option<f64>,
    /// End, not included, seconds [default: the scene's, or 10].
    #[arg(long, value_name = "T", value_parser = finite, allow_negative_numbers = true)]
    pub to: Option<f64>,
}

impl SpanFlags {
    fn is_given(&self) -> bool {
        self.from.is_some() || self.to.is_some()
    }

    pub fn span(&self) -> Span {
        Span::Range {
            from_s: self.from.unwrap_or(0.0),
            to_s: self.to,
        }
    }
}

impl TraceArgs {
    pub fn rate(&self) -> Rate {
        self.step.map_or(Rate::PerSecond(30.0), Rate::Every)
    }
}

/// How sound is heard.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Sound")]
pub struct SoundFlags {
    /// What sound is heard through [default: what the scene says].
    #[arg(long, value_enum, value_name = "MIC")]
    pub mic: Option<MicName>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum MicName {
    /// Nothing: everything is heard directly.
    Off,
    /// A phone of today that films: narrow stereo.
    Phone,
    /// A phone of ten years ago: mono, narrower, noisier.
    OldPhone,
    /// The other end of a telephone call.
    Call,
}

impl SoundFlags {
    pub fn choice(&self) -> MicChoice {
        match self.mic {
            None => MicChoice::Scene,
            Some(MicName::Off) => MicChoice::Off,
            Some(MicName::Phone) => MicChoice::Preset("phone".to_owned()),
            Some(MicName::OldPhone) => MicChoice::Preset("old_phone".to_owned()),
            Some(MicName::Call) => MicChoice::Preset("call".to_owned()),
        }
    }
}

/// What comes in where there is no hand.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Input")]
pub struct ReplayFlags {
    /// Input from a file: one JSON object a line with t (seconds) and any of pointer [x, y], press,
    /// release, key, wheel, stick [x, y], gyro [x, y, z], message {name, values}.
    #[arg(long, value_name = "LOG")]
    pub input: Option<PathBuf>,
}

impl ReplayFlags {
    /// The scene with this input.
    pub fn applied(&self, scene: SceneOptions) -> SceneOptions {
        SceneOptions {
            input: self.input.clone(),
            ..scene
        }
    }
}

/// Flags of every scene.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Scene")]
pub struct SceneFlags {
    /// Level of a streamed scan; 0 is the finest [default: the finest that fits].
    #[arg(long, value_name = "N")]
    pub level: Option<u32>,
    /// Colour behind everything: '#rrggbb' or '#rrggbbaa'.
    #[arg(long, value_name = "COLOUR", value_parser = colour, allow_hyphen_values = true)]
    pub background: Option<Rgba>,
    /// Seed of everything random.
    #[arg(long, value_name = "N", default_value = "0")]
    pub seed: u64,
    /// Where x, y and z of the file point (RDF, RUB, RFU, y-up, y-down, z-up, ...), where the file
    /// does not tell the truth.
    #[arg(long, value_name = "AXES")]
    pub axes: Option<Axes>,
    /// How the picture is filmed [default: as the scene says; splat files: off].
    #[arg(long, value_enum, value_name = "MODE")]
    pub film: Option<Film>,
    /// Where the camera of a plain splat file stands, metres.
    #[arg(long, value_name = "X,Y,Z", value_parser = vector, allow_hyphen_values = true)]
    pub eye: Option<Vector>,
    /// What it looks at.
    #[arg(long, value_name = "X,Y,Z", value_parser = vector, allow_hyphen_values = true)]
    pub target: Option<Vector>,
    /// Which direction is up in the picture.
    #[arg(long, value_name = "X,Y,Z", value_parser = vector, allow_hyphen_values = true)]
    pub up: Option<Vector>,
    /// Its vertical field of view, degrees.
    #[arg(long, value_name = "DEG", value_parser = field_of_view)]
    pub fov: Option<f64>,
    /// Eye, target and up are in the file's own axes instead of the world's (y up).
    #[arg(long)]
    pub file_space: bool,
    /// Ask scenes for less motion: no floating, no blinking.
    #[arg(long)]
    pub reduced_motion: bool,
    /// An argument for the script (`stage.args.NAME`): JSON, or text where it is none; may be repeated.
    #[arg(long = "arg", value_name = "NAME=VALUE", value_parser = argument)]
    pub arguments: Vec<Argument>,
    /// What a parameter of the scene stands at (see the command params); may be repeated.
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parameter)]
    pub params: Vec<(String, ParamValue)>,
    /// Parameters by a file: presets/NAME.json of the scene, or a path that ends in .json.
    #[arg(long, value_name = "NAME|FILE")]
    pub preset: Option<String>,
    /// A folder whose scripts replace those of the library (`@stage/...`) of the same name.
    #[arg(long, value_name = "DIR", env = "SPLATSTAGE_SCRIPTS")]
    pub scripts: Option<PathBuf>,
    /// Most that an archive may hold unpacked, instead of the built-in limits: bytes, or 4GiB,
    /// 512MiB.
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub max_unpacked: Option<u64>,
}

/// One field of `stage.args`.
#[derive(Clone, Debug)]
pub struct Argument(String, serde_json::Value);

fn argument(text: &str) -> Result<Argument, String> {
    let (name, value) = text
        .split_once('=')
        .filter(|(name, _)| !name.is_empty())
        .ok_or_else(|| format!("'{text}' is not NAME=VALUE"))?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
    Ok(Argument(name.to_owned(), value))
}

fn parameter(text: &str) -> Result<(String, ParamValue), String> {
    let (name, value) = text
        .split_once('=')
        .filter(|(name, _)| !name.is_empty())
        .ok_or_else(|| format!("'{text}' is not NAME=VALUE"))?;
    // Of which kind it is only the scene knows.
    Ok((name.to_owned(), ParamValue::Text(value.to_owned())))
}

/// Newtypes keep clap from taking an array for a list of values.
#[derive(Clone, Copy, Debug)]
pub struct Vector([f64; 3]);

/// Display-space colour, 0 to 1.
#[derive(Clone, Copy, Debug)]
pub struct Rgba([f32; 4]);

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Film {
    /// The picture as it is drawn.
    Off,
    /// By the scene's shutter, lens and sensor, or the default ones.
    On,
    /// As on, with planes for depth.
    Proxy,
    /// As on, by brute force: slow, exact. Windows show on instead.
    Reference,
}

impl From<Film> for FilmMode {
    fn from(film: Film) -> Self {
        match film {
            Film::Off => Self::Off,
            Film::On => Self::On,
            Film::Proxy => Self::Proxy,
            Film::Reference => Self::Reference,
        }
    }
}

impl SceneFlags {
    pub fn options(&self, scene: &str) -> SceneOptions {
        SceneOptions {
            scene: scene.to_owned(),
            level: self.level,
            axes: self.axes,
            background: self.background.map(|c| c.0),
            seed: self.seed,
            camera: CameraOptions {
                eye: self.eye.map(|v| v.0),
                target: self.target.map(|v| v.0),
                up: self.up.map(|v| v.0),
                fov_deg: self.fov,
                file_space: self.file_space,
            },
            loop_s: None,
            reduced_motion: self.reduced_motion,
            input: None,
            args: (self.arguments.iter())
                .map(|Argument(name, value)| (name.clone(), value.clone()))
                .collect(),
            params: (self.params.iter().cloned())
                .map(|(name, value)| (name, Given::always(value)))
                .collect(),
            preset: self.preset.clone(),
            heard_only: false,
            scripts: self.scripts.clone(),
            unpacked_bytes_max: self.max_unpacked,
            film: self.film.map(FilmMode::from).unwrap_or_default(),
        }
    }
}

/// Flags of everything that draws.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Drawing")]
pub struct DrawFlags {
    /// Width and height in pixels [default: 1280x720].
    #[arg(long, value_name = "WxH", value_parser = size)]
    pub size: Option<Size>,
    /// Raster method [default: quads on a software driver, tiles on a GPU].
    #[arg(long, value_enum, value_name = "METHOD")]
    pub raster: Option<Raster>,
    /// Which adapter, as `doctor` numbers them.
    #[arg(long, value_name = "N")]
    pub gpu: Option<usize>,
    /// How splats are held on the GPU; float is for comparisons.
    #[arg(long, value_enum, value_name = "HOW", default_value = "packed")]
    pub packing: PackingName,
    /// A folder whose shaders replace the built-in ones of the same name.
    #[arg(long, value_name = "DIR", env = "SPLATSTAGE_SHADERS")]
    pub shaders: Option<PathBuf>,
    /// Whole renders of each picture of --film reference.
    #[arg(long, value_name = "N", default_value = "65",
          value_parser = clap::value_parser!(u32).range(2..=4097))]
    pub film_samples: u32,
}

#[derive(Clone, Copy, Debug)]
pub struct Size([u32; 2]);

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Raster {
    /// Compute shaders, for GPUs.
    Tiles,
    /// Hardware quads, for software drivers and small GPUs.
    Quads,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum PackingName {
    /// Small.
    Packed,
    /// Exact.
    Float,
}

impl DrawFlags {
    pub fn options(&self) -> DrawOptions {
        self.options_with_default([1280, 720])
    }

    /// `size_px` is taken where no size is named.
    pub fn options_with_default(&self, size_px: [u32; 2]) -> DrawOptions {
        DrawOptions {
            size: self.size.map_or(size_px, |size| size.0),
            raster: self.raster.map(|method| match method {
                Raster::Tiles => RasterMethod::Tiles,
                Raster::Quads => RasterMethod::Quads,
            }),
            gpu: self.gpu,
            packing: match self.packing {
                PackingName::Packed => Packing::Packed,
                PackingName::Float => Packing::Float,
            },
            shaders: self.shaders.clone(),
            film_samples: self.film_samples as usize,
        }
    }
}

/// A number of bytes, with or without a unit of 1024.
fn bytes(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u32); 4] = [("kib", 10), ("mib", 20), ("gib", 30), ("tib", 40)];
    let lower = text.trim().to_ascii_lowercase();
    let (number, shift) = UNITS
        .iter()
        .find_map(|(unit, shift)| Some((lower.strip_suffix(unit)?, *shift)))
        .unwrap_or((&lower, 0));
    let number = number.trim().parse::<u64>().ok();
    number
        .and_then(|number| number.checked_mul(1 << shift))
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| "expected bytes above 0, such as 4GiB, 512MiB or 1000000".to_owned())
}

fn finite(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(value),
        _ => Err("expected a number".to_owned()),
    }
}

fn positive(text: &str) -> Result<f64, String> {
    finite(text)
        .ok()
        .filter(|value| *value > 0.0)
        .ok_or_else(|| "expected a number above 0".to_owned())
}

fn field_of_view(text: &str) -> Result<f64, String> {
    finite(text)
        .ok()
        .filter(|value| *value > 0.0 && *value < 180.0)
        .ok_or_else(|| "expected degrees between 0 and 180".to_owned())
}

fn vector(text: &str) -> Result<Vector, String> {
    let numbers: Result<Vec<f64>, String> = text.split(',').map(finite).collect();
    numbers
        .ok()
        .and_then(|v| v.try_into().ok())
        .map(Vector)
        .ok_or_else(|| "expected three numbers X,Y,Z".to_owned())
}

/// A direction: an axis with its sign, or three numbers.
fn direction(text: &str) -> Result<Vector, String> {
    let (sign, axis) = match text.strip_prefix('-') {
        Some(axis) => (-1.0, axis),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    let found = match axis {
        "x" => Vector([sign, 0.0, 0.0]),
        "y" => Vector([0.0, sign, 0.0]),
        "z" => Vector([0.0, 0.0, sign]),
        _ => vector(text).map_err(|_| "expected x, -x, y, -y, z, -z or X,Y,Z".to_owned())?,
    };
    if found.0.iter().all(|c| *c == 0.0) {
        return Err("a direction is longer than 0".to_owned());
    }
    Ok(found)
}

fn clearance(text: &str) -> Result<f64, String> {
    let [low, high] = splatstage::survey::CLEARANCE_M_RANGE;
    match finite(text) {
        Ok(m) if (low..=high).contains(&m) => Ok(m),
        _ => Err(format!("expected metres from {low} to {high}")),
    }
}

/// Sides up to here are let through; the adapter may allow less and says so.
const SIDE_MAX: u32 = 32_768;

fn size(text: &str) -> Result<Size, String> {
    let sides = text.split_once(['x', 'X']);
    let parsed = sides.and_then(|(w, h)| Some([w.parse().ok()?, h.parse().ok()?]));
    match parsed {
        Some(size) if size.iter().all(|side| (1..=SIDE_MAX).contains(side)) => Ok(Size(size)),
        _ => Err(format!(
            "expected WxH in pixels such as 1280x720, each 1 to {SIDE_MAX}"
        )),
    }
}

fn colour(text: &str) -> Result<Rgba, String> {
    let expected = || "expected '#rrggbb' or '#rrggbbaa'".to_owned();
    let digits = text.strip_prefix('#').unwrap_or(text);
    if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(expected());
    }
    let value = u32::from_str_radix(digits, 16).map_err(|_| expected())?;
    let rgba = match digits.len() {
        6 => value << 8 | 0xff,
        8 => value,
        _ => return Err(expected()),
    };
    Ok(Rgba(rgba.to_be_bytes().map(|byte| f32::from(byte) / 255.0)))
}

fn frames(text: &str) -> Result<(u64, u64), String> {
    let ends = text.split_once("..");
    ends.and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)))
        .filter(|(first, end)| first < end)
        .ok_or_else(|| "expected A..B with A below B, such as 0..90".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn values_parse_or_are_refused() {
        assert_eq!(
            vector("-0.8,-3.25,0.8").map(|v| v.0),
            Ok([-0.8, -3.25, 0.8])
        );
        assert!(vector("1,2").is_err() && vector("1,2,nan").is_err());
        assert_eq!(size("640x360").map(|s| s.0), Ok([640, 360]));
        assert!(size("0x1").is_err() && size("640").is_err());
        assert_eq!(colour("#ff000080").map(|c| c.0[0]), Ok(1.0));
        assert!(colour("#12345").is_err() && colour("red").is_err());
        assert_eq!(bytes("4GiB"), Ok(4 << 30));
        assert_eq!(bytes("512 mib"), Ok(512 << 20));
        assert_eq!(bytes("1000"), Ok(1000));
        for wrong in ["0", "-1", "4GB", "1.5GiB", "", "99999999999TiB"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
        assert_eq!(frames("3..5"), Ok((3, 5)));
        assert!(frames("5..3").is_err());
    }
}
