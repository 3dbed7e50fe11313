//! Rooms of a floor: basins of free space between narrow passages.
//!
//! Spots join from the roomiest to the tightest. Two basins that meet where there is much less room
//! than in the middle of either are two rooms with a door between them; others become one. This is a
//! watershed with persistence (Edelsbrunner, Letscher, Zomorodian 2002). It plans no way.

use super::floor::Floor;

/// A basin becomes a room of its own where its middle has this many times the room of the way in.
const NECK: f32 = 1.6;
/// Least room in the middle of a room, metres: less is a passage.
const ROOM_M_MIN: f32 = 0.55;
/// Least floor of a room, m².
const AREA_M2_MIN: f32 = 1.5;

/// One room.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Room {
    /// Its roomiest spot.
    pub middle: u32,
    /// m².
    pub area_m2: f32,
}

/// The rooms of a floor.
#[derive(Debug)]
pub struct Rooms {
    /// Largest first.
    pub rooms: Vec<Room>,
    /// The room of each spot, by number; `u32::MAX` for what is too tight to belong to one.
    pub of_spot: Vec<u32>,
}

fn root(parents: &mut [u32], mut i: u32) -> u32 {
    while parents[i as usize] != i {
        parents[i as usize] = parents[parents[i as usize] as usize];
        i = parents[i as usize];
    }
    i
}

impl Rooms {
    /// Finds them.
    #[must_use]
    pub fn find(floor: &Floor) -> Self {
        const NONE: u32 = u32::MAX;
        let spots = floor.spots();
        let mut order: Vec<u32> = (0..spots.len() as u32).collect();
        let room = |i: u32| spots[i as usize].room_m;
        order.sort_unstable_by(|a, b| room(*b).total_cmp(&room(*a)).then(a.cmp(b)));
        // Basins by the spot that they began with, which is their roomiest.
        let mut basin = vec![NONE; spots.len()];
        let mut parents: Vec<u32> = (0..spots.len() as u32).collect();
        for i in order {
            let mut own = NONE;
            for (j, _) in floor.neighbours(i) {
                if basin[j as usize] == NONE {
                    continue;
                }
                let other = root(&mut parents, basin[j as usize]);
                if own == NONE {
                    own = other;
                } else if own != other {
                    // The lower of the two joins the higher, unless it is a room.
                    let (high, low) = if (room(own), other) >= (room(other), own) {
                        (own, other)
                    } else {
                        (other, own)
                    };
                    if room(low) < ROOM_M_MIN || room(low) < NECK * room(i) {
                        parents[low as usize] = high;
                    }
                    own = high;
                }
            }
            basin[i as usize] = if own == NONE { i } else { own };
        }
        let mut counts = vec![0_u32; spots.len()];
        let of_basin: Vec<u32> = (0..spots.len())
            .map(|i| root(&mut parents, basin[i]))
            .collect();
        for basin in &of_basin {
            counts[*basin as usize] += 1;
        }
        let cell_m2 = floor.cell_m() * floor.cell_m();
        let mut rooms: Vec<Room> = (0..spots.len() as u32)
            .filter(|i| counts[*i as usize] > 0)
            .map(|middle| Room {
                middle,
                area_m2: counts[middle as usize] as f32 * cell_m2,
            })
            .filter(|r| r.area_m2 >= AREA_M2_MIN && room(r.middle) >= ROOM_M_MIN)
            .collect();
        rooms.sort_by(|a, b| {
            b.area_m2
                .total_cmp(&a.area_m2)
                .then(a.middle.cmp(&b.middle))
        });
        let mut numbers = vec![NONE; spots.len()];
        for (number, room) in rooms.iter().enumerate() {
            numbers[room.middle as usize] = number as u32;
        }
        Self {
            rooms,
            of_spot: of_basin.iter().map(|b| numbers[*b as usize]).collect(),
        }
    }
}
