//! The tools of a scene's author on the command line: `new`, `check`, `test`, `pack`, `api`.
//!
//! Their flags, and their answers for people and programs; the work is done in `splatstage::app`.

use super::args::{DrawFlags, SceneFlags};
use super::{print_json, print_text};
use anyhow::{Context as _, bail};
use clap::{Args as ClapArgs, ValueEnum};
use serde_json::{Value, json};
use splatstage::app::check::{Finding, check};
use splatstage::app::new_scene::{Template, new_scene};
use splatstage::app::pack::pack;
use splatstage::app::scene_test::{TestOptions, test};
use splatstage::app::session::Session;
use splatstage::app::{Usage, atomic, graph, interrupt, offline};
use splatstage::frame::Input;
use splatstage::script::api::{Format, page};
use std::fmt::Write as _;
use std::path::PathBuf;

/// Something failed, and everything about it is said already.
#[derive(Debug, thiserror::Error)]
#[error("failed")]
pub struct Told;

/// Size that scenes are played for where no picture is asked for, px.
const PLAYED_PX: [u32; 2] = [1280, 720];

/// Make the folder of a scene of your own: a scene that plays, a test, and what an editor needs.
///
/// DIR gets `scene.luau` to begin with, `scene_test.luau`, and for editors `.luaurc`, `.vscode/settings.json`
/// and `.luau/`: `stage/`, the library to read and complete from, and what `splatstage api` says of the rest.
/// Nothing is written over.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  splatstage new my-walk --template walk && splatstage my-walk
  splatstage new my-avatar --template avatar
  splatstage new empty --template blank")]
