//! A filmed picture, step by step: half-size depth, edges and how far they split, two layers, the
//! nearest depths of tiles, and the taps of every pixel.
//!
//! Twin of the shaders `film_depth`, `film_split`, `film_tiles`, `film_proxy`, `film_near` and `film`,
//! in f64 and without their halves; what happens to the light then is in [`super::finish`]. Names and
//! constants are the shaders', which also say why they are what they are. Pixels "wide" are those of
//! the overscanned picture; `w` is an inverse depth, 1/metres, 0 for endlessly far.

use super::{ALPHA_MIN, Record, Rules, TRANSMITTANCE_MIN, project, sort};
use crate::film::{Depth, Film, Path, TAPS_MAX, TAPS_MIN};
use crate::frame::Frame;
use glam::{DVec2, DVec3};
use rayon::prelude::*;

const DOUBLED_MIN: f64 = 1.0 / 64.0;
const RATIO_MIN: f64 = 1.06;
const BEND_MIN: f64 = 0.3;
const MOVE_MIN_PX: f64 = 0.3;
const COVER_MIN: f64 = 0.5;
const FRONT_COVER_MIN: f64 = 0.01;
const BACK_COVER_MIN: f64 = 0.25;
const PARALLAX_MIN_PX: f64 = 0.25;
const BESIDE_PX: f64 = 0.5;
const SAME_SHARE: f64 = 0.05;
const OPEN_MIN: f64 = 0.001;
const STILL_PX: f64 = 0.02;
const CUBIC_BELOW_PX: f64 = 4.0;
const TAPS_PER_DISC_PX2: f64 = 0.6;
const SPLIT_REACH_MAX_PX: f64 = 16.0;
const SPLIT_NEAR_M: f64 = 0.35;
const TILE_PX: usize = 16;

/// One value a pixel, rows top to bottom.
#[derive(Clone, Debug)]
pub struct Map<T> {
    /// Width and height, px.
    pub size: [usize; 2],
    /// Rows one after the other.
    pub values: Vec<T>,
}

impl<T: Copy + Send + Sync> Map<T> {
    fn new(size: [usize; 2], value: impl Fn(usize, usize) -> T + Sync) -> Self {
        let values = (0..size[0] * size[1])
            .into_par_iter()
            .map(|i| value(i % size[0], i / size[0]))
            .collect();
        Self { size, values }
    }

    /// The value at a place, or at the nearest one on the map.
    #[must_use]
    pub fn at(&self, x: i64, y: i64) -> T {
        let [w, h] = self.size.map(|side| side as i64);
        self.values[(y.clamp(0, h - 1) * w + x.clamp(0, w - 1)) as usize]
    }

    fn under(&self, at_px: DVec2) -> T {
        self.at(at_px.x.floor() as i64, at_px.y.floor() as i64)
    }
}

/// Colour in display space multiplied by coverage, and coverage.
type Rgba = [f64; 4];

/// What both layers of a wide pixel hold. Where nothing can be split, the back is kept as the root of its
/// light, and is all there is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Layers {
    /// What is nearer than the split; the whole picture where there is none.
    pub front: Rgba,
    /// What is behind it, as if nothing stood before it.
    pub back: Rgba,
    /// Inverse depths of both.
    pub w: [f64; 2],
}

/// The light of a filmed frame, linear, before exposure, lens colours and sensor; one value a pixel of
/// `size`. `None` where the frame is not filmed.
#[must_use]
pub fn light(frame: &Frame, size: [u32; 2], rules: &Rules) -> Option<Vec<DVec3>> {
    let film = frame.film.as_deref()?;
    let path = Path::new(&frame.camera, &film.shutter);
    let layers = layers(frame, film, &path, size, rules);
    Some(expose(frame, film, &path, &layers, size))
}

