//! Sees saved files change, whatever way an editor saves them.
//!
//! Directories are watched, never files: an editor that renames a new file over the old one would
//! leave a watch on a file that nobody has any more (notify #113 and #531). A file counts as
//! changed when its content differs from what was last loaded; touching or reading it does nothing,
//! so a reload cannot set off the next. Closing a written file and renaming one into place are
//! acted on at once, since the content is whole then; anything else waits for a quiet period.
//!
//! It does not know what the files mean. Where the system hands out no watch (limits, network
//! file systems), the files are asked by their stamp now and then, and that is said once.

use notify::event::{AccessKind, AccessMode, ModifyKind, RenameMode};
use notify::{EventKind, RecursiveMode, Watcher};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant, SystemTime};

/// How long a file must be left alone before a change without a close or rename counts. Programs
/// that write in several goes leave gaps of a few milliseconds; people do not notice 100.
const QUIET: Duration = Duration::from_millis(100);

/// How often stamps are asked where directories can be watched: only network file systems, which
/// send no events, depend on it.
const STAMPS_SELDOM: Duration = Duration::from_secs(2);

/// How often stamps are asked where some directory cannot be watched.
const STAMPS_OFTEN: Duration = Duration::from_millis(250);

/// Files above this size are told apart by stamp until their first change: hashing gigabytes
/// that nobody touches would only hold up the small files.
const HASHED_UNASKED_BYTES_MAX: u64 = 64 << 20;

/// SHA-256 of a file's content; its text is the first 12 hex digits, as `sha256sum` prints them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ContentHash([u8; 32]);

impl ContentHash {
    /// Of bytes in memory.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Of a file, read in pieces.
    ///
    /// # Errors
    /// The file cannot be opened or read.
    pub fn of_file(path: &Path) -> std::io::Result<Self> {
        let mut file = std::fs::File::open(path)?;
        let mut state = Sha256::new();
        let mut piece = vec![0; 1 << 16];
        loop {
            match file.read(&mut piece)? {
                0 => return Ok(Self(state.finalize().into())),
                n => state.update(&piece[..n]),
            }
        }
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..6].iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// One file that is not what it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The file, spelled as it was given to [`Watch::set`].
    pub path: PathBuf,
    /// What it holds now; `None` when it is gone or cannot be read.
    pub hash: Option<ContentHash>,
    /// When the system reported it.
    pub seen_at: Instant,
}

/// What a load found in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loaded {
    /// Somebody else read it, or nobody: what it holds when the watch begins counts.
    Unknown,
    /// It was not there.
    Missing,
    /// This.
    Content(ContentHash),
}

/// What to watch.
#[derive(Clone, Debug, Default)]
pub struct WatchSet {
    /// Files, with what was loaded of them. A file need not exist: its coming is a change.
    pub files: BTreeMap<PathBuf, Loaded>,
    /// Folders in which every file with this extension counts, also those that come later.
    pub trees: Vec<(PathBuf, &'static str)>,
}

enum Message {
    Events(notify::Result<notify::Event>),
    Set(WatchSet),
    Stop,
}

/// The watcher: one thread, which ends when this is dropped.
pub struct Watch {
    sender: Sender<Message>,
}

impl Watch {
    /// Starts watching nothing. `report` runs on the watcher's thread.
    pub fn new(report: impl FnMut(Vec<Change>) + Send + 'static) -> std::io::Result<Self> {
        let (sender, receiver) = channel();
        let for_events = sender.clone();
        std::thread::Builder::new()
            .name("watch".into())
            .spawn(move || Worker::new(for_events, report).run(&receiver))?;
        Ok(Self { sender })
    }

    /// Replaces the watch set. A file whose content already differs from the hash given is
    /// reported at once, so nothing saved between the load and this call is lost.
    pub fn set(&self, set: WatchSet) {
        // The thread ends only with `Stop`, so this cannot fail while `self` lives.
        let _ = self.sender.send(Message::Set(set));
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.sender.send(Message::Stop);
    }
}

/// What tells that a file may have changed, without reading it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    bytes: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let meta = std::fs::metadata(path).ok().filter(|m| m.is_file())?;
        Some(Self {
            bytes: meta.len(),
            modified: meta.modified().ok(),
        })
    }
}

