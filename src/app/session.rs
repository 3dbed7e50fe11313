//! A SCENE being played: where its files are, its script, and the pictures it asks for.
//!
//! The one place that turns what a person names (folder, `.stage`, splat file, `@hello`) into a
//! running [`Script`]. Window, `render`, `trace` and `bench` all play through it. It has no clock:
//! time and input are handed in. It draws nothing.
//!
//! A failed reload leaves the running version as it was; [`Session::watched`] then still names the
//! files of both, so that the next good save heals.

use super::assets::{Asset, AssetCache};
use super::builtin::{self, Builtin};
use super::filming::{self, FilmMode, Record};
use super::watch::{ContentHash, Loaded};
use super::{Usage, gathered, orientation};
use crate::audio::{Clip, Listener, VoiceSpec, clip};
use crate::formats::{self, Code, Container};
use crate::frame::{Cue, Event, Frame, Input};
use crate::scene::{Axes, Splats};
use crate::script::{
    self, Assets, Changed, Files, Given, Param, ParamValue, Script, Setup, SoundPlan,
};
use anyhow::{Context as _, bail};
use glam::{Quat, Vec3};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

/// Entry file of a scene folder, in order of preference.
const ENTRIES: [&str; 2] = ["scene.luau", "scene.lua"];

/// Text or data file that a script reads, at most. Splats do not come this way.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// What is played, as the command line says it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SceneOptions {
    /// A folder, a `.stage`, a splat file, `lod-meta.json`, or `@name`.
    pub scene: String,
    /// Level of streamed scans; wins over what a script says.
    pub level: Option<u32>,
    /// Axes of files for which the script names none.
    pub axes: Option<Axes>,
    /// Replaces the background of every frame: RGBA, display space, 0 to 1.
    pub background: Option<[f32; 4]>,
    /// Seed of everything random in the script.
    pub seed: u64,
    /// Camera of a plain splat file.
    pub camera: CameraOptions,
    /// Length after which a sequence of pictures has to close, seconds.
    pub loop_s: Option<f64>,
    /// The person asked for less motion.
    pub reduced_motion: bool,
    /// Only its sound is asked for: a scene that says who hears need not make pictures.
    pub heard_only: bool,
    /// Parameters that were set, by name; a name that the scene does not have is an error of the first
    /// load.
    pub params: BTreeMap<String, Given>,
    /// Parameters by a file, under those of `params`: `presets/NAME.json` of the scene, or a path that ends
    /// in `.json`.
    pub preset: Option<String>,
    /// What comes in while it plays without a window, instead of a hand; see [`super::replay`].
    pub input: Option<PathBuf>,
    /// What the script finds in `stage.args`, besides what the host puts there.
    pub args: serde_json::Map<String, serde_json::Value>,
    /// A folder whose scripts replace those of the library (`@stage/...`) of the same name.
    pub scripts: Option<PathBuf>,
    /// Most bytes that an archive may hold unpacked, instead of the built-in limits.
    pub unpacked_bytes_max: Option<u64>,
    /// Whether and how pictures are filmed.
    pub film: FilmMode,
}

/// A camera for plain splat files; whatever is absent is up to the viewer script.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CameraOptions {
    /// Where the lens stands, metres.
    pub eye: Option<[f64; 3]>,
    /// What it looks at, metres.
    pub target: Option<[f64; 3]>,
    /// Which direction is up in the picture.
    pub up: Option<[f64; 3]>,
    /// Vertical field of view, degrees.
    pub fov_deg: Option<f64>,
    /// `eye`, `target` and `up` are in the file's own axes, not in world space.
    pub file_space: bool,
}

