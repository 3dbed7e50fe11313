// Stage "scan": exclusive prefix sums over the counts of workgroups, by one workgroup, and the
// sizes of the dispatches that follow from them. No subgroups and no progress guarantees needed.
// 256 threads take 4,096 counts a round; 15 million splats are 15 rounds.
// Joined with: shared/types.

@group(0) @binding(0) var<uniform> view: View;

struct PageRange {
    first_group: u32,
    group_count: u32,
}

@group(1) @binding(0) var<storage, read_write> counts: array<u32>;
@group(1) @binding(1) var<storage, read_write> counters: Counters;
// Indirect arguments: draw (vertices, instances, 0, 0), dispatch over survivors, dispatch over
// pairs, then one dispatch a page.
@group(1) @binding(2) var<storage, read_write> arguments: array<u32>;
@group(1) @binding(3) var<storage, read> page_ranges: array<PageRange>;

const PER_THREAD: u32 = 16u;
const ROUND: u32 = 4096u;
const PAGE_ARGUMENTS: u32 = 12u;

var<workgroup> partial: array<u32, 256>;

// Leaves counts[i] = sum of the counts before i, and returns the total on every thread.
fn scan_exclusive(count: u32, lane: u32) -> u32 {
    var carry = 0u;
    for (var round = 0u; round < count; round += ROUND) {
        let first = round + lane * PER_THREAD;
        var sum = 0u;
        for (var k = 0u; k < PER_THREAD; k++) {
            if first + k < count {
                let c = counts[first + k];
                counts[first + k] = sum;
                sum += c;
            }
        }
        partial[lane] = sum;
        workgroupBarrier();
        for (var step = 1u; step < 256u; step <<= 1u) {
            var before = 0u;
            if lane >= step {
                before = partial[lane - step];
            }
            workgroupBarrier();
            partial[lane] += before;
            workgroupBarrier();
        }
        let base = carry + partial[lane] - sum;
        for (var k = 0u; k < PER_THREAD; k++) {
            if first + k < count {
                counts[first + k] += base;
            }
        }
        carry += partial[255];
        workgroupBarrier();
    }
    return carry;
}

@compute @workgroup_size(256)
fn scan_visible(@builtin(local_invocation_index) lane: u32) {
    let total = scan_exclusive(view.group_count, lane);
    storageBarrier();
    let visible = min(total, view.visible_capacity);
    if lane == 0u {
        counts[view.group_count] = total;
        counters.visible_total = total;
        counters.visible = visible;
        counters.pair_total = 0u;
        counters.pairs = 0u;
        arguments[0] = 3u * SPLATS_PER_INSTANCE;
        arguments[1] = (visible + SPLATS_PER_INSTANCE - 1u) / SPLATS_PER_INSTANCE;
        arguments[2] = 0u;
        arguments[3] = 0u;
        arguments[4] = (visible + 255u) / 256u;
        arguments[5] = 1u;
        arguments[6] = 1u;
    }
    for (var p = lane; p < view.page_count; p += 256u) {
        let range = page_ranges[p];
        let group_end = range.first_group + range.group_count;
        let end = min(select(counts[group_end], total, group_end == view.group_count), visible);
        let start = min(counts[range.first_group], end);
        arguments[PAGE_ARGUMENTS + p * 3u] = (end - start + 255u) / 256u;
        arguments[PAGE_ARGUMENTS + p * 3u + 1u] = 1u;
        arguments[PAGE_ARGUMENTS + p * 3u + 2u] = 1u;
    }
}

@compute @workgroup_size(256)
fn scan_pairs(@builtin(local_invocation_index) lane: u32) {
    let total = scan_exclusive((counters.visible + 255u) / 256u, lane);
    if lane == 0u {
        let pairs = min(total, view.pair_capacity);
        counters.pair_total = total;
        counters.pairs = pairs;
        // Two dimensions: one would pass 65,535 workgroups at 16.7 million pairs.
        let groups = (pairs + 255u) / 256u;
        arguments[7] = min(groups, 32768u);
        arguments[8] = (groups + 32767u) / 32768u;
        arguments[9] = 1u;
    }
}
