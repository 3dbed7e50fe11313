//! Surfaces made of flat splats: a grid of points, scattered over and painted.
//!
//! A sheet is the surface that runs straight between the points of a grid (a wall is a grid of four
//! points, a strip of ground or a pipe of more). Splats lie in rows on it, jittered, as wide as their
//! distance, so that any count closes it; their centres lie on the surface exactly unless a depth is
//! asked for. Colour is a picture times light times tint; what shines is a lobe of spherical harmonics
//! for each light. It checks nothing that a script says (`script` does) and knows no scene.
//!
//! The same sheet and seed give the same splats, however the work is shared out.

use super::Splats;
use super::sh::{self, SH_C0};
use crate::motion::noise::mix;
use glam::{Mat3, Quat, Vec2, Vec3};
use rayon::prelude::*;
use std::sync::Arc;

/// Splats that a worker makes at a time.
const SPLATS_PER_TASK: usize = 8192;
/// A picture is averaged over a splat with at most so many samples each way (`paint` lists four).
const SAMPLES_MAX: f32 = 4.0;
/// Brightest colour of a splat: as far as it may overshoot white.
const COLOUR_MAX: f32 = 4.0;
/// The band of each basis function but the first.
const BAND: [usize; sh::BASIS_MAX - 1] = [1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3];
/// Share by which each second row is shifted along, as bricks are.
const SHIFT: f32 = 0.25;

/// A picture, row 0 at v = 0: display-space red, green, blue and how much of the gloss shows.
#[derive(Debug)]
pub struct Texture {
    /// Row by row.
    pub texels: Vec<[u8; 4]>,
    /// Texels in a row.
    pub columns: usize,
}

/// Which part of a picture or of a light map a sheet shows: coordinates at u, v = 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// At the first point of the grid.
    pub from: Vec2,
    /// At the last point.
    pub to: Vec2,
}

/// Light that falls on a sheet, as factors of the display-space colour.
#[derive(Clone, Debug)]
pub struct Light {
    /// Row by row.
    pub values: Vec<Vec3>,
    /// Values in a row, 1 or more.
    pub columns: usize,
    /// Part shown: 0 is the first value, 1 the last.
    pub window: Window,
}

/// What shines from one direction: brightest where the mirrored view looks at the light.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gloss {
    /// Towards the light, unit length.
    pub direction: Vec3,
    /// Display-space colour that it adds at its brightest.
    pub colour: Vec3,
    /// How narrow the lobe is: at 1 nearly a hemisphere, at 6 as narrow as degree 3 can show.
    pub sharpness: f32,
}

/// A surface to be made of splats.
#[derive(Clone, Debug)]
pub struct Sheet {
    /// The grid, row by row, metres. Rows run along u, columns along v.
    pub points: Vec<Vec3>,
    /// Points in a row, 2 or more.
    pub columns: usize,
    /// Splats.
    pub count: usize,
    /// Picture, and which part of it; repeated beyond 0 to 1.
    pub texture: Option<(Arc<Texture>, Window)>,
    /// Light.
    pub light: Option<Light>,
    /// Factor of the colour.
    pub tint: Vec3,
    /// Width of a splat's cell over its height.
    pub stretch: f32,
    /// Share of a cell that a splat may stray by.
    pub jitter: f32,
    /// Standard deviation over the distance to the neighbour.
    pub overlap: f32,
    /// Standard deviation along the normal, metres.
    pub thickness_m: f32,
    /// 0 to 1.
    pub opacity: f32,
    /// Share by which one splat may be brighter or darker than the picture.
    pub variation: f32,
    /// Splats lie up to so far to either side of the surface, metres.
    pub depth_m: f32,
    /// Splats are turned out of the surface by up to this.
    pub tilt_rad: f32,
    /// Lights that are mirrored in it; needs splats of degree 1 or more.
    pub gloss: Vec<Gloss>,
    /// Of jitter, variation, depth and tilt.
    pub seed: u64,
}

impl Sheet {
    /// Size of the surface along u and v, metres: mean lengths of its rows and columns.
    #[must_use]
    pub fn size_m(&self) -> Vec2 {
        let (along, up) = self.lengths();
        Vec2::new(along.iter().sum(), up.iter().sum())
    }