impl CameraOptions {
    /// True when nothing is said.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A scene that was found, with its script once [`Session::reload`] has succeeded.
pub struct Session {
    options: SceneOptions,
    source: Source,
    entry: String,
    live: bool,
    files: Arc<SceneFiles>,
    assets: Arc<SceneAssets>,
    /// Scripts that stand in for the library's.
    library: Option<(PathBuf, Arc<SceneFiles>)>,
    turn: Quat,
    script: Option<Script>,
    /// What the running script showed last, where it is filmed step by step.
    record: Record,
    /// Scene time at which the running script's own time began: a stepped scene starts anew when
    /// it is reloaded, instead of repeating minutes of simulation.
    start_s: f64,
    /// Where the script's lines go.
    log: script::Log,
}

/// Where a scene's files are.
#[derive(Clone)]
enum Source {
    /// Embedded; nothing on disk.
    Builtin(&'static Builtin),
    /// A folder with a scene script.
    Folder(PathBuf),
    /// A zip of such a folder.
    Zip(PathBuf),
    /// Splats alone, played by the viewer.
    Plain(PathBuf),
    /// A bundle, played by the avatar scene.
    Avatar(PathBuf),
}

impl Session {
    /// Finds the scene that `options` names, and loads a plain splat file so that a broken one is
    /// reported as such. No script runs before [`Session::reload`].
    ///
    /// `live` chooses how the script's budgets are counted: by the clock, or (for files that have
    /// to come out the same every time) by work done.
    ///
    /// # Errors
    /// Nothing there, a URL, an unknown built-in, a folder or file that holds no scene; camera flags
    /// for a scene that has its own camera ([`Usage`]).
    pub fn open(options: SceneOptions, cache: Arc<AssetCache>, live: bool) -> anyhow::Result<Self> {
        cache.limit_unpacked(options.unpacked_bytes_max);
        let (source, entry) = resolve(&options.scene, options.unpacked_bytes_max)?;
        let is_plain = matches!(source, Source::Plain(_));
        if !is_plain && !options.camera.is_empty() {
            let scene = &options.scene;
            bail!(Usage(format!(
                "{scene} has its own camera: --eye, --target, --up, --fov and --file-space are \
                 for plain splat files"
            )));
        }
        let root = match &source {
            Source::Builtin((_, files)) => Root::Embedded(files),
            Source::Plain(_) => Root::Embedded(player(builtin::VIEWER)?.1),
            Source::Avatar(_) => Root::Embedded(player(builtin::AVATAR)?.1),
            Source::Folder(path) | Source::Zip(path) => {
                Root::Opened(formats::open_with_limit(path, options.unpacked_bytes_max)?)
            }
        };
        let plain = match &source {
            Source::Plain(path) | Source::Avatar(path) => Some((plain_name(path), path.clone())),
            // A scene of the program has no folder: what a person names for it lies on disk.
            Source::Builtin(_) => {
                let named = options.args.get("splats").and_then(|path| path.as_str());
                named.map(|path| (plain_name(Path::new(path)), PathBuf::from(path)))
            }
            _ => None,
        };
        let turn = match &source {
            Source::Plain(path) => orientation::read(path)?,
            _ => Quat::IDENTITY,
        };
        let files = Arc::new(SceneFiles {
            root,
            touched: Mutex::default(),
            saves_to: match &source {
                Source::Folder(folder) if live => Some(folder.clone()),
                _ => None,
            },
        });
        let mut options = options;
        if let Some(named) = &options.preset {
            for (name, value) in preset(&files, named)? {
                let value = Given::always(value);
                options.params.entry(name).or_insert(value);
            }
        }
        let library = match &options.scripts {
            Some(folder) => {
                let files = SceneFiles {
                    root: Root::Opened(formats::open(folder)?),
                    touched: Mutex::default(),
                    saves_to: None,
                };
                Some((folder.clone(), Arc::new(files)))
            }
            None => packed_library(&source, &files),
        };
        let assets = Arc::new(SceneAssets {
            cache,
            clips: Mutex::default(),
            scenes: Mutex::default(),
            files: Arc::clone(&files),
            source: source.clone(),
            plain,
            level: options.level,
            axes: options.axes,
        });
        if let Source::Plain(path) | Source::Avatar(path) = &source
            && !assets.cache.loads_behind()
        {
            assets.load_plain(path)?;
        }
        Ok(Self {
            options,
            source,
            entry,
            live,
            files,
            assets,
            library,
            turn,
            script: None,
            record: Record::default(),
            start_s: 0.0,
            log: Rc::new(log_line),
        })
    }

    /// Sends what scripts that load from now on say to `log`, instead of to this program's.
    pub fn set_log(&mut self, log: script::Log) {
        self.log = log;
    }

    /// What a script of this scene needs, begun with the file `entry`; `aspect` is width over height of
    /// the pictures.
    ///
    /// # Errors
    /// A plain splat file has become unreadable.
    pub fn setup(&self, entry: &str, aspect: f32) -> Result<Setup, script::Error> {
        Ok(Setup {
            name: self.name(),
            entry: entry.to_owned(),
            files: Arc::clone(&self.files) as Arc<dyn Files>,
            assets: Arc::clone(&self.assets) as Arc<dyn Assets>,
            seed: self.options.seed,
            live: self.live,
            is_first: self.script.is_none(),
            args: self.args()?,
            loop_s: self.options.loop_s,
            aspect,
            reduced_motion: self.options.reduced_motion,
            heard_only: self.options.heard_only,
            kept: serde_json::Map::new(),
            params: self.options.params.clone(),
            library: (self.library.as_ref()).map(|(_, files)| Arc::clone(files) as Arc<dyn Files>),
            handed_over: None,
            log: Rc::clone(&self.log),
        })
    }

    /// Loads the scene's files as they are now, asks the new version for the picture at `t_s`, and
    /// puts it in the place of the running one only when all of that succeeds.
    ///
    /// # Errors
    /// What went wrong, with file and line; the running version is untouched.
    pub fn reload(&mut self, t_s: f64, input: &Input) -> Result<Frame, script::Error> {
        let handed_over = match &mut self.script {
            Some(running) => running.unload().unwrap_or_else(|error| {
                tracing::warn!("{error}");
                None
            }),
            None => None,
        };
        let kept = self.script.as_ref().map(Script::kept).unwrap_or_default();
        let mut script = Script::load(Setup {
            handed_over,
            kept,
            ..self.setup(&self.entry, input.aspect)?
        })?;
        let start_s = if self.script.is_some() && script.is_stepped() {
            t_s
        } else {
            self.start_s
        };
        let mut record = Record::default();
        // Who only listens to a scene that says where its ears are waits for no picture.
        let frame = if self.options.heard_only && script.has_ears() && !script.is_stepped() {
            Frame::default()
        } else {
            picture(&mut script, &mut record, t_s, start_s, &self.options, input)?
        };
        self.script = Some(script);
        self.record = record;
        self.start_s = start_s;
        self.assets.cache.release_unused();
        Ok(frame)
    }

