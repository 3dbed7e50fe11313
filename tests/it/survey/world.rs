//! Generated places whose floors and walls are known: what the survey is measured against.
//!
//! Surfaces are patches of flat splats, jittered as scans are; floaters hang in the air. The same
//! numbers on every run.

use glam::{Mat3, Quat, Vec3};
use splatstage::scene::Splats;
use splatstage::scene::sh::SH_C0;

/// A house of [`World::street`].
pub struct House {
    /// -1 or 1: to which side, on z.
    pub side: f32,
    /// Where it begins and ends, x.
    pub from: f32,
    pub to: f32,
    /// Its front, z.
    pub wall: f32,
    /// What is set back: from and to on x, from and to on y, how deep.
    pub holes: Vec<[f32; 5]>,
}

/// Splats that are added up, and the chance that jitters them.
#[derive(Default)]
pub struct World {
    pub splats: Splats,
    drawn: u64,
}

impl World {
    /// A number in 0..1, another one each time.
    pub fn chance(&mut self) -> f32 {
        // SplitMix64 (Steele, Lea, Flood 2014).
        self.drawn = self.drawn.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.drawn;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 40) as f32 / (1_u64 << 24) as f32
    }

    /// One splat.
    pub fn splat(&mut self, p: Vec3, sigma: Vec3, rotation: Quat, opacity: f32, colour: Vec3) {
        self.splats.means.push(p);
        self.splats.log_scales.push(sigma.map(f32::ln));
        self.splats.rotations.push(rotation);
        self.splats.opacities.push(opacity);
        self.splats.dc.push((colour - Vec3::splat(0.5)) / SH_C0);
    }

    /// A rectangle from `corner` along `u` and `v`, with a splat about every `spacing_m`, off the
    /// surface by `noise_m` at most either way.
    pub fn patch(
        &mut self,
        corner: Vec3,
        u: Vec3,
        v: Vec3,
        [spacing_m, noise_m]: [f32; 2],
        colour: Vec3,
    ) {
        let (nu, nv) = (
            (u.length() / spacing_m).ceil().max(1.0),
            (v.length() / spacing_m).ceil().max(1.0),
        );
        let (along, normal) = (u.normalize(), u.cross(v).normalize());
        let rotation = Quat::from_mat3(&Mat3::from_cols(along, normal.cross(along), normal));
        for i in 0..nu as u32 {
            for j in 0..nv as u32 {
                let (a, b) = (self.chance(), self.chance());
                let off = (2.0 * self.chance() - 1.0) * noise_m;
                let p =
                    corner + u * ((i as f32 + a) / nu) + v * ((j as f32 + b) / nv) + normal * off;
                let sigma = Vec3::new(0.6 * spacing_m, 0.6 * spacing_m, 0.003);
                let shade = 0.9 + 0.1 * self.chance();
                self.splat(p, sigma, rotation, 0.9, colour * shade);
            }
        }
    }

    /// Six faces of a box.
    pub fn block(&mut self, low: Vec3, high: Vec3, grain: [f32; 2], colour: Vec3) {
        let d = high - low;
        let (x, y, z) = (Vec3::X * d.x, Vec3::Y * d.y, Vec3::Z * d.z);
        for (corner, u, v) in [
            (low, x, y),
            (low + z, x, y),
            (low, z, y),
            (low + x, z, y),
            (low, x, z),
            (low + y, x, z),
        ] {
            self.patch(corner, u, v, grain, colour);
        }
    }

    /// Balls of dust in a box: what a scan leaves in the air.
    pub fn floaters(&mut self, low: Vec3, high: Vec3, count: usize, opacity: f32) {
        for _ in 0..count {
            let share = Vec3::new(self.chance(), self.chance(), self.chance());
            let sigma = Vec3::splat(0.01 + 0.03 * self.chance());
            let p = low + (high - low) * share;
            self.splat(p, sigma, Quat::IDENTITY, opacity, Vec3::splat(0.5));
        }
    }

    /// A square of 60 by 60 m under the open sky that falls 2 degrees towards +x, with houses round it, lamp
    /// posts, benches and a fountain, and dust over and under the ground. Its ground is [`plaza_floor`].
    pub fn plaza() -> Self {
        let mut world = Self::default();
        let (coarse, grain) = ([0.13, 0.01], [0.05, 0.005]);
        let (stone, house, iron) = (
            Vec3::new(0.5, 0.48, 0.45),
            Vec3::new(0.8, 0.7, 0.5),
            Vec3::splat(0.15),
        );
        let (corner, x, z) = (Vec3::new(-30.0, 0.0, -30.0), Vec3::X, Vec3::Z);
        let fall = Vec3::new(60.0, plaza_floor(60.0), 0.0);
        let low = corner + Vec3::Y * plaza_floor(-30.0);
        world.patch(low, fall, z * 60.0, coarse, stone);
        for (from, along) in [
            (corner, x * 60.0),
            (corner, z * 60.0),
            (corner + x * 60.0, z * 60.0),
            (corner + z * 60.0, x * 60.0),
        ] {
            let foot = from - Vec3::Y * 1.5;
            world.patch(foot, along, Vec3::Y * 11.0, [0.2, 0.01], house);
        }
        for i in 0..6 {
            for j in 0..4 {
                let p = Vec3::new(-25.0 + 10.0 * i as f32, 0.0, -24.0 + 16.0 * j as f32);
                let foot = p + Vec3::Y * plaza_floor(p.x);
                let half = Vec3::new(0.08, 0.0, 0.08);
                world.block(foot - half, foot + half + Vec3::Y * 4.0, grain, iron);
                let bench = foot + Vec3::new(1.5, 0.0, 0.5);
                let high = bench + Vec3::new(1.8, 0.45, 0.5);
                world.block(bench, high, grain, iron);
            }
        }
        let fountain = Vec3::new(-2.5, plaza_floor(0.0) - 0.2, -2.5);
        let high = fountain + Vec3::new(5.0, 1.1, 5.0);
        world.block(fountain, high, [0.1, 0.01], stone);
        let side = Vec3::new(29.0, 0.0, 29.0);
        world.floaters(-side + Vec3::Y * 3.0, side + Vec3::Y * 30.0, 3000, 0.5);
        world.floaters(-side - Vec3::Y * 9.0, side - Vec3::Y * 2.0, 1500, 0.5);
        world.floaters(-side, side + Vec3::Y * 2.5, 1500, 0.1);
        world
    }

    /// A lane of 1.6 m between walls of 4 m without a roof, 16 m long, up twelve stairs in its middle: far more wall than
    /// ground. It runs to +x, and its ground is [`stairs_floor`].
    pub fn stairs() -> Self {
        let mut world = Self::default();
        let (stone, plaster) = (Vec3::new(0.5, 0.48, 0.45), Vec3::new(0.8, 0.75, 0.65));
        let (y, z) = (Vec3::Y, Vec3::Z);
        let grain = [0.05, 0.004];
        let mut tread = |from: f32, to: f32| {
            let height = stairs_floor(0.5 * (from + to));
            world.patch(
                Vec3::new(from, height, 0.0),
                Vec3::X * (to - from),
                z * 1.6,
                grain,
                stone,
            );
            // What leads up to it.
            let before = stairs_floor(from - 0.05);
            if height > before {
                let foot = Vec3::new(from, before, 0.0);
                world.patch(foot, z * 1.6, y * (height - before), grain, stone);
            }
        };
        tread(0.0, 6.0);
        for k in 0..12 {
            tread(6.0 + 0.3 * k as f32, 6.3 + 0.3 * k as f32);
        }
        tread(9.6, 16.0);
        for side in [0.0, 1.6] {
            let foot = Vec3::new(0.0, -0.2, side);
            world.patch(foot, Vec3::X * 16.0, y * 6.2, grain, plaster);
        }
        world.patch(Vec3::new(16.0, 1.6, 0.0), z * 1.6, y * 3.0, grain, plaster);
        world
    }

    /// An open place of `length_m` by `width_m` (x and z), level, with houses of 12 m round it.
    pub fn place(length_m: f32, width_m: f32) -> Self {
        let mut world = Self::default();
        let (stone, house) = (Vec3::new(0.5, 0.48, 0.45), Vec3::new(0.8, 0.7, 0.5));
        let (x, z) = (Vec3::X * length_m, Vec3::Z * width_m);
        world.patch(Vec3::ZERO, x, z, [0.3, 0.01], stone);
        let foot = Vec3::NEG_Y * 0.5;
        for (corner, along) in [(foot, x), (foot, z), (foot + x, z), (foot + z, x)] {
            world.patch(corner, along, Vec3::Y * 12.5, [0.3, 0.01], house);
        }
        world
    }

    /// As many level floors one over the other, each of `edge_m` squared and `apart_m` from the next: far more surface
    /// than any building has.
    pub fn storeys(count: usize, edge_m: f32, apart_m: f32) -> Self {
        let mut world = Self::default();
        for k in 0..count {
            let corner = Vec3::Y * apart_m * k as f32;
            let (x, z) = (Vec3::X * edge_m, Vec3::Z * edge_m);
            world.patch(corner, x, z, [0.5, 0.01], Vec3::splat(0.5));
        }
        world
    }

    /// A street along +x between rows of houses that step in and out, with doors and windows set back in them,
    /// lanes between some, pipes and pots before them. `width_m` is between the rows; the same numbers
    /// for the same `seed`.
    pub fn street(seed: u64, width_m: f32) -> (Self, Vec<House>) {
        let mut world = Self {
            drawn: seed,
            ..Self::default()
        };
        let grain = [0.05, 0.004];
        let (stone, paint) = (Vec3::new(0.5, 0.48, 0.45), Vec3::new(0.7, 0.6, 0.5));
        let (x, y, z) = (Vec3::X, Vec3::Y, Vec3::Z);
        let floor = Vec3::new(-1.0, 0.0, -0.5 * width_m - 6.0);
        world.patch(floor, x * 32.0, z * (width_m + 12.0), grain, stone);
        let mut houses = Vec::new();
        for side in [-1.0_f32, 1.0] {
            let mut from = 0.0;
            while from < 24.0 {
                let to = from + 4.0 + 4.0 * world.chance();
                let near = 0.5 * width_m + 0.15 * world.chance();
                let mut house = House {
                    side,
                    from,
                    to,
                    wall: side * near,
                    holes: Vec::new(),
                };
                // A door and a window, or a wide window.
                let deep = 0.06 + 0.2 * world.chance();
                let middle = 0.5 * (from + to);
                if world.chance() < 0.4 {
                    let half = 0.8 + 0.6 * world.chance();
                    let low = 0.5 + 0.3 * world.chance();
                    house
                        .holes
                        .push([middle - half, middle + half, low, 2.5, deep]);
                } else {
                    house.holes.push([from + 0.6, from + 1.6, 0.0, 2.1, deep]);
                    house.holes.push([to - 1.9, to - 0.7, 0.9, 2.3, deep]);
                }
                world.house(&house, grain, paint);
                let foot = Vec3::new(to - 0.35, 0.3, house.wall - side * 0.12);
                let half = Vec3::new(0.05, 0.0, 0.05);
                world.block(foot - half, foot + half + y * 4.0, grain, stone);
                let pot = Vec3::new(from + 2.2, 0.0, house.wall - side * 0.35);
                let half = Vec3::new(0.2, 0.0, 0.15);
                world.block(pot - half, pot + half + y * 0.7, grain, stone);
                let is_lane = world.chance() < 0.4;
                from = to
                    + if is_lane {
                        1.4 + 1.0 * world.chance()
                    } else {
                        0.0
                    };
                // The sides of the house, into the lane.
                for at in [house.from, house.to] {
                    let corner = Vec3::new(at, 0.0, house.wall);
                    world.patch(corner, z * (side * 5.0), y * 5.0, grain, paint);
                }
                houses.push(house);
            }
        }
        (world, houses)
    }

    /// The front of a house round its holes, and what closes them.
    fn house(&mut self, house: &House, grain: [f32; 2], colour: Vec3) {
        let (x, y) = (Vec3::X, Vec3::Y);
        let mut edges = vec![house.from, house.to];
        edges.extend(house.holes.iter().flat_map(|hole| [hole[0], hole[1]]));
        edges.sort_by(f32::total_cmp);
        for pair in edges.windows(2) {
            let along = x * (pair[1] - pair[0]);
            let middle = 0.5 * (pair[0] + pair[1]);
            let mut low = 0.0;
            for [from, to, bottom, top, deep] in &house.holes {
                if (*from..*to).contains(&middle) {
                    let foot = Vec3::new(pair[0], 0.0, house.wall);
                    if *bottom > 0.0 {
                        self.patch(foot, along, y * *bottom, grain, colour);
                    }
                    let back = foot + Vec3::new(0.0, *bottom, house.side * deep);
                    self.patch(back, along, y * (top - bottom), grain, 0.4 * colour);
                    low = *top;
                }
            }
            let foot = Vec3::new(pair[0], low, house.wall);
            self.patch(foot, along, y * (5.0 - low), grain, colour);
        }
    }

    /// Two rooms and a passage between them with a step in it, holes in the floor, a ceiling, a chest, and
    /// dust in the air. Its floor is [`passage_floor`]; the sides of the passage are at z = 1.3 and 2.7.
    pub fn passage() -> Self {
        let mut world = Self::default();
        let grain = [0.03, 0.004];
        let (grey, white, red) = (
            Vec3::new(0.45, 0.4, 0.35),
            Vec3::splat(0.85),
            Vec3::new(0.8, 0.15, 0.1),
        );
        let (x, y, z) = (Vec3::X, Vec3::Y, Vec3::Z);
        // Floors and ceilings of the rooms and of the passage before and behind the step.
        for (x0, x1, z0, z1, floor) in [
            (0.0, 5.0, 0.0, 4.0, 0.1),
            (5.0, 7.0, 1.3, 2.7, 0.1),
            (7.0, 9.0, 1.3, 2.7, 0.25),
            (9.0, 14.0, 0.0, 4.0, 0.25),
        ] {
            let (along, across) = (x * (x1 - x0), z * (z1 - z0));
            world.patch(Vec3::new(x0, floor, z0), along, across, grain, grey);
            world.patch(Vec3::new(x0, 2.7, z0), along, across, grain, white);
        }
        world.patch(Vec3::new(7.0, 0.1, 1.3), y * 0.15, z * 1.4, grain, grey);
        let up = y * 2.7;
        for (corner, along) in [
            ((0.0, 0.0), x * 5.0),
            ((0.0, 4.0), x * 5.0),
            ((0.0, 0.0), z * 4.0),
            ((5.0, 0.0), z * 1.3),
            ((5.0, 2.7), z * 1.3),
            ((5.0, 1.3), x * 4.0),
            ((5.0, 2.7), x * 4.0),
            ((9.0, 0.0), z * 1.3),
            ((9.0, 2.7), z * 1.3),
            ((9.0, 0.0), x * 5.0),
            ((9.0, 4.0), x * 5.0),
            ((14.0, 0.0), z * 4.0),
        ] {
            let corner = Vec3::new(corner.0, 0.0, corner.1);
            world.patch(corner, along, up, grain, white);
        }
        world.block(
            Vec3::new(12.2, 0.25, 0.2),
            Vec3::new(13.8, 0.95, 1.0),
            grain,
            red,
        );
        // Three holes.
        for (hx, hz) in [(2.5, 2.0), (6.0, 2.0), (11.0, 2.2)] {
            let keep: Vec<bool> = world
                .splats
                .means
                .iter()
                .map(|p| p.y > 0.4 || (p.x - hx).hypot(p.z - hz) > 0.22)
                .collect();
            world.keep(&keep);
        }
        let (low, high) = (Vec3::new(0.2, 0.3, 0.2), Vec3::new(13.8, 2.5, 3.8));
        world.floaters(low, high, 400, 0.12);
        world
    }

    fn keep(&mut self, keep: &[bool]) {
        let kept = |i: usize| keep[i];
        let s = &mut self.splats;
        let mut i = 0;
        s.means.retain(|_| {
            i += 1;
            kept(i - 1)
        });
        i = 0;
        s.log_scales.retain(|_| {
            i += 1;
            kept(i - 1)
        });
        i = 0;
        s.rotations.retain(|_| {
            i += 1;
            kept(i - 1)
        });
        i = 0;
        s.opacities.retain(|_| {
            i += 1;
            kept(i - 1)
        });
        i = 0;
        s.dc.retain(|_| {
            i += 1;
            kept(i - 1)
        });
    }
}

/// Height of the floor of [`World::passage`] by x.
pub fn passage_floor(x: f32) -> f32 {
    if x < 7.0 { 0.1 } else { 0.25 }
}

/// Height of the ground of [`World::stairs`], metres.
pub fn stairs_floor(x: f32) -> f32 {
    0.16 * ((x - 5.7) / 0.3 + 1e-3).floor().clamp(0.0, 12.0)
}

/// Height of the ground of [`World::plaza`] at a place, metres.
pub fn plaza_floor(x: f32) -> f32 {
    // 2 degrees.
    -0.034_921 * x
}