/// The two layers of the wide picture.
#[must_use]
pub fn layers(
    frame: &Frame,
    film: &Film,
    path: &Path,
    size: [u32; 2],
    rules: &Rules,
) -> Map<Layers> {
    let wide_size = film.wide_size(size);
    let wide = Frame {
        camera: film.wide_camera(&frame.camera, size),
        ..frame.clone()
    };
    let mut records = project::project(&wide, wide_size, rules);
    sort::sort(&mut records);
    let wide_px = wide_size.map(|side| side as usize);
    let reach_px_m = reach_px_m(frame, film, path, size);
    let reach = split_reach_px(film, reach_px_m);
    let edges = if reach > 0 {
        let depth = half_depth(&records, wide_px, rules);
        split(&depth, reach_px_m, reach)
    } else {
        Map {
            size: [1, 1],
            values: vec![[0.0; 2]],
        }
    };
    let mut layers = two_layers(&records, wide_px, &edges, frame, rules);
    if reach == 0 {
        for pixel in &mut layers.values {
            pixel.back = pixel.back.map(|v| decode(v).sqrt());
        }
    }
    let focal_px = f64::from(frame.camera.intrinsics(size).focal_px.y);
    if film.depth == Depth::Proxy {
        let margin = film.margin_px(size).map(f64::from);
        for (i, pixel) in layers.values.iter_mut().enumerate() {
            let at = DVec2::new((i % wide_px[0]) as f64, (i / wide_px[0]) as f64) + 0.5;
            let centre = 0.5 * DVec2::new(f64::from(size[0]), f64::from(size[1]));
            let slope = (at - DVec2::from_array(margin) - centre) / focal_px;
            pixel.w = [proxy(frame, film, slope.extend(1.0)); 2];
        }
    }
    layers
}

/// How far a thing 1/metre away moves at most while the shutter is open, px m.
fn reach_px_m(frame: &Frame, film: &Film, path: &Path, size: [u32; 2]) -> f64 {
    let focal_px = f64::from(frame.camera.intrinsics(size).focal_px.y);
    focal_px * (path.reach_m() + 0.5 * f64::from(film.aperture_m))
}

/// The farthest that a split goes from its edge, px of the half-size picture; 0 where nothing is split.
fn split_reach_px(film: &Film, reach_px_m: f64) -> i64 {
    let near_px = reach_px_m / SPLIT_NEAR_M;
    if film.depth != Depth::TwoLayers || near_px <= MOVE_MIN_PX {
        return 0;
    }
    (0.5 * near_px + 2.0).ceil().min(SPLIT_REACH_MAX_PX) as i64
}

/// Inverse depth of the nearest plane that a ray (view space) meets.
fn proxy(frame: &Frame, film: &Film, direction: DVec3) -> f64 {
    let view_from_world = frame.camera.view_from_world();
    let met = film.planes.iter().map(|plane| {
        let normal = (view_from_world * plane.normal).as_dvec3();
        let distance_m = (frame.camera.position - plane.point).dot(plane.normal);
        -normal.dot(direction) / f64::from(distance_m)
    });
    met.fold(0.0, f64::max)
}