    /// The picture at scene time `t_s`. For scenes with `step`, times must not go backwards.
    ///
    /// # Errors
    /// A runtime error of the script.
    pub fn frame(&mut self, t_s: f64, input: &Input) -> Result<Frame, script::Error> {
        match &mut self.script {
            Some(script) => {
                let (record, options) = (&mut self.record, &self.options);
                picture(script, record, t_s, self.start_s, options, input)
            }
            None => self.reload(t_s, input),
        }
    }

    /// What is before the camera at `f` of the shutter, -1 to 1, of `frame`, which
    /// [`Session::frame`] has just returned.
    ///
    /// # Errors
    /// A runtime error of the script.
    pub fn exposed(&mut self, frame: &Frame, f: f64) -> Result<Frame, script::Error> {
        let Some(script) = &mut self.script else {
            return Ok(frame.clone());
        };
        let mut own = frame.clone();
        own.t_s -= self.start_s;
        let mut instant = filming::exposed(script, &self.record, &own, f)?;
        instant.t_s += self.start_s;
        if let Some(background) = self.options.background {
            instant.background = background;
        }
        Ok(instant)
    }

    /// Runs the script's steps up to scene time `t_s`, as far as it has any.
    ///
    /// # Errors
    /// A runtime error of the script.
    pub fn advance_to(&mut self, t_s: f64, input: &Input) -> Result<(), script::Error> {
        match &mut self.script {
            Some(script) => script.advance_to(t_s - self.start_s, input),
            None => Ok(()),
        }
    }

    /// What happens at scene time `from_s` or later and before `to_s`, in order of time.
    ///
    /// # Errors
    /// A runtime error of the script.
    pub fn cues(&mut self, from_s: f64, to_s: f64) -> Result<Vec<Cue>, script::Error> {
        let start_s = self.start_s;
        let Some(script) = &mut self.script else {
            return Ok(Vec::new());
        };
        let mut cues = script.cues(from_s - start_s, to_s - start_s)?;
        for cue in &mut cues {
            cue.t_s += start_s;
        }
        Ok(cues)
    }

    /// What the scene has said of sound, in scene time.
    #[must_use]
    pub fn sound(&self) -> SoundPlan {
        let mut plan = self.script.as_ref().map(Script::sound).unwrap_or_default();
        let beds = plan.beds.into_iter();
        plan.beds = beds.map(|bed| bed.later_by(self.start_s)).collect();
        plan
    }

    /// Voices that start at scene time `from_s` or later and before `to_s`.
    ///
    /// # Errors
    /// A runtime error of the script.
    pub fn voices(&mut self, from_s: f64, to_s: f64) -> Result<Vec<VoiceSpec>, script::Error> {
        let start_s = self.start_s;
        let Some(script) = &mut self.script else {
            return Ok(Vec::new());
        };
        let voices = script.voices(from_s - start_s, to_s - start_s)?;
        Ok(voices.into_iter().map(|v| v.later_by(start_s)).collect())
    }

    /// Who hears at scene time `t_s`, where the scene says so; else its camera does.
    ///
    /// # Errors
    /// A runtime error of the script.
    pub fn ears(&mut self, t_s: f64) -> Result<Option<Listener>, script::Error> {
        let start_s = self.start_s;
        self.script
            .as_mut()
            .map_or(Ok(None), |script| script.ears(t_s - start_s))
    }

    /// Whether the scene has `step`, so that its time only goes ahead.
    #[must_use]
    pub fn is_stepped(&self) -> bool {
        self.script.as_ref().is_some_and(Script::is_stepped)
    }

    /// Hands an event to the script.
    ///
    /// # Errors
    /// A runtime error of the script.
    pub fn event(&mut self, event: &Event) -> Result<(), script::Error> {
        self.script
            .as_mut()
            .map_or(Ok(()), |script| script.event(event))
    }

    /// The parameters that the running version has asked for.
    #[must_use]
    pub fn params(&self) -> Vec<Param> {
        self.script.as_ref().map(Script::params).unwrap_or_default()
    }

    /// What is wrong with the parameters that the options set: names that the running version does not
    /// have, values that do not fit.
    #[must_use]
    pub fn wrong_params(&self) -> Vec<String> {
        let Some(script) = &self.script else {
            return Vec::new();
        };
        let known = script.params();
        let is_known = |name: &String| known.iter().any(|param| param.name == *name);
        let unknown = self.options.params.keys().filter(|name| !is_known(name));
        let mut wrong = script.refused_params();
        wrong.extend(unknown.map(|name| script.no_param(name)));
        wrong
    }

    /// Sets a parameter, for this version and those that follow as long as the script begins it at the same
    /// value. [`Changed::ByLoading`] takes a [`Session::reload`] to be seen.
    ///
    /// # Errors
    /// No such parameter, or a value of another kind: a sentence.
    pub fn set_param(&mut self, name: &str, value: &ParamValue) -> Result<Changed, String> {
        let Some(script) = &mut self.script else {
            return Err(format!(
                "there is no parameter '{name}': no scene is loaded"
            ));
        };
        let changed = script.set_param(name, value)?;
        if let Some(param) = script.params().into_iter().find(|p| p.name == name) {
            let given = Given {
                value: param.value,
                default: Some(param.default),
            };
            self.options.params.insert(name.to_owned(), given);
        }
        Ok(changed)
    }

