//! Splat files for scripts, loaded once: a cache by path, options and what the disk says of the file.
//!
//! A script reload asks for the same files again; as long as length and modification time are
//! unchanged it gets the same `Arc`, so three million splats are neither decoded nor packed for the
//! GPU a second time. A file that fails to load leaves the former version in the cache.
//!
//! A window must not stand still while a scan loads: a cache made by [`AssetCache::new_behind`] loads
//! on threads of its own. Whoever asks for a file that is not there yet is told so, and asks again
//! once the cache has called.

use crate::formats::{self, LoadOptions, Loaded};
use crate::scene::{Axes, Body, Splats};
use serde_json::json;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// Told how far the load of a named file is, 0 to 1.
pub type LoadProgress = Arc<dyn Fn(&str, f32) + Send + Sync>;

/// A loaded file: what is drawn, and what is known about it.
#[derive(Debug)]
pub struct Asset {
    /// World space, file order.
    pub splats: Arc<Splats>,
    /// Bones, skin and shapes, where the file is an avatar.
    pub body: Option<Arc<Body>>,
    /// What else a bundle says, for scripts; see [`crate::script::Asset::facts`].
    pub facts: Arc<serde_json::Value>,
    /// The axes that were applied.
    pub axes: Axes,
}

/// Shared by all sessions of a run.
pub struct AssetCache {
    entries: Mutex<HashMap<Key, Entry>>,
    progress: LoadProgress,
    behind: Option<Behind>,
    /// [`LoadOptions::unpacked_bytes_max`]; 0 is none, since nothing could be loaded under it.
    unpacked_bytes_max: AtomicU64,
}

/// Loads that run on other threads.
struct Behind {
    /// Called on the loading thread when a load has ended, well or badly.
    ended: Arc<dyn Fn() + Send + Sync>,
    loads: Mutex<Loads>,
}

#[derive(Default)]
struct Loads {
    running: HashSet<Key>,
    /// What went wrong with a file, as long as it stays as it is.
    failed: HashMap<Key, (Stamp, formats::Error)>,
    /// Somebody was told to ask again.
    has_put_off: bool,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    path: PathBuf,
    /// Set where `path` is a zip and the splats are an entry of it.
    entry: Option<String>,
    level: Option<u32>,
    axes: Option<String>,
}

struct Entry {
    stamp: Stamp,
    asset: Arc<Asset>,
}

/// Length and modification time of a file, or of everything up to two folders deep (a streamed
/// scan keeps its units one folder down).
type Stamp = Vec<(PathBuf, u64, Option<SystemTime>)>;

impl fmt::Debug for AssetCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AssetCache").finish_non_exhaustive()
    }
}

impl AssetCache {
    /// An empty cache that reports loads to `progress`.
    #[must_use]
    pub fn new(progress: LoadProgress) -> Arc<Self> {
        Arc::new(Self {
            entries: Mutex::default(),
            progress,
            behind: None,
            unpacked_bytes_max: AtomicU64::new(0),
        })
    }

    /// An empty cache that loads on threads of its own and calls `ended` there after each load.
    #[must_use]
    pub fn new_behind(progress: LoadProgress, ended: Arc<dyn Fn() + Send + Sync>) -> Arc<Self> {
        Arc::new(Self {
            entries: Mutex::default(),
            progress,
            behind: Some(Behind {
                ended,
                loads: Mutex::default(),
            }),
            unpacked_bytes_max: AtomicU64::new(0),
        })
    }

    /// Says how much archives may hold from now on: [`LoadOptions::unpacked_bytes_max`].
    pub fn limit_unpacked(&self, bytes_max: Option<u64>) {
        self.unpacked_bytes_max
            .store(bytes_max.unwrap_or(0), Ordering::Relaxed);
    }

    fn load_options(&self, level: Option<u32>, axes: Option<Axes>) -> LoadOptions {
        let unpacked = self.unpacked_bytes_max.load(Ordering::Relaxed);
        LoadOptions {
            level,
            axes,
            unpacked_bytes_max: (unpacked > 0).then_some(unpacked),
            ..LoadOptions::default()
        }
    }