/// What is known of one watched file.
struct Known {
    stamp: Option<Stamp>,
    /// `None`: not hashed yet, or not there.
    hash: Option<ContentHash>,
    /// What [`Watch::set`] was last told was loaded. Only news of it counts: a failing load may not
    /// have come to this file again, and must not make an old change look new.
    loaded: Loaded,
    /// Event paths that mean this file: itself with its folder resolved, and a link's target.
    aliases: Vec<PathBuf>,
}

struct Worker<F> {
    report: F,
    watcher: Option<notify::RecommendedWatcher>,
    watched_dirs: BTreeMap<PathBuf, RecursiveMode>,
    set: WatchSet,
    known: BTreeMap<PathBuf, Known>,
    /// Files to look at, and when.
    due: BTreeMap<PathBuf, Instant>,
    /// Files that were gone or empty at the last look, which may not be meant.
    empty: BTreeSet<PathBuf>,
    /// Some directory could not be watched.
    is_polling: bool,
    stamps_asked_at: Instant,
}

impl<F: FnMut(Vec<Change>)> Worker<F> {
    fn new(for_events: Sender<Message>, report: F) -> Self {
        let watcher = notify::recommended_watcher(move |event| {
            let _ = for_events.send(Message::Events(event));
        });
        let mut worker = Self {
            report,
            watcher: None,
            watched_dirs: BTreeMap::new(),
            set: WatchSet::default(),
            known: BTreeMap::new(),
            due: BTreeMap::new(),
            empty: BTreeSet::new(),
            is_polling: false,
            stamps_asked_at: Instant::now(),
        };
        match watcher {
            Ok(watcher) => worker.watcher = Some(watcher),
            Err(error) => worker.poll_because(&error),
        }
        worker
    }