    fn at(&self, column: usize, row: usize) -> Vec3 {
        self.points[row * self.columns + column]
    }

    fn rows(&self) -> usize {
        self.points.len() / self.columns
    }

    /// Mean lengths of the grid's cells: of each column along u, of each row along v.
    fn lengths(&self) -> (Vec<f32>, Vec<f32>) {
        let (columns, rows) = (self.columns, self.rows());
        let along = (1..columns)
            .map(|i| {
                let sum: f32 = (0..rows)
                    .map(|j| self.at(i, j).distance(self.at(i - 1, j)))
                    .sum();
                sum / rows as f32
            })
            .collect();
        let up = (1..rows)
            .map(|j| {
                let sum: f32 = (0..columns)
                    .map(|i| self.at(i, j).distance(self.at(i, j - 1)))
                    .sum();
                sum / columns as f32
            })
            .collect();
        (along, up)
    }
}

/// Adds the splats of all sheets, in order, with spherical harmonics of the degree of `splats`.
pub fn append(splats: &mut Splats, sheets: &[Sheet]) {
    let first = splats.len();
    let total = first + sheets.iter().map(|s| s.count).sum::<usize>();
    splats.means.resize(total, Vec3::ZERO);
    splats.log_scales.resize(total, Vec3::ZERO);
    splats.rotations.resize(total, Quat::IDENTITY);
    splats.opacities.resize(total, 0.0);
    splats.dc.resize(total, Vec3::ZERO);
    let stride = splats.sh_stride();
    splats.sh_rest.resize(total * stride, 0.0);

    let plans: Vec<Plan<'_>> = sheets.iter().map(Plan::new).collect();
    let mut rest = Rows {
        means: &mut splats.means[first..],
        log_scales: &mut splats.log_scales[first..],
        rotations: &mut splats.rotations[first..],
        opacities: &mut splats.opacities[first..],
        dc: &mut splats.dc[first..],
        sh_rest: &mut splats.sh_rest[first * stride..],
        stride,
    };
    let mut tasks = Vec::new();
    for plan in &plans {
        for start in (0..plan.sheet.count).step_by(SPLATS_PER_TASK) {
            let count = SPLATS_PER_TASK.min(plan.sheet.count - start);
            let (part, remaining) = rest.split(count);
            tasks.push((plan, start, part));
            rest = remaining;
        }
    }
    tasks
        .into_par_iter()
        .for_each(|(plan, start, mut part)| plan.fill(start, &mut part));
}

/// A run of rows of [`Splats`] to be written.
struct Rows<'s> {
    means: &'s mut [Vec3],
    log_scales: &'s mut [Vec3],
    rotations: &'s mut [Quat],
    opacities: &'s mut [f32],
    dc: &'s mut [Vec3],
    sh_rest: &'s mut [f32],
    stride: usize,
}

impl<'s> Rows<'s> {
    fn split(self, count: usize) -> (Self, Self) {
        let means = self.means.split_at_mut(count);
        let log_scales = self.log_scales.split_at_mut(count);
        let rotations = self.rotations.split_at_mut(count);
        let opacities = self.opacities.split_at_mut(count);
        let dc = self.dc.split_at_mut(count);
        let sh_rest = self.sh_rest.split_at_mut(count * self.stride);
        let stride = self.stride;
        (
            Self {
                means: means.0,
                log_scales: log_scales.0,
                rotations: rotations.0,
                opacities: opacities.0,
                dc: dc.0,
                sh_rest: sh_rest.0,
                stride,
            },
            Self {
                means: means.1,
                log_scales: log_scales.1,
                rotations: rotations.1,
                opacities: opacities.1,
                dc: dc.1,
                sh_rest: sh_rest.1,
                stride,
            },
        )
    }
}

/// A length divided into pieces, asked by the share of the whole.
struct Ruler {
    /// Share at which each piece begins, and 1.
    starts: Vec<f32>,
}

