//! `test`: runs the `*_test.luau` files of a scene, each test with a scene of its own.
//!
//! What a test may ask is said in `script::testing`; here the scene is played for it, without a window,
//! and pictures are drawn and compared with files beside the scene. A picture that differs is written
//! beside its golden one as `NAME.new.png`. It knows no Lua.

use super::assets::AssetCache;
use super::check::is_test;
use super::movie::write_png;
use super::offline::{self, DURATION_DEFAULT_S, DrawOptions};
use super::replay::{Log, Player};
use super::session::{SceneOptions, Session};
use crate::gpu::{Context, Picture, Renderer};
use crate::script::{self, Outcome, Subject};
use anyhow::bail;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

/// Likeness of two equal pictures, dB: what no rounding reaches.
const EQUAL_DB: f64 = 99.0;

/// What is asked of `test`.
#[derive(Clone, Debug)]
pub struct TestOptions {
    /// What is tested.
    pub scene: SceneOptions,
    /// How it is drawn; `size` is what the scene is played for where no picture is asked for, px.
    pub draw: DrawOptions,
    /// Run only tests with this text in their names.
    pub only: Option<String>,
    /// Write golden pictures instead of comparing with them.
    pub update: bool,
}

/// Runs all tests of a scene; `told` hears of each as it ends. Reports `passed, failed,
/// tests[{file, name, passed, error{file, line, message}}]`.
///
/// # Errors
/// No such scene, no test in it, or a test file that does not run. A test that fails is in the report.
pub fn test(options: &TestOptions, mut told: impl FnMut(&str, &Outcome)) -> anyhow::Result<Value> {
    let cache = offline::offline_cache();
    let session = Session::open(options.scene.clone(), Arc::clone(&cache), false)?;
    let files: Vec<String> = (session.entries().into_iter())
        .filter(|name| is_test(name))
        .collect();
    if files.is_empty() {
        bail!("{}: no file here ends in _test.luau", options.scene.scene);
    }
    let subject = Rc::new(RefCell::new(Played {
        options: options.clone(),
        cache,
        size_px: options.draw.size,
        lines: Vec::new(),
        player: None,
        played_s: f64::NEG_INFINITY,
        drawing: None,
        pictures: Vec::new(),
    }));
    let [width, height] = options.draw.size;
    let mut tests = Vec::new();
    let mut failed = 0;
    for file in &files {
        let setup = session.setup(file, width as f32 / height as f32)?;
        let subject: Rc<RefCell<dyn Subject>> = Rc::clone(&subject) as _;
        let only = options.only.as_deref().unwrap_or_default();
        let outcomes = script::run_tests(setup, subject, only, |outcome| told(file, outcome))?;
        for outcome in outcomes {
            failed += usize::from(outcome.error.is_some());
            let error = outcome.error.map(
                |error| json!({ "file": error.file, "line": error.line, "message": error.message }),
            );
            tests.push(json!({
                "file": file,
                "name": outcome.name,
                "passed": error.is_none(),
                "error": error,
            }));
        }
    }
    if tests.is_empty() {
        bail!("no test has this text in its name");
    }
    Ok(json!({ "passed": tests.len() - failed, "failed": failed, "tests": tests }))
}

/// The scene as one test sees it.
struct Played {
    options: TestOptions,
    cache: Arc<AssetCache>,
    size_px: [u32; 2],
    /// Lines of the input log so far, with their times.
    lines: Vec<(f64, String)>,
    player: Option<Player>,
    /// The latest time that the player was asked for, seconds.
    played_s: f64,
    drawing: Option<(Context, Renderer)>,
    pictures: Vec<(Picture, bool)>,
}

impl Played {
    /// A player that can be asked for `t_s`: what has run further than that begins anew.
    fn player(&mut self, t_s: f64) -> Result<&mut Player, String> {
        let has_past = !self.lines.is_empty()
            || (self.player.as_ref()).is_some_and(|player| player.session().is_stepped());
        if has_past && t_s < self.played_s {
            self.player = None;
        }
        let player = match self.player.take() {
            Some(player) => player,
            None => {
                self.lines.sort_by(|(a, _), (b, _)| a.total_cmp(b));
                let lines: Vec<&str> = self.lines.iter().map(|(_, line)| line.as_str()).collect();
                let log =
                    Log::parse(&lines.join("\n"), "scene:input").map_err(|e| e.to_string())?;
                let scene = self.options.scene.clone();
                let session = Session::open(scene, Arc::clone(&self.cache), false)
                    .map_err(|error| format!("{error:#}"))?;
                let mut player = Player::new(session, log, self.size_px);
                player.load().map_err(|error| error.to_string())?;
                player
            }
        };
        self.played_s = t_s;
        Ok(self.player.insert(player))
    }

    fn golden(&self, name: &str) -> Result<PathBuf, String> {
        let clean = crate::formats::container::clean_name(name)
            .map_err(|why| format!("the picture '{name}' {why}"))?;
        if !clean.ends_with(".png") {
            return Err(format!("the picture '{name}' must end in .png"));
        }
        let scene = Path::new(&self.options.scene.scene);
        let folder = if scene.is_file() {
            scene.parent()
        } else {
            Some(scene)
        };
        Ok(folder.unwrap_or(Path::new(".")).join(clean))
    }
}

impl Subject for Played {
    fn begin(&mut self) -> Result<f64, String> {
        self.lines.clear();
        self.player = None;
        self.pictures.clear();
        self.size_px = self.options.draw.size;
        let player = self.player(0.0)?;
        Ok(player.session().duration_s().unwrap_or(DURATION_DEFAULT_S))
    }

