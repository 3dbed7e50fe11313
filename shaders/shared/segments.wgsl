// Long lists of tiles, cut into segments that are blended side by side.
//
// A list that does not fill its tile within LIST_FIRST splats is cut: the first kernel leaves what it has
// and asks here for places, the second blends all segments, each as if nothing stood before it, and the
// third puts them one behind the other: blending is associative. Else the few tiles down which a street
// runs take longer than the rest of the picture. What a place holds is the stage's own matter.
// Joined into: film_depth, film_tiles.

// As the first kernel writes them, and as the others read them.
@group(2) @binding(5) var<storage, read_write> claims: Claims;
@group(2) @binding(6) var<storage, read_write> segments_out: array<Segment>;
@group(2) @binding(8) var<storage, read> segments_in: array<Segment>;

// Splats of a list before it is cut, and of a segment; the former is twice the latter, see src/gpu/film.rs,
// which mirrors this. Measured on an H200, `bench @alley --arg count=5000000`, ms of a picture at 5, 20.9
// and 43.54 s: 4096 and 4096 5.0, 3.9, 3.2; 2048 and 2048 4.8, 3.6, 2.9; these 4.7, 3.6, 2.9. At 20.9 s it
// takes 6.0 ms where no list is cut.
const LIST_FIRST: u32 = 3072u;
const SEGMENT: u32 = 1536u;
// There is no place left.
const NO_PART: u32 = 0xffffffffu;

// How many segments there are, which the second and third kernel are dispatched over.
struct Claims {
    segments: atomic<u32>,
    down: u32,
    deep: u32,
    // Places that are taken.
    parts: atomic<u32>,
}

struct Segment {
    tile: u32,
    // Place of what the first kernel left; the segments' own follow.
    first_part: u32,
    // Number of this segment, and how many its tile has.
    number: u32,
    count: u32,
}

// Takes places for the rest of a tile's list, of which there are `room` in all. Returns the first.
fn claim(tile: u32, rest: u32, room: u32) -> u32 {
    let count = (rest + SEGMENT - 1u) / SEGMENT;
    let most = min(arrayLength(&segments_out), room);
    var taken = atomicLoad(&claims.parts);
    loop {
        if taken + count + 1u > most {
            return NO_PART;
        }
        let before = atomicCompareExchangeWeak(&claims.parts, taken, taken + count + 1u);
        if before.exchanged {
            break;
        }
        taken = before.old_value;
    }
    // There are fewer segments than places.
    let place = atomicAdd(&claims.segments, count);
    for (var k = 0u; k < count; k++) {
        segments_out[place + k] = Segment(tile, taken, k, count);
    }
    return taken;
}

// Where a segment's splats begin in a list that begins at `first`.
fn segment_begin(segment: Segment, first: u32) -> u32 {
    return first + LIST_FIRST + segment.number * SEGMENT;
}