    /// What a line of a console comes to, as text; nothing for a statement.
    ///
    /// # Errors
    /// As thrown by the line, or what is wrong with its text.
    pub fn evaluate(&mut self, line: &str, t_s: f64) -> Result<Option<String>, script::Error> {
        let start_s = self.start_s;
        match &mut self.script {
            Some(script) => script.evaluate(line, t_s - start_s),
            None => Ok(None),
        }
    }

    /// Writes what a parameter stands at into the script that declares it; only the value in the text
    /// changes. Returns the file.
    ///
    /// # Errors
    /// A scene that is no folder, a parameter that the library declares or whose value is no plain one: a
    /// sentence.
    pub fn write_param(&mut self, name: &str) -> anyhow::Result<PathBuf> {
        let params = self.params();
        let Some(param) = params.iter().find(|param| param.name == name) else {
            bail!("there is no parameter '{name}'");
        };
        let Source::Folder(folder) = &self.source else {
            bail!(
                "{}: only a scene that is a folder can be written into",
                self.name()
            );
        };
        let prefix = format!("{}/", self.name().trim_end_matches('/'));
        let Some(inside) = param.file.strip_prefix(&prefix) else {
            bail!(
                "the parameter '{name}' is declared in {}, which is not a file of this scene",
                param.file
            );
        };
        check_inside(inside).map_err(anyhow::Error::msg)?;
        let path = folder.join(inside);
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("{} cannot be read", path.display()))?;
        let written = script::rewrite_param(&text, name, param.line, &param.value)
            .map_err(|why| anyhow::anyhow!("{}: {why}", path.display()))?;
        super::atomic::write(&path, written.as_bytes())
            .with_context(|| format!("{} cannot be written", path.display()))?;
        Ok(path)
    }

    /// Names of the scene's presets, sorted.
    #[must_use]
    pub fn presets(&self) -> Vec<String> {
        let name = |path: &str| {
            let name = path.strip_prefix(PRESETS)?.strip_suffix(".json")?;
            (!name.contains('/')).then(|| name.to_owned())
        };
        let mut names: Vec<String> = match (&self.source, &self.files.root) {
            (Source::Folder(folder), _) => (folder.join(PRESETS).read_dir().into_iter())
                .flatten()
                .flatten()
                .filter_map(|entry| name(&format!("{PRESETS}{}", entry.file_name().to_str()?)))
                .collect(),
            (_, Root::Embedded(files)) => files.iter().filter_map(|(path, _)| name(path)).collect(),
            (_, Root::Opened(container)) => {
                let entries = container.entries();
                entries.iter().filter_map(|path| name(path)).collect()
            }
            _ => Vec::new(),
        };
        names.sort();
        names
    }

    /// What a preset sets.
    ///
    /// # Errors
    /// It is not there, or holds no object of values.
    pub fn preset(&self, name: &str) -> anyhow::Result<BTreeMap<String, ParamValue>> {
        preset(&self.files, name)
    }

    /// Writes what all parameters stand at as a preset of the scene. Returns the file.
    ///
    /// # Errors
    /// A scene that is no folder, a name that no file can have, what the disk says.
    pub fn save_preset(&self, name: &str) -> anyhow::Result<PathBuf> {
        let Source::Folder(folder) = &self.source else {
            bail!(
                "{}: only a scene that is a folder can be written into",
                self.name()
            );
        };
        let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | ' ');
        if name.trim().is_empty() || name.len() > 64 || !name.chars().all(is_plain) {
            bail!("a preset's name is made of letters, digits, _, - and blanks, not '{name}'");
        }
        let values: BTreeMap<String, ParamValue> = (self.params().into_iter())
            .map(|param| (param.name, param.value))
            .collect();
        let presets = folder.join(PRESETS);
        std::fs::create_dir_all(&presets)
            .with_context(|| format!("{} cannot be made", presets.display()))?;
        let path = presets.join(format!("{}.json", name.trim()));
        let mut text = serde_json::to_vec_pretty(&values)?;
        text.push(b'\n');
        super::atomic::write(&path, &text)
            .with_context(|| format!("{} cannot be written", path.display()))?;
        Ok(path)
    }

    /// Where its splats come from.
    #[must_use]
    pub fn cache(&self) -> &Arc<AssetCache> {
        &self.assets.cache
    }

    /// The options that this session was opened with.
    #[must_use]
    pub fn options(&self) -> &SceneOptions {
        &self.options
    }

    /// How long the scene says that it is, seconds.
    #[must_use]
    pub fn duration_s(&self) -> Option<f64> {
        self.script.as_ref().and_then(Script::duration_s)
    }

    /// The running script, for figures about it.
    #[must_use]
    pub fn script(&self) -> Option<&Script> {
        self.script.as_ref()
    }

    /// The running script, to be asked about itself.
    pub fn script_mut(&mut self) -> Option<&mut Script> {
        self.script.as_mut()
    }

    /// The file that the scene begins with.
    #[must_use]
    pub fn entry(&self) -> &str {
        &self.entry
    }