    fn frame(&mut self, t_s: f64) -> Result<Value, String> {
        let player = self.player(t_s)?;
        let frame = player.frame(t_s).map_err(|error| error.to_string())?;
        let mut json = offline::frame_json(t_s, &frame, &[]);
        if let Some(fields) = json.as_object_mut() {
            fields.remove("cues");
        }
        as_vectors(&mut json);
        Ok(json)
    }

    fn cues(&mut self, from_s: f64, to_s: f64) -> Result<Value, String> {
        let player = self.player(from_s)?;
        let cues = player
            .cues(from_s, to_s)
            .map_err(|error| error.to_string())?;
        let mut json = cues.iter().map(offline::cue_json).collect();
        as_vectors(&mut json);
        Ok(json)
    }

    fn input(&mut self, line: &Value) -> Result<(), String> {
        let text = match line {
            Value::String(name) => {
                let session =
                    Session::open(self.options.scene.clone(), Arc::clone(&self.cache), false)
                        .map_err(|error| format!("{error:#}"))?;
                let bytes = session.read(name)?;
                String::from_utf8(bytes).map_err(|_| format!("{name}: is no text"))?
            }
            line => line.to_string(),
        };
        let name = line.as_str().unwrap_or("scene:input");
        Log::parse(&text, name).map_err(|error| error.to_string())?;
        for line in text.lines() {
            // Parsed above: what has no time is a comment or empty.
            let time = serde_json::from_str::<Value>(line)
                .ok()
                .and_then(|v| v["t"].as_f64());
            if let Some(t_s) = time {
                self.lines.push((t_s, line.to_owned()));
            }
        }
        // The past has changed, or what the player knows of it.
        self.player = None;
        Ok(())
    }

    fn picture(&mut self, t_s: f64, size_px: [u32; 2]) -> Result<u32, String> {
        if size_px != self.size_px {
            self.size_px = size_px;
            self.player = None;
        }
        let frame = self
            .player(t_s)?
            .frame(t_s)
            .map_err(|error| error.to_string())?;
        if self.drawing.is_none() {
            let draw = &self.options.draw;
            let open = || -> anyhow::Result<_> {
                let context = Context::headless(draw.gpu)?;
                let renderer = Renderer::new(&context, &draw.settings()?)?;
                Ok((context, renderer))
            };
            self.drawing = Some(open().map_err(|error| format!("{error:#}"))?);
        }
        let Some((context, renderer)) = &mut self.drawing else {
            return Err("nothing to draw with".to_owned());
        };
        let (picture, _) =
            (renderer.picture(context, &frame, size_px)).map_err(|e| e.to_string())?;
        self.pictures.push((picture, frame.background[3] < 1.0));
        Ok(self.pictures.len() as u32 - 1)
    }

    fn compare(&mut self, number: u32, golden: &str, least_db: f64) -> Result<(), String> {
        let path = self.golden(golden)?;
        let Some((picture, keep_alpha)) = self.pictures.get(number as usize) else {
            return Err("this picture belongs to another test".to_owned());
        };
        let write = |path: &Path| {
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder)
                    .map_err(|e| format!("{}: {e}", folder.display()))?;
            }
            write_png(path, picture, *keep_alpha).map_err(|error| format!("{error:#}"))
        };
        if self.options.update {
            return write(&path);
        }
        let shown = path.display();
        if !path.is_file() {
            return Err(format!(
                "{shown}: no such picture; 'test --update' writes it"
            ));
        }
        let wanted = image::open(&path)
            .map_err(|e| format!("{shown}: {e}"))?
            .to_rgba8();
        let beside = path.with_extension("new.png");
        if wanted.dimensions() != (picture.size[0], picture.size[1]) {
            let [width, height] = picture.size;
            let (golden_width, golden_height) = wanted.dimensions();
            return Err(format!(
                "{shown} is {golden_width}x{golden_height}, the picture {width}x{height}"
            ));
        }
        let db = likeness_db(&wanted, &picture.rgba, *keep_alpha);
        if db < least_db {
            write(&beside)?;
            return Err(format!(
                "{db:.1} dB from {shown} where {least_db} are asked for; the picture is {}",
                beside.display()
            ));
        }
        Ok(())
    }
}

/// Peak signal to noise ratio of two pictures of one size, over red, green, blue, and alpha where it
/// is kept, dB.
fn likeness_db(a: &[u8], b: &[u8], keep_alpha: bool) -> f64 {
    let channels = if keep_alpha { 4 } else { 3 };
    let (mut sum, mut count) = (0.0, 0.0);
    for (a, b) in a.chunks_exact(4).zip(b.chunks_exact(4)) {
        for i in 0..channels {
            sum += (f64::from(a[i]) - f64::from(b[i])).powi(2);
            count += 1.0;
        }
    }
    if sum == 0.0 {
        return EQUAL_DB;
    }
    (10.0 * (255.0 * 255.0 * count / sum).log10()).min(EQUAL_DB)
}

/// Writes places as vectors, as scripts know them.
fn as_vectors(json: &mut Value) {
    match json {
        Value::Array(items) => items.iter_mut().for_each(as_vectors),
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                let is_place = name == "position" && value.as_array().is_some_and(|v| v.len() == 3);
                if is_place {
                    *value = json!({ "$vector": value.take() });
                } else {
                    as_vectors(value);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::likeness_db;

    #[test]
    fn likeness_is_high_for_equals_and_falls_with_the_difference() {
        let black = [0, 0, 0, 255];
        assert_eq!(likeness_db(&black, &black, false), 99.0);
        let off_by_one = likeness_db(&black, &[1, 1, 1, 255], false);
        assert!((off_by_one - 48.13).abs() < 0.01, "{off_by_one}");
        assert!(likeness_db(&black, &[0, 0, 0, 0], true) < 7.0);
        assert_eq!(likeness_db(&black, &[0, 0, 0, 0], false), 99.0);
    }
}
