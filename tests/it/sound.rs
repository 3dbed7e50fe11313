//! Sound, measured: samples are looked at, nothing is listened to.

use crate::{alloc, given};
use glam::{Quat, Vec3};
use splatstage::audio::device::{Alarm, Feed, Playing};
use splatstage::audio::filter::Mode;
use splatstage::audio::loudness::Meter;
use splatstage::audio::mic::AutomaticGain;
use splatstage::audio::score::VOICES_MAX;
use splatstage::audio::space::Ears;
use splatstage::audio::wav::Depth;
use splatstage::audio::{
    Bus, BusId, Clip, Colour, Device, Filter, Grains, Listener, ListenerTrack, Live, Mic, Mixer,
    Place, RATE_HZ, Score, Shape, Source, Stereo, SystemDevice, VoiceSpec, Wander,
    amplitude_from_db, db_from_amplitude, sample_at, seconds_at, wav,
};
use splatstage::camera::Camera;
use std::f64::consts::PI;
use std::io::Cursor;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const RATE: f64 = RATE_HZ as f64;

/// Buses: beds and steps are heard by the microphone, music is not.
fn empty_score() -> Score {
    let bus = |name: &str, is_through_mic| Bus {
        name: name.to_owned(),
        gain_db: 0.0,
        is_through_mic,
    };
    Score::new(vec![
        bus("beds", true),
        bus("steps", true),
        bus("music", false),
    ])
    .expect("three buses")
}

/// A camera that walks ahead, turns, and is shaken by its own steps.
fn walker(t_s: f64) -> Listener {
    let camera = Camera {
        position: Vec3::new(0.0, 1.6, -1.2 * t_s as f32),
        rotation: Quat::from_rotation_y((t_s * 0.5).sin() as f32),
        ..Camera::default()
    };
    Listener {
        wind_m_s: 1.2,
        shake_m_s2: 0.6 + 0.5 * (t_s * 1.79 * 2.0 * PI).sin() as f32,
        ..Listener::from_camera(&camera)
    }
}

/// A few seconds of something that has all frequencies.
fn texture(seconds: f64) -> Arc<Clip> {
    let samples = (0..(seconds * RATE) as usize)
        .map(|n| {
            let t_s = n as f64 / RATE;
            let value = 0.1 * (2.0 * PI * (200.0 + 900.0 * t_s) * t_s).sin();
            [value as f32, (value * (3.0 * t_s).cos()) as f32]
        })
        .collect();
    Arc::new(Clip::from_samples("texture", samples))
}

/// A walk as scripts will write it: four beds, a step of three layers 1.79 times a second.
fn walk(seconds: f64) -> Score {
    let mut score = empty_score();
    let bed = |source, filters, gain_db, seed| VoiceSpec {
        filters,
        gain_db,
        seed,
        wander: Some(Wander {
            depth_db: 4.0,
            rate_hz: 0.3,
        }),
        fade_in_s: 0.5,
        ..VoiceSpec::new(0, source)
    };
    let low = |hz| Filter::LowPass { hz, q: 0.7 };
    let beds = [
        bed(Source::Noise(Colour::Brown), vec![low(400.0)], -6.0, 1),
        bed(
            Source::Noise(Colour::Pink),
            vec![
                Filter::HighPass { hz: 300.0, q: 0.7 },
                Filter::Peak {
                    hz: 900.0,
                    q: 2.0,
                    gain_db: 6.0,
                },
            ],
            -18.0,
            2,
        ),
        bed(
            Source::Grains(Grains {
                clip: texture(4.0),
                grain_s: 0.8,
            }),
            vec![low(3000.0)],
            -20.0,
            3,
        ),
        bed(
            Source::Clip {
                clip: texture(1.3),
                from_s: 0.2,
                speed: 1.0,
                is_looped: true,
            },
            vec![],
            -24.0,
            4,
        ),
    ];
    for bed in beds {
        score.add(bed).expect("a bed");
    }
    for step in 0..(seconds * 1.79) as u64 {
        let start_sample = sample_at(0.6 + step as f64 / 1.79);
        let side = if step % 2 == 0 { -0.15 } else { 0.15 };
        let layer = |source, decay_s, filters, gain_db| VoiceSpec {
            shape: Shape {
                decay_s,
                ..Shape::default()
            },
            filters,
            gain_db,
            place: Place::Pan(side),
            bus: BusId(1),
            seed: 100 + step,
            ..VoiceSpec::new(start_sample, source)
        };
        let ring = |hz, t60_s, gain_db| Mode { hz, t60_s, gain_db };
        let modes = (0..8)
            .map(|i| {
                ring(
                    90.0 * 1.47_f64.powi(i),
                    0.12 / f64::from(i + 1),
                    -3.0 * f64::from(i),
                )
            })
            .collect();
        for spec in [
            layer(
                Source::Impulse,
                f64::INFINITY,
                vec![Filter::Modes(modes)],
                -14.0,
            ),
            layer(
                Source::Noise(Colour::White),
                0.09,
                vec![Filter::BandPass { hz: 2200.0, q: 0.8 }],
                -4.0,
            ),
            layer(
                Source::Clicks { rate_hz: 600.0 },
                0.15,
                vec![Filter::HighPass { hz: 1500.0, q: 0.7 }],
                -16.0,
            ),
        ] {
            score.add(spec).expect("a step");
        }
    }
    score
}

fn mixer(score: Score, mic: Option<Mic>) -> Mixer {
    let mut mixer = Mixer::new(score, 7);
    mixer.set_mic(mic).expect("the preset is in range");
    mixer
}

fn render(mixer: &mut Mixer, from_s: f64, to_s: f64, ears: &dyn Ears) -> Vec<Stereo> {
    let (from, to) = (sample_at(from_s), sample_at(to_s));
    let mut out = vec![[0.0; 2]; (to - from) as usize];
    mixer.render(from, ears, &mut out);
    out
}

/// One voice without microphone, at a still camera.
fn render_voice(spec: VoiceSpec, seconds: f64) -> Vec<Stereo> {
    let mut score = empty_score();
    score.add(spec).expect("the voice is in range");
    render(&mut mixer(score, None), 0.0, seconds, &Listener::default())
}

fn rms(samples: &[Stereo]) -> f64 {
    let sum: f64 = samples
        .iter()
        .flatten()
        .map(|v| f64::from(*v).powi(2))
        .sum();
    (sum / (2 * samples.len()) as f64).sqrt()
}

/// Power of the left channel at a frequency.
fn power_at(samples: &[Stereo], hz: f64) -> f64 {
    let (mut re, mut im) = (0.0, 0.0);
    for (n, [left, _]) in samples.iter().enumerate() {
        let (sin, cos) = (2.0 * PI * hz * n as f64 / RATE).sin_cos();
        re += f64::from(*left) * cos;
        im += f64::from(*left) * sin;
    }
    re * re + im * im
}

