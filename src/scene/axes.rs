//! Axis conventions of files, and the turn from a file's own space to world space.
//!
//! Three letters name where +x, +y and +z of the file point: Right/Left, Up/Down, Front/Back (the
//! naming of the SPZ library's `CoordinateSystem`). World is `RUB`. Mirrored conventions are
//! refused, since a mirrored scene is not a turned one.

use glam::{Mat3, Vec3};
use std::fmt;
use std::str::FromStr;

/// A right-handed axis convention.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Axes([u8; 3]);

impl Axes {
    /// World space, SPZ, glTF, `.splattie`: x right, y up, z back.
    pub const RUB: Self = Self(*b"RUB");
    /// PLY, compressed PLY, SOG, `.splat`, `.ksplat`: x right, y down, z forward.
    pub const RDF: Self = Self(*b"RDF");
    /// Scans with z up: x right, y forward.
    pub const RFU: Self = Self(*b"RFU");

    /// `world_from_file`: a signed permutation with determinant +1.
    #[must_use]
    pub fn world_from_file(self) -> Mat3 {
        let column = |letter| match letter {
            b'R' => Vec3::X,
            b'L' => Vec3::NEG_X,
            b'U' => Vec3::Y,
            b'D' => Vec3::NEG_Y,
            b'B' => Vec3::Z,
            _ => Vec3::NEG_Z,
        };
        Mat3::from_cols(column(self.0[0]), column(self.0[1]), column(self.0[2]))
    }

    /// `target_from_self`, the turn between two conventions.
    #[must_use]
    pub fn turn_to(self, target: Self) -> Mat3 {
        target.world_from_file().transpose() * self.world_from_file()
    }
}

impl fmt::Display for Axes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.0).unwrap_or("???"))
    }
}

impl fmt::Debug for Axes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Axes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = match text.to_ascii_lowercase().as_str() {
            "y-up" | "yup" => Some(Self::RUB),
            "y-down" | "ydown" => Some(Self::RDF),
            "z-up" | "zup" => Some(Self::RFU),
            "z-down" | "zdown" => Some(Self(*b"RBD")),
            _ => None,
        };
        if let Some(axes) = named {
            return Ok(axes);
        }
        let expected = "expected three letters that say where x, y, z point (right left up down \
                        front back), such as RDF, RUB or RFU, or y-up, y-down, z-up, z-down";
        let letters: [u8; 3] = text
            .to_ascii_uppercase()
            .into_bytes()
            .try_into()
            .map_err(|_| format!("'{text}' is no axis convention: {expected}"))?;
        if !letters.iter().all(|l| b"RLUDFB".contains(l)) {
            return Err(format!("'{text}' is no axis convention: {expected}"));
        }
        let axes = Self(letters);
        let determinant = axes.world_from_file().determinant();
        if determinant > 0.5 {
            Ok(axes)
        } else if determinant < -0.5 {
            Err(format!("'{text}' is mirrored (left-handed): {expected}"))
        } else {
            Err(format!("'{text}' names one direction twice: {expected}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_parse_or_say_why() {
        assert_eq!("rdf".parse(), Ok(Axes::RDF));
        assert_eq!("z-up".parse(), Ok(Axes::RFU));
        assert!("RUF".parse::<Axes>().is_err_and(|e| e.contains("mirrored")));
        assert!("RRB".parse::<Axes>().is_err_and(|e| e.contains("twice")));
        assert!("".parse::<Axes>().is_err());
        assert_eq!(Axes::RDF.world_from_file() * Vec3::Y, Vec3::NEG_Y);
        assert_eq!(Axes::RFU.world_from_file() * Vec3::Z, Vec3::Y);
    }
}