pub struct NewArgs {
    /// The folder; may exist.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// What the scene begins as.
    #[arg(long, value_enum, value_name = "NAME", default_value = "blank")]
    pub template: TemplateName,
    /// Print `{files[]}`.
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum TemplateName {
    /// The built-in character looks at you.
    Avatar,
    /// Somebody walks past a lantern and films.
    Walk,
    /// A ring of splats, and a camera that goes round it.
    Blank,
}

/// Find what is wrong with a scene, without a window and without a picture.
///
/// Prints `file:line: message` for each finding: names that nothing declares, files that are not there,
/// keys that mean nothing, states that nothing leads into, bones and shapes that no avatar has, cues
/// outside the film, deprecated calls, and what goes wrong while the scene plays through and is clicked
/// on. With --shaders also shaders that do not build. Exit code 1 when there is an error; warnings are
/// none.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  splatstage check my-scene
  splatstage check my-scene --shaders my-shaders
  splatstage check my-scene --json | jq '.findings[].message'")]
pub struct CheckArgs {
    /// What to check.
    pub scene: String,
    /// Print `{errors, warnings, findings[{file, line, severity, message}]}`.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub flags: SceneFlags,
    #[command(flatten)]
    pub draw: DrawFlags,
}

/// Run the tests of a scene: its files *_test.luau.
///
/// A test file returns a table of functions by name. Each gets a scene of its own: `scene:frame(t)` (what
/// `trace` prints), `scene:cues(from, to)`, `scene:input{t = 1, pointer = {0, 0}}` or
/// `scene:input(\"act.log\")`, `scene:picture(t, {size = {320, 180}})`, `scene.duration`. `expect(x)` has
/// `.equals(y)`, `.differs(y)`, `.near(y, by)`, `.above(n)`, `.below(n)`, `.contains(part)`,
/// `.fails(text)`, and for pictures `.looks_like(\"golden.png\", db)`. Exit code 1 when a test fails.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  splatstage test my-scene
  splatstage test my-scene --only lantern
  splatstage test my-scene --update                write golden pictures anew")]
pub struct TestArgs {
    /// What to test.
    pub scene: String,
    /// Only tests with this text in their names.
    #[arg(long, value_name = "TEXT")]
    pub only: Option<String>,
    /// Write golden pictures instead of comparing with them.
    #[arg(long)]
    pub update: bool,
    /// Print `{passed, failed, tests[{file, name, passed, error{file, line, message}}]}`.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub flags: SceneFlags,
    #[command(flatten)]
    pub draw: DrawFlags,
}

/// Pack a scene into one .stage file that plays by itself.
///
/// In it is what the scene uses: scripts, data, splats and sounds that it asks for while it plays through
/// or names in its text, and scripts of --scripts that it requires. Links that lead out of the folder are
/// refused. The pack gives the same pictures as the folder.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  splatstage pack my-scene -o my-scene.stage && splatstage my-scene.stage
  splatstage pack my-scene -o my-scene.stage --json | jq '.files[].name'")]
pub struct PackArgs {
    /// What to pack.
    pub scene: String,
    /// The pack to write.
    #[arg(short, long, value_name = "X.stage")]
    pub out: PathBuf,
    /// Print `{output, bytes, files[{name, bytes}]}`.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub flags: SceneFlags,
}

/// Print what scenes can use: every function, object and table, with units, ranges and defaults.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  splatstage api | less
  splatstage api --format luau > .luau/splatstage.d.luau
  splatstage api --format json | jq -r '.namespaces[].functions[].name'")]
pub struct ApiArgs {
    /// What for.
    #[arg(long, value_enum, value_name = "NAME", default_value = "markdown")]
    pub format: FormatName,
    /// Write splatstage.d.luau, splatstage.lua and reference.md into this folder instead.
    #[arg(long, value_name = "DIR", conflicts_with = "format")]
    pub write: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum FormatName {
    /// Definitions for luau-lsp.
    Luau,
    /// A stub for lua-language-server.
    Lua,
    /// Pages to read.
    Markdown,
    /// Everything, for programs.
    Json,
}

pub fn run_api(args: &ApiArgs) -> anyhow::Result<()> {
    let Some(folder) = &args.write else {
        let format = match args.format {
            FormatName::Luau => Format::Luau,
            FormatName::Lua => Format::Lua,
            FormatName::Markdown => Format::Markdown,
            FormatName::Json => Format::Json,
        };
        return Ok(print_text(&page(format))?);
    };
    for (format, name) in Format::FILES {
        let path = folder.join(name);
        std::fs::write(&path, page(format))
            .with_context(|| format!("{}: cannot be written", path.display()))?;
    }
    Ok(())
}

/// The state machines of a scene as a graph.
///
/// Those that the scene makes with @stage/states while it loads. Without -o DOT is printed.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  splatstage graph @avatar -o states.svg
  splatstage graph my-scene | dot -Tpdf > states.pdf")]
pub struct GraphArgs {
    /// The scene.
    pub scene: String,
    /// The file to write: .svg or .dot.
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Print `{machines[{states[], first, ways[{from, to}]}]}`.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub flags: SceneFlags,
}

/// The parameters of a scene, and what they stand at.
///
/// A parameter is turned by a slider (F2 while it plays), `--param NAME=VALUE`, an OSC message
/// `/param/NAME value` (`play --osc PORT`), a MIDI control, or a preset (`--preset NAME`).
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  splatstage params my-scene
  splatstage params my-scene --preset evening --json
  splatstage render my-scene -o fast.mp4 --param cadence=2.2")]
pub struct ParamsArgs {
    /// The scene.
    pub scene: String,
    /// Print `{params[{name, value, default, min, max, step, unit, help, choices[], loads, file, line}],
    /// presets[]}`.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub flags: SceneFlags,
}

/// A scene that has loaded and made its first picture.
fn loaded(scene: &str, flags: &SceneFlags) -> anyhow::Result<Session> {
    let mut session = Session::open(flags.options(scene), offline::offline_cache(), false)?;
    let [width, height] = PLAYED_PX.map(|side| side as f32);
    let input = Input {
        aspect: width / height,
        ..Input::default()
    };
    session.reload(0.0, &input)?;
    let wrong = session.wrong_params();
    if !wrong.is_empty() {
        bail!(Usage(wrong.join("\n")));
    }
    Ok(session)
}

pub fn run_graph(args: &GraphArgs) -> anyhow::Result<()> {
    let mut session = loaded(&args.scene, &args.flags)?;
    let charts = match session.script_mut() {
        Some(script) => script.charts()?,
        None => Vec::new(),
    };
    if let Some(path) = &args.out {
        let text = match path.extension().and_then(|e| e.to_str()) {
            Some("svg") => graph::svg(&charts)?,
            Some("dot" | "gv") => graph::dot(&charts),
            _ => bail!(Usage(format!("{}: ends in .svg or .dot", path.display()))),
        };
        atomic::write(path, text.as_bytes())
            .with_context(|| format!("{} cannot be written", path.display()))?;
    }
    if args.json {
        return Ok(print_json(&json!({ "machines": charts }))?);
    }
    if args.out.is_none() {
        print_text(&graph::dot(&charts))?;
    }
    Ok(())
}

pub fn run_params(args: &ParamsArgs) -> anyhow::Result<()> {
    let session = loaded(&args.scene, &args.flags)?;
    let (params, presets) = (session.params(), session.presets());
    if args.json {
        let answer = json!({ "params": params, "presets": presets });
        return Ok(print_json(&answer)?);
    }
    let mut text = String::new();
    // Writing to a String cannot fail.
    for param in &params {
        let range = match (param.min, param.max) {
            (None, None) if param.choices.is_empty() => String::new(),
            (None, None) => format!("  one of {}", param.choices.join(", ")),
            (min, max) => {
                let end = |end: Option<f64>| end.map_or("...".to_owned(), |end| end.to_string());
                format!("  {} to {}", end(min), end(max))
            }
        };
        let unit = if param.unit.is_empty() {
            String::new()
        } else {
            format!(" {}", param.unit)
        };
        let _ = writeln!(
            text,
            "{:<20} {}{unit}{range}  {}",
            param.name, param.value, param.help
        );
    }
    if params.is_empty() {
        text.push_str("no parameters\n");
    }
    for name in &presets {
        let _ = writeln!(text, "preset {name}");
    }
    print_text(&text)?;
    Ok(())
}

pub fn run_new(args: &NewArgs) -> anyhow::Result<()> {
    let template = match args.template {
        TemplateName::Avatar => Template::Avatar,
        TemplateName::Walk => Template::Walk,
        TemplateName::Blank => Template::Blank,
    };
    let files = new_scene(&args.folder, template)?;
    if args.json {
        return Ok(print_json(&json!({ "files": files }))?);
    }
    let folder = args.folder.display();
    print_text(&format!(
        "{folder}/scene.luau       the scene: change it while 'splatstage {folder}' plays\n\
         {folder}/scene_test.luau  what has to hold: 'splatstage test {folder}'\n\
         {folder}/.luau/stage/     the library, to read; editors complete from it\n\
         then: 'splatstage check {folder}', 'splatstage pack {folder} -o {folder}.stage'\n"
    ))?;
    Ok(())
}

pub fn run_check(args: &CheckArgs) -> anyhow::Result<()> {
    interrupt::listen();
    let draw = args.draw.options_with_default(PLAYED_PX);
    let findings = check(&args.flags.options(&args.scene), &draw)?;
    let errors = findings.iter().filter(|finding| finding.is_error).count();
    let warnings = findings.len() - errors;
    if args.json {
        let findings: Vec<Value> = findings.iter().map(Finding::json).collect();
        print_json(&json!({ "errors": errors, "warnings": warnings, "findings": findings }))?;
    } else {
        for finding in &findings {
            print_text(&format!("{}\n", finding.text()))?;
        }
        eprintln!("{}: {errors} errors, {warnings} warnings", args.scene);
    }
    if errors > 0 { Err(Told.into()) } else { Ok(()) }
}

pub fn run_test(args: &TestArgs) -> anyhow::Result<()> {
    interrupt::listen();
    let options = TestOptions {
        scene: args.flags.options(&args.scene),
        draw: args.draw.options_with_default(PLAYED_PX),
        only: args.only.clone(),
        update: args.update,
    };
    let is_json = args.json;
    let report = test(&options, |file, outcome| {
        if is_json {
            return;
        }
        let told = match &outcome.error {
            None => format!("ok      {file}: {}\n", outcome.name),
            Some(error) => format!("FAILED  {file}: {}\n  {error}\n", outcome.name),
        };
        // A reader that has gone away is no reason to stop testing.
        let _ = print_text(&told);
    })?;
    if args.json {
        print_json(&report)?;
    } else {
        eprintln!("{} passed, {} failed", report["passed"], report["failed"]);
    }
    if report["failed"] == 0 {
        Ok(())
    } else {
        Err(Told.into())
    }
}

pub fn run_pack(args: &PackArgs) -> anyhow::Result<()> {
    interrupt::listen();
    let report = pack(&args.flags.options(&args.scene), &args.out)?;
    if args.json {
        print_json(&report)?;
    } else {
        print_text(&super::text::tree(&report))?;
    }
    Ok(())
}