#[track_caller]
fn assert_same_bits(a: &[Stereo], b: &[Stereo], what: &str) {
    assert_eq!(a.len(), b.len(), "{what}");
    let differing = a
        .iter()
        .zip(b)
        .position(|(a, b)| a.map(f32::to_bits) != b.map(f32::to_bits));
    assert_eq!(differing, None, "{what}: first differing sample");
}

/// A WAV file in memory.
fn wav_file(rate_hz: u32, channels: u16, seconds: f64, value: impl Fn(f64) -> f64) -> Vec<u8> {
    let layout = hound::WavSpec {
        channels,
        sample_rate: rate_hz,
        bits_per_sample: 16,
        sample_format: hound::SampleFormat::Int,
    };
    let mut bytes = Cursor::new(Vec::new());
    let mut writer = hound::WavWriter::new(&mut bytes, layout).expect("memory can be written");
    for n in 0..(seconds * f64::from(rate_hz)) as u64 {
        let sample = (value(n as f64 / f64::from(rate_hz)) * 32_000.0).round() as i16;
        for _ in 0..channels {
            writer.write_sample(sample).expect("memory can be written");
        }
    }
    writer.finalize().expect("memory can be written");
    bytes.into_inner()
}

fn decode(name: &str, bytes: Vec<u8>) -> Result<Clip, splatstage::audio::Error> {
    Clip::decode(name, bytes.into())
}

#[test]
fn seeking_to_t_gives_the_samples_that_playing_from_0_gives() {
    let long = wav_file(44_100, 1, 9.0, |t_s| 0.2 * (2.0 * PI * 330.0 * t_s).sin());
    let long = Arc::new(Clip::decode_holding("long.wav", long.into(), 2.0).expect("a WAV file"));
    assert!(!long.is_held());
    let mut score = walk(9.0);
    // Voices that remember long or are far along in a file, through filters.
    let extra = [
        VoiceSpec {
            filters: vec![Filter::Modes(vec![Mode {
                hz: 220.0,
                t60_s: 1.5,
                gain_db: -30.0,
            }])],
            place: Place::At {
                position_m: Vec3::new(2.0, 1.0, -6.0),
                reference_m: 1.0,
                rolloff: 1.0,
            },
            ..VoiceSpec::new(333, Source::Noise(Colour::Pink))
        },
        VoiceSpec {
            filters: vec![Filter::LowPass { hz: 800.0, q: 2.0 }],
            bus: BusId(2),
            gain_db: -12.0,
            ..VoiceSpec::new(
                -4321,
                Source::Clip {
                    clip: long,
                    from_s: 0.5,
                    speed: 1.0,
                    is_looped: true,
                },
            )
        },
    ];
    for spec in extra {
        score.add(spec).expect("in range");
    }
    score
        .fade_bus(BusId(0), sample_at(5.0), -9.0, 1.0)
        .expect("a fade");
    for mic in [None, Some(Mic::phone()), Some(Mic::old_phone())] {
        let played = render(&mut mixer(score.clone(), mic.clone()), 0.0, 9.0, &walker);
        assert!(rms(&played) > 0.001, "something is heard");
        let tail = |t_s: f64| &played[sample_at(t_s) as usize..];
        let mut seeking = mixer(score.clone(), mic.clone());
        // Ahead, then back, at places off every grid.
        for t_s in [7.0101, 4.2, 0.333_33] {
            let sought = render(&mut seeking, t_s, 9.0, &walker);
            assert_same_bits(tail(t_s), &sought, &format!("{mic:?} from {t_s} s"));
        }
        // In pieces of odd sizes.
        let mut pieces = Vec::new();
        let mut piecewise = mixer(score.clone(), mic.clone());
        for size in [1, 479, 7, 4801, 480, 33_000].into_iter().cycle() {
            let mut piece = vec![[0.0; 2]; size];
            piecewise.render(pieces.len() as i64, &walker, &mut piece);
            pieces.extend(piece);
            if pieces.len() > 100_000 {
                break;
            }
        }
        assert_same_bits(&played[..pieces.len()], &pieces, "in pieces");
    }
}

#[test]
fn same_seed_same_wav_in_two_processes() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = ["a.wav", "b.wav"].map(|name| {
        let path = folder.path().join(name);
        let status = std::process::Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "sound::write_a_wav", "--ignored"])
            .env("SPLATSTAGE_TEST_WAV", &path)
            .stdout(std::process::Stdio::null())
            .status()
            .expect("this program starts");
        assert!(status.success());
        std::fs::read(path).expect("the other process wrote it")
    });
    assert_eq!(files[0].len(), 44 + 24 + 4 * 48_000 * 6, "4 s of 24 bits");
    assert!(files[0] == files[1]);
}

#[test]
#[ignore = "run by same_seed_same_wav_in_two_processes in processes of their own"]
fn write_a_wav() {
    let Some(path) = std::env::var_os("SPLATSTAGE_TEST_WAV") else {
        return;
    };
    let mut mixer = mixer(walk(4.0), Some(Mic::phone()));
    let file = std::fs::File::create(path).expect("the parent's folder");
    let range = [0, sample_at(4.0)];
    wav::write(
        &mut mixer,
        range,
        &walker,
        Depth::Int24,
        file,
        |_, _| Ok(()),
    )
    .expect("written");
}

#[test]
fn a_phone_has_the_band_that_it_states() {
    for (name, mic) in [
        ("phone", Mic::phone()),
        ("old_phone", Mic::old_phone()),
        ("call", Mic::call()),
    ] {
        assert_eq!(Mic::preset(name).as_ref(), Some(&mic));
        let [low_hz, high_hz] = mic.band_hz;
        // Only the band is asked for: the gains follow the sweep, the noises are in its way.
        let mic = Mic {
            gain: None,
            compressor: None,
            noise_db: -200.0,
            ..mic
        };
        let (from_hz, to_hz, length_s) = (15.0_f64, 23_000.0_f64, 4.0);
        let octaves = (to_hz / from_hz).ln() / length_s;
        let sweep: Vec<Stereo> = (0..(length_s * RATE) as usize)
            .map(|n| {
                let t_s = n as f64 / RATE;
                let turns = from_hz / octaves * ((octaves * t_s).exp() - 1.0);
                [0.25 * (2.0 * PI * turns).sin() as f32; 2]
            })
            .collect();
        let clip = Arc::new(Clip::from_samples("sweep", sweep.clone()));
        let mut score = empty_score();
        let source = Source::Clip {
            clip,
            from_s: 0.0,
            speed: 1.0,
            is_looped: false,
        };
        score.add(VoiceSpec::new(0, source)).expect("a sweep");
        let heard = render(&mut mixer(score, Some(mic)), 0.0, 4.5, &Listener::default());
        let response_db = |hz: f64| 10.0 * (power_at(&heard, hz) / power_at(&sweep, hz)).log10();
        for edge_hz in [low_hz, high_hz] {
            let at_edge = response_db(edge_hz);
            assert!(
                (at_edge + 3.0).abs() < 0.5,
                "{name}: {at_edge} dB at {edge_hz} Hz"
            );
        }
        let middle_hz = (low_hz * high_hz).sqrt();
        for hz in [low_hz * 2.5, middle_hz, high_hz * 0.6] {
            let inside = response_db(hz);
            assert!(inside.abs() < 0.5, "{name}: {inside} dB at {hz} Hz");
        }
        let below = response_db(low_hz / 4.0);
        assert!(
            below < -22.0,
            "{name}: {below} dB at a quarter of the low end"
        );
        let above = response_db((high_hz * 1.6).min(22_000.0));
        assert!(above < -14.0, "{name}: {above} dB above the high end");
    }
}