    /// Whether it is a splat file or a bundle that is played, by a scene of the program.
    #[must_use]
    pub fn is_splat_file(&self) -> bool {
        matches!(self.source, Source::Plain(_) | Source::Avatar(_))
    }

    /// The folder that the scene is played from, where it is one.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        match &self.source {
            Source::Folder(folder) => Some(folder),
            _ => None,
        }
    }

    /// Names of all files of the scene, used or not, sorted.
    #[must_use]
    pub fn entries(&self) -> Vec<String> {
        match &self.files.root {
            Root::Embedded(files) => files.iter().map(|(name, _)| (*name).to_owned()).collect(),
            Root::Opened(container) => container.entries(),
            Root::Within(..) => Vec::new(),
        }
    }

    /// The content of a file of the scene.
    ///
    /// # Errors
    /// A sentence: no such file, a name that leads out of the scene, too large.
    pub fn read(&self, name: &str) -> Result<Vec<u8>, String> {
        check_inside(name)?;
        self.files.read_up_to(name, u64::MAX)
    }

    /// Whether the scene has a file of this name, or a folder of splats.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        if check_inside(name).is_err() {
            return false;
        }
        match (&self.files.root, &self.source) {
            (Root::Opened(_), Source::Folder(folder)) => folder.join(name).exists(),
            (Root::Opened(container), _) => {
                let below = format!("{}/", name.trim_end_matches('/'));
                container.contains(name)
                    || container.entries().iter().any(|e| e.starts_with(&below))
            }
            _ => self.entries().iter().any(|entry| entry == name),
        }
    }

    /// Names of the scene's files that its script has asked for, there or not.
    #[must_use]
    pub fn asked_for(&self) -> Vec<String> {
        self.files.touched().into_keys().collect()
    }

    /// Scripts that stood in for those of the library: names with `.luau`, and what was read.
    #[must_use]
    pub fn library_in_use(&self) -> Vec<(String, Vec<u8>)> {
        let Some((_, files)) = &self.library else {
            return Vec::new();
        };
        let names = files.touched().into_keys();
        names
            .filter_map(|name| Some((name.clone(), files.read_inside(&name).ok()?)))
            .collect()
    }

    /// The splat file that the viewer plays; `None` for a scene with a script of its own.
    #[must_use]
    pub fn plain_file(&self) -> Option<&Path> {
        match &self.source {
            Source::Plain(path) => Some(path),
            _ => None,
        }
    }

    /// What the viewer's file was loaded as (axes, splats).
    ///
    /// # Errors
    /// The file has become unreadable since.
    pub fn plain_asset(&self) -> Option<Result<Arc<Asset>, formats::Error>> {
        self.plain_file().map(|path| self.assets.load_plain(path))
    }

    /// How a person has turned the plain splat file, world from loaded world; identity elsewhere.
    #[must_use]
    pub fn turn(&self) -> Quat {
        self.turn
    }

    /// Turns the plain splat file and remembers it beside the file. The next
    /// [`Session::reload`] shows it. Nothing happens for scenes with a script of their own.
    ///
    /// # Errors
    /// The note beside the file cannot be written; the turn holds for this session all the same.
    pub fn set_turn(&mut self, turn: Quat) -> anyhow::Result<()> {
        let Source::Plain(path) = &self.source else {
            return Ok(());
        };
        self.turn = turn.normalize();
        orientation::write(path, self.turn)
    }

    /// Every file on disk that decides what is drawn: scripts, data and splats that any version of
    /// this session has asked for, whether or not they were there. With it the content that was
    /// last read, for those that a script reads as a whole.
    #[must_use]
    pub fn watched(&self) -> BTreeMap<PathBuf, Loaded> {
        let mut paths = BTreeMap::new();
        match &self.source {
            Source::Builtin(_) => {
                let named = self.assets.plain.iter().map(|(_, path)| path.clone());
                paths.extend(named.map(|path| (path, Loaded::Unknown)));
            }
            Source::Folder(folder) => {
                paths.insert(folder.join(&self.entry), Loaded::Unknown);
                let touched = self.files.touched().into_iter();
                paths.extend(touched.map(|(name, read)| (folder.join(name), read)));
            }
            Source::Zip(path) => {
                paths.insert(path.clone(), Loaded::Unknown);
            }
            Source::Plain(path) | Source::Avatar(path) => {
                if let (true, Ok(entries)) = (path.is_dir(), path.read_dir()) {
                    paths.extend(
                        entries
                            .flatten()
                            .map(|entry| (entry.path(), Loaded::Unknown)),
                    );
                } else {
                    paths.insert(path.clone(), Loaded::Unknown);
                }
            }
        }
        if let Some((folder, files)) = &self.library {
            let touched = files.touched().into_iter();
            paths.extend(touched.map(|(name, read)| (folder.join(name), read)));
        }
        paths
    }

    /// What to call the scene in messages and titles.
    #[must_use]
    pub fn name(&self) -> String {
        match &self.source {
            Source::Builtin((name, _)) => format!("@{name}"),
            Source::Plain(_) => format!("@{}", builtin::VIEWER),
            Source::Avatar(_) => format!("@{}", builtin::AVATAR),
            Source::Folder(path) | Source::Zip(path) => path.display().to_string(),
        }
    }

    /// `stage.args` for the script.
    fn args(&self) -> Result<serde_json::Value, script::Error> {
        let mut args = self.options.args.clone();
        let path = match &self.source {
            Source::Plain(path) => path,
            Source::Avatar(path) => {
                args.insert("file".to_owned(), json!(plain_name(path)));
                return Ok(args.into());
            }
            _ => {
                if let Some((name, _)) = &self.assets.plain {
                    args.insert("file".to_owned(), json!(name));
                }
                return Ok(args.into());
            }
        };
        let asset = self
            .assets
            .load_plain(path)
            .map_err(|error| script::Error {
                file: error.file.clone(),
                line: 1,
                message: match &error.entry {
                    Some(entry) => format!("{entry}: {}", error.message),
                    None => error.message.clone(),
                },
                traceback: String::new(),
            })?;
        let camera = &self.options.camera;
        let world_from_given = |v: [f64; 3]| -> [f64; 3] {
            if !camera.file_space {
                return v;
            }
            // Signed permutation, then the person's turn: exact in f32 as long as nothing is turned.
            let v = asset.axes.world_from_file() * Vec3::from_array(v.map(|c| c as f32));
            (self.turn * v).to_array().map(f64::from)
        };
        args.insert("file".to_owned(), json!(plain_name(path)));
        args.insert("turn".to_owned(), json!(self.turn.to_array()));
        for (name, value) in [
            ("eye", camera.eye),
            ("target", camera.target),
            ("up", camera.up),
        ] {
            if let Some(v) = value {
                args.insert(name.to_owned(), json!(world_from_given(v)));
            }
        }
        if let Some(fov_deg) = camera.fov_deg {
            args.insert("fov".to_owned(), json!(fov_deg));
        }
        Ok(args.into())
    }
}

