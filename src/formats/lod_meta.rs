//! Streamed SOG: `lod-meta.json`, a tree of nodes whose splats lie in SOG units, one set a level.
//!
//! Reads ONE level whole: the one that is asked for, or the finest that fits a budget. Choosing
//! levels node by node while the camera moves is not done here. Rows come unit by unit in the
//! order of `filenames`, and inside a unit in texel order. Where a unit is not on disk, its nodes
//! take the next coarser level that is. The tree is walked without recursion; the JSON parser
//! refuses nesting deeper than 128, about 60 nodes, where published scans have under 20.
//!
//! Source: manifests and writer of PlayCanvas splat-transform ("version 1"; older ones have no
//! version).

use super::container::Zip;
use super::rows::all_or_first_error;
use super::{Code, Container, ENTRY_BYTES_MAX, Error, FileSplats, Level, Place, Progress, sog};
use super::{LEVEL_BUDGET_DEFAULT, LoadOptions};
use crate::scene::Splats;
use rayon::prelude::*;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Largest manifest; one of 46 million splats in 7 levels takes 260 kB.
const MANIFEST_BYTES_MAX: u64 = 16 << 20;
/// Most nodes of the tree.
const NODES_MAX: usize = 1 << 20;
/// Most levels; each halves the splats, so 32 reach from one splat past any scan.
const LEVELS_MAX: u32 = 32;
/// Splats whose images are decoded at a time, as 20 bytes each: enough units to keep cores busy,
/// few enough to stay far below what the splats themselves take.
const BATCH_SPLATS: usize = 1 << 20;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Manifest {
    version: Option<Value>,
    counts: Option<Vec<u64>>,
    lod_levels: u32,
    environment: Option<String>,
    filenames: Vec<String>,
    tree: Node,
}

#[derive(Deserialize)]
struct Node {
    children: Option<Vec<Node>>,
    lods: Option<BTreeMap<String, Rows>>,
}

/// Rows of one unit.
#[derive(Clone, Copy, Deserialize)]
struct Rows {
    /// Index into `filenames`.
    file: usize,
    offset: u64,
    count: u64,
}

/// A leaf's rows by level, levels without a row left out.
type Leaf = BTreeMap<u32, Rows>;

/// A unit that is there: alone in the manifest's container, or bundled in a zip of its own.
struct Source {
    bundle: Option<Zip>,
    unit: sog::Unit,
}

/// All units, opened when they are first asked for.
struct Units<'a> {
    container: &'a dyn Container,
    paths: Vec<String>,
    opened: BTreeMap<usize, Option<Source>>,
}

/// Reads the manifest `entry` and the splats of one level.
pub(crate) fn read(
    container: &dyn Container,
    entry: &str,
    options: &LoadOptions,
    progress: Progress<'_>,
) -> Result<FileSplats, Error> {
    let at = container.place(entry);
    let manifest = parse(container, entry, &at)?;
    let folder = entry.rfind('/').map_or("", |slash| &entry[..=slash]);
    let mut units = Units {
        container,
        paths: manifest
            .filenames
            .iter()
            .map(|name| sog::join(folder, name, &at))
            .collect::<Result<_, _>>()?,
        opened: BTreeMap::new(),
    };
    let leaves = leaves(&manifest, &at)?;
    let mut warnings = Vec::new();
    let levels = levels(&manifest, &leaves, &mut units, &at, &mut warnings)?;
    let level = choose_level(&levels, options, &at)?;
    let parts = choose_rows(&leaves, level, &mut units, &at, &mut warnings)?;
    let environment = match &manifest.environment {
        Some(name) if options.environment => {
            let path = sog::join(folder, name, &at)?;
            let found = open(container, &path)?;
            if found.is_none() {
                warnings.push(format!("the environment {path} is missing and is left out"));
            }
            found
        }
        _ => None,
    };
    let mut parts: Vec<(&Source, Vec<Range<usize>>)> = parts
        .into_iter()
        .filter_map(|(file, ranges)| Some((units.opened.get(&file)?.as_ref()?, ranges)))
        .collect();
    if let Some(source) = &environment {
        parts.push((source, std::iter::once(0..source.unit.count).collect()));
    }
    let splats = decode(container, &parts, progress)?;
    for (source, _) in &parts {
        for warning in &source.unit.warnings {
            if !warnings.contains(warning) {
                warnings.push(warning.clone());
            }
        }
    }
    Ok(FileSplats {
        sh_degree_in_file: splats.sh_degree,
        splats,
        version: manifest.version.map(|v| v.to_string()),
        warnings,
        levels,
        ..FileSplats::default()
    })
}