    /// True when files are loaded on other threads, so that the first answer is "not yet".
    #[must_use]
    pub fn loads_behind(&self) -> bool {
        self.behind.is_some()
    }

    /// Whether anybody was told "not yet" since the last call: an error that follows from it is
    /// none, and the caller tries again after the next load has ended.
    pub fn take_put_off(&self) -> bool {
        self.behind
            .as_ref()
            .is_some_and(|behind| std::mem::take(&mut lock(&behind.loads).has_put_off))
    }

    /// The splats of the file or folder `path`, from the cache where nothing has changed. Warnings
    /// of the loader are logged, once a load.
    ///
    /// # Errors
    /// Those of [`formats::load`].
    pub fn load(
        self: &Arc<Self>,
        path: &Path,
        level: Option<u32>,
        axes: Option<Axes>,
    ) -> Result<Arc<Asset>, formats::Error> {
        let options = self.load_options(level, axes);
        self.load_with(path, None, &options, |progress| {
            formats::load(path, &options, progress)
        })
    }

    /// The splats of one entry of an opened zip or other container, which lies at `path` on disk.
    ///
    /// # Errors
    /// Those of [`formats::load_in`].
    pub fn load_entry(
        self: &Arc<Self>,
        path: &Path,
        container: &dyn formats::Container,
        entry: &str,
        level: Option<u32>,
        axes: Option<Axes>,
    ) -> Result<Arc<Asset>, formats::Error> {
        let options = self.load_options(level, axes);
        self.load_with(path, Some(entry), &options, |progress| {
            formats::load_in(container, Some(entry), &options, progress)
        })
    }

