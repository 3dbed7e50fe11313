//! THE WAIST: one picture as plain data, and the input that led to it.
//!
//! Scripts produce a [`Frame`]; the GPU, the CPU reference, sound, video and tests consume it.
//! There is no Lua below this file and no wgpu above it. A frame holds no file, no clock and no
//! random: two equal frames give equal pictures on one renderer.

use crate::camera::Camera;
use crate::effect::EffectUse;
use crate::effect::spread::Arrivals;
use crate::film::Film;
use crate::scene::{Edit, Placement, Pose, Splats};
use glam::{Vec2, Vec3};
use std::sync::Arc;

/// Everything that decides one output picture.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Scene time of the picture, seconds.
    pub t_s: f64,
    /// The camera at `t_s`.
    pub camera: Camera,
    /// Behind everything: red, green, blue, alpha in display space, 0 to 1, alpha not multiplied in.
    pub background: [f32; 4],
    /// Sets of splats to draw, blended together by depth whatever their order here.
    pub draws: Vec<SplatDraw>,
    /// Name of the behaviour state, where the scene has states.
    pub state: Option<String>,
    /// The one who carries the camera, where somebody does.
    pub walker: Option<Walker>,
    /// How the picture is filmed; `None` shows what a perfect camera sees at `t_s`.
    pub film: Option<Box<Film>>,
}

impl Default for Frame {
    fn default() -> Self {
        Self {
            t_s: 0.0,
            camera: Camera::default(),
            background: BACKGROUND_DEFAULT,
            draws: Vec::new(),
            state: None,
            walker: None,
            film: None,
        }
    }
}

impl Frame {
    /// [`SplatDraw::target`] of each draw.
    #[must_use]
    pub fn targets(&self) -> Vec<Option<u32>> {
        self.draws.iter().map(|draw| draw.target).collect()
    }

    /// Whether anybody asks what the pointer is over.
    #[must_use]
    pub fn has_targets(&self) -> bool {
        self.draws.iter().any(|draw| draw.target.is_some())
    }
}

/// Opaque black.
pub const BACKGROUND_DEFAULT: [f32; 4] = [0.0, 0.0, 0.0, 1.0];

/// One set of splats placed in the world. Invisible ones are simply not in the list.
#[derive(Clone, Debug)]
pub struct SplatDraw {
    /// What is drawn. Renderers keep their packed copy as long as this `Arc` lives somewhere.
    pub splats: Arc<Splats>,
    /// World from the splats' own space.
    pub placement: Placement,
    /// Multiplies colour (display space) and opacity; [1; 4] changes nothing.
    pub tint: [f32; 4],
    /// How a body stands; `None` draws the splats as they were loaded.
    pub pose: Option<Arc<Pose>>,
    /// Shapes that fade, tint or push splats; at most [`crate::scene::edit::EDITS_MAX`].
    pub edits: Vec<Edit>,
    /// What changes each splat after that, in order; at most [`crate::effect::EFFECTS_MAX`].
    pub effects: Vec<EffectUse>,
    /// How far each splat is from where it was touched, for effects that ask.
    pub arrivals: Option<Arrivals>,
    /// Who is told that the pointer is over these splats: a number of the script's own choosing.
    /// `None` where nobody asks.
    pub target: Option<u32>,
}

impl SplatDraw {
    /// Splats where they are, as they are.
    #[must_use]
    pub fn new(splats: Arc<Splats>) -> Self {
        Self {
            splats,
            placement: Placement::default(),
            tint: [1.0; 4],
            pose: None,
            edits: Vec::new(),
            effects: Vec::new(),
            arrivals: None,
            target: None,
        }
    }
}

/// A walker with a camera, for whoever writes it down or sounds like it. The camera itself is
/// [`Frame::camera`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Walker {
    /// Along the way, metres a second.
    pub speed_m_s: f64,
    /// Steps taken: a whole number at every heel strike.
    pub phase: f64,
    /// Height of the ground underfoot, world y, metres.
    pub floor_m: f64,
    /// Distance from the camera to the nearest wall, metres; `None` where nobody has measured.
    pub clearance_m: Option<f64>,
    /// Turn of the head against the heading, left positive, radians.
    pub head_yaw_rad: f64,
    /// Up positive, radians.
    pub head_pitch_rad: f64,
}

/// Something that happens at an instant, for whoever plays sound or writes it down: a footstep, a
/// click, a cue of the author's own.
#[derive(Clone, Debug, PartialEq)]
pub struct Cue {
    /// Scene time, seconds.
    pub t_s: f64,
    /// What happens: `footstep`, `click`, ...
    pub kind: String,
    /// Whatever else is known of it (`side`, `surface`, ...), plain values.
    pub fields: serde_json::Map<String, serde_json::Value>,
}

