//! The order in which splats are blended: nearest first, by the view depth of the centre.
//!
//! Twin of the GPU's sort. Equal depths keep the order of draw and row, so a picture does not
//! depend on chance.

use super::Record;
use rayon::prelude::*;

/// Sorts records front to back; stable.
pub fn sort(records: &mut [Record]) {
    records.par_sort_by(|a, b| a.depth_m.total_cmp(&b.depth_m));
}