#[test]
fn a_step_of_20_db_is_brought_within_3_db_in_the_stated_time() {
    let plain = Mic {
        compressor: None,
        ..Mic::phone()
    };
    for mic in [plain, Mic::phone(), Mic::old_phone()] {
        let mut score = empty_score();
        let bed = VoiceSpec {
            gain_db: -15.0,
            ..VoiceSpec::new(0, Source::Noise(Colour::Pink))
        };
        let bed = score.add(bed).expect("a bed");
        for (at_s, to_db) in [(8.0, 5.0), (16.0, -15.0)] {
            score
                .fade(bed, sample_at(at_s), to_db, 0.005)
                .expect("a fade");
        }
        let level_db = |heard: &[Stereo], from_s: f64, to_s: f64| {
            let range = sample_at(from_s) as usize..sample_at(to_s) as usize;
            db_from_amplitude(rms(&heard[range]))
        };
        let still = Listener::default();
        let scene = render(&mut mixer(score.clone(), None), 0.0, 24.0, &still);
        let heard = render(&mut mixer(score, Some(mic)), 0.0, 24.0, &still);
        for (at_s, time_s) in [
            (8.0, AutomaticGain::LOUDER_S),
            (16.0, AutomaticGain::QUIETER_S),
        ] {
            let before = level_db(&scene, at_s - 2.0, at_s);
            let step = level_db(&scene, at_s + 0.1, at_s + 2.0) - before;
            assert!(
                (step.abs() - 20.0).abs() < 1.0,
                "the scene's step: {step} dB"
            );
            let before = level_db(&heard, at_s - 2.0, at_s);
            let mut from_s = at_s + time_s;
            while from_s < at_s + 7.5 {
                let level = level_db(&heard, from_s, from_s + 0.2);
                assert!(
                    (level - before).abs() < 3.0,
                    "{level} dB at {from_s} s, {before} dB before the step"
                );
                from_s += 0.1;
            }
        }
    }
}

#[test]
fn nothing_leaves_over_minus_1_dbtp_and_no_direct_current() {
    for mic in [None, Some(Mic::phone()), Some(Mic::old_phone())] {
        for gain_db in [0.0, 24.0] {
            let mut score = walk(6.0);
            // Highs at full scale rise most between samples; a constant must not get through.
            let tone = Source::Tone {
                hz: 11_987.0,
                partials: vec![1.0],
            };
            let constant = Clip::from_samples("constant", vec![[0.4; 2]; 48_000 * 3]);
            let constant = Source::Clip {
                clip: Arc::new(constant),
                from_s: 0.0,
                speed: 1.0,
                is_looped: false,
            };
            for (start_s, source) in [(2.0, tone), (3.0, constant)] {
                let spec = VoiceSpec {
                    fade_in_s: 0.02,
                    duration_s: Some(2.0),
                    ..VoiceSpec::new(sample_at(start_s), source)
                };
                score.add(spec).expect("in range");
            }
            let mut mixer = mixer(score, mic.clone());
            mixer.set_gain_db(gain_db).expect("in range");
            let heard = render(&mut mixer, 0.0, 6.0, &walker);
            let mut meter = Meter::new().expect("a meter");
            meter.add(&heard).expect("read");
            let peak = meter.read().expect("read").true_peak_dbtp;
            assert!(peak <= -1.0, "{peak} dBTP at {gain_db} dB");
            assert!(
                gain_db == 0.0 || peak > -3.0,
                "the limiter is at work: {peak} dBTP"
            );
            let mean = |lane: usize| {
                let sum: f64 = heard.iter().map(|s| f64::from(s[lane])).sum();
                (sum / heard.len() as f64).abs()
            };
            // -66 dBFS; the constant alone would leave 0.13.
            let most = 5e-4;
            assert!(mean(0) < most && mean(1) < most, "{} {}", mean(0), mean(1));
        }
    }
}

#[test]
fn wind_and_hands_are_heard_as_the_listener_says() {
    let level_db = |wind_m_s: f32, shake_m_s2: f32| {
        let mic = Mic {
            gain: None,
            compressor: None,
            noise_db: -200.0,
            ..Mic::phone()
        };
        let ears = Listener {
            wind_m_s,
            shake_m_s2,
            ..Listener::default()
        };
        let heard = render(&mut mixer(empty_score(), Some(mic)), 0.0, 4.0, &ears);
        db_from_amplitude(rms(&heard))
    };
    // Wind goes with the square of its speed, handling with the acceleration.
    let wind = level_db(4.0, 0.0) - level_db(2.0, 0.0);
    assert!((wind - 12.04).abs() < 0.1, "{wind} dB for twice the wind");
    let shake = level_db(0.0, 2.0) - level_db(0.0, 1.0);
    assert!(
        (shake - 6.02).abs() < 0.1,
        "{shake} dB for twice the shaking"
    );
    assert!(level_db(0.0, 0.0) < -150.0, "still air, still hands");
    let handling = level_db(0.0, 1.0);
    assert!(
        (handling - Mic::phone().handling_db).abs() < 3.0,
        "{handling} dB"
    );
    // Shaken once a second: heard once a second.
    let mic = Mic {
        gain: None,
        compressor: None,
        ..Mic::phone()
    };
    let shaken = |t_s: f64| Listener {
        shake_m_s2: if t_s.fract() < 0.5 { 3.0 } else { 0.0 },
        ..Listener::default()
    };
    let heard = render(&mut mixer(empty_score(), Some(mic)), 0.0, 4.0, &shaken);
    for second in 0..4 {
        let at = |t_s: f64| sample_at(f64::from(second) + t_s) as usize;
        let ratio = rms(&heard[at(0.1)..at(0.4)]) / rms(&heard[at(0.6)..at(0.9)]);
        assert!(ratio > 5.0, "second {second}: {ratio}");
    }
}