/// Walks the records of every pixel, nearest first. `centre` is where in the picture a pixel looks;
/// `blend` takes what a splat covers of it and says whether the pixel has seen enough.
fn walk<S: Clone + Send + Sync>(
    records: &[Record],
    size: [usize; 2],
    step_px: f64,
    start: &S,
    rules: &Rules,
    blend: impl Fn(&mut S, [usize; 2], &Record, f64) -> bool + Sync,
) -> Vec<S> {
    let mut pixels = vec![(start.clone(), false); size[0] * size[1]];
    let powers: Vec<f64> = (records.iter())
        .map(|record| rules.footprint.power_min(record.opacity))
        .collect();
    pixels
        .par_chunks_mut(size[0] * TILE_PX)
        .enumerate()
        .for_each(|(band, rows)| {
            let top = band * TILE_PX;
            let bottom = top + rows.len() / size[0];
            for (record, power_min) in records.iter().zip(&powers) {
                // Pixel centres within the record's box.
                let range = |axis: usize, low: usize, high: usize| {
                    let mean = record.mean_px[axis] / step_px;
                    let extent = record.extent_px[axis] / step_px;
                    let first = (mean - extent - 0.5).ceil() as usize;
                    let end = ((mean + extent - 0.5).floor() + 1.0) as usize;
                    first.max(low)..end.min(high)
                };
                for y in range(1, top, bottom) {
                    for x in range(0, 0, size[0]) {
                        let (state, is_done) = &mut rows[(y - top) * size[0] + x];
                        if *is_done {
                            continue;
                        }
                        let at = DVec2::new(x as f64 + 0.5, y as f64 + 0.5) * step_px;
                        let d = at - record.mean_px;
                        let [xx, xy, yy] = record.conic;
                        let power = -0.5 * (xx * d.x * d.x + yy * d.y * d.y) - xy * d.x * d.y;
                        if power < power_min - 1e-9 {
                            continue;
                        }
                        let alpha = rules.footprint.alpha(record.opacity, power.min(0.0));
                        if alpha >= ALPHA_MIN {
                            *is_done = blend(state, [x, y], record, alpha);
                        }
                    }
                }
            }
        });
    pixels.into_iter().map(|(state, _)| state).collect()
}

/// Stage "film depth": mean inverse depth by doubled alphas at half the size; 0 where little is.
fn half_depth(records: &[Record], wide_px: [usize; 2], rules: &Rules) -> Map<f64> {
    let size = wide_px.map(|side| side.div_ceil(2));
    // Sum of weights over depth, what is still open.
    let sums = walk(
        records,
        size,
        2.0,
        &(0.0, 1.0),
        rules,
        |state, _, record, alpha| {
            let doubled = (2.0 * alpha).min(1.0);
            state.0 += doubled * state.1 / record.depth_m;
            state.1 *= 1.0 - doubled;
            state.1 < DOUBLED_MIN
        },
    );
    let w = |&(sum, open): &(f64, f64)| {
        let cover = 1.0 - open;
        if cover >= COVER_MIN { sum / cover } else { 0.0 }
    };
    Map {
        size,
        values: sums.iter().map(w).collect(),
    }
}

/// Stage "film split": inverse depths of the near and the far thing of the edge that each half-size
/// pixel belongs to; 0, 0 where there is none. `reach` is the farthest that a split goes, px.
fn split(depth: &Map<f64>, reach_px_m: f64, reach: i64) -> Map<[f64; 2]> {
    let across = |best: [f64; 2], before: f64, here: f64, after: f64| {
        let near = before.max(here).max(after);
        let far = before.min(here).min(after);
        let step = near - far;
        let bend = (before - 2.0 * here + after).abs();
        let is_edge =
            near > RATIO_MIN * far && bend > BEND_MIN * step && step * reach_px_m > MOVE_MIN_PX;
        if is_edge && step > best[0] - best[1] {
            [near, far]
        } else {
            best
        }
    };
    let edges = Map::new(depth.size, |x, y| {
        let (x, y) = (x as i64, y as i64);
        let here = depth.at(x, y);
        let edge = across([0.0; 2], depth.at(x - 1, y), here, depth.at(x + 1, y));
        across(edge, depth.at(x, y - 1), here, depth.at(x, y + 1))
    });
    let spread = |edges: &Map<[f64; 2]>, along: [i64; 2]| {
        let [w, h] = edges.size.map(|side| side as i64);
        Map::new(edges.size, |x, y| {
            let mut best = ([0.0; 2], 0.0);
            for i in -reach..=reach {
                let (px, py) = (x as i64 + i * along[0], y as i64 + i * along[1]);
                if px < 0 || py < 0 || px >= w || py >= h {
                    continue;
                }
                let edge = edges.at(px, py);
                let radius = 0.5 * reach_px_m * edge[0] + 2.0;
                let score = (edge[0] - edge[1]) * (1.0 - i.abs() as f64 / radius);
                if score > best.1 {
                    best = (edge, score);
                }
            }
            best.0
        })
    };
    spread(&spread(&edges, [1, 0]), [0, 1])
}