impl Ruler {
    fn new(lengths: &[f32]) -> Self {
        let total: f32 = lengths.iter().sum();
        let mut sum = 0.0;
        let mut starts = vec![0.0];
        for length in lengths {
            sum += length;
            starts.push(sum / total);
        }
        Self { starts }
    }

    /// The piece at `share`, how far along it, and the share that it takes of the whole.
    fn at(&self, share: f32) -> (usize, f32, f32) {
        let last = self.starts.len() - 2;
        let piece = self.starts[1..=last].partition_point(|start| *start <= share);
        let width = self.starts[piece + 1] - self.starts[piece];
        let along = if width > 0.0 {
            (share - self.starts[piece]) / width
        } else {
            0.5
        };
        (piece, along, width)
    }
}

/// Where on its sheet each splat lies.
struct Plan<'s> {
    sheet: &'s Sheet,
    along: Ruler,
    up: Ruler,
    /// Number of the first splat of each row, and the count.
    starts: Vec<usize>,
    /// Bands of each lobe, without its direction.
    lobes: Vec<[f32; 4]>,
}

/// A place on a sheet with the vectors to one cell further along u and v.
struct Spot {
    place: Vec3,
    along: Vec3,
    up: Vec3,
}

impl<'s> Plan<'s> {
    fn new(sheet: &'s Sheet) -> Self {
        let (along, up) = sheet.lengths();
        let size = sheet.size_m();
        let wanted = (sheet.count as f32 * sheet.stretch * size.y / size.x).sqrt();
        let rows = (wanted.round() as usize).clamp(1, sheet.count.max(1));
        let mut plan = Self {
            sheet,
            along: Ruler::new(&along),
            up: Ruler::new(&up),
            starts: Vec::with_capacity(rows + 1),
            lobes: sheet.gloss.iter().map(|g| sh::lobe(g.sharpness)).collect(),
        };
        // A row gets splats by its length, so that a cone is not crowded at its tip.
        let lengths: Vec<f64> = (0..rows)
            .map(|row| f64::from(plan.row_length((row as f32 + 0.5) / rows as f32)))
            .collect();
        let total: f64 = lengths.iter().sum();
        let mut sum = 0.0;
        plan.starts.push(0);
        for length in lengths {
            sum += length;
            plan.starts
                .push((sheet.count as f64 * sum / total).round() as usize);
        }
        plan
    }

    /// Length of the row at the share `v` of the height.
    fn row_length(&self, v: f32) -> f32 {
        let sheet = self.sheet;
        let (j, f, _) = self.up.at(v);
        let at = |i| sheet.at(i, j).lerp(sheet.at(i, j + 1), f);
        (1..sheet.columns)
            .map(|i| at(i - 1).distance(at(i)))
            .sum::<f32>()
            .max(1e-9)
    }

    fn spot(&self, u: f32, v: f32, per_row: f32, rows: f32) -> Spot {
        let sheet = self.sheet;
        let (i, fu, wide) = self.along.at(u);
        let (j, fv, high) = self.up.at(v);
        let (a, b) = (sheet.at(i, j), sheet.at(i + 1, j));
        let (c, d) = (sheet.at(i, j + 1), sheet.at(i + 1, j + 1));
        let (low, top) = (a.lerp(b, fu), c.lerp(d, fu));
        Spot {
            place: low.lerp(top, fv),
            along: (b - a).lerp(d - c, fv) / (wide.max(1e-6) * per_row),
            up: (top - low) / (high.max(1e-6) * rows),
        }
    }