#[test]
fn a_phone_is_narrow_or_mono() {
    let side_share = |mic: Option<Mic>| {
        let bed = VoiceSpec::new(0, Source::Noise(Colour::White));
        let mut score = empty_score();
        score.add(bed).expect("a bed");
        let heard = render(&mut mixer(score, mic), 0.0, 2.0, &Listener::default());
        let side: Vec<Stereo> = heard.iter().map(|[l, r]| [0.5 * (l - r); 2]).collect();
        let middle: Vec<Stereo> = heard.iter().map(|[l, r]| [0.5 * (l + r); 2]).collect();
        rms(&side) / rms(&middle)
    };
    let open = side_share(None);
    assert!((open - 1.0).abs() < 0.05, "{open}: independent sides");
    let narrow = side_share(Some(Mic::phone()));
    assert!((narrow - Mic::phone().width).abs() < 0.02, "{narrow}");
    assert_eq!(side_share(Some(Mic::old_phone())), 0.0);
}

/// The largest bend of the left channel: second difference.
fn bend(samples: &[Stereo]) -> f64 {
    samples
        .windows(3)
        .map(|w| (f64::from(w[0][0]) - 2.0 * f64::from(w[1][0]) + f64::from(w[2][0])).abs())
        .fold(0.0, f64::max)
}

#[test]
fn fades_stops_jumps_of_gain_and_fast_pans_do_not_click() {
    let hz = 440.0;
    let tone = || Source::Tone {
        hz,
        partials: vec![0.5],
    };
    let smooth = 0.5 * (2.0 * PI * hz / RATE).powi(2);
    let steady = render_voice(VoiceSpec::new(0, tone()), 1.0);
    assert!(bend(&steady[4800..]) < 1.05 * smooth);
    // The measure finds a click: the same tone that starts at its crest.
    let crest: Vec<Stereo> = (0..9600)
        .map(|n| [0.5 * (2.0 * PI * hz * n as f64 / RATE).cos() as f32; 2])
        .collect();
    let source = Source::Clip {
        clip: Arc::new(Clip::from_samples("crest", crest)),
        from_s: 0.0,
        speed: 1.0,
        is_looped: false,
    };
    let cut = render_voice(VoiceSpec::new(9600, source.clone()), 1.0);
    assert!(bend(&cut) > 50.0 * smooth, "a click");

    let faded = VoiceSpec {
        fade_in_s: 0.005,
        ..VoiceSpec::new(9600, source)
    };
    let faded = render_voice(faded, 1.0);
    assert!(
        bend(&faded) < 1.3 * smooth,
        "fade in, and the end of a file"
    );

    let mut score = empty_score();
    let id = score.add(VoiceSpec::new(0, tone())).expect("a tone");
    for (at_s, to_db) in [
        (0.3, -20.0),
        (0.302, 6.0),
        (0.5, f64::NEG_INFINITY),
        (0.6, -3.0),
    ] {
        score.fade(id, sample_at(at_s), to_db, 0.0).expect("a fade");
    }
    score.stop(id, sample_at(0.8), 0.0).expect("a stop");
    let changed = render(&mut mixer(score, None), 0.0, 1.0, &Listener::default());
    // Up to 6 dB louder than the steady tone.
    assert!(bend(&changed[4800..]) < 2.0 * 1.3 * smooth);
    let after = &changed[sample_at(0.81) as usize..];
    assert!(rms(after) < 1e-4, "stopped: {}", rms(after));

    // The gain of everything, between two pieces.
    let mut score = empty_score();
    score.add(VoiceSpec::new(0, tone())).expect("a tone");
    let mut all = mixer(score, None);
    let mut heard = render(&mut all, 0.0, 0.3, &Listener::default());
    all.set_gain_db(-30.0).expect("in range");
    heard.extend(render(&mut all, 0.3, 0.6, &Listener::default()));
    assert!(bend(&heard[4800..]) < 1.3 * smooth, "gain of everything");
    let quieter = db_from_amplitude(rms(&heard[20_000..]) / rms(&heard[4800..14_000]));
    assert!((quieter + 30.0).abs() < 0.1, "{quieter} dB");

    let spun = VoiceSpec {
        place: Place::At {
            position_m: Vec3::new(0.0, 0.0, -2.0),
            reference_m: 2.0,
            rolloff: 1.0,
        },
        ..VoiceSpec::new(0, tone())
    };
    let mut score = empty_score();
    score.add(spun).expect("a tone");
    let spinning = |t_s: f64| {
        Listener::from_camera(&Camera {
            position: Vec3::ZERO,
            rotation: Quat::from_rotation_y(6.0 * t_s as f32),
            ..Camera::default()
        })
    };
    let heard = render(&mut mixer(score, None), 0.0, 2.0, &spinning);
    assert!(bend(&heard[4800..]) < 1.1 * smooth, "344 degrees a second");
}

#[test]
fn pans_keep_their_power_and_distance_takes_6_db_a_doubling() {
    let still = Listener::from_camera(&Camera {
        position: Vec3::ZERO,
        ..Camera::default()
    });
    for step in -10_i32..=10 {
        let side = f64::from(step) / 10.0;
        let [left, right] = Place::Pan(side).gains(&still);
        assert!((left * left + right * right - 1.0).abs() < 1e-12);
        assert!(step.signum() == 0 || (right > left) == (step > 0));
    }
    let at = |x, y, z| Place::At {
        position_m: Vec3::new(x, y, z),
        reference_m: 1.0,
        rolloff: 1.0,
    };
    let power_db = |[left, right]: [f64; 2]| 10.0 * (left * left + right * right).log10();
    let (near, far) = (at(0.0, 0.0, -2.0), at(0.0, 0.0, -4.0));
    let loss = power_db(near.gains(&still)) - power_db(far.gains(&still));
    assert!((loss - 6.0206).abs() < 0.001, "{loss}");
    let inside = power_db(at(0.0, 0.0, -0.5).gains(&still));
    assert!(
        inside.abs() < 1e-9,
        "no louder than at the reference: {inside}"
    );
    let [left, right] = at(3.0, 0.0, 0.0).gains(&still);
    assert!(right > 0.2 && left < 1e-6 * right, "all on the right");
    let turned = Listener::from_camera(&Camera {
        position: Vec3::ZERO,
        rotation: Quat::from_rotation_y(std::f32::consts::PI),
        ..Camera::default()
    });
    let [left, right] = at(3.0, 0.0, 0.0).gains(&turned);
    assert!(
        left > 0.2 && right < 1e-6 * left,
        "all on the left from behind"
    );
    let nowhere = Listener {
        position_m: Vec3::NAN,
        ..still
    };
    assert_eq!(near.gains(&nowhere), [0.0; 2]);
}

#[test]
fn listeners_are_blended_and_the_future_is_forgotten() {
    let mut track = ListenerTrack::default();
    let at = |x: f32| Listener {
        position_m: Vec3::X * x,
        ..Listener::default()
    };
    for (t_s, x) in [(1.0, 0.0), (2.0, 4.0), (3.0, 8.0)] {
        track.push(t_s, at(x));
    }
    let x = |track: &ListenerTrack, t_s| track.listener(t_s).position_m.x;
    assert_eq!(
        [x(&track, 0.0), x(&track, 1.5), x(&track, 9.0)],
        [0.0, 2.0, 8.0]
    );
    track.push(1.5, at(100.0));
    assert_eq!(x(&track, 3.0), 100.0);
}