/// One splat's part in one pixel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Touch {
    /// Which of the frame's draws.
    pub draw: u32,
    /// The splat's row there.
    pub row: u32,
    /// View depth of its centre, metres.
    pub depth_m: f32,
    /// What it covers of the pixel, 1/255 to 0.99.
    pub alpha: f32,
}

/// The target that a pixel shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// [`SplatDraw::target`] of what is hit.
    pub target: u32,
    /// The draw that is hit, and the splat of it that takes its coverage over one half.
    pub draw: u32,
    /// See `draw`.
    pub row: u32,
    /// View depth there, metres.
    pub depth_m: f32,
    /// What the target's own splats cover of the pixel, 0 to 1.
    pub coverage: f32,
}

/// Coverage from which a target is hit.
pub const HIT_COVERAGE: f32 = 0.5;

/// The nearest target whose own splats cover [`HIT_COVERAGE`] of a pixel, while others cover less
/// than that in front of it. `touches` are all splats of the pixel; of equal depths the one that
/// comes first is in front. `targets` are those of the frame's draws, as by [`Frame::targets`].
#[must_use]
pub fn front_most(targets: &[Option<u32>], mut touches: Vec<Touch>) -> Option<Hit> {
    touches.sort_by(|a, b| a.depth_m.total_cmp(&b.depth_m));
    // What is seen through each target's splats so far, and through everything.
    let mut seen_through: Vec<(u32, f32)> = Vec::new();
    let mut all = 1.0_f32;
    let mut hit: Option<Hit> = None;
    for touch in touches {
        all *= 1.0 - touch.alpha;
        let Some(target) = targets.get(touch.draw as usize).copied().flatten() else {
            continue;
        };
        let own = match seen_through.iter_mut().find(|(t, _)| *t == target) {
            Some((_, own)) => own,
            None => {
                seen_through.push((target, 1.0));
                &mut seen_through.last_mut()?.1
            }
        };
        *own *= 1.0 - touch.alpha;
        let others = all / own.max(f32::MIN_POSITIVE);
        if hit.is_none() && *own <= 1.0 - HIT_COVERAGE && others > 1.0 - HIT_COVERAGE {
            hit = Some(Hit {
                target,
                draw: touch.draw,
                row: touch.row,
                depth_m: touch.depth_m,
                coverage: 0.0,
            });
        }
    }
    let mut hit = hit?;
    let own = seen_through.iter().find(|(t, _)| *t == hit.target)?.1;
    hit.coverage = 1.0 - own;
    Some(hit)
}

/// State of the input devices at one instant, as a script's `step` sees it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Input {
    /// Pointer on the picture (mouse, finger, or one that is sent from outside): x right, y up,
    /// each -1 to 1; (0, 0) is the middle. Kept while a mouse is outside; a finger that is lifted
    /// leaves (0, 0).
    pub pointer: Vec2,
    /// True while the pointer is over the picture.
    pub pointer_inside: bool,
    /// Who the pointer is over: the front-most [`SplatDraw::target`] whose coverage at the
    /// pointer's pixel is one half or more. As drawn at most two pictures ago.
    pub over: Option<u32>,
    /// Left stick of the first gamepad: x right, y up, each -1 to 1, dead zone taken out; (0, 0)
    /// without one.
    pub stick: Vec2,
    /// How a phone is turned against its first reading, degrees about x, y, z; `None` before one
    /// is sent.
    pub gyro_deg: Option<Vec3>,
    /// Pointer travel since the last step, in picture heights (x right, y up).
    pub drag: Vec2,
    /// Wheel notches since the last step, positive away from the user.
    pub wheel: f32,
    /// Names of the keys and buttons held down: winit's key names in snake_case (`w`, `arrow_up`,
    /// `shift`), and `mouse_left`, `mouse_right`, `mouse_middle`. Sorted.
    pub held: Vec<String>,
    /// Width over height of the picture.
    pub aspect: f32,
}

/// Something that happened once, delivered to a script's `event`.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// What scripts match on: `hover` and `leave` (the pointer comes over a target, goes from it),
    /// `click` and `double_click` (on a target or beside all of them), `pointer_enter` and
    /// `pointer_leave` (of the window), `key`, `resize`, `message`, `error` (the newest version of
    /// the scene is broken; the name says how).
    pub kind: String,
    /// The key's, button's or message's name, or empty.
    pub name: String,
    /// Numbers that come with it (pointer position, OSC values).
    pub values: Vec<f64>,
    /// The [`SplatDraw::target`] that it is about.
    pub target: Option<u32>,
    /// The splat of it that was met, for clicks: its row, from 0.
    pub row: Option<u32>,
}
