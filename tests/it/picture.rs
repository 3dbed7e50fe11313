//! Pictures compared: PSNR, outliers, and what a failed comparison leaves to look at.
//!
//! Only red, green and blue are measured; a test that is about alpha looks at alpha itself.
#![allow(dead_code, reason = "shared by all test modules")]

use image::RgbaImage;
use std::path::{Path, PathBuf};

/// How far a picture may be from the wanted one.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// Least PSNR over all 8-bit channels, dB.
    pub psnr_min_db: f64,
    /// A pixel is an outlier when any channel is off by more than this many 255ths.
    pub outlier_steps: u8,
    /// Largest share of outliers, 0 to 1.
    pub outlier_share_max: f64,
}

/// Loads a PNG or WebP.
pub fn load(path: &Path) -> RgbaImage {
    image::open(path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        .to_rgba8()
}

/// Wraps 8-bit RGBA rows, top to bottom.
pub fn from_rgba(size: [u32; 2], rgba: Vec<u8>) -> RgbaImage {
    let bytes = rgba.len();
    RgbaImage::from_raw(size[0], size[1], rgba)
        .unwrap_or_else(|| panic!("{bytes} bytes are not {}x{} RGBA", size[0], size[1]))
}

/// Differences of red, green and blue per pixel, in 255ths.
fn differences(found: &RgbaImage, wanted: &RgbaImage) -> Vec<[u8; 3]> {
    assert_eq!(
        found.dimensions(),
        wanted.dimensions(),
        "the pictures differ in size"
    );
    found
        .pixels()
        .zip(wanted.pixels())
        .map(|(a, b)| std::array::from_fn(|channel| a[channel].abs_diff(b[channel])))
        .collect()
}

/// Peak signal to noise ratio over red, green and blue, dB; infinite for equal pictures.
pub fn psnr_db(found: &RgbaImage, wanted: &RgbaImage) -> f64 {
    let off = differences(found, wanted);
    let squares: f64 = off
        .as_flattened()
        .iter()
        .map(|v| f64::from(*v).powi(2))
        .sum();
    let mean = squares / (3 * off.len()) as f64;
    10.0 * (255.0 * 255.0 / mean).log10()
}

/// Share of pixels of which any channel is off by more than `steps` 255ths.
pub fn share_off_by_over(steps: u8, found: &RgbaImage, wanted: &RgbaImage) -> f64 {
    let off = differences(found, wanted);
    let outliers = off.iter().filter(|p| p.iter().any(|v| *v > steps)).count();
    outliers as f64 / off.len() as f64
}

/// The largest difference of any channel, in 255ths.
pub fn largest_difference(found: &RgbaImage, wanted: &RgbaImage) -> u8 {
    let off = differences(found, wanted);
    off.as_flattened().iter().copied().max().unwrap_or(0)
}

/// Fails with the figures when `found` is out of bounds, and leaves `NAME.new.png` and
/// `NAME.diff.png` (differences 16-fold) in `tests/golden`, which git ignores.
pub fn assert_close(name: &str, found: &RgbaImage, wanted: &RgbaImage, bound: Bound) {
    let psnr_db = psnr_db(found, wanted);
    let share = share_off_by_over(bound.outlier_steps, found, wanted);
    let largest = largest_difference(found, wanted);
    let figures = format!(
        "{name}: {psnr_db:.2} dB, share off by over {}/255: {share:.1e}, largest {largest}/255",
        bound.outlier_steps
    );
    println!("{figures}");
    if psnr_db < bound.psnr_min_db || share > bound.outlier_share_max {
        let folder = save_failing(name, found, wanted);
        panic!("{figures}; wanted {bound:?}; see {}", folder.display());
    }
}

/// Writes the picture and its differences; gives the folder.
fn save_failing(name: &str, found: &RgbaImage, wanted: &RgbaImage) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let off = differences(found, wanted);
    let amplified = off
        .iter()
        .flat_map(|[r, g, b]| {
            [
                r.saturating_mul(16),
                g.saturating_mul(16),
                b.saturating_mul(16),
                255,
            ]
        })
        .collect();
    let difference = from_rgba([found.width(), found.height()], amplified);
    std::fs::create_dir_all(&folder).expect("tests/golden can be made");
    for (kind, picture) in [("new", found), ("diff", &difference)] {
        picture
            .save(folder.join(format!("{name}.{kind}.png")))
            .expect("tests/golden can be written");
    }
    folder
}
