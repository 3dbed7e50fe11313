//! The `sound` table, and what `beds`, `voices` and `ears` returned as voices and a listener.
//!
//! Every value is checked here and refused by name, argument and unit; what comes out is plain data of
//! [`crate::audio`]. Nothing is played, mixed or decoded here: clips come through
//! [`Assets`](super::Assets).

use super::api::{self, Binding, Space};
use super::quota::{Quota, Share};
use super::vm::Host;
use super::{args, frame as convert};
use crate::audio::filter::{FILTERS_MAX, MODES_MAX};
use crate::audio::score::{BUSES_MAX, LEVELS_MAX};
use crate::audio::synth::PARTIALS_MAX;
use crate::audio::{
    AutomaticGain, Bus, BusId, Clip, Colour, Compressor, Filter, Follower, Grains, Levels,
    Listener, Mic, Mode, Place, Shape, Source, VoiceSpec, Wander, sample_at, seconds_at,
};
use mlua::{AnyUserData, Error, Lua, Result, Table, UserData, UserDataRegistry, Value};
use std::rc::Rc;
use std::sync::Arc;

/// The bus of voices that name none.
const MAIN: &str = "main";

/// Voices that `voices` may name for each second that it is asked for.
pub(super) const VOICES_PER_S_MAX: usize = 1000;

/// The longest voice of `voices`, seconds: what sounds at a time then follows from the last half
/// minute. Longer ones are beds.
pub const VOICE_S_MAX: f64 = 30.0;

/// Beds of a scene.
const BEDS_MAX: usize = 64;

/// Numbers that all followers of a scene may hold: about four hours.
const FOLLOWER_NUMBERS_MAX: usize = 12_000_000;

/// What a scene says of sound before anything is asked.
#[derive(Clone, Debug)]
pub struct SoundPlan {
    /// The groups of voices; the first one is `main`.
    pub buses: Vec<Bus>,
    /// What everything is heard through; `None` hears it directly.
    pub mic: Option<Mic>,
    /// Voices that are there from the beginning, in the script's own time.
    pub beds: Vec<VoiceSpec>,
    /// Whether the scene has `voices`.
    pub has_voices: bool,
}

impl Default for SoundPlan {
    fn default() -> Self {
        Self {
            buses: vec![Bus {
                name: MAIN.to_owned(),
                gain_db: 0.0,
                is_through_mic: true,
            }],
            mic: None,
            beds: Vec::new(),
            has_voices: false,
        }
    }
}

impl SoundPlan {
    /// Whether nothing can ever be heard.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.beds.is_empty() && !self.has_voices
    }
}

/// A sound file as scripts hold it.
struct ClipHandle(Arc<Clip>);

impl UserData for ClipHandle {
    fn register(registry: &mut UserDataRegistry<Self>) {
        let mut class = Binding::new(registry, &api::CLIP);
        class.get("name", |_, s| Ok(s.0.name().to_owned()));
        class.get("duration", |_, s| Ok(seconds_at(s.0.length_samples())));
        class.get("channels", |_, s| Ok(s.0.channels()));
        class.finish();
    }
}

/// `sound.follow(clip)`.
struct FollowerHandle {
    follower: Follower,
    _share: Share,
}

impl UserData for FollowerHandle {
    fn register(registry: &mut UserDataRegistry<Self>) {
        let mut class = Binding::new(registry, &api::FOLLOWER);
        class.get("duration", |_, s| Ok(s.follower.duration_s()));
        class.method("at", |_, s, t: Value| {
            let t_s = args::number(&t, "follower:at: t", "seconds")?;
            let heard = s.follower.at(t_s);
            let [low, middle, high] = heard.bands_db;
            Ok((heard.level_db, heard.centre_hz, low, middle, high))
        });
        class.finish();
    }
}