fn parse(container: &dyn Container, entry: &str, at: &Place) -> Result<Manifest, Error> {
    let bytes = container.read(entry, MANIFEST_BYTES_MAX)?;
    // The version first: a later one may mean anything by the other fields.
    #[derive(Deserialize)]
    struct Version {
        version: Option<Value>,
    }
    let version: Version = serde_json::from_slice(&bytes)
        .map_err(|e| at.malformed(format!("not a manifest that can be read: {e}")))?;
    if let Some(version) = version.version.filter(|v| v.as_u64() != Some(1)) {
        return Err(at.unsupported_version(format!(
            "version {version} of lod-meta.json is not known here, expected 1 or none"
        )));
    }
    let manifest: Manifest = serde_json::from_slice(&bytes)
        .map_err(|e| at.malformed(format!("not a manifest that can be read: {e}")))?;
    if !(1..=LEVELS_MAX).contains(&manifest.lod_levels) {
        return Err(at.malformed(format!(
            "lodLevels: found {}, expected 1 to {LEVELS_MAX}",
            manifest.lod_levels
        )));
    }
    Ok(manifest)
}

/// The leaves in tree order, with every level and file index checked.
fn leaves(manifest: &Manifest, at: &Place) -> Result<Vec<Leaf>, Error> {
    let mut leaves = Vec::new();
    let mut nodes = 0;
    let mut stack = vec![&manifest.tree];
    while let Some(node) = stack.pop() {
        nodes += 1;
        if nodes > NODES_MAX {
            return Err(at.too_large(format!("the tree has more than {NODES_MAX} nodes")));
        }
        stack.extend(node.children.iter().flatten().rev());
        let Some(lods) = &node.lods else { continue };
        let mut leaf = Leaf::new();
        for (key, rows) in lods {
            let level = key
                .parse()
                .ok()
                .filter(|level| *level < manifest.lod_levels)
                .ok_or_else(|| {
                    at.malformed(format!(
                        "leaf {}: '{}' is no level from 0 to {}",
                        leaves.len(),
                        key.chars().take(20).collect::<String>(),
                        manifest.lod_levels - 1
                    ))
                })?;
            if rows.file >= manifest.filenames.len() {
                return Err(at.malformed(format!(
                    "leaf {}, level {level}: file {} of {} filenames",
                    leaves.len(),
                    rows.file,
                    manifest.filenames.len()
                )));
            }
            if rows.count > 0 {
                leaf.insert(level, *rows);
            }
        }
        leaves.push(leaf);
    }
    Ok(leaves)
}

/// What levels there are; a manifest whose `counts` differ from its tree gets a warning.
fn levels(
    manifest: &Manifest,
    leaves: &[Leaf],
    units: &mut Units<'_>,
    at: &Place,
    warnings: &mut Vec<String>,
) -> Result<Vec<Level>, Error> {
    let mut levels = Vec::new();
    let mut odd = Vec::new();
    for level in 0..manifest.lod_levels {
        let rows = || leaves.iter().filter_map(|leaf| leaf.get(&level));
        let count = rows()
            .try_fold(0_u64, |sum, r| sum.checked_add(r.count))
            .ok_or_else(|| at.too_large(format!("level {level} counts more than 2^64 splats")))?;
        let files: BTreeSet<usize> = rows().map(|r| r.file).collect();
        let mut present = true;
        for file in files {
            // A unit that is there and broken is an error only for whoever reads it.
            present &= units.get(file).map_or(true, |source| source.is_some());
        }
        if let Some(counts) = &manifest.counts
            && counts.get(level as usize) != Some(&count)
        {
            let said = counts
                .get(level as usize)
                .map_or("nothing".into(), u64::to_string);
            odd.push(format!(
                "{said} for level {level} where the tree holds {count}"
            ));
        }
        levels.push(Level {
            level,
            count,
            present,
        });
    }
    if !odd.is_empty() {
        warnings.push(format!("the field counts says {}", odd.join(", ")));
    }
    Ok(levels)
}

fn choose_level(levels: &[Level], options: &LoadOptions, at: &Place) -> Result<u32, Error> {
    let last = levels.len().saturating_sub(1) as u32;
    match options.level {
        Some(level) if level > last => Err(at.error(
            Code::NotFound,
            format!("there is no level {level}; this scan has levels 0 (finest) to {last}"),
        )),
        Some(level) => Ok(level),
        None => {
            let budget = options.budget.unwrap_or(LEVEL_BUDGET_DEFAULT);
            Ok(levels
                .iter()
                .find(|l| l.count <= budget)
                .map_or(last, |l| l.level))
        }
    }
}

/// The level of `leaf` that stands for `wanted`: itself, else the next finer one; past the leaf's
/// coarsest there is nothing to draw (as in the PlayCanvas engine 2.23).
fn level_of(leaf: &Leaf, wanted: u32) -> Option<u32> {
    let (coarsest, _) = leaf.last_key_value()?;
    if *coarsest < wanted {
        return None;
    }
    leaf.range(..=wanted).next_back().map(|(level, _)| *level)
}