    /// Writes the splats from number `start` on.
    fn fill(&self, start: usize, out: &mut Rows<'_>) {
        let sheet = self.sheet;
        let rows = (self.starts.len() - 1) as f32;
        let mut row = self.starts.partition_point(|first| *first <= start) - 1;
        for k in 0..out.means.len() {
            let number = start + k;
            while number >= self.starts[row + 1] {
                row += 1;
            }
            let per_row = (self.starts[row + 1] - self.starts[row]) as f32;
            let mut chance = Chance(mix(sheet.seed ^ mix(number as u64)));
            let place = (number - self.starts[row]) as f32 + 0.5;
            // Straight towards both ends of a row, or the edge of the sheet would look like a zip.
            let loose = (0.5 * (place - 0.5).min(per_row - place - 0.5)).min(1.0);
            let shift = if row % 2 == 0 { SHIFT } else { -SHIFT };
            let stray = loose * (shift + sheet.jitter * chance.signed());
            let u = (place + stray) / per_row;
            let v = (row as f32 + 0.5 + 0.5 * sheet.jitter * chance.signed()) / rows;
            let (u, v) = (u.clamp(0.0, 1.0), v.clamp(0.0, 1.0));
            let spot = self.spot(u, v, per_row, rows);

            let (wide, high) = (spot.along.length(), spot.up.length());
            let along = spot.along.try_normalize().unwrap_or(Vec3::X);
            let normal = along
                .cross(spot.up)
                .try_normalize()
                .unwrap_or_else(|| along.any_orthonormal_vector());
            let up = normal.cross(along);
            let lift = sheet.depth_m * chance.signed();
            let mut turn = Quat::from_mat3(&Mat3::from_cols(along, up, normal));
            if sheet.tilt_rad > 0.0 {
                turn = turn
                    * Quat::from_rotation_x(sheet.tilt_rad * chance.signed())
                    * Quat::from_rotation_y(sheet.tilt_rad * chance.signed());
            }
            out.means[k] = spot.place + normal * lift;
            out.rotations[k] = turn.normalize();
            out.log_scales[k] = Vec3::new(
                (sheet.overlap * wide).max(sheet.thickness_m),
                (sheet.overlap * high).max(sheet.thickness_m),
                sheet.thickness_m,
            )
            .map(f32::ln);
            out.opacities[k] = sheet.opacity;

            let (paint, gloss) = sheet.paint(u, v, Vec2::new(1.0 / per_row, 1.0 / rows));
            let bright = 1.0 + sheet.variation * chance.signed();
            let colour = (paint * sheet.tint * bright * sheet.light_at(u, v))
                .clamp(Vec3::ZERO, Vec3::splat(COLOUR_MAX));
            out.dc[k] = (colour - Vec3::splat(0.5)) / SH_C0;
            let facing = turn * Vec3::Z;
            let rest = &mut out.sh_rest[k * out.stride..(k + 1) * out.stride];
            for (lobe, bands) in sheet.gloss.iter().zip(&self.lobes) {
                // A view that is mirrored in the surface meets the light where the view itself
                // meets the mirrored light.
                let mirrored = lobe.direction - 2.0 * lobe.direction.dot(facing) * facing;
                let strength = lobe.colour * gloss;
                let basis = sh::basis(mirrored);
                out.dc[k] += strength * (bands[0] * basis[0]);
                for (sums, (band, y)) in rest.chunks_exact_mut(3).zip(BAND.iter().zip(&basis[1..]))
                {
                    let added = strength * (bands[*band] * y);
                    sums[0] += added.x;
                    sums[1] += added.y;
                    sums[2] += added.z;
                }
            }
        }
    }
}

impl Sheet {
    /// Colour and gloss of the picture round u, v, averaged over a cell of the given size.
    fn paint(&self, u: f32, v: f32, cell: Vec2) -> (Vec3, f32) {
        let Some((texture, window)) = &self.texture else {
            return (Vec3::ONE, 1.0);
        };
        let size = Vec2::new(
            texture.columns as f32,
            (texture.texels.len() / texture.columns) as f32,
        );
        let span = window.to - window.from;
        let middle = (window.from + span * Vec2::new(u, v)) * size;
        let reach = (span * cell * size).abs();
        let samples = reach.ceil().clamp(Vec2::ONE, Vec2::splat(SAMPLES_MAX));
        if samples == Vec2::ONE {
            let [r, g, b, a] = texture.at(middle).map(|channel| channel / 255.0);
            return (Vec3::new(r, g, b), a);
        }
        // Texels from the lower left one of the cell on, each taken as it is.
        let step = reach / samples;
        let low = middle - 0.5 * (reach - step);
        let columns = [
            low.x,
            low.x + step.x,
            low.x + 2.0 * step.x,
            low.x + 3.0 * step.x,
        ]
        .map(|x| texture.column(x));
        let mut sum = [0.0; 4];
        for j in 0..samples.y as usize {
            let row = texture.row(low.y + j as f32 * step.y);
            for column in &columns[..samples.x as usize] {
                let texel = texture.texels[row + column];
                for (total, channel) in sum.iter_mut().zip(texel) {
                    *total += f32::from(channel);
                }
            }
        }
        let [r, g, b, a] = sum.map(|total| total / (255.0 * samples.x * samples.y));
        (Vec3::new(r, g, b), a)
    }