/// A layer on the way.
#[derive(Clone, Copy, Default)]
struct Blend {
    colour: DVec3,
    cover: f64,
    depth_sum: f64,
}

/// Stage "film layers".
fn two_layers(
    records: &[Record],
    wide_px: [usize; 2],
    edges: &Map<[f64; 2]>,
    frame: &Frame,
    rules: &Rules,
) -> Map<Layers> {
    let start = [Blend::default(); 2];
    let edge_of = |[x, y]: [usize; 2]| edges.at((x / 2) as i64, (y / 2) as i64);
    let blended = walk(
        records,
        wide_px,
        1.0,
        &start,
        rules,
        |state, at, record, alpha| {
            let edge = edge_of(at);
            let is_back = edge[0] > 0.0 && record.depth_m * (edge[0] + edge[1]) >= 2.0;
            let layer = &mut state[usize::from(is_back)];
            let open = 1.0 - layer.cover;
            let next = open * (1.0 - alpha);
            if next < TRANSMITTANCE_MIN {
                // The front may be full while the back is still empty; then it takes no more.
                let is_last = is_back || edge[0] <= 0.0;
                if !is_last {
                    layer.cover = 1.0;
                }
                return is_last;
            }
            layer.colour += alpha * open * DVec3::from_array(record.colour);
            layer.depth_sum += alpha * open / record.depth_m;
            layer.cover = 1.0 - next;
            false
        },
    );
    let [r, g, b, _] = frame.background.map(f64::from);
    let background = DVec3::new(r, g, b);
    Map::new(wide_px, |x, y| {
        let [front, back] = blended[y * wide_px[0] + x];
        let edge = edge_of([x, y]);
        let over = |layer: &Blend| (layer.colour + (1.0 - layer.cover) * background).extend(1.0);
        let w = |layer: &Blend, cover_min: f64, otherwise: f64| {
            if layer.cover > cover_min {
                layer.depth_sum / layer.cover
            } else {
                otherwise
            }
        };
        if edge[0] <= 0.0 {
            let whole = over(&front).to_array();
            let own = w(&front, BACK_COVER_MIN, 0.0);
            return Layers {
                front: whole,
                back: whole,
                w: [own, own],
            };
        }
        Layers {
            front: front.colour.extend(front.cover).to_array(),
            back: over(&back).to_array(),
            w: [
                w(&front, FRONT_COVER_MIN, edge[0]),
                w(&back, BACK_COVER_MIN, 0.0),
            ],
        }
    })
}

/// A tile and those about.
#[derive(Clone, Copy)]
struct Around {
    /// Inverse depths of the nearest and the farthest thing.
    near: f64,
    far: f64,
    /// Any pixel is split.
    is_split: bool,
}

impl Around {
    const NOTHING: Self = Self {
        near: 0.0,
        far: f64::INFINITY,
        is_split: false,
    };

    fn and(self, other: Self) -> Self {
        Self {
            near: self.near.max(other.near),
            far: self.far.min(other.far),
            is_split: self.is_split || other.is_split,
        }
    }
}

/// Stage "film near".
fn tiles(layers: &Map<Layers>) -> Map<Around> {
    let [w, h] = layers.size;
    let own = Map::new([w.div_ceil(TILE_PX), h.div_ceil(TILE_PX)], |tx, ty| {
        let mut found = Around::NOTHING;
        for y in ty * TILE_PX..((ty + 1) * TILE_PX).min(h) {
            for x in tx * TILE_PX..((tx + 1) * TILE_PX).min(w) {
                let [front, back] = layers.values[y * w + x].w;
                found = found.and(Around {
                    near: front.max(back),
                    far: back,
                    is_split: front != back,
                });
            }
        }
        found
    });
    Map::new(own.size, |tx, ty| {
        let mut found = Around::NOTHING;
        for y in -1..=1 {
            for x in -1..=1 {
                found = found.and(own.at(tx as i64 + x, ty as i64 + y));
            }
        }
        found
    })
}