#[test]
fn noises_have_their_colour_and_one_power() {
    // The level in a mix: what lies below 15 Hz is not let through.
    for (colour, slope_db, heard_db) in [
        (Colour::White, 0.0, -20.0),
        (Colour::Pink, -3.01, -21.1),
        (Colour::Brown, -6.02, -22.6),
        (Colour::Blue, 3.01, -20.0),
        (Colour::Violet, 6.02, -20.0),
    ] {
        let heard = render_voice(VoiceSpec::new(0, Source::Noise(colour)), 6.0);
        let heard = &heard[9600..];
        let level = db_from_amplitude(rms(heard));
        assert!((level - heard_db).abs() < 0.3, "{colour:?}: {level} dBFS");
        let octave_db = |middle_hz: f64| {
            let window: Vec<f64> = (0..4096)
                .map(|n| 0.5 - 0.5 * (2.0 * PI * f64::from(n) / 4096.0).cos())
                .collect();
            let power: f64 = heard
                .chunks_exact(4096)
                .map(|piece| {
                    let shaped: Vec<Stereo> = piece
                        .iter()
                        .zip(&window)
                        .map(|(s, w)| [s[0] * *w as f32; 2])
                        .collect();
                    [0.85, 1.0, 1.18]
                        .map(|share| power_at(&shaped, middle_hz * share))
                        .iter()
                        .sum::<f64>()
                })
                .sum();
            10.0 * power.log10()
        };
        let slope = (octave_db(4000.0) - octave_db(250.0)) / 4.0;
        assert!(
            (slope - slope_db).abs() < 0.5,
            "{colour:?}: {slope} dB an octave"
        );
        let (left, right): (Vec<f64>, Vec<f64>) = heard
            .iter()
            .map(|s| (f64::from(s[0]), f64::from(s[1])))
            .unzip();
        let product: f64 = left.iter().zip(&right).map(|(l, r)| l * r).sum();
        let alike = product / (left.len() as f64 * rms(heard).powi(2));
        assert!(
            alike.abs() < 0.15,
            "{colour:?}: left and right are independent, {alike}"
        );
    }
}

#[test]
fn struck_modes_ring_at_their_frequency_for_their_time() {
    let spec = VoiceSpec {
        filters: vec![Filter::Modes(vec![Mode {
            hz: 500.0,
            t60_s: 0.4,
            gain_db: -6.0,
        }])],
        ..VoiceSpec::new(0, Source::Impulse)
    };
    assert!(
        spec.length_samples()
            .is_some_and(|length| length < 3 * 48_000)
    );
    let heard = render_voice(spec, 1.0);
    let peak = heard.iter().fold(0.0_f32, |peak, s| peak.max(s[0].abs()));
    assert!(
        (f64::from(peak) - amplitude_from_db(-6.0)).abs() < 0.02,
        "{peak}"
    );
    let fall = db_from_amplitude(rms(&heard[2400..4800]) / rms(&heard[12_000..14_400]));
    assert!((fall - 60.0 * 0.2 / 0.4).abs() < 0.5, "{fall} dB in 0.2 s");
    assert!(power_at(&heard, 500.0) > 100.0 * power_at(&heard, 600.0));
}

#[test]
fn five_hundred_cues_in_one_frame() {
    let mut score = empty_score();
    for cue in 0..500_u32 {
        let spec = VoiceSpec {
            shape: Shape {
                decay_s: 0.2,
                ..Shape::default()
            },
            // The later ones are louder: those must be the ones that play.
            gain_db: -40.0 + f64::from(cue) * 0.05,
            seed: u64::from(cue),
            place: Place::Pan(0.0),
            ..VoiceSpec::new(48_000, Source::Noise(Colour::White))
        };
        score.add(spec).expect("room for all");
    }
    let mut all = mixer(score.clone(), None);
    let heard = render(&mut all, 0.5, 2.0, &Listener::default());
    let messages = all.take_warnings();
    let [message] = messages.as_slice() else {
        panic!("one message: {messages:?}");
    };
    let left_out = 500 - VOICES_MAX;
    assert!(message.contains(&format!("{left_out} voices")), "{message}");
    assert!(message.contains(&VOICES_MAX.to_string()), "{message}");
    assert!(all.take_warnings().is_empty(), "said once");
    let mut louder = empty_score();
    for cue in left_out as u32..500 {
        let spec = VoiceSpec {
            shape: Shape {
                decay_s: 0.2,
                ..Shape::default()
            },
            gain_db: -40.0 + f64::from(cue) * 0.05,
            seed: u64::from(cue),
            place: Place::Pan(0.0),
            ..VoiceSpec::new(48_000, Source::Noise(Colour::White))
        };
        louder.add(spec).expect("room for all");
    }
    let alone = render(&mut mixer(louder, None), 0.5, 2.0, &Listener::default());
    assert_same_bits(&heard, &alone, "the loudest ones play");
    // Their time is over: the next second plays again.
    assert!(rms(&heard[70_000..]) < 1e-6);
}

#[test]
fn a_bus_alone_is_what_is_heard_without_the_others() {
    let score = walk(2.0);
    let mut solo = mixer(score.clone(), Some(Mic::phone()));
    solo.set_solo(score.bus("steps"));
    let mut only = empty_score();
    only.fade_bus(BusId(0), 0, 0.0, 0.0).expect("a fade");
    let mut muted = score.clone();
    muted
        .fade_bus(BusId(0), -48_000 * 20, f64::NEG_INFINITY, 0.0)
        .expect("a fade");
    let steps = render(&mut solo, 0.0, 2.0, &walker);
    let without_beds = render(&mut mixer(muted, Some(Mic::phone())), 0.0, 2.0, &walker);
    assert_same_bits(&steps, &without_beds, "solo and mute of the rest");
    assert!(score.bus("nobody").is_none());
}

#[test]
fn values_out_of_range_are_refused_with_what_and_how_much() {
    let mut score = empty_score();
    let voice = || VoiceSpec::new(0, Source::Impulse);
    for (spec, words) in [
        (
            VoiceSpec {
                filters: vec![Filter::LowPass { hz: 5.0, q: 0.7 }],
                ..voice()
            },
            ["frequency", "5"],
        ),
        (
            VoiceSpec {
                gain_db: f64::NAN,
                ..voice()
            },
            ["gain", "NaN"],
        ),
        (
            VoiceSpec {
                bus: BusId(9),
                ..voice()
            },
            ["bus", "9"],
        ),
        (
            VoiceSpec {
                place: Place::Pan(1.5),
                ..voice()
            },
            ["pan", "1.5"],
        ),
        (
            VoiceSpec::new(i64::MAX, Source::Impulse),
            ["start", "samples"],
        ),
    ] {
        let message = score.add(spec).expect_err("out of range").to_string();
        for word in words {
            assert!(message.contains(word), "no '{word}' in {message}");
        }
    }
    assert_eq!(score.voice_count(), 0);
    let mic = Mic {
        band_hz: [5.0, 9000.0],
        ..Mic::phone()
    };
    assert!(Mixer::new(score, 0).set_mic(Some(mic)).is_err());
}