    /// The light at u, v.
    fn light_at(&self, u: f32, v: f32) -> Vec3 {
        let Some(light) = &self.light else {
            return Vec3::ONE;
        };
        let rows = light.values.len() / light.columns;
        let window = light.window;
        let at = window.from + (window.to - window.from) * Vec2::new(u, v);
        let last = Vec2::new((light.columns - 1) as f32, (rows - 1) as f32);
        let at = (at * last).clamp(Vec2::ZERO, last);
        let low = at.floor();
        let f = at - low;
        let (x, y) = (low.x as usize, low.y as usize);
        let (x1, y1) = ((x + 1).min(light.columns - 1), (y + 1).min(rows - 1));
        let value = |x: usize, y: usize| light.values[y * light.columns + x];
        let bottom = value(x, y).lerp(value(x1, y), f.x);
        bottom.lerp(value(x, y1).lerp(value(x1, y1), f.x), f.y)
    }
}

impl Texture {
    /// The column at a place in texels, repeated.
    fn column(&self, x: f32) -> usize {
        (x.floor() as i64).rem_euclid(self.columns as i64) as usize
    }

    /// Number of the first texel of the row at a place in texels, repeated.
    fn row(&self, y: f32) -> usize {
        let rows = self.texels.len() / self.columns;
        (y.floor() as i64).rem_euclid(rows as i64) as usize * self.columns
    }

    /// The colour at a place in texels, blended between the four nearest centres, repeated.
    fn at(&self, place: Vec2) -> [f32; 4] {
        let (columns, rows) = (self.columns, self.texels.len() / self.columns);
        let place = place - 0.5;
        let low = place.floor();
        let f = place - low;
        let x = (low.x as i64).rem_euclid(columns as i64) as usize;
        let y = (low.y as i64).rem_euclid(rows as i64) as usize;
        let (x1, y1) = ((x + 1) % columns, (y + 1) % rows);
        let [a, b, c, d] =
            [(x, y), (x1, y), (x, y1), (x1, y1)].map(|(x, y)| self.texels[y * columns + x]);
        std::array::from_fn(|k| {
            let [a, b, c, d] = [a[k], b[k], c[k], d[k]].map(f32::from);
            let (bottom, top) = (a + (b - a) * f.x, c + (d - c) * f.x);
            bottom + (top - bottom) * f.y
        })
    }
}

/// The random numbers of one splat.
struct Chance(u64);