/// sRGB to linear light; above 1 the curve goes on.
pub(super) fn decode(v: f64) -> f64 {
    let v = v.max(0.0);
    if v <= 0.04045 {
        v / 12.92
    } else {
        ((v + 0.055) / 1.055).powf(2.4)
    }
}

fn cubic_weights(x: f64) -> [f64; 4] {
    let (x2, x3) = (x * x, x * x * x);
    [
        -0.5 * x + x2 - 0.5 * x3,
        1.0 - 2.5 * x2 + 1.5 * x3,
        0.5 * x + 2.0 * x2 - 1.5 * x3,
        -0.5 * x2 + 0.5 * x3,
    ]
}

/// One layer at a place, by Catmull-Rom's sixteen samples or by four.
fn sampled(
    layers: &Map<Layers>,
    pick: impl Fn(&Layers) -> Rgba,
    at_px: DVec2,
    is_cubic: bool,
) -> Rgba {
    let base = (at_px - 0.5).floor();
    let along = at_px - 0.5 - base;
    let weights = |x: f64| {
        if is_cubic {
            cubic_weights(x)
        } else {
            [0.0, 1.0 - x, x, 0.0]
        }
    };
    let (wx, wy) = (weights(along.x), weights(along.y));
    let mut sum = [0.0; 4];
    for (j, wy) in wy.iter().enumerate() {
        for (i, wx) in wx.iter().enumerate() {
            if wx * wy == 0.0 {
                continue;
            }
            let (x, y) = (base.x as i64 + i as i64 - 1, base.y as i64 + j as i64 - 1);
            let value = pick(&layers.at(x, y));
            for (s, v) in sum.iter_mut().zip(value) {
                *s += wx * wy * v;
            }
        }
    }
    sum.map(|v| v.max(0.0))
}

/// Where a ray's things are seen: endlessly far ones, and by how much that moves per inverse metre.
#[derive(Clone, Copy)]
struct Ray {
    far_px: DVec2,
    step_px_m: DVec2,
}

impl Ray {
    fn at(self, w: f64) -> DVec2 {
        self.far_px + w * self.step_px_m
    }
}