/// Largest preset, bytes.
const PRESET_BYTES_MAX: usize = 1 << 20;

/// Parameters of a scene's preset, or of a file: a JSON object of names and numbers, texts, true or false.
fn preset(files: &SceneFiles, named: &str) -> anyhow::Result<BTreeMap<String, ParamValue>> {
    let is_path = named.ends_with(".json");
    let (shown, bytes) = if is_path {
        let bytes = std::fs::File::open(named).and_then(|file| {
            let mut bytes = Vec::new();
            file.take(PRESET_BYTES_MAX as u64 + 1)
                .read_to_end(&mut bytes)?;
            Ok(bytes)
        });
        (named.to_owned(), bytes.map_err(|error| error.to_string()))
    } else {
        let inside = format!("{PRESETS}{named}.json");
        let bytes = files.read(&inside);
        (inside, bytes)
    };
    let bytes = bytes.map_err(|why| {
        let hint = if is_path {
            ""
        } else {
            " (a preset of the scene's own, or a path that ends in .json)"
        };
        anyhow::anyhow!("the preset {shown}: {why}{hint}")
    })?;
    if bytes.len() > PRESET_BYTES_MAX {
        bail!("the preset {shown}: larger than {PRESET_BYTES_MAX} bytes");
    }
    serde_json::from_slice(&bytes).map_err(|error| {
        anyhow::anyhow!(
            "the preset {shown}: {error}; it is an object of parameters, such as {{\"cadence\": 1.3}}"
        )
    })
}

/// The picture at `t_s` of a script whose own time began at `start_s`.
fn picture(
    script: &mut Script,
    record: &mut Record,
    t_s: f64,
    start_s: f64,
    options: &SceneOptions,
    input: &Input,
) -> Result<Frame, script::Error> {
    let mut frame = filming::filmed(script, record, t_s - start_s, options.film, input)?;
    frame.t_s = t_s;
    if let Some(background) = options.background {
        frame.background = background;
    }
    Ok(frame)
}

/// Sends a script's log line to this program's log.
fn log_line(level: &str, text: &str) {
    match level {
        "error" => tracing::error!(target: "scene", "{text}"),
        "warn" => tracing::warn!(target: "scene", "{text}"),
        _ => tracing::info!(target: "scene", "{text}"),
    }
}

/// The built-in scene that plays files of a kind.
fn player(name: &str) -> anyhow::Result<&'static Builtin> {
    builtin::find(name).with_context(|| format!("the scene @{name} is not part of this build"))
}

/// What the viewer script calls its file: a bare name, since a script sees no path of the machine.
fn plain_name(path: &Path) -> String {
    let path = match path.file_name() {
        Some(name) if name == "lod-meta.json" || name == "meta.json" => {
            path.parent().unwrap_or(path)
        }
        _ => path,
    };
    path.file_name()
        .map_or_else(|| "splats".to_owned(), |n| n.to_string_lossy().into_owned())
}