impl Chance {
    /// -1 to 1.
    fn signed(&mut self) -> f32 {
        self.0 = mix(self.0);
        // The upper 24 bits fill an f32 exactly.
        (self.0 >> 40) as f32 / (1_u32 << 23) as f32 - 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sheet(points: Vec<Vec3>, columns: usize, count: usize) -> Sheet {
        Sheet {
            points,
            columns,
            count,
            texture: None,
            light: None,
            tint: Vec3::splat(0.5),
            stretch: 1.0,
            jitter: 0.3,
            overlap: 0.6,
            thickness_m: 0.002,
            opacity: 0.9,
            variation: 0.0,
            depth_m: 0.0,
            tilt_rad: 0.0,
            gloss: Vec::new(),
            seed: 7,
        }
    }

    fn made(sheet: &Sheet, degree: u8) -> Splats {
        let mut splats = Splats {
            sh_degree: degree,
            ..Splats::default()
        };
        append(&mut splats, std::slice::from_ref(sheet));
        splats.check_lengths().unwrap();
        splats
    }

    /// A ramp of two by three metres.
    fn ramp() -> Vec<Vec3> {
        let at = |x, z| Vec3::new(x, 0.5 * z, z);
        vec![at(0.0, 0.0), at(2.0, 0.0), at(0.0, 3.0), at(2.0, 3.0)]
    }

    #[test]
    fn splats_fill_the_surface_evenly_and_lie_on_it() {
        let splats = made(&sheet(ramp(), 2, 6007), 0);
        assert_eq!(splats.len(), 6007);
        let mut cells = [0_usize; 24];
        for p in &splats.means {
            assert!((p.y - 0.5 * p.z).abs() < 1e-5, "{p}");
            assert!((0.0..=2.0).contains(&p.x) && (0.0..=3.0).contains(&p.z));
            cells[(p.x * 2.0).min(3.0) as usize * 6 + (p.z * 2.0).min(5.0) as usize] += 1;
        }
        assert!(cells.iter().all(|n| (200..300).contains(n)), "{cells:?}");
        // The thin axis is the normal.
        let normal = splats.rotations[0] * Vec3::Z;
        let wanted = Vec3::new(0.0, 2.0, -1.0).normalize();
        assert!(normal.dot(wanted).abs() > 0.999_9, "{normal}");
    }

    #[test]
    fn a_cone_is_not_crowded_at_its_tip() {
        let ring = |radius: f32, y: f32| {
            (0..=12).map(move |i| {
                let a = i as f32 * std::f32::consts::TAU / 12.0;
                Vec3::new(radius * a.cos(), y, radius * a.sin())
            })
        };
        let points = ring(1.0, 0.0).chain(ring(0.0, 2.0)).collect();
        let splats = made(&sheet(points, 13, 4000), 0);
        let upper = splats.means.iter().filter(|p| p.y > 1.0).count();
        // A quarter of the surface.
        assert!((900..1100).contains(&upper), "{upper}");
        assert!(splats.log_scales.iter().all(|s| s.is_finite()));
    }

    #[test]
    fn a_picture_is_repeated_and_lit() {
        let texture = Texture {
            texels: vec![[255, 0, 0, 255], [0, 255, 0, 0]],
            columns: 2,
        };
        let mut painted = sheet(ramp(), 2, 4000);
        painted.tint = Vec3::ONE;
        painted.texture = Some((
            Arc::new(texture),
            Window {
                from: Vec2::ZERO,
                to: Vec2::new(2.0, 1.0),
            },
        ));
        painted.light = Some(Light {
            values: vec![Vec3::ONE, Vec3::ONE, Vec3::splat(0.5), Vec3::splat(0.5)],
            columns: 2,
            window: Window {
                from: Vec2::ZERO,
                to: Vec2::ONE,
            },
        });
        let splats = made(&painted, 0);
        for (p, dc) in splats.means.iter().zip(&splats.dc) {
            let colour = Vec3::splat(0.5) + *dc * SH_C0;
            let lit = 1.0 - p.z / 6.0;
            // Texel centres at 0.25, 0.75, ... metres.
            if ((p.x % 1.0) - 0.25).abs() < 0.03 {
                assert!(
                    (colour.x - lit).abs() < 0.1 && colour.y < 0.1,
                    "{p} {colour}"
                );
            }
        }
    }

    #[test]
    fn gloss_is_brightest_where_the_view_mirrors_the_light() {
        let mut shiny = sheet(ramp(), 2, 16);
        let light = Vec3::new(0.3, 0.8, -0.5).normalize();
        shiny.gloss = vec![Gloss {
            direction: light,
            colour: Vec3::new(0.4, 0.2, 0.0),
            sharpness: 5.0,
        }];
        let splats = made(&shiny, 3);
        let normal = splats.rotations[3] * Vec3::Z;
        let along = |d: Vec3| sh::colour(splats.dc[3], splats.sh_rest_of(3), d);
        let mirror = light - 2.0 * light.dot(normal) * normal;
        let added = along(mirror) - Vec3::splat(0.5);
        assert!(
            (added - Vec3::new(0.4, 0.2, 0.0)).length() < 1e-3,
            "{added}"
        );
        assert!((along(-mirror).x - 0.5).abs() < 0.03, "{}", along(-mirror));
    }
}