#[test]
fn files_of_other_rates_come_out_at_their_own_pitch() {
    for (rate_hz, channels) in [(44_100, 2), (22_050, 1), (96_000, 2), (48_000, 1)] {
        let bytes = wav_file(rate_hz, channels, 1.0, |t_s| {
            0.5 * (2.0 * PI * 1000.0 * t_s).sin()
        });
        let clip = decode("tone.wav", bytes).expect("a WAV file");
        assert_eq!(clip.length_samples(), 48_000);
        assert_eq!((clip.rate_hz(), clip.channels()), (rate_hz, channels));
        let source = Source::Clip {
            clip: Arc::new(clip),
            from_s: 0.0,
            speed: 1.0,
            is_looped: false,
        };
        let spec = VoiceSpec {
            bus: BusId(2),
            ..VoiceSpec::new(0, source)
        };
        let heard = render_voice(spec, 0.9);
        // 32000 of 32768, and the filter against direct current turns the phase by 1.2 degrees.
        let (mut worst, mut level) = (0.0_f64, 0.0_f64);
        let piece = &heard[9_600..33_600];
        let (mut re, mut im) = (0.0, 0.0);
        for (n, s) in piece.iter().enumerate() {
            let (sin, cos) = (2.0 * PI * 1000.0 * n as f64 / RATE).sin_cos();
            re += 2.0 * f64::from(s[0]) * sin / piece.len() as f64;
            im += 2.0 * f64::from(s[0]) * cos / piece.len() as f64;
        }
        for (n, s) in piece.iter().enumerate() {
            let (sin, cos) = (2.0 * PI * 1000.0 * n as f64 / RATE).sin_cos();
            worst = worst.max((f64::from(s[0]) - re * sin - im * cos).abs());
            level = level.max(f64::from(s[0]));
        }
        assert!(
            (level - 0.5 * 32_000.0 / 32_768.0).abs() < 0.002,
            "{rate_hz}: {level}"
        );
        // The rounding of 16 bits is 1.5e-5.
        assert!(worst < 1e-4, "{rate_hz}: {worst} beside the tone");
    }
}

#[test]
fn a_streamed_clip_plays_the_samples_of_a_held_one() {
    let bytes: Arc<[u8]> = wav_file(44_100, 1, 7.0, |t_s| {
        0.4 * (2.0 * PI * (100.0 + 40.0 * t_s) * t_s).sin()
    })
    .into();
    let clips = [60.0, 1.0].map(|held_max_s| {
        let clip = Clip::decode_holding("long.wav", Arc::clone(&bytes), held_max_s);
        Arc::new(clip.expect("a WAV file"))
    });
    assert!(clips[0].is_held() && !clips[1].is_held());
    let [held, streamed] = clips.clone().map(|clip| {
        let source = Source::Clip {
            clip,
            from_s: 0.25,
            speed: 1.0,
            is_looped: true,
        };
        let mut score = empty_score();
        let spec = VoiceSpec {
            filters: vec![Filter::LowPass { hz: 90.0, q: 0.7 }],
            ..VoiceSpec::new(100, source)
        };
        score.add(spec).expect("in range");
        let mut mixer = mixer(score, None);
        let mut heard = render(&mut mixer, 0.0, 15.0, &Listener::default());
        // And back.
        heard.extend(render(&mut mixer, 3.0, 4.0, &Listener::default()));
        heard
    });
    assert_same_bits(&held, &streamed, "held and streamed");
    let refused = Grains {
        clip: Arc::clone(&clips[1]),
        grain_s: 0.5,
    };
    let message = refused.check().expect_err("too long").to_string();
    assert!(
        message.contains("long.wav") && message.contains("7 s"),
        "{message}"
    );
}

#[test]
fn a_wav_whose_header_lies_is_an_error_with_name_found_and_expected() {
    let good = wav_file(48_000, 2, 0.1, |_| 0.1);
    assert!(decode("good.wav", good.clone()).is_ok());
    let data = good
        .windows(4)
        .position(|w| w == b"data")
        .expect("a data chunk");
    let lies: [(&str, usize, &[u8], [&str; 2]); 4] = [
        (
            "data size",
            data + 4,
            &[0xF0, 0xFF, 0xFF, 0x7F],
            ["2147483632", "19200"],
        ),
        ("channels", 22, &[77, 0], ["77", "1 to 8"]),
        ("rate", 24, &[1, 0, 0, 0], ["1 Hz", "4000 to 192000"]),
        ("block", 32, &[9, 0], ["9 bytes", "4 for 2 channels"]),
    ];
    for (what, at, lie, words) in lies {
        let mut bytes = good.clone();
        bytes[at..at + lie.len()].copy_from_slice(lie);
        let (result, peak) = alloc::peak_bytes(|| decode("lying.wav", bytes));
        let message = result.expect_err(what).to_string();
        for word in words.into_iter().chain(["lying.wav"]) {
            assert!(message.contains(word), "{what}: no '{word}' in {message}");
        }
        assert!(peak < 1 << 20, "{what}: {peak} bytes for a lie");
    }
    for (bytes, word) in [
        (Vec::new(), "empty"),
        (b"hello, world".to_vec(), "68 65 6c 6c"),
        (good[..data].to_vec(), "no data chunk"),
    ] {
        let message = decode("x", bytes).expect_err("no sound").to_string();
        assert!(message.contains(word), "no '{word}' in {message}");
    }
}

#[test]
fn an_ogg_cut_in_the_middle_plays_what_is_there_and_says_so() {
    let Some(path) = given::data("sounds/beds/wind.ogg") else {
        return;
    };
    let whole = std::fs::read(path).expect("readable");
    let clip = decode("wind.ogg", whole.clone()).expect("an Ogg file");
    assert!(clip.warnings().is_empty(), "{:?}", clip.warnings());
    let cut = decode("cut.ogg", whole[..whole.len() / 2].to_vec()).expect("half an Ogg file");
    let share = cut.length_samples() as f64 / clip.length_samples() as f64;
    assert!((0.3..0.7).contains(&share), "{share} of the length");
    let [warning] = cut.warnings() else {
        panic!("one warning: {:?}", cut.warnings());
    };
    let seconds = format!("{:.2} s", seconds_at(cut.length_samples()));
    assert!(warning.starts_with("cut.ogg: cut off"), "{warning}");
    assert!(warning.contains(&seconds), "{warning} {seconds}");
}