/// The rows to draw of each unit, ascending and without overlap.
fn choose_rows(
    leaves: &[Leaf],
    wanted: u32,
    units: &mut Units<'_>,
    at: &Place,
    warnings: &mut Vec<String>,
) -> Result<BTreeMap<usize, Vec<Range<usize>>>, Error> {
    let mut parts: BTreeMap<usize, Vec<Range<usize>>> = BTreeMap::new();
    let mut wanted_files = BTreeSet::new();
    let mut missing = BTreeSet::new();
    let mut empty_nodes = 0;
    for leaf in leaves {
        let Some(level) = level_of(leaf, wanted) else {
            continue;
        };
        let mut drawn = false;
        for (at_level, rows) in leaf.range(level..) {
            if *at_level == level {
                wanted_files.insert(rows.file);
            }
            let path = units.paths[rows.file].clone();
            let Some(source) = units.get(rows.file)? else {
                if *at_level == level {
                    missing.insert(rows.file);
                }
                continue;
            };
            let count = source.unit.count as u64;
            let end = rows.offset.checked_add(rows.count);
            let Some(end) = end.filter(|end| *end <= count) else {
                return Err(at.malformed(format!(
                    "the tree names rows {} and {} on of {path}, which has {count}",
                    rows.offset, rows.count
                )));
            };
            parts
                .entry(rows.file)
                .or_default()
                .push(rows.offset as usize..end as usize);
            drawn = true;
            break;
        }
        empty_nodes += usize::from(!drawn);
    }
    let mut overlap = false;
    for ranges in parts.values_mut() {
        overlap |= merge(ranges);
    }
    if overlap {
        warnings.push("nodes share rows of a unit, which are drawn once".into());
    }
    if let Some(first) = missing.first() {
        let first = &units.paths[*first];
        if parts.is_empty() {
            return Err(at.error(
                Code::NotFound,
                format!(
                    "none of the units of level {wanted} or coarser is there (the first is {first})"
                ),
            ));
        }
        let nothing = match empty_nodes {
            0 => String::new(),
            n => format!(", {n} nodes have none"),
        };
        warnings.push(format!(
            "level {wanted}: {} of {} units are missing (the first is {first}); their nodes are \
             drawn from the next coarser level that is there{nothing}",
            missing.len(),
            wanted_files.len(),
        ));
    }
    Ok(parts)
}

/// Sorts ranges and joins those that touch; true when some overlapped.
fn merge(ranges: &mut Vec<Range<usize>>) -> bool {
    ranges.sort_unstable_by_key(|r| (r.start, r.end));
    let mut overlap = false;
    let mut merged: Vec<Range<usize>> = Vec::new();
    for range in ranges.drain(..) {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => {
                overlap |= range.start < last.end;
                last.end = last.end.max(range.end);
            }
            _ => merged.push(range),
        }
    }
    *ranges = merged;
    overlap
}

impl Units<'_> {
    /// The unit `file`, or `None` when it or one of its images is not there.
    fn get(&mut self, file: usize) -> Result<Option<&Source>, Error> {
        if !self.opened.contains_key(&file) {
            let found = open(self.container, &self.paths[file])?;
            self.opened.insert(file, found);
        }
        Ok(self.opened.get(&file).and_then(Option::as_ref))
    }
}

/// Opens a unit by the path of its `meta.json` or `.sog`; `None` when something of it is missing.
fn open(container: &dyn Container, path: &str) -> Result<Option<Source>, Error> {
    if !container.contains(path) {
        return Ok(None);
    }
    let source = if path.ends_with(".sog") {
        let bytes = container.read(path, ENTRY_BYTES_MAX)?.into_owned();
        let bundle = Zip::new(bytes, format!("{}/{path}", container.name()))?;
        let unit = sog::Unit::open(&bundle, "meta.json")?;
        Source {
            bundle: Some(bundle),
            unit,
        }
    } else {
        Source {
            bundle: None,
            unit: sog::Unit::open(container, path)?,
        }
    };
    let complete = source.unit.is_complete(source.container(container));
    Ok(complete.then_some(source))
}

impl Source {
    fn container<'a>(&'a self, outer: &'a dyn Container) -> &'a dyn Container {
        self.bundle.as_ref().map_or(outer, |zip| zip)
    }
}

/// Decodes the units in batches and puts the chosen rows one after another.
fn decode(
    container: &dyn Container,
    parts: &[(&Source, Vec<Range<usize>>)],
    progress: Progress<'_>,
) -> Result<Splats, Error> {
    let units = || parts.iter().map(|(source, _)| &source.unit);
    let mut splats = Splats {
        sh_degree: units().map(|u| u.degree).max().unwrap_or(0),
        antialiased: units().any(|u| u.antialiased),
        ..Splats::default()
    };
    let mut rest = parts;
    while !rest.is_empty() {
        let mut in_batch = 0;
        let fits = rest
            .iter()
            .take_while(|(source, _)| {
                in_batch += source.unit.count;
                in_batch <= BATCH_SPLATS
            })
            .count();
        let (batch, after) = rest.split_at(fits.max(1));
        let decoded = all_or_first_error(
            batch
                .par_iter()
                .map(|(source, _)| source.unit.decode(source.container(container))),
        )?;
        for (decoded, (_, ranges)) in decoded.iter().zip(batch) {
            decoded.append(ranges, &mut splats);
        }
        rest = after;
        progress(1.0 - rest.len() as f32 / parts.len() as f32);
    }
    Ok(splats)
}