/// Builds the table (not yet read-only).
pub(super) fn table(lua: &Lua, host: &Rc<Host>) -> Result<Table> {
    let mut sound = Space::new(lua, &api::SOUND)?;
    let own = host.clone();
    let clip = move |_: &Lua, path: Value| {
        own.only_while_loading("sound.clip")?;
        let path = args::text(&path, "sound.clip: path")?;
        let failed =
            |why: &dyn std::fmt::Display| Error::runtime(format!("sound.clip('{path}'): {why}"));
        let inside = super::modules::asset_path(&path).map_err(|why| failed(&why))?;
        own.modules.watch(&inside);
        let clip = own
            .budget
            .off_the_clock(|| own.assets.clip(&inside))
            .map_err(|why| failed(&why))?;
        Ok(ClipHandle(clip))
    };
    sound.function("clip", clip)?;

    let quota = Quota::new(
        FOLLOWER_NUMBERS_MAX,
        "all followers together may follow about four hours",
    );
    let own = host.clone();
    let follow = move |lua: &Lua, clip: Value| {
        own.only_while_loading("sound.follow")?;
        let what = "sound.follow";
        let clip = clip_of(&clip, &format!("{what}: clip"))?;
        let follower = own
            .budget
            .off_the_clock(|| Follower::new(&clip))
            .map_err(|why| Error::runtime(format!("{what}: {why}")))?;
        let share = quota.take(lua, follower.numbers(), what)?;
        Ok(FollowerHandle {
            follower,
            _share: share,
        })
    };
    sound.function("follow", follow)?;

    let own = host.clone();
    let bus = move |_: &Lua, (name, options): (Value, Value)| {
        own.only_while_loading("sound.bus")?;
        let bus = bus_of(&name, &options)?;
        let mut plan = own.sound.borrow_mut();
        let known = plan.buses.iter().position(|known| known.name == bus.name);
        match known {
            Some(index) => plan.buses[index] = bus,
            None if plan.buses.len() < BUSES_MAX => plan.buses.push(bus),
            None => {
                return Err(Error::runtime(format!(
                    "sound.bus: a scene may have {BUSES_MAX} buses"
                )));
            }
        }
        Ok(())
    };
    sound.function("bus", bus)?;

    let own = host.clone();
    let mic = move |_: &Lua, wanted: Value| {
        own.only_while_loading("sound.mic")?;
        own.sound.borrow_mut().mic = mic_of(&wanted)?;
        Ok(())
    };
    sound.function("mic", mic)?;
    sound.finish()
}

fn bus_of(name: &Value, options: &Value) -> Result<Bus> {
    let name = args::text(name, "sound.bus: name")?;
    if name.is_empty() || name.len() > 64 {
        return Err(Error::runtime(
            "sound.bus: name must have 1 to 64 bytes".to_owned(),
        ));
    }
    let mut bus = Bus {
        name,
        gain_db: 0.0,
        is_through_mic: true,
    };
    if options.is_nil() {
        return Ok(bus);
    }
    let what = "sound.bus: options";
    let table = args::table(options, what)?;
    args::only_keys(table, &api::BUS_OPTIONS, what)?;
    let fields = Fields { table, what };
    bus.gain_db = fields.within("gain_db", "dB", -120.0, 40.0)?.unwrap_or(0.0);
    bus.is_through_mic = fields.flag("mic")?.unwrap_or(true);
    Ok(bus)
}