    fn load_with(
        self: &Arc<Self>,
        path: &Path,
        entry: Option<&str>,
        options: &LoadOptions,
        load: impl FnOnce(formats::Progress<'_>) -> Result<Loaded, formats::Error>,
    ) -> Result<Arc<Asset>, formats::Error> {
        let key = Key {
            path: path.canonicalize().unwrap_or_else(|_| path.to_owned()),
            entry: entry.map(ToOwned::to_owned),
            level: options.level,
            axes: options.axes.map(|a| a.to_string()),
        };
        let stamp = stamp_of(&key.path);
        if let Some(known) = lock(&self.entries)
            .get(&key)
            .filter(|known| known.stamp == stamp)
        {
            return Ok(Arc::clone(&known.asset));
        }
        match &self.behind {
            Some(behind) => Err(self.load_later(behind, key, stamp, options)),
            None => self.load_now(key, stamp, load),
        }
    }

    /// Starts a load on a thread of its own unless it runs or has failed already; the error says
    /// which.
    fn load_later(
        self: &Arc<Self>,
        behind: &Behind,
        key: Key,
        stamp: Stamp,
        options: &LoadOptions,
    ) -> formats::Error {
        let mut loads = lock(&behind.loads);
        if let Some((_, error)) = (loads.failed.get(&key)).filter(|(of, _)| *of == stamp) {
            return error.clone();
        }
        let not_yet = formats::Error {
            code: formats::Code::Io,
            message: "still being loaded".to_owned(),
            file: key.path.display().to_string(),
            entry: key.entry.clone(),
        };
        if loads.running.contains(&key) {
            loads.has_put_off = true;
            return not_yet;
        }
        let (cache, options, running) = (Arc::clone(self), options.clone(), key.clone());
        let thread = std::thread::Builder::new().name("load".to_owned());
        let spawned = thread.spawn(move || {
            let outcome = match key.entry.clone() {
                None => {
                    let path = key.path.clone();
                    cache.load_now(key.clone(), stamp.clone(), |progress| {
                        formats::load(&path, &options, progress)
                    })
                }
                Some(entry) => formats::open_with_limit(&key.path, options.unpacked_bytes_max)
                    .and_then(|container| {
                        cache.load_now(key.clone(), stamp.clone(), |progress| {
                            formats::load_in(container.as_ref(), Some(&entry), &options, progress)
                        })
                    }),
            };
            if let Some(behind) = &cache.behind {
                let mut loads = lock(&behind.loads);
                loads.running.remove(&key);
                match outcome {
                    Ok(_) => loads.failed.remove(&key),
                    Err(error) => loads.failed.insert(key, (stamp, error)),
                };
                drop(loads);
                (behind.ended)();
            }
        });
        match spawned {
            Ok(_) => {
                loads.running.insert(running);
                loads.has_put_off = true;
                not_yet
            }
            Err(error) => formats::Error {
                message: format!("cannot start a thread to load it: {error}"),
                ..not_yet
            },
        }
    }

    fn load_now(
        &self,
        key: Key,
        stamp: Stamp,
        load: impl FnOnce(formats::Progress<'_>) -> Result<Loaded, formats::Error>,
    ) -> Result<Arc<Asset>, formats::Error> {
        let file_name = key.path.file_name().map(|n| n.to_string_lossy());
        let shown = match (&key.entry, file_name) {
            (Some(entry), _) => entry.clone(),
            (None, Some(name)) => name.into_owned(),
            (None, None) => "splats".to_owned(),
        };
        let loaded = load(&|share| (self.progress)(&shown, share))?;
        for warning in &loaded.warnings {
            tracing::warn!("{shown}: {warning}");
        }
        tracing::debug!(
            "{shown}: {:?}, {} splats, SH degree {}, axes {}",
            loaded.format,
            loaded.splats.len(),
            loaded.splats.sh_degree,
            loaded.axes
        );
        let facts = loaded.avatar.as_ref().map(|avatar| {
            json!({
                "manifest": avatar.manifest,
                "states": avatar.states,
                "asset_type": avatar.asset_type.as_str(),
            })
        });
        let asset = Arc::new(Asset {
            splats: Arc::new(loaded.splats),
            body: loaded.avatar.map(|avatar| Arc::clone(&avatar.body)),
            facts: Arc::new(facts.unwrap_or_default()),
            axes: loaded.axes,
        });
        lock(&self.entries).insert(
            key,
            Entry {
                stamp,
                asset: Arc::clone(&asset),
            },
        );
        Ok(asset)
    }

    /// The file that a set of splats was loaded from, and the axes that were asked for; `None` for what is
    /// no file of its own.
    #[must_use]
    pub fn file_of(&self, splats: &Arc<Splats>) -> Option<(PathBuf, Option<String>)> {
        let entries = lock(&self.entries);
        // Of a map, but no two entries hold the same set.
        let mut keys = entries
            .iter()
            .filter(|(_, entry)| Arc::ptr_eq(&entry.asset.splats, splats))
            .map(|(key, _)| key);
        let key = keys.next().filter(|key| key.entry.is_none())?;
        key.path
            .is_file()
            .then(|| (key.path.clone(), key.axes.clone()))
    }

    /// Forgets what no script and no frame holds any more. Call it after a scene was switched or
    /// reloaded, never while one is loading.
    pub fn release_unused(&self) {
        lock(&self.entries).retain(|_, entry| Arc::strong_count(&entry.asset.splats) > 1);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic elsewhere leaves maps that are still whole: entries are inserted at once.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Files that a stamp looks at, at most; a folder with more is a mistake, not a scan.
const STAMP_FILES_MAX: usize = 4096;

fn stamp_of(path: &Path) -> Stamp {
    let is_manifest = path.file_name().is_some_and(|name| name == "lod-meta.json");
    let mut stamp = Stamp::new();
    match path.parent() {
        Some(folder) if is_manifest => add_folder(folder, 2, &mut stamp),
        _ if path.is_dir() => add_folder(path, 2, &mut stamp),
        _ => add(path, &mut stamp),
    }
    stamp.sort_unstable();
    stamp
}

fn add(path: &Path, stamp: &mut Stamp) {
    if let Ok(meta) = path.metadata() {
        stamp.push((path.to_owned(), meta.len(), meta.modified().ok()));
    }
}

fn add_folder(folder: &Path, depth: u32, stamp: &mut Stamp) {
    let Ok(entries) = folder.read_dir() else {
        return;
    };
    for path in entries.flatten().map(|entry| entry.path()) {
        if stamp.len() >= STAMP_FILES_MAX {
            return;
        }
        if !path.is_dir() {
            add(&path, stamp);
        } else if depth > 1 {
            add_folder(&path, depth - 1, stamp);
        }
    }
}