/// A mono FLAC file of whole frames without prediction (RFC 9639).
fn flac_file(samples: &[i16]) -> Vec<u8> {
    const BLOCK: usize = 4096;
    let check = |bytes: &[u8], width: u32, polynomial: u32| {
        let top = 1 << (width - 1);
        let mask = (top << 1) - 1;
        bytes.iter().fold(0_u32, |sum, byte| {
            (0..8).fold(sum ^ u32::from(*byte) << (width - 8), |sum, _| {
                let shifted = sum << 1;
                (if sum & top == 0 {
                    shifted
                } else {
                    shifted ^ polynomial
                }) & mask
            })
        })
    };
    assert!(samples.len().is_multiple_of(BLOCK), "whole frames");
    let mut bytes = b"fLaC".to_vec();
    bytes.extend([0x80, 0, 0, 34]);
    bytes.extend((BLOCK as u16).to_be_bytes());
    bytes.extend((BLOCK as u16).to_be_bytes());
    bytes.extend([0; 6]);
    // 20 bits of rate, 3 of channels - 1, 5 of bits - 1, 36 of length.
    let packed = 48_000_u64 << 44 | 15 << 36 | samples.len() as u64;
    bytes.extend(packed.to_be_bytes());
    bytes.extend([0; 16]);
    for (number, block) in samples.chunks(BLOCK).enumerate() {
        // 4096 samples, 48 kHz; mono, 16 bits; the frame's number.
        let mut frame = vec![0xFF, 0xF8, 0xCA, 0x08, number as u8];
        frame.push(check(&frame, 8, 0x07) as u8);
        frame.push(0x02);
        frame.extend(block.iter().flat_map(|sample| sample.to_be_bytes()));
        let sum = check(&frame, 16, 0x8005) as u16;
        frame.extend(sum.to_be_bytes());
        bytes.extend(frame);
    }
    bytes
}

#[test]
fn flac_is_read_to_the_bit_and_a_cut_one_says_so() {
    let samples: Vec<i16> = (0..4096 * 6)
        .map(|n| (9000.0 * (f64::from(n) * 0.05).sin()) as i16)
        .collect();
    let bytes = flac_file(&samples);
    let clip = decode("tone.flac", bytes.clone()).expect("a FLAC file");
    assert_eq!(clip.length_samples(), samples.len() as i64);
    assert!(clip.warnings().is_empty(), "{:?}", clip.warnings());
    let source = Source::Clip {
        clip: Arc::new(clip),
        from_s: 0.0,
        speed: 1.0,
        is_looped: false,
    };
    let heard = render_voice(VoiceSpec::new(0, source), 0.4);
    let sine = |n: usize| 9000.0 / 32_768.0 * (n as f64 * 0.05).sin();
    let off = (9600..14_400).map(|n| (f64::from(heard[n][0]) - sine(n)).abs());
    // The filter against direct current turns a tone of 382 Hz by 3 degrees.
    assert!(off.fold(0.0, f64::max) < 0.017);
    let cut = decode("cut.flac", bytes[..bytes.len() / 2].to_vec()).expect("half a file");
    let warning = cut.warnings().join("; ");
    assert!(warning.contains("cut.flac: cut off"), "{warning}");
    assert!(warning.contains("24576 samples"), "{warning}");
}

#[test]
fn mp3_is_read() {
    // Frames of MPEG 1 layer 3, 128 kbit/s, 48 kHz, stereo, without any content: silence.
    let frame = [&[0xFF, 0xFB, 0x94, 0x00][..], &[0; 380]].concat();
    let clip = decode("silence.mp3", frame.repeat(50)).expect("an MP3 file");
    assert_eq!((clip.rate_hz(), clip.channels()), (48_000, 2));
    let frames = clip.length_samples() as f64 / 1152.0;
    assert!((48.0..=50.0).contains(&frames), "{frames} frames");
}

#[test]
fn damaged_files_neither_panic_nor_hang() {
    let mut files = vec![
        wav_file(44_100, 2, 0.3, |t_s| (3000.0 * t_s).sin()),
        flac_file(&[1000; 8192]),
        [&[0xFF, 0xFB, 0x94, 0x00][..], &[0; 380]]
            .concat()
            .repeat(20),
    ];
    for name in [
        "footsteps/default_snow_footstep.1.ogg",
        "footsteps/default_hard_footstep.2.ogg",
    ] {
        if let Some(path) = given::data(&format!("sounds/{name}")) {
            files.push(std::fs::read(path).expect("readable"));
        }
    }
    for good in files {
        decode("good", good.clone()).expect("a good file");
        for round in 0..60_usize {
            let hash =
                |n: usize| splatstage::motion::noise::mix((round * 1000 + n) as u64) as usize;
            let mut bytes = good.clone();
            for n in 0..1 + round % 5 {
                let at = hash(2 * n) % if round % 2 == 0 { bytes.len() } else { 200 };
                bytes[at] = hash(2 * n + 1) as u8;
            }
            if round % 3 == 0 {
                bytes.truncate(hash(77) % good.len());
            }
            // An error or a clip, both are right; every sample must be a number.
            if let Ok(clip) = decode("damaged", bytes) {
                assert!(clip.length_samples() > 0);
            }
        }
    }
}

/// A device that a test plays by hand.
#[derive(Clone, Default)]
pub struct Bench(Arc<Mutex<BenchState>>);

#[derive(Default)]
struct BenchState {
    is_there: bool,
    asked: u32,
    feed: Option<Feed>,
    alarm: Option<Alarm>,
}

impl Device for Bench {
    fn is_there(&self) -> bool {
        let mut state = self.0.lock().expect("no panic");
        state.asked += 1;
        state.is_there
    }

    fn open(&mut self, feed: Feed) -> Result<Box<dyn Playing>, String> {
        let mut state = self.0.lock().expect("no panic");
        state.alarm = Some(feed.alarm());
        state.feed = Some(feed);
        Ok(Box::new(BenchPlaying))
    }
}

struct BenchPlaying;

impl Playing for BenchPlaying {
    fn name(&self) -> String {
        "a test".to_owned()
    }
}

impl Bench {
    pub fn present() -> Self {
        let bench = Self::default();
        bench.0.lock().expect("no panic").is_there = true;
        bench
    }

    /// Takes samples as a sound card does.
    pub fn take(&self, count: usize) -> Vec<Stereo> {
        let mut state = self.0.lock().expect("no panic");
        let feed = state.feed.as_mut().expect("opened");
        (0..count).map(|_| feed.take()).collect()
    }

    pub fn pull_out(&self) {
        let mut state = self.0.lock().expect("no panic");
        state.is_there = false;
        state.feed = None;
        if let Some(alarm) = state.alarm.take() {
            alarm.lose("pulled out");
        }
    }

    pub fn plug_in(&self) {
        self.0.lock().expect("no panic").is_there = true;
    }
}

#[track_caller]
pub fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Plays a scene by hand: 10 ms of samples, then the window's next word, waiting for the thread.
fn perform(live: &mut Live, bench: &Bench, from_s: f64, blocks: usize) -> Vec<Stereo> {
    let mut heard = Vec::new();
    for block in 0..blocks {
        live.at(from_s + block as f64 * 0.01, Listener::default());
        std::thread::sleep(Duration::from_millis(12));
        heard.extend(bench.take(480));
    }
    heard
}