/// `false`, the name of a preset, or `{preset =, band =, ...}`.
fn mic_of(wanted: &Value) -> Result<Option<Mic>> {
    let what = "sound.mic: microphone";
    let preset = |name: &str, what: &str| {
        Mic::preset(name).ok_or_else(|| {
            let names = args::suggestion(name, &Mic::PRESETS);
            Error::runtime(format!("{what}: there is no microphone '{name}'{names}"))
        })
    };
    let table = match wanted {
        Value::Boolean(false) => return Ok(None),
        Value::String(name) => return preset(&name.to_string_lossy(), what).map(Some),
        Value::Table(table) => table,
        _ => return args::refuse(what, "false, a preset's name or a table", wanted),
    };
    args::only_keys(table, &api::MICROPHONE, what)?;
    let fields = Fields { table, what };
    let mut mic = match fields.value("preset")? {
        Value::Nil => Mic::phone(),
        name => preset(
            &args::text(&name, "sound.mic: preset")?,
            "sound.mic: preset",
        )?,
    };
    let set = |slot: &mut f64, key: &str, unit: &str, low: f64, high: f64| -> Result<()> {
        *slot = fields.within(key, unit, low, high)?.unwrap_or(*slot);
        Ok(())
    };
    set(&mut mic.band_hz[0], "low_hz", "Hz", 20.0, 1000.0)?;
    set(&mut mic.band_hz[1], "high_hz", "Hz", 1000.0, 20_000.0)?;
    set(&mut mic.width, "width", "", 0.0, 1.0)?;
    set(&mut mic.noise_db, "noise_db", "dBFS", -200.0, 0.0)?;
    set(&mut mic.wind_db, "wind_db", "dBFS", -200.0, 0.0)?;
    set(&mut mic.handling_db, "handling_db", "dBFS", -200.0, 0.0)?;
    match fields.value("gain")? {
        Value::Nil => {}
        Value::Boolean(false) => mic.gain = None,
        value => {
            let what = "sound.mic: gain";
            let table = args::table(&value, what)?;
            args::only_keys(table, &api::AUTOMATIC_GAIN, what)?;
            let fields = Fields { table, what };
            let before = mic.gain.or(Mic::phone().gain);
            let of = |f: fn(&AutomaticGain) -> f64| before.as_ref().map_or(0.0, f);
            mic.gain = Some(AutomaticGain {
                aim_db: (fields.within("aim_db", "dBFS", -60.0, 0.0)?).unwrap_or(of(|g| g.aim_db)),
                boost_db: (fields.within("boost_db", "dB", 0.0, 60.0)?)
                    .unwrap_or(of(|g| g.boost_db)),
                cut_db: (fields.within("cut_db", "dB", 0.0, 60.0)?).unwrap_or(of(|g| g.cut_db)),
            });
        }
    }
    match fields.value("compressor")? {
        Value::Nil => {}
        Value::Boolean(false) => mic.compressor = None,
        value => {
            let what = "sound.mic: compressor";
            let table = args::table(&value, what)?;
            args::only_keys(table, &api::COMPRESSOR, what)?;
            let fields = Fields { table, what };
            let before = mic.compressor.or(Mic::phone().compressor);
            let of = |f: fn(&Compressor) -> f64| before.as_ref().map_or(0.0, f);
            mic.compressor = Some(Compressor {
                threshold_db: (fields.within("threshold_db", "dBFS", -60.0, 0.0)?)
                    .unwrap_or(of(|c| c.threshold_db)),
                ratio: (fields.within("ratio", "", 1.0, 20.0)?).unwrap_or(of(|c| c.ratio)),
                makeup_db: (fields.within("makeup_db", "dB", 0.0, 20.0)?)
                    .unwrap_or(of(|c| c.makeup_db)),
            });
        }
    }
    mic.check()
        .map_err(|why| Error::runtime(format!("sound.mic: {why}")))?;
    Ok(Some(mic))
}

/// A table and what messages call it.
struct Fields<'t> {
    table: &'t Table,
    what: &'t str,
}

impl Fields<'_> {
    fn value(&self, key: &str) -> Result<Value> {
        self.table.raw_get(key)
    }

    fn within(&self, key: &str, unit: &str, low: f64, high: f64) -> Result<Option<f64>> {
        match self.value(key)? {
            Value::Nil => Ok(None),
            value => {
                args::within(&value, &format!("{}.{key}", self.what), unit, low, high).map(Some)
            }
        }
    }

    fn needed(&self, key: &str, unit: &str, low: f64, high: f64) -> Result<f64> {
        let value = self.value(key)?;
        args::within(&value, &format!("{}.{key}", self.what), unit, low, high)
    }

    fn flag(&self, key: &str) -> Result<Option<bool>> {
        match self.value(key)? {
            Value::Nil => Ok(None),
            value => args::boolean(&value, &format!("{}.{key}", self.what)).map(Some),
        }
    }
}

/// Names of noises.
pub(super) const NOISES: [&str; 5] = ["white", "pink", "brown", "blue", "violet"];

/// Fields of a voice that say what it is made of.
const SOURCES: [&str; 6] = ["noise", "clicks", "impulse", "tone", "clip", "grains"];