/// Finds out what `scene` is: the source and the script's entry file.
fn resolve(scene: &str, unpacked_bytes_max: Option<u64>) -> anyhow::Result<(Source, String)> {
    if let Some(name) = scene.strip_prefix('@') {
        let found = builtin::find(name).with_context(|| {
            let names: Vec<String> = builtin::BUILTINS
                .iter()
                .map(|(n, _)| format!("@{n}"))
                .collect();
            format!("no built-in scene {scene}: there are {}", names.join(", "))
        })?;
        if name == builtin::VIEWER {
            bail!(Usage(
                "@viewer shows a splat file: name the file itself, as in 'splatstage flat.sog'"
                    .to_owned()
            ));
        }
        return Ok((Source::Builtin(found), ENTRIES[0].to_owned()));
    }
    let path = PathBuf::from(scene);
    let viewer_entry = || ENTRIES[0].to_owned();
    if scene.contains("://") {
        bail!(formats::Error {
            code: Code::IsUrl,
            message: "this is a URL: download it first, then name the file".to_owned(),
            file: scene.to_owned(),
            entry: None,
        });
    }
    if path.is_dir() {
        if let Some(entry) = ENTRIES.iter().find(|entry| path.join(entry).is_file()) {
            return Ok((Source::Folder(path), (*entry).to_owned()));
        }
        if path.join("manifest.json").is_file() {
            return Ok((Source::Avatar(path), viewer_entry()));
        }
        let is_splats = ["lod-meta.json", "meta.json"]
            .iter()
            .any(|name| path.join(name).is_file());
        if is_splats {
            return Ok((Source::Plain(path), viewer_entry()));
        }
        bail!(
            "{scene}: this folder holds no scene.luau, and no meta.json, lod-meta.json or \
             manifest.json of splats"
        );
    }
    if !path.exists() {
        bail!(
            "{scene}: no such file or folder (a scene is a folder with scene.luau, a .stage, a \
             splat file, or a built-in such as @hello)"
        );
    }
    if path.extension().is_some_and(|e| e == "luau" || e == "lua") {
        let folder = match path.parent() {
            Some(parent) if parent != Path::new("") => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        let entry = path.file_name().map(|n| n.to_string_lossy().into_owned());
        return Ok((Source::Folder(folder), entry.unwrap_or_else(viewer_entry)));
    }
    if is_zip(&path) {
        let container = formats::open_with_limit(&path, unpacked_bytes_max)?;
        if let Some(entry) = ENTRIES.iter().find(|entry| container.contains(entry)) {
            return Ok((Source::Zip(path), (*entry).to_owned()));
        }
        // By name too: the loader says what a broken bundle lacks.
        let is_named = path.extension().is_some_and(|e| e == "splattie");
        if is_named || container.contains("manifest.json") {
            return Ok((Source::Avatar(path), viewer_entry()));
        }
    }
    Ok((Source::Plain(path), viewer_entry()))
}

/// Whether a file starts as zips do. One that cannot be read is left for the loader to complain of.
fn is_zip(path: &Path) -> bool {
    let mut magic = [0; 4];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && magic == *b"PK\x03\x04"
}

/// A scene's text and data files.
struct SceneFiles {
    root: Root,
    /// Names that were asked for, there or not, and what was last read under them.
    touched: Mutex<BTreeMap<String, Loaded>>,
    /// The folder that scripts may save data into.
    saves_to: Option<PathBuf>,
}

enum Root {
    Embedded(&'static [(&'static str, &'static [u8])]),
    Opened(Box<dyn Container>),
    /// A folder of another root, by its name with a slash.
    Within(Arc<SceneFiles>, &'static str),
}

/// The folder of a scene, its slash included, for its presets.
pub const PRESETS: &str = "presets/";

/// The folder of a scene, its slash included, whose scripts stand in for those of the library: `pack`
/// puts them there.
pub const PACKED_LIBRARY: &str = "@stage/";

/// The library that a scene brings along.
fn packed_library(source: &Source, files: &Arc<SceneFiles>) -> Option<(PathBuf, Arc<SceneFiles>)> {
    let (Source::Folder(path) | Source::Zip(path), Root::Opened(container)) = (source, &files.root)
    else {
        return None;
    };
    let is_there = match source {
        Source::Folder(folder) => folder.join(PACKED_LIBRARY).is_dir(),
        _ => (container.entries().iter()).any(|entry| entry.starts_with(PACKED_LIBRARY)),
    };
    let library = || SceneFiles {
        root: Root::Within(Arc::clone(files), PACKED_LIBRARY),
        touched: Mutex::default(),
        saves_to: None,
    };
    is_there.then(|| (path.join(PACKED_LIBRARY), Arc::new(library())))
}

impl SceneFiles {
    fn touch(&self, name: &str, read: Loaded) {
        self.touched
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(name.to_owned(), read);
    }

    fn touched(&self) -> BTreeMap<String, Loaded> {
        self.touched
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Files for SceneFiles {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        check_inside(path)?;
        let read = self.read_inside(path);
        let loaded = read.as_ref().map_or(Loaded::Missing, |bytes| {
            Loaded::Content(ContentHash::of(bytes))
        });
        self.touch(path, loaded);
        read
    }

    fn save(&self, path: &str, bytes: &[u8]) -> Result<(), String> {
        let Some(folder) = &self.saves_to else {
            return Err(script::NOT_SAVED.to_owned());
        };
        check_inside(path)?;
        let file = folder.join(path);
        if std::fs::read(&file).is_ok_and(|old| old == bytes) {
            return Ok(());
        }
        super::atomic::write(&file, bytes).map_err(|error| error.to_string())
    }
}

impl SceneFiles {
    fn read_inside(&self, path: &str) -> Result<Vec<u8>, String> {
        self.read_up_to(path, FILE_BYTES_MAX)
    }

    fn read_up_to(&self, path: &str, bytes_max: u64) -> Result<Vec<u8>, String> {
        match &self.root {
            Root::Embedded(files) => files
                .iter()
                .find(|(name, _)| *name == path)
                .map(|(_, bytes)| bytes.to_vec())
                .ok_or_else(|| format!("no file '{path}' in this built-in scene")),
            Root::Opened(container) => container
                .read(path, bytes_max)
                .map(std::borrow::Cow::into_owned)
                .map_err(|error| error.to_string()),
            Root::Within(files, folder) => files.read_up_to(&format!("{folder}{path}"), bytes_max),
        }
    }
}

/// A scene's splats.
struct SceneAssets {
    cache: Arc<AssetCache>,
    /// Decoded sounds by name, each with what it was decoded of: a reload decodes nothing again.
    clips: Mutex<BTreeMap<String, (ContentHash, Arc<Clip>)>>,
    /// What other scenes draw, by name and arguments: a reload makes nothing again.
    scenes: Mutex<BTreeMap<String, Arc<Splats>>>,
    files: Arc<SceneFiles>,
    source: Source,
    /// The file that a person named: what its script calls it, and where it is.
    plain: Option<(String, PathBuf)>,
    level: Option<u32>,
    axes: Option<Axes>,
}

impl SceneAssets {
    fn load_plain(&self, path: &Path) -> Result<Arc<Asset>, formats::Error> {
        self.cache.load(path, self.level, self.axes)
    }
}

impl Assets for SceneAssets {
    fn splats(
        &self,
        path: &str,
        level: Option<u32>,
        axes: Option<&str>,
    ) -> Result<script::Asset, String> {
        let level = self.level.or(level);
        let axes = match axes {
            Some(text) => Some(text.parse()?),
            None => self.axes,
        };
        if let Some((_, on_disk)) = self.plain.as_ref().filter(|(name, _)| name == path) {
            let asset = self.cache.load(on_disk, level, axes);
            return asset.map(|a| for_script(&a)).map_err(|e| e.to_string());
        }
        check_inside(path)?;
        self.files.touch(path, Loaded::Unknown);
        let asset = match (&self.source, &self.files.root) {
            (Source::Folder(folder), _) => self.cache.load(&folder.join(path), level, axes),
            (Source::Zip(zip), Root::Opened(container)) => {
                self.cache
                    .load_entry(zip, container.as_ref(), path, level, axes)
            }
            _ => return Err(format!("no splats '{path}' in this built-in scene")),
        };
        asset.map(|a| for_script(&a)).map_err(|e| e.to_string())
    }

    fn scene(&self, name: &str, args: &serde_json::Value) -> Result<script::Asset, String> {
        // A scene that is drawn from never draws from one itself: there would be no end.
        if matches!(self.source, Source::Builtin(_)) {
            return Err("a built-in scene draws from no other".to_owned());
        }
        let known = format!("{name} {args}");
        let mut scenes = self.scenes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(splats) = scenes.get(&known) {
            return Ok(script::Asset::splats_alone(Arc::clone(splats)));
        }
        let args = args.as_object().cloned().unwrap_or_default();
        let splats = gathered::of_builtin(name, args).map_err(|why| format!("{why:#}"))?;
        scenes.insert(known, Arc::clone(&splats));
        Ok(script::Asset::splats_alone(splats))
    }

    fn clip(&self, path: &str) -> Result<Arc<Clip>, String> {
        check_inside(path)?;
        let read = self.files.read_up_to(path, clip::FILE_BYTES_MAX);
        let loaded = read.as_ref().map_or(Loaded::Missing, |bytes| {
            Loaded::Content(ContentHash::of(bytes))
        });
        self.files.touch(path, loaded);
        let bytes = read?;
        let hash = ContentHash::of(&bytes);
        let mut clips = self.clips.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, clip)) = clips.get(path)
            && *known == hash
        {
            return Ok(Arc::clone(clip));
        }
        let clip = Clip::decode(path, bytes.into()).map_err(|error| error.to_string())?;
        for warning in clip.warnings() {
            tracing::warn!("{warning}");
        }
        let clip = Arc::new(clip);
        clips.insert(path.to_owned(), (hash, Arc::clone(&clip)));
        Ok(clip)
    }
}

fn for_script(asset: &Asset) -> script::Asset {
    script::Asset {
        splats: Arc::clone(&asset.splats),
        body: asset.body.clone(),
        facts: Arc::clone(&asset.facts),
    }
}

/// Refuses names that lead out of a scene. A link that a person put into the folder is part of it.
fn check_inside(path: &str) -> Result<(), String> {
    let is_inside = !path.is_empty()
        && !path.contains('\\')
        && Path::new(path)
            .components()
            .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if is_inside {
        Ok(())
    } else {
        Err(format!(
            "'{path}' leads out of the scene: name files relative to the scene's folder, with /"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_out_of_the_scene_are_refused() {
        for name in ["../x", "/etc/passwd", "a/../../b", "", "a\\b"] {
            assert!(check_inside(name).is_err(), "{name}");
        }
        for name in ["a.ply", "./a.ply", "scans/flat/lod-meta.json"] {
            assert!(check_inside(name).is_ok(), "{name}");
        }
    }
}