/// Where `piece` lies in `whole`, bit for bit.
fn find(whole: &[Stereo], piece: &[Stereo]) -> Option<usize> {
    whole
        .windows(piece.len())
        .position(|window| window == piece)
}

#[test]
fn what_a_device_gets_is_what_a_file_gets() {
    let bench = Bench::present();
    let score = walk(3.0);
    let mut live = Live::start(
        Box::new(bench.clone()),
        score.clone(),
        Some(Mic::phone()),
        7,
    )
    .expect("a thread");
    wait_for("opened", || live.report().is_playing);
    std::thread::sleep(Duration::from_millis(50));
    let heard = perform(&mut live, &bench, 1.0, 60);
    let file = render(
        &mut mixer(score, Some(Mic::phone())),
        0.0,
        3.0,
        &Listener::default(),
    );
    // After the store's silence and the fade in.
    let piece = &heard[9_600..14_400];
    assert!(rms(piece) > 1e-4, "something is heard");
    if live.report().missed_samples == 0 {
        let at = find(&file, piece).expect("the same samples are in the file");
        // Heard behind the scene's time by the store (40 ms) and the way there (20 ms).
        let late_s = 1.2 - seconds_at(at as i64);
        assert!((0.0..0.25).contains(&late_s), "{late_s} s late");
    } else {
        eprintln!("the machine was too slow to compare");
    }
    let allocated = {
        let mut state = bench.0.lock().expect("no panic");
        let feed = state.feed.as_mut().expect("opened");
        let (_, bytes) = alloc::peak_bytes(|| {
            for _ in 0..480 {
                std::hint::black_box(feed.take());
            }
        });
        bytes
    };
    assert_eq!(allocated, 0, "bytes that the device's thread allocates");
    // A voice for a moment that has just passed starts at once.
    let before = live.score().voice_count();
    live.add(VoiceSpec::new(sample_at(1.5), Source::Impulse))
        .expect("a voice");
    assert_eq!(live.report().late_voices, 1);
    assert_eq!(live.score().voice_count(), before + 1);
}

#[test]
fn a_device_that_vanishes_comes_back_and_nobody_waits() {
    let bench = Bench::present();
    let mut live = Live::start(Box::new(bench.clone()), walk(30.0), None, 7).expect("a thread");
    wait_for("opened", || live.report().is_playing);
    perform(&mut live, &bench, 1.0, 20);
    bench.pull_out();
    wait_for("noticed", || !live.report().is_playing);
    let begin = Instant::now();
    for frame in 0..1000 {
        live.at(2.0 + f64::from(frame) * 0.001, Listener::default());
    }
    assert!(
        begin.elapsed() < Duration::from_secs(1),
        "the window waits for nothing"
    );
    bench.plug_in();
    wait_for("it came back", || live.report().is_playing);
    assert_eq!(live.report().opened, 2);
    std::thread::sleep(Duration::from_millis(50));
    let heard = perform(&mut live, &bench, 3.0, 40);
    assert!(rms(&heard[9_600..]) > 1e-4, "it sounds again");
    // Another microphone while it plays: over a fade, and it goes on.
    live.set_mic(Some(Mic::call())).expect("in range");
    let heard = perform(&mut live, &bench, 3.4, 60);
    assert!(
        rms(&heard[19_200..]) > 1e-4,
        "it sounds through the other microphone"
    );
    assert!(
        heard[19_200..].iter().all(|[left, right]| left == right),
        "a call is mono"
    );
    live.pause();
    std::thread::sleep(Duration::from_millis(30));
    bench.take(9600);
    std::thread::sleep(Duration::from_millis(60));
    let paused = bench.take(480);
    assert!(rms(&paused) == 0.0, "silent while paused");
}

#[test]
fn without_a_device_all_goes_on_silently() {
    let bench = Bench::default();
    let mut live =
        Live::start(Box::new(bench.clone()), walk(1.0), Some(Mic::phone()), 7).expect("a thread");
    wait_for("asked more than once", || {
        live.at(0.5, Listener::default());
        bench.0.lock().expect("no panic").asked > 1
    });
    live.add(VoiceSpec::new(0, Source::Impulse))
        .expect("a voice");
    let report = live.report();
    assert!(!report.is_playing && report.opened == 0 && report.missed_samples == 0);
}

#[test]
fn the_systems_device_plays_or_is_done_without() {
    let score = walk(1.0);
    let live = Live::start(Box::<SystemDevice>::default(), score, None, 7).expect("a thread");
    // The first attempt to open it; opening may take a while, saying the time may not.
    for frame in 0..30 {
        let begin = Instant::now();
        live.at(f64::from(frame) / 60.0, Listener::default());
        live.set_gain_db(-120.0);
        assert!(begin.elapsed() < Duration::from_millis(500));
        std::thread::sleep(Duration::from_millis(16));
    }
    let report = live.report();
    eprintln!("{report:?}");
    assert!(report.opened <= 1, "{report:?}");
    assert!(report.opened == 1 || !report.is_playing, "{report:?}");
}

#[test]
#[ignore = "prints figures: cargo test --test it -- --ignored --nocapture sound::figures"]
fn figures() {
    for (name, mic) in [("without microphone", None), ("phone", Some(Mic::phone()))] {
        let begin = Instant::now();
        let mut mixer = mixer(walk(68.0), mic);
        let mut meter = Meter::new().expect("a meter");
        let heard = render(&mut mixer, 0.0, 68.0, &walker);
        let took_s = begin.elapsed().as_secs_f64();
        meter.add(&heard).expect("read");
        let loudness = meter.read().expect("read");
        println!("68 s of a walk, {name}: {took_s:.2} s; {loudness:?}");
        let begin = Instant::now();
        render(&mut mixer, 33.3, 33.31, &walker);
        println!("  a jump: {:.0} ms", begin.elapsed().as_secs_f64() * 1e3);
    }
    if let Some(path) = given::data("sounds/beds/city.ogg") {
        let bytes = std::fs::read(path).expect("readable");
        let begin = Instant::now();
        let clip = decode("city.ogg", bytes).expect("an Ogg file");
        println!(
            "reading {:.1} s of Ogg at {} Hz: {:.0} ms",
            seconds_at(clip.length_samples()),
            clip.rate_hz(),
            begin.elapsed().as_secs_f64() * 1e3
        );
    }
    let bench = Bench::present();
    let live = Live::start(Box::new(bench.clone()), walk(1.0), None, 7).expect("a thread");
    wait_for("opened", || live.report().is_playing);
    let begin = Instant::now();
    let count = 4_800_000;
    bench.take(count);
    let share = begin.elapsed().as_secs_f64() / (count as f64 / RATE);
    println!("a device's callback: {:.4} % of a core", share * 100.0);
}
