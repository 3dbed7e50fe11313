//! All splats that a scene draws in its first picture, for who surveys them and for scenes that are made from
//! them.
//!
//! It draws nothing and writes nothing. One set that stands as it was loaded stays that set; several, or one
//! that was moved or tinted, are put together anew.

use super::assets::AssetCache;
use super::session::{SceneOptions, Session};
use crate::frame::{Input, SplatDraw};
use crate::scene::{Placement, Splats, sh};
use anyhow::bail;
use glam::{Mat3, Vec3};
use serde_json::{Map, Value};
use std::sync::Arc;

/// What a scene draws at its start.
///
/// # Errors
/// Its script goes wrong.
pub fn draws(session: &mut Session) -> anyhow::Result<Vec<SplatDraw>> {
    let input = Input {
        aspect: 16.0 / 9.0,
        ..Input::default()
    };
    Ok(session.reload(0.0, &input)?.draws)
}

/// What the built-in scene `name` draws, with its `@`, as one set.
///
/// # Errors
/// There is no such scene, it draws nothing, or its script goes wrong.
pub fn of_builtin(name: &str, args: Map<String, Value>) -> anyhow::Result<Arc<Splats>> {
    let options = SceneOptions {
        scene: name.to_owned(),
        args,
        ..SceneOptions::default()
    };
    let cache = AssetCache::new(Arc::new(|_, _| ()));
    let mut session = Session::open(options, cache, false)?;
    let draws = draws(&mut session)?;
    if draws.iter().all(|draw| draw.splats.is_empty()) {
        bail!("{name} draws no splats");
    }
    Ok(as_one(&draws, 1.0))
}

/// True where splats are drawn as they were loaded, but for their place.
#[must_use]
pub fn is_plain(draw: &SplatDraw) -> bool {
    draw.tint == [1.0; 4] && draw.pose.is_none() && draw.edits.is_empty()
}

/// All draws as one set of splats, where they stand, times `scale`. Bodies are taken at rest, and edits are not
/// applied.
#[must_use]
pub fn as_one(draws: &[SplatDraw], scale: f32) -> Arc<Splats> {
    if let [draw] = draws
        && is_plain(draw)
        && draw.placement == Placement::default()
        && (scale - 1.0).abs() < f32::EPSILON
    {
        return Arc::clone(&draw.splats);
    }
    let degrees = draws.iter().map(|draw| draw.splats.sh_degree);
    let degree = degrees.max().unwrap_or(0);
    let mut all = Splats {
        sh_degree: degree,
        antialiased: draws.iter().any(|draw| draw.splats.antialiased),
        ..Splats::default()
    };
    for draw in draws {
        let (placement, tint) = (draw.placement, draw.tint);
        let mut own = Splats::clone(&draw.splats);
        own.turn(Mat3::from_quat(placement.rotation));
        let factor = placement.scale * scale;
        let tint_rgb = Vec3::new(tint[0], tint[1], tint[2]);
        let white = Vec3::splat(0.5 / sh::SH_C0);
        for i in 0..own.len() {
            all.means
                .push(own.means[i] * factor + placement.translation * scale);
            all.log_scales.push(own.log_scales[i] + factor.ln());
            all.opacities.push(own.opacities[i] * tint[3]);
            // The colour is 0.5 + SH_C0 dc, and that is what the tint multiplies.
            all.dc.push((own.dc[i] + white) * tint_rgb - white);
            let rest = own.sh_rest_of(i);
            all.sh_rest
                .extend(rest.iter().enumerate().map(|(k, c)| c * tint[k % 3]));
            let missing = sh::rest_count(degree) * 3 - rest.len();
            all.sh_rest.extend(std::iter::repeat_n(0.0, missing));
        }
        all.rotations.append(&mut own.rotations);
    }
    Arc::new(all)
}