/// The beds of a scene: voices of any length, from `t` (0) on.
pub(super) fn beds_of(value: &Value, buses: &[Bus]) -> Result<Vec<VoiceSpec>> {
    let list = match value {
        Value::Nil => return Ok(Vec::new()),
        Value::Table(list) => list,
        _ => return args::refuse("what beds returns", "a list or nothing", value),
    };
    let count = list.raw_len();
    if count > BEDS_MAX {
        return Err(Error::runtime(format!(
            "beds: a scene may have {BEDS_MAX} beds, got {count}"
        )));
    }
    (1..=count)
        .map(|i| {
            let entry: Value = list.raw_get(i)?;
            let what = format!("beds[{i}]");
            voice_of(&entry, &what, buses, Some(0.0))
        })
        .collect()
}

/// Voices with `from_s <= t < to_s`, in the order of the list.
pub(super) fn voices_of(
    value: &Value,
    from_s: f64,
    to_s: f64,
    buses: &[Bus],
) -> Result<Vec<VoiceSpec>> {
    let list = match value {
        Value::Nil => return Ok(Vec::new()),
        Value::Table(list) => list,
        _ => return args::refuse("what voices returns", "a list or nothing", value),
    };
    let count = list.raw_len();
    let most = VOICES_PER_S_MAX * (to_s - from_s).ceil().clamp(1.0, 1e6) as usize;
    if count > most {
        return Err(Error::runtime(format!(
            "voices: {VOICES_PER_S_MAX} voices a second are let through, got {count} in \
             {:.3} s",
            to_s - from_s
        )));
    }
    (1..=count)
        .map(|i| {
            let entry: Value = list.raw_get(i)?;
            let what = format!("voices[{i}]");
            let voice = voice_of(&entry, &what, buses, None)?;
            let t_s = args::number(
                &args::table(&entry, &what)?.raw_get("t")?,
                &format!("{what}.t"),
                "seconds",
            )?;
            if !(from_s..to_s).contains(&t_s) {
                return Err(Error::runtime(format!(
                    "{what}.t must be from {from_s} up to but without {to_s} (seconds), got {t_s}"
                )));
            }
            match voice.length_samples() {
                Some(length) if seconds_at(length) <= VOICE_S_MAX => Ok(voice),
                _ => Err(Error::runtime(format!(
                    "{what} must be over after {VOICE_S_MAX} s: give it a decay or a duration; \
                     what lasts longer is a bed"
                ))),
            }
        })
        .collect()
}

/// One voice; `t_default_s` is taken where it has no `t`.
fn voice_of(
    value: &Value,
    what: &str,
    buses: &[Bus],
    t_default_s: Option<f64>,
) -> Result<VoiceSpec> {
    let table = args::table(value, what)?;
    args::only_keys(table, &api::VOICE, what)?;
    let fields = Fields { table, what };
    let t_s = match (fields.value("t")?, t_default_s) {
        (Value::Nil, Some(t_s)) => t_s,
        (value, _) => args::within(&value, &format!("{what}.t"), "seconds", -1e6, 1e7)?,
    };
    let mut voice = VoiceSpec::new(sample_at(t_s), source_of(&fields)?);
    voice.shape = Shape {
        attack_s: fields
            .within("attack", "seconds", 0.0, 3600.0)?
            .unwrap_or(0.0),
        hold_s: fields
            .within("hold", "seconds", 0.0, 3600.0)?
            .unwrap_or(0.0),
        decay_s: fields
            .within("decay", "seconds", 0.0001, 3600.0)?
            .unwrap_or(f64::INFINITY),
    };
    voice.filters = filters_of(&fields)?;
    voice.gain_db = fields.within("gain_db", "dB", -120.0, 40.0)?.unwrap_or(0.0);
    voice.levels = levels_of(&fields)?;
    voice.wander = wander_of(&fields)?;
    voice.place = place_of(&fields)?;
    voice.bus = match fields.value("bus")? {
        Value::Nil => BusId(0),
        name => {
            let name = args::text(&name, &format!("{what}.bus"))?;
            let found = buses.iter().position(|bus| bus.name == name);
            BusId(found.ok_or_else(|| {
                let names: Vec<&str> = buses.iter().map(|bus| bus.name.as_str()).collect();
                Error::runtime(format!(
                    "{what}.bus: there is no bus '{name}'{}; sound.bus makes one while loading",
                    args::suggestion(&name, &names)
                ))
            })?)
        }
    };
    voice.fade_in_s = fields
        .within("fade_in", "seconds", 0.0, 3600.0)?
        .unwrap_or(0.0);
    voice.fade_out_s = fields
        .within("fade_out", "seconds", 0.0, 3600.0)?
        .unwrap_or(0.0);
    voice.duration_s = fields.within("duration", "seconds", 0.0, 1e7)?;
    // Numbers of Lua are whole up to 2^53.
    voice.seed = fields
        .within("seed", "", -9.007e15, 9.007e15)?
        .map_or(0, |seed| (seed as i64).cast_unsigned());
    voice
        .check(buses.len())
        .map_err(|why| Error::runtime(format!("{what}: {why}")))?;
    Ok(voice)
}