    fn run(mut self, receiver: &Receiver<Message>) {
        loop {
            let stamps_at = self.stamps_asked_at
                + if self.is_polling {
                    STAMPS_OFTEN
                } else {
                    STAMPS_SELDOM
                };
            let wake_at = self.due.values().copied().min().unwrap_or(stamps_at);
            let wake_at = wake_at.min(stamps_at);
            match receiver.recv_timeout(wake_at.saturating_duration_since(Instant::now())) {
                Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(Message::Set(set)) => self.replace(set),
                Ok(Message::Events(Ok(event))) => self.note(&event),
                Ok(Message::Events(Err(error))) => self.poll_because(&error),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if Instant::now() >= stamps_at {
                self.ask_stamps();
            }
            self.look_at_due();
        }
    }

    fn poll_because(&mut self, error: &dyn fmt::Display) {
        if !self.is_polling {
            self.is_polling = true;
            tracing::warn!(
                target: "splatstage::reload",
                "folders cannot be watched ({error}): asking the files four times a second instead"
            );
        }
    }

    fn replace(&mut self, set: WatchSet) {
        self.set = set;
        let mut files = self.set.files.clone();
        for (root, extension) in &self.set.trees {
            for path in files_below(root, extension) {
                files.entry(path).or_insert(Loaded::Unknown);
            }
        }
        self.known.retain(|path, _| files.contains_key(path));
        self.due.retain(|path, _| files.contains_key(path));
        self.watch_dirs_of(&files);
        // Known content is set only now that its folder is watched, so that no change falls
        // between the two.
        let now = Instant::now();
        for (path, loaded) in files {
            let is_new = !self.known.contains_key(&path);
            let known = self.known.entry(path.clone()).or_insert_with(|| Known {
                stamp: None,
                hash: None,
                loaded: Loaded::Unknown,
                aliases: Vec::new(),
            });
            known.aliases = aliases(&path);
            let is_news = loaded != known.loaded;
            let before = known.hash;
            match loaded {
                Loaded::Content(hash) if is_news => known.hash = Some(hash),
                Loaded::Missing if is_news => (known.hash, known.stamp) = (None, None),
                Loaded::Unknown if is_new => {
                    known.stamp = Stamp::of(&path);
                    if (known.stamp).is_some_and(|s| s.bytes <= HASHED_UNASKED_BYTES_MAX) {
                        known.hash = ContentHash::of_file(&path).ok();
                    }
                    continue;
                }
                _ => continue,
            }
            known.loaded = loaded;
            if is_new || known.hash != before {
                self.due.entry(path).or_insert(now);
            }
        }
    }

    /// Watches the folders that hold `files`; where a folder is missing, the nearest one above it.
    fn watch_dirs_of(&mut self, files: &BTreeMap<PathBuf, Loaded>) {
        let mut wanted = BTreeMap::new();
        for path in files.keys().flat_map(|p| aliases(p)) {
            if let Some(dir) = path.ancestors().skip(1).find(|d| d.is_dir()) {
                wanted
                    .entry(dir.to_owned())
                    .or_insert(RecursiveMode::NonRecursive);
            }
        }
        for (root, _) in &self.set.trees {
            wanted.insert(resolved(root), RecursiveMode::Recursive);
        }
        let Some(mut watcher) = self.watcher.take() else {
            return;
        };
        let old = std::mem::take(&mut self.watched_dirs);
        for (dir, mode) in &old {
            if wanted.get(dir) != Some(mode) {
                // Fails only for a folder that is gone, whose watch went with it.
                let _ = watcher.unwatch(dir);
            }
        }
        for (dir, mode) in wanted {
            if old.get(&dir) == Some(&mode) {
                self.watched_dirs.insert(dir, mode);
                continue;
            }
            match watcher.watch(&dir, mode) {
                Ok(()) => {
                    self.watched_dirs.insert(dir, mode);
                }
                Err(error) => self.poll_because(&error),
            }
        }
        self.watcher = Some(watcher);
    }

    fn note(&mut self, event: &notify::Event) {
        let now = Instant::now();
        if event.need_rescan() {
            let all: Vec<PathBuf> = self.known.keys().cloned().collect();
            self.due.extend(all.into_iter().map(|path| (path, now)));
            return;
        }
        let Some(urgency) = urgency(event.kind) else {
            return;
        };
        let mut is_structure = false;
        for (index, path) in event.paths.iter().enumerate() {
            // Of a rename's two names, only the second holds a whole file now.
            let is_left =
                event.kind == EventKind::Modify(ModifyKind::Name(RenameMode::Both)) && index == 0;
            let urgency = if is_left { QUIET } else { urgency };
            let hits: Vec<PathBuf> = self
                .known
                .iter()
                .filter(|(_, known)| known.aliases.iter().any(|alias| alias == path))
                .map(|(path, _)| path.clone())
                .collect();
            // A folder on the way to a file came or went, or a new file in a tree.
            is_structure |= hits.is_empty()
                && !matches!(event.kind, EventKind::Access(_))
                && (self.known.values().flat_map(|k| &k.aliases)).any(|a| a.starts_with(path));
            is_structure |= hits.is_empty()
                && (self.set.trees.iter()).any(|(root, extension)| {
                    path.starts_with(resolved(root))
                        && (path.is_dir() || path.extension().is_some_and(|e| e == *extension))
                });
            for hit in hits {
                self.due.insert(hit, now + urgency);
            }
        }
        if is_structure {
            self.restructure(now);
        }
    }

    /// Folders came or went: watch what there is now, and look at every file.
    fn restructure(&mut self, now: Instant) {
        let before: BTreeSet<PathBuf> = self.known.keys().cloned().collect();
        // Files of trees that appear here are new; their known content is "none".
        for (root, extension) in self.set.trees.clone() {
            for path in files_below(&root, extension) {
                self.known.entry(path.clone()).or_insert_with(|| Known {
                    stamp: None,
                    hash: None,
                    loaded: Loaded::Unknown,
                    aliases: aliases(&path),
                });
            }
        }
        for (path, known) in &mut self.known {
            known.aliases = aliases(path);
        }
        let files = self
            .known
            .keys()
            .map(|p| (p.clone(), Loaded::Unknown))
            .collect();
        self.watch_dirs_of(&files);
        for path in files.into_keys() {
            let wait = if before.contains(&path) {
                QUIET
            } else {
                Duration::ZERO
            };
            self.due.entry(path).or_insert(now + wait);
        }
    }

    fn ask_stamps(&mut self) {
        self.stamps_asked_at = Instant::now();
        for (path, known) in &self.known {
            if Stamp::of(path) != known.stamp {
                self.due
                    .entry(path.clone())
                    .or_insert(self.stamps_asked_at + QUIET);
            }
        }
    }

    fn look_at_due(&mut self) {
        let now = Instant::now();
        let mut ready: Vec<PathBuf> = (self.due.iter())
            .filter(|(_, at)| **at <= now)
            .map(|(path, _)| path.clone())
            .collect();
        // Small files first: a script must not wait for the hash of a scan.
        ready.sort_by_key(|path| Stamp::of(path).map_or(0, |s| s.bytes));
        let mut changes = Vec::new();
        for path in ready {
            self.due.remove(&path);
            let Some(known) = self.known.get_mut(&path) else {
                continue;
            };
            let stamp = Stamp::of(&path);
            let hash = ContentHash::of_file(&path).ok();
            let is_nothing = stamp.is_none_or(|s| s.bytes == 0);
            if is_nothing && known.hash != hash && !self.empty.remove(&path) {
                // Between two steps of the next save, perhaps: what is still gone or empty after
                // the quiet period is so.
                self.empty.insert(path.clone());
                self.due.insert(path, now + QUIET);
                continue;
            }
            self.empty.remove(&path);
            let was_there_unhashed = known.hash.is_none() && known.stamp.is_some();
            let is_same = known.hash == hash && !was_there_unhashed
                || was_there_unhashed && known.stamp == stamp;
            (known.stamp, known.hash) = (stamp, hash);
            if !is_same {
                changes.push(Change {
                    path,
                    hash,
                    seen_at: now,
                });
            }
        }
        if !changes.is_empty() {
            (self.report)(changes);
        }
    }
}

/// How long to wait after an event before the file is read; `None` for events that mean nothing.
fn urgency(kind: EventKind) -> Option<Duration> {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write))
        | EventKind::Modify(ModifyKind::Name(
            RenameMode::To | RenameMode::Both | RenameMode::Any,
        )) => Some(Duration::ZERO),
        EventKind::Access(_) => None,
        _ => Some(QUIET),
    }
}

