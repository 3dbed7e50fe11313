//! Float PLY: write, binary little endian, in the property order of the INRIA trainer.
//!
//! Order: x y z, f_dc_0..2, f_rest_* (channel-major), opacity, scale_0..2, rot_0..3. Normals,
//! which the trainer writes as zeros, are left out; readers find properties by name. Rows are
//! written in the space they are given in; axes other than RDF are stated by `comment axes RUB`.

use super::values::logit_from_opacity;
use super::{Error, Place, Progress};
use crate::scene::{Axes, Splats, sh};
use std::fmt::Write as _;
use std::io::Write;

/// Rows between two reports of progress.
const REPORT_ROWS: usize = 65_536;

/// Writes `splats`, whose rows are in the space `axes`. Returns what is lost: nothing, except that
/// opacities of exactly 0 and 1 move by a millionth so that their logits are finite.
pub(crate) fn write(
    splats: &Splats,
    axes: Axes,
    out: &mut dyn Write,
    at: &Place,
    progress: Progress<'_>,
) -> Result<Vec<String>, Error> {
    let io = |e: std::io::Error| at.io("writing", &e);
    out.write_all(header(splats, axes).as_bytes()).map_err(io)?;
    let rest = sh::rest_count(splats.sh_degree);
    let mut row = Vec::with_capacity(4 * (14 + 3 * rest));
    let rows = splats
        .means
        .iter()
        .zip(&splats.dc)
        .zip(&splats.opacities)
        .zip(&splats.log_scales)
        .zip(&splats.rotations);
    for (index, ((((mean, dc), opacity), log_scale), rotation)) in rows.enumerate() {
        row.clear();
        let mut put = |value: f32| row.extend_from_slice(&value.to_le_bytes());
        mean.to_array().into_iter().for_each(&mut put);
        dc.to_array().into_iter().for_each(&mut put);
        let coefficients = splats.sh_rest_of(index);
        for channel in 0..3 {
            coefficients
                .iter()
                .skip(channel)
                .step_by(3)
                .copied()
                .for_each(&mut put);
        }
        put(logit_from_opacity(*opacity));
        log_scale.to_array().into_iter().for_each(&mut put);
        [rotation.w, rotation.x, rotation.y, rotation.z]
            .into_iter()
            .for_each(&mut put);
        out.write_all(&row).map_err(io)?;
        if index % REPORT_ROWS == 0 {
            progress(index as f32 / splats.len() as f32);
        }
    }
    Ok(Vec::new())
}

fn header(splats: &Splats, axes: Axes) -> String {
    let mut text = String::from("ply\nformat binary_little_endian 1.0\n");
    if axes != Axes::RDF {
        let _ = writeln!(text, "comment axes {axes}");
    }
    if splats.antialiased {
        text.push_str("comment antialiased 1\n");
    }
    let _ = writeln!(text, "element vertex {}", splats.len());
    let rest = (0..sh::rest_count(splats.sh_degree) * 3).map(|k| format!("f_rest_{k}"));
    let names = ["x", "y", "z", "f_dc_0", "f_dc_1", "f_dc_2"];
    let last = [
        "opacity", "scale_0", "scale_1", "scale_2", "rot_0", "rot_1", "rot_2", "rot_3",
    ];
    for name in names
        .map(str::to_owned)
        .into_iter()
        .chain(rest)
        .chain(last.map(str::to_owned))
    {
        let _ = writeln!(text, "property float {name}");
    }
    text.push_str("end_header\n");
    text
}