/// Stage "film". Taps lie in the middle of their slots: jitter is the GPU's alone.
fn expose(
    frame: &Frame,
    film: &Film,
    path: &Path,
    layers: &Map<Layers>,
    size: [u32; 2],
) -> Vec<DVec3> {
    let tiles = tiles(layers);
    let is_root = split_reach_px(film, reach_px_m(frame, film, path, size)) == 0;
    let focal_px = f64::from(frame.camera.intrinsics(size).focal_px.y);
    let size_px = DVec2::new(f64::from(size[0]), f64::from(size[1]));
    let margin_px = DVec2::from_array(film.margin_px(size).map(f64::from));
    let exposure_f = film.exposure_f();
    let readout_f = film.readout.direction().as_dvec2() * film.readout_f();
    let (aperture_m, focus_w) = (f64::from(film.aperture_m), 1.0 / f64::from(film.focus_m));
    let ray = |slope: DVec2, f: f64, lens_m: DVec2| {
        let (seen, step) = path.ray(slope, f.clamp(-1.0, 1.0));
        Ray {
            far_px: (seen - lens_m * focus_w) * focal_px + margin_px + 0.5 * size_px,
            step_px_m: (step + lens_m) * focal_px,
        }
    };
    let width = size[0] as usize;
    let pixels = (0..width * size[1] as usize).into_par_iter();
    let light = pixels.map(|i| {
        let at = DVec2::new((i % width) as f64 + 0.5, (i / width) as f64 + 0.5);
        let from_centre = at - 0.5 * size_px;
        let r2 = from_centre.length_squared() / (0.25 * size_px.length_squared());
        let slope = from_centre * (1.0 + f64::from(film.distortion) * r2) / focal_px;
        let row_f = (at / size_px - 0.5).dot(readout_f);
        let middle = ray(slope, row_f, DVec2::ZERO);
        let around = tiles.under(middle.far_px / TILE_PX as f64);
        let (near, far) = (around.near, around.far);
        let first = ray(slope, row_f - 0.5 * exposure_f, DVec2::ZERO);
        let last = ray(slope, row_f + 0.5 * exposure_f, DVec2::ZERO);
        let smear = f64::max(
            (last.at(near) - first.at(near)).length(),
            (last.at(far) - first.at(far)).length(),
        );
        let blur = aperture_m * focal_px * (near - focus_w).abs().max((far - focus_w).abs());
        let taps = if smear.max(blur) > STILL_PX {
            let taps_per_px = f64::from(film.depth.taps_per_px());
            let wanted = ((smear * taps_per_px).ceil() + 1.0).max(TAPS_PER_DISC_PX2 * blur * blur);
            wanted.clamp(f64::from(TAPS_MIN), f64::from(TAPS_MAX)) as u32
        } else {
            1
        };
        let steps = [middle, first, last].map(|ray| ray.step_px_m.length());
        let step_max = steps.into_iter().fold(0.0, f64::max) + 0.5 * aperture_m * focal_px;
        let has_parallax = (near - far) * step_max > PARALLAX_MIN_PX;
        let is_cubic = smear.max(blur) < CUBIC_BELOW_PX;
        let mut ends = [0.5 * (near + far); 2];
        if has_parallax && !around.is_split {
            for _ in 0..2 {
                ends = [
                    layers.under(first.at(ends[0])).w[0],
                    layers.under(last.at(ends[1])).w[0],
                ];
            }
        }
        let mut light = DVec3::ZERO;
        for tap in 0..taps {
            let slot = (f64::from(tap) + 0.5) / f64::from(taps) - 0.5;
            let through = if aperture_m > 0.0 && taps > 1 {
                film.lens_place(tap as usize)
            } else {
                DVec2::ZERO
            };
            let ray = ray(slope, row_f + slot * exposure_f, through);
            let mut w = ends[0] + (ends[1] - ends[0]) * (slot + 0.5);
            if has_parallax && around.is_split {
                w = near;
                for _ in 0..2 {
                    w = f64::min(w, layers.under(ray.at(w)).w[0]);
                }
            }
            let here = if has_parallax && around.is_split {
                layers.under(ray.at(w)).w
            } else {
                [w, w]
            };
            let mut colour = DVec3::ZERO;
            let mut open = 1.0;
            let mut add = |pick: fn(&Layers) -> Rgba, w: f64, open: &mut f64| {
                let [r, g, b, a] = sampled(layers, pick, ray.at(w), is_cubic);
                colour += *open * DVec3::new(r, g, b);
                *open *= 1.0 - a;
            };
            let is_beside = (here[0] - w).abs() * ray.step_px_m.length() > BESIDE_PX;
            if !around.is_split {
                add(|l| l.back, w, &mut open);
            } else if !is_beside {
                add(|l| l.front, w, &mut open);
            }
            if around.is_split && open > OPEN_MIN {
                let behind = layers.under(ray.at(here[1])).w;
                if behind[0] != behind[1] && (behind[0] - here[1]).abs() <= SAME_SHARE * here[1] {
                    add(|l| l.front, behind[0], &mut open);
                }
                if open > OPEN_MIN {
                    add(|l| l.back, behind[1], &mut open);
                }
            }
            let to_light = |v: f64| if is_root { v * v } else { decode(v) };
            light += DVec3::from_array(colour.to_array().map(to_light));
        }
        light / f64::from(taps)
    });
    light.collect()
}