/// `path` with every folder above it resolved, the last name kept.
fn resolved(path: &Path) -> PathBuf {
    if let Ok(whole) = path.canonicalize()
        && whole.is_dir()
    {
        return whole;
    }
    match (path.parent(), path.file_name()) {
        (Some(dir), Some(name)) => {
            let dir = if dir.as_os_str().is_empty() {
                Path::new(".")
            } else {
                dir
            };
            match dir.canonicalize() {
                Ok(dir) => dir.join(name),
                // The folder is missing too: resolve what there is above it.
                Err(_) => resolved(dir).join(name),
            }
        }
        _ => path.to_owned(),
    }
}

fn aliases(path: &Path) -> Vec<PathBuf> {
    let own = resolved(path);
    let target = path.canonicalize().ok().filter(|t| *t != own);
    std::iter::once(own).chain(target).collect()
}

fn files_below(root: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut dirs = vec![root.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            let path = entry.path();
            // Links to folders are not followed, so a loop of links cannot hold us.
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => dirs.push(path),
                Ok(_) if path.extension().is_some_and(|e| e == extension) => found.push(path),
                _ => {}
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A watch on `files` in a temporary folder, and what it reports.
    fn watched(files: &[&str]) -> (tempfile::TempDir, Watch, Receiver<Vec<Change>>) {
        let dir = tempfile::tempdir().unwrap();
        let mut set = WatchSet::default();
        for name in files {
            let path = dir.path().join(name);
            std::fs::write(&path, "one").unwrap();
            set.files
                .insert(path, Loaded::Content(ContentHash::of(b"one")));
        }
        let (sender, receiver) = channel();
        let watch = Watch::new(move |changes| {
            let _ = sender.send(changes);
        })
        .unwrap();
        watch.set(set);
        // Until the watch stands, nothing is reported; the first save must not race it.
        std::thread::sleep(Duration::from_millis(50));
        (dir, watch, receiver)
    }

    /// Hashes reported until `last` is among them or two seconds have passed.
    fn reported(receiver: &Receiver<Vec<Change>>, last: &str) -> Vec<Option<ContentHash>> {
        let mut hashes = Vec::new();
        let wanted = Some(ContentHash::of(last.as_bytes()));
        while !hashes.contains(&wanted) {
            let Ok(changes) = receiver.recv_timeout(Duration::from_secs(2)) else {
                break;
            };
            hashes.extend(changes.into_iter().map(|c| c.hash));
        }
        hashes
    }

    fn nothing_more(receiver: &Receiver<Vec<Change>>) -> bool {
        receiver.recv_timeout(Duration::from_millis(300)).is_err()
    }

    #[test]
    fn every_way_of_saving_is_seen_once() {
        let (dir, _watch, receiver) = watched(&["a.luau"]);
        let file = dir.path().join("a.luau");
        std::fs::write(&file, "two").unwrap();
        assert_eq!(reported(&receiver, "two").len(), 1, "truncate and write");
        assert!(nothing_more(&receiver), "one report a save");
        for content in ["three", "four"] {
            let fresh = dir.path().join("tmp");
            std::fs::write(&fresh, content).unwrap();
            std::fs::rename(&fresh, &file).unwrap();
            assert_eq!(reported(&receiver, content).len(), 1, "rename over");
        }
        // As vim does it: the old file becomes the backup, a new one is written.
        std::fs::rename(&file, dir.path().join("a.luau~")).unwrap();
        std::fs::write(&file, "five").unwrap();
        std::fs::remove_file(dir.path().join("a.luau~")).unwrap();
        assert_eq!(reported(&receiver, "five").len(), 1, "backup and write");
    }

    #[test]
    fn reading_touching_and_saving_the_same_again_report_nothing() {
        let (dir, _watch, receiver) = watched(&["a.luau"]);
        let file = dir.path().join("a.luau");
        std::fs::read(&file).unwrap();
        std::fs::write(&file, "one").unwrap();
        std::fs::File::open(&file)
            .unwrap()
            .set_modified(SystemTime::now() + Duration::from_secs(5))
            .unwrap();
        assert!(nothing_more(&receiver), "the content did not change");
    }

    #[test]
    fn a_file_that_is_lost_and_comes_back_is_seen() {
        let (dir, _watch, receiver) = watched(&["a.luau"]);
        let file = dir.path().join("a.luau");
        std::fs::remove_file(&file).unwrap();
        let gone = receiver.recv_timeout(Duration::from_secs(2)).unwrap();
        assert_eq!(gone[0].hash, None, "gone");
        std::fs::write(&file, "one").unwrap();
        assert_eq!(reported(&receiver, "one").len(), 1, "back");
    }

    #[test]
    fn a_missing_file_in_a_missing_folder_is_seen_coming() {
        let (dir, watch, receiver) = watched(&[]);
        let file = dir.path().join("lib/deep/b.luau");
        let mut set = WatchSet::default();
        set.files.insert(file.clone(), Loaded::Missing);
        watch.set(set);
        std::thread::sleep(Duration::from_millis(50));
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "here").unwrap();
        assert!(
            reported(&receiver, "here").contains(&Some(ContentHash::of(b"here"))),
            "seen"
        );
    }

    #[test]
    fn a_change_before_the_watch_stands_is_reported() {
        let (dir, watch, receiver) = watched(&["a.luau"]);
        let mut set = WatchSet::default();
        let (changed, late) = (dir.path().join("a.luau"), dir.path().join("late.luau"));
        std::fs::write(&late, "late").unwrap();
        let older = Loaded::Content(ContentHash::of(b"older"));
        set.files.insert(changed, older);
        watch.set(set.clone());
        let count = reported(&receiver, "one").len();
        assert_eq!(count, 1, "what was loaded is older");
        set.files.insert(late, Loaded::Missing);
        watch.set(set.clone());
        assert_eq!(reported(&receiver, "late").len(), 1, "it was missing");
        // The same said again is no news.
        watch.set(set);
        assert!(nothing_more(&receiver), "reported once");
    }

    #[test]
    fn trees_report_new_files_of_their_kind_only() {
        let (dir, watch, receiver) = watched(&[]);
        std::fs::create_dir(dir.path().join("shared")).unwrap();
        watch.set(WatchSet {
            trees: vec![(dir.path().to_owned(), "wgsl")],
            ..WatchSet::default()
        });
        std::thread::sleep(Duration::from_millis(50));
        std::fs::write(dir.path().join("shared/notes.txt"), "no").unwrap();
        assert!(nothing_more(&receiver), "not a shader");
        std::fs::write(dir.path().join("shared/a.wgsl"), "yes").unwrap();
        assert!(
            reported(&receiver, "yes").contains(&Some(ContentHash::of(b"yes"))),
            "a shader"
        );
    }
}