fn source_of(fields: &Fields<'_>) -> Result<Source> {
    let what = fields.what;
    let mut named = Vec::new();
    for key in SOURCES {
        let value = fields.value(key)?;
        if !value.is_nil() {
            named.push((key, value));
        }
    }
    let [(key, value)] = named.as_slice() else {
        let names = SOURCES.join(", ");
        return Err(Error::runtime(format!(
            "{what} must have one of {names}, got {}",
            named.len()
        )));
    };
    let inside = format!("{what}.{key}");
    match *key {
        "noise" => {
            let name = args::text(value, &inside)?;
            let colours = [
                Colour::White,
                Colour::Pink,
                Colour::Brown,
                Colour::Blue,
                Colour::Violet,
            ];
            match NOISES.iter().position(|known| *known == name) {
                Some(i) => Ok(Source::Noise(colours[i])),
                None => Err(Error::runtime(format!(
                    "{inside}: there is no colour '{name}'{}",
                    args::suggestion(&name, &NOISES)
                ))),
            }
        }
        "clicks" => Ok(Source::Clicks {
            rate_hz: args::within(value, &inside, "clicks a second", 0.01, 8000.0)?,
        }),
        "impulse" => match args::boolean(value, &inside)? {
            true => Ok(Source::Impulse),
            false => args::refuse(&inside, "true", value),
        },
        "tone" => {
            let table = args::table(value, &inside)?;
            args::only_keys(table, &api::TONE, &inside)?;
            let fields = Fields {
                table,
                what: &inside,
            };
            let hz = fields.needed("hz", "Hz", 1.0, 20_000.0)?;
            let partials = match fields.value("partials")? {
                Value::Nil => vec![1.0],
                value => {
                    let name = format!("{inside}.partials");
                    let list = args::table(&value, &name)?;
                    let count = list.raw_len().min(PARTIALS_MAX + 1);
                    (1..=count)
                        .map(|i| {
                            let value: Value = list.raw_get(i)?;
                            args::within(&value, &format!("{name}[{i}]"), "", -10.0, 10.0)
                        })
                        .collect::<Result<Vec<_>>>()?
                }
            };
            Ok(Source::Tone { hz, partials })
        }
        "clip" => {
            let table = match value {
                Value::Table(table) => table,
                _ => {
                    return Ok(Source::Clip {
                        clip: clip_of(value, &inside)?,
                        from_s: 0.0,
                        speed: 1.0,
                        is_looped: false,
                    });
                }
            };
            args::only_keys(table, &api::CLIP_SOURCE, &inside)?;
            let fields = Fields {
                table,
                what: &inside,
            };
            Ok(Source::Clip {
                clip: clip_of(&fields.value("clip")?, &format!("{inside}.clip"))?,
                from_s: fields.within("from", "seconds", 0.0, 1e6)?.unwrap_or(0.0),
                speed: fields.within("speed", "", 0.25, 4.0)?.unwrap_or(1.0),
                is_looped: fields.flag("loop")?.unwrap_or(false),
            })
        }
        _ => {
            let table = args::table(value, &inside)?;
            args::only_keys(table, &api::GRAINS, &inside)?;
            let fields = Fields {
                table,
                what: &inside,
            };
            Ok(Source::Grains(Grains {
                clip: clip_of(&fields.value("clip")?, &format!("{inside}.clip"))?,
                grain_s: fields.within("grain", "seconds", 0.01, 8.0)?.unwrap_or(0.5),
            }))
        }
    }
}

fn filters_of(fields: &Fields<'_>) -> Result<Vec<Filter>> {
    let what = format!("{}.filters", fields.what);
    let value = fields.value("filters")?;
    if value.is_nil() {
        return Ok(Vec::new());
    }
    let list = args::table(&value, &what)?;
    let count = list.raw_len();
    if count > FILTERS_MAX {
        return Err(Error::runtime(format!(
            "{what} may have {FILTERS_MAX} filters, got {count}"
        )));
    }
    (1..=count)
        .map(|i| {
            let entry: Value = list.raw_get(i)?;
            filter_of(&entry, &format!("{what}[{i}]"))
        })
        .collect()
}

/// The filter that is a list.
pub(super) const MODES: &str = "modes";

/// Kinds of the other filters.
pub(super) const FILTERS: [&str; 6] = [
    "low_pass",
    "high_pass",
    "band_pass",
    "peak",
    "low_shelf",
    "high_shelf",
];

/// `{kind = "low_pass", hz =, q =, gain_db =}` or `{kind = "modes", {hz =, t60 =, gain_db =}, ...}`.
fn filter_of(value: &Value, what: &str) -> Result<Filter> {
    let table = args::table(value, what)?;
    let kind = args::text(&table.raw_get("kind")?, &format!("{what}.kind"))?;
    let fields = Fields { table, what };
    if kind == MODES {
        args::only_keys(table, &api::RINGING, what)?;
        let count = table.raw_len();
        if count > MODES_MAX {
            return Err(Error::runtime(format!(
                "{what} may have {MODES_MAX} modes, got {count}"
            )));
        }
        let modes = (1..=count).map(|i| {
            let entry: Value = table.raw_get(i)?;
            let what = format!("{what}[{i}]");
            let table = args::table(&entry, &what)?;
            args::only_keys(table, &api::MODE, &what)?;
            let fields = Fields { table, what: &what };
            Ok(Mode {
                hz: fields.needed("hz", "Hz", 10.0, 22_000.0)?,
                t60_s: fields.needed("t60", "seconds", 0.001, 6.0)?,
                gain_db: fields.within("gain_db", "dB", -60.0, 40.0)?.unwrap_or(0.0),
            })
        });
        return Ok(Filter::Modes(modes.collect::<Result<_>>()?));
    }
    let unknown = || {
        let names = args::suggestion(&kind, &[&FILTERS[..], &[MODES]].concat());
        Error::runtime(format!("{what}.kind: there is no filter '{kind}'{names}"))
    };
    // A list is no filter of the others; its kind was meant to be `modes`.
    if table.raw_len() > 0 && !FILTERS.contains(&kind.as_str()) {
        return Err(unknown());
    }
    args::only_keys(table, &api::FILTER, what)?;
    let hz = fields.needed("hz", "Hz", 10.0, 22_000.0)?;
    let q = || fields.within("q", "", 0.1, 30.0);
    let flat_q = || q().map(|q| q.unwrap_or(std::f64::consts::FRAC_1_SQRT_2));
    let gain_db = || fields.needed("gain_db", "dB", -60.0, 40.0);
    match kind.as_str() {
        "low_pass" => Ok(Filter::LowPass { hz, q: flat_q()? }),
        "high_pass" => Ok(Filter::HighPass { hz, q: flat_q()? }),
        "band_pass" => Ok(Filter::BandPass {
            hz,
            q: q()?.unwrap_or(1.0),
        }),
        "peak" => Ok(Filter::Peak {
            hz,
            q: q()?.unwrap_or(1.0),
            gain_db: gain_db()?,
        }),
        "low_shelf" => Ok(Filter::LowShelf {
            hz,
            gain_db: gain_db()?,
        }),
        "high_shelf" => Ok(Filter::HighShelf {
            hz,
            gain_db: gain_db()?,
        }),
        _ => Err(unknown()),
    }
}

/// `{{t, db}, {t, db}, ...}`.
fn levels_of(fields: &Fields<'_>) -> Result<Option<Arc<Levels>>> {
    let what = format!("{}.levels", fields.what);
    let value = fields.value("levels")?;
    if value.is_nil() {
        return Ok(None);
    }
    let list = args::table(&value, &what)?;
    let count = list.raw_len();
    if count > LEVELS_MAX {
        return Err(Error::runtime(format!(
            "{what} may have {LEVELS_MAX} points, got {count}"
        )));
    }
    let points = (1..=count)
        .map(|i| {
            let entry: Value = list.raw_get(i)?;
            let what = format!("{what}[{i}]");
            let pair = args::table(&entry, &what)?;
            let t_s = args::number(&pair.raw_get(1)?, &format!("{what}[1]"), "seconds")?;
            let db: Value = pair.raw_get(2)?;
            let db = args::within(&db, &format!("{what}[2]"), "dB", -120.0, 40.0)?;
            Ok((t_s, db))
        })
        .collect::<Result<_>>()?;
    let levels = Levels::new(points).map_err(|why| Error::runtime(format!("{what}: {why}")))?;
    Ok(Some(Arc::new(levels)))
}

fn wander_of(fields: &Fields<'_>) -> Result<Option<Wander>> {
    let what = format!("{}.wander", fields.what);
    let value = fields.value("wander")?;
    if value.is_nil() {
        return Ok(None);
    }
    let table = args::table(&value, &what)?;
    args::only_keys(table, &api::WANDER, &what)?;
    let fields = Fields { table, what: &what };
    Ok(Some(Wander {
        depth_db: fields.needed("depth_db", "dB", 0.0, 40.0)?,
        rate_hz: fields.needed("rate_hz", "Hz", 0.001, 20.0)?,
    }))
}

fn place_of(fields: &Fields<'_>) -> Result<Place> {
    let (position, pan) = (
        fields.value("position")?,
        fields.within("pan", "", -1.0, 1.0)?,
    );
    let what = fields.what;
    let reference_m = fields.within("reference", "metres", 0.01, 1e4)?;
    let rolloff = fields.within("rolloff", "", 0.0, 4.0)?;
    match (position, pan) {
        (Value::Nil, _) if reference_m.is_some() || rolloff.is_some() => Err(Error::runtime(
            format!("{what}: reference and rolloff are for a voice with a position"),
        )),
        (Value::Nil, None) => Ok(Place::Around),
        (Value::Nil, Some(pan)) => Ok(Place::Pan(pan)),
        (_, Some(_)) => Err(Error::runtime(format!(
            "{what} must have position or pan, not both"
        ))),
        (position, None) => Ok(Place::At {
            position_m: args::vector(&position, &format!("{what}.position"), "metres")?,
            reference_m: reference_m.unwrap_or(1.0),
            rolloff: rolloff.unwrap_or(1.0),
        }),
    }
}

fn clip_of(value: &Value, what: &str) -> Result<Arc<Clip>> {
    let found = match value {
        Value::UserData(data) => as_clip(data),
        _ => None,
    };
    match found {
        Some(clip) => Ok(clip),
        None => args::refuse(what, "a clip of sound.clip", value),
    }
}

fn as_clip(data: &AnyUserData) -> Option<Arc<Clip>> {
    let handle = data.borrow::<ClipHandle>().ok()?;
    Some(Arc::clone(&handle.0))
}

/// Who hears, by what `ears` returned: a camera's table with `wind` and `shake`.
pub(super) fn ears_of(lua: &Lua, value: &Value) -> Result<Listener> {
    let what = "ears";
    let table = args::table(value, "what ears returns")?;
    args::only_keys(table, &api::EARS, what)?;
    let fields = Fields { table, what };
    // Faster air than in a storm, and a phone that is thrown.
    let wind = fields.within("wind", "metres a second", 0.0, 50.0)?;
    let shake = fields.within("shake", "metres a second squared", 0.0, 100.0)?;
    let camera = lua.create_table()?;
    for pair in table.pairs::<Value, Value>() {
        let (key, value) = pair?;
        let is_own = matches!(&key, Value::String(name)
            if matches!(name.to_string_lossy().as_str(), "wind" | "shake"));
        if !is_own {
            camera.raw_set(key, value)?;
        }
    }
    let camera = convert::camera_of(&Value::Table(camera), what)?;
    Ok(Listener {
        wind_m_s: wind.unwrap_or(0.0) as f32,
        shake_m_s2: shake.unwrap_or(0.0) as f32,
        ..Listener::from_camera(&camera)
    })
}

/// Binds the classes of this file.
pub(super) fn classes(lua: &Lua) -> Result<()> {
    lua.create_proxy::<ClipHandle>()?;
    lua.create_proxy::<FollowerHandle>()?;
    Ok(())
}
