//! The files to serve. Every request of the index lists the folders again.

use super::cards::CardsAt;
use crate::paths::{self, Found, Links};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
#[cfg(unix)]
use vramscope_dataset::WITHOUT_WAITING;
use vramscope_dataset::{checked, open_regular};
use vramscope_report::sidecar;

/// A file that was modified within this time may be incomplete.
const SETTLED: Duration = Duration::from_secs(2);

/// The files and folders of the command line, and the files found in them.
pub(crate) struct Shelf {
    named: Vec<PathBuf>,
    links: Links,
    seen: Mutex<Seen>,
}

/// Every file found so far. Its index is its number in addresses.
#[derive(Default)]
struct Seen {
    paths: Vec<PathBuf>,
    /// Ordered by bytes: paths compare slowly.
    numbers: BTreeMap<OsString, usize>,
}

impl Seen {
    /// The number of a file. A new file gets the next number.
    fn number(&mut self, path: &Path) -> usize {
        if let Some(&number) = self.numbers.get(path.as_os_str()) {
            return number;
        }
        let number = self.paths.len();
        self.paths.push(path.to_owned());
        self.numbers.insert(path.as_os_str().to_owned(), number);
        number
    }
}

/// The run index that the page opens.
#[derive(Serialize)]
pub(crate) struct Index {
    pub(crate) title: String,
    pub(crate) files: Vec<Entry>,
    /// Files may be added: the page should ask again.
    watch: bool,
    /// Where the cards of the files are; absent for few files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cards: Option<CardsAt>,
}

#[derive(Serialize)]
pub(crate) struct Entry {
    /// The number in addresses.
    #[serde(skip)]
    pub(crate) number: usize,
    /// Changes when the file changes.
    #[serde(skip)]
    pub(crate) version: String,
    path: String,
    /// Relative to the index. Changes when the file changes.
    url: String,
    bytes: u64,
    /// Whether a search of a folder found the file, which may be no snapshot.
    pub(crate) searched: bool,
    /// The address of the file beside the snapshot; null if there is none.
    beside: Option<String>,
    /// The start of the addresses of source files; null if no folder of source is named.
    source: Option<String>,
}

impl Shelf {
    pub(crate) fn new(named: Vec<PathBuf>, links: Links) -> Self {
        Self { named, links, seen: Mutex::default() }
    }

    /// True when the command line has no path, and only the page is served.
    pub(crate) fn is_empty(&self) -> bool {
        self.named.is_empty()
    }

    /// Lists the regular files. A file that may still be written is left out. `with_source` tells
    /// whether there is source to ask for.
    pub(crate) fn index(&self, with_source: bool) -> Index {
        let now = SystemTime::now();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let mut files = Vec::new();
        for Found { path, is_named, metadata } in paths::expand(&self.named, self.links) {
            let Some(metadata) = metadata.filter(Metadata::is_file) else { continue };
            let modified = metadata.modified().unwrap_or(UNIX_EPOCH);
            // A modification time in the future, after the clock was set back, hides no file.
            if now.duration_since(modified).is_ok_and(|age| age < SETTLED) {
                continue;
            }
            let beside = sidecar::path_of(&path.to_string_lossy()).map(PathBuf::from);
            let beside = beside.and_then(|path| {
                let metadata = path.metadata().ok().filter(Metadata::is_file)?;
                let is_served = self.may_serve(&path);
                is_served.then(|| format!("{}?{}", seen.number(&path), version(&metadata)))
            });
            let number = seen.number(&path);
            let version = version(&metadata);
            files.push(Entry {
                number,
                beside,
                source: with_source.then(|| format!("{number}/source/")),
                url: format!("{number}?{version}"),
                version,
                path: path.to_string_lossy().into_owned(),
                bytes: metadata.len(),
                searched: !is_named,
            });
        }
        Index { title: paths::title(&self.named), files, watch: true, cards: None }
    }

    /// The file with this number from an index, and its version. `None` if it is no longer there,
    /// if it is no regular file, or if a link now leads out of the served folders.
    pub(crate) fn file(&self, number: usize) -> Option<(PathBuf, String)> {
        let path = {
            let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.paths.get(number)?.clone()
        };
        let metadata = path.metadata().ok().filter(Metadata::is_file)?;
        self.may_serve(&path).then(|| (path, version(&metadata)))
    }

    /// [`Self::file`], opened. A path that changes meanwhile opens no file out of the served
    /// folders, and nothing but a regular file.
    pub(crate) fn open(&self, number: usize) -> Option<(PathBuf, File, String)> {
        let (path, _) = self.file(number)?;
        let file = if self.may_lead_anywhere(&path) {
            open_regular(&path).ok()?
        } else {
            let target = path.canonicalize().ok()?;
            let mut roots = self.named.iter().filter_map(|named| named.canonicalize().ok());
            roots.find_map(|root| {
                let below = target.strip_prefix(&root).ok()?;
                let folder = Dir::open_ambient_dir(&root, ambient_authority()).ok()?;
                checked(folder.open_with(below, &reading()).ok()?.into_std()).ok()
            })?
        };
        let version = version(&file.metadata().ok()?);
        Some((path, file, version))
    }

    /// A file may be replaced by a link after it was listed.
    fn may_serve(&self, path: &Path) -> bool {
        if self.may_lead_anywhere(path) {
            return true;
        }
        let Ok(target) = path.canonicalize() else { return false };
        let mut roots = self.named.iter().filter_map(|named| named.canonicalize().ok());
        roots.any(|root| target.starts_with(root))
    }

    /// Whether a path was named itself, so that it may be a link to any place.
    fn may_lead_anywhere(&self, path: &Path) -> bool {
        let is_beside = |named: &PathBuf| {
            let beside = sidecar::path_of(&named.to_string_lossy()).map(PathBuf::from);
            beside.is_some_and(|beside| beside == path) && !path.is_symlink()
        };
        self.links == Links::Everywhere
            || self.named.iter().any(|named| named == path || is_beside(named))
    }
}

/// Options for reading. Opening a pipe does not wait for its other end.
fn reading() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use cap_std::fs::OpenOptionsExt as _;
        options.custom_flags(WITHOUT_WAITING);
    }
    options
}

/// A text that changes when the file changes.
fn version(metadata: &Metadata) -> String {
    let modified = metadata.modified().unwrap_or(UNIX_EPOCH);
    let age = modified.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis());
    format!("{age}-{}", metadata.len())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// An empty folder of this test.
    fn folder(name: &str) -> PathBuf {
        let folder =
            std::env::temp_dir().join(format!("vramscope-shelf-{name}-{}", std::process::id()));
        if folder.is_dir() {
            fs::remove_dir_all(&folder).expect("the folder can be emptied");
        }
        fs::create_dir_all(&folder).expect("a folder can be made");
        folder
    }

    fn put(path: &Path) {
        let file = fs::File::create(path).expect("a file can be made");
        file.set_modified(UNIX_EPOCH).expect("times can be set");
    }

    fn names(shelf: &Shelf) -> Vec<String> {
        let name = |entry: Entry| {
            let name = Path::new(&entry.path).file_name().expect("files have a name");
            name.to_string_lossy().into_owned()
        };
        shelf.index(false).files.into_iter().map(name).collect()
    }

    #[test]
    fn links_that_leave_the_folder_are_not_served_unless_asked_for() {
        let root = folder("links");
        let (run, other) = (root.join("run"), root.join("other"));
        for part in [&run, &other] {
            fs::create_dir(part).expect("a folder can be made");
        }
        put(&run.join("rank0.pickle"));
        put(&other.join("secret.pickle"));
        symlink(other.join("secret.pickle"), run.join("out.pickle")).expect("a link");
        symlink(&other, run.join("folder")).expect("a link");
        symlink(&run, run.join("loop")).expect("a link");
        symlink(run.join("rank0.pickle"), run.join("same.pickle")).expect("a link");

        let inside = Shelf::new(vec![run.clone()], Links::Inside);
        assert_eq!(names(&inside), ["rank0.pickle"]);
        let everywhere = Shelf::new(vec![run.clone()], Links::Everywhere);
        assert_eq!(names(&everywhere), ["secret.pickle", "rank0.pickle"]);
        let named = Shelf::new(vec![run.join("out.pickle")], Links::Inside);
        assert_eq!(names(&named), ["out.pickle"]);
        assert!(named.file(0).is_some());

        // A file that becomes a link after it was listed.
        assert!(inside.file(0).is_some());
        fs::remove_file(run.join("rank0.pickle")).expect("the file can be removed");
        assert!(inside.file(0).is_none());
        symlink(other.join("secret.pickle"), run.join("rank0.pickle")).expect("a link");
        assert!(inside.file(0).is_none());
        assert!(everywhere.file(1).is_some());
        fs::remove_dir_all(&root).expect("the folder can be removed");
    }

    /// Another process turns the file into a link and back, while the server opens it.
    #[test]
    fn a_link_that_comes_and_goes_opens_no_file_outside() {
        let root = folder("race");
        let run = root.join("run");
        fs::create_dir(&run).expect("a folder can be made");
        let [file, kept, secret] = ["rank0.pickle", "kept", "secret"].map(|name| run.join(name));
        let secret = root.join(secret.file_name().expect("a name"));
        fs::write(&file, "mine").expect("a file");
        fs::write(&secret, "secret").expect("a file");
        fs::hard_link(&file, &kept).expect("a second name");
        let shelf = Shelf::new(vec![run.clone()], Links::Inside);
        shelf.seen.lock().expect("no panic").number(&file);
        let is_done = std::sync::atomic::AtomicBool::new(false);
        let opened = std::thread::scope(|scope| {
            scope.spawn(|| {
                let link = run.join("link");
                while !is_done.load(std::sync::atomic::Ordering::Relaxed) {
                    symlink(&secret, &link).expect("a link");
                    fs::rename(&link, &file).expect("it takes the place");
                    fs::hard_link(&kept, &link).expect("a second name");
                    fs::rename(&link, &file).expect("it takes the place");
                }
            });
            let mut opened = 0;
            for _ in 0..4000 {
                let Some((_, file, _)) = shelf.open(0) else { continue };
                assert_eq!(std::io::read_to_string(file).expect("text"), "mine");
                opened += 1;
            }
            is_done.store(true, std::sync::atomic::Ordering::Relaxed);
            opened
        });
        assert!(opened > 0);
        fs::remove_dir_all(&root).expect("the folder can be removed");
    }

    /// Another process turns the file into a pipe and back, while the server opens it.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "a thread that waits for a pipe does not end")]
    fn a_pipe_that_comes_and_goes_is_not_waited_for() {
        let root = folder("pipe");
        let [file, kept, pipe, next] =
            ["rank0.pickle", "kept", "pipe", "next"].map(|name| root.join(name));
        fs::write(&file, "mine").expect("a file");
        fs::hard_link(&file, &kept).expect("a second name");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.is_ok_and(|status| status.success()), "mkfifo");
        // Named files are opened by their path, others below their folder.
        let shelves = [
            Shelf::new(vec![root.clone()], Links::Inside),
            Shelf::new(vec![file.clone()], Links::Inside),
        ];
        for shelf in &shelves {
            shelf.seen.lock().expect("no panic").number(&file);
        }
        let is_done = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let (swapping, file_name) = (is_done.clone(), file.clone());
        let swapper = std::thread::spawn(move || {
            while !swapping.load(std::sync::atomic::Ordering::Relaxed) {
                for other in [&pipe, &kept] {
                    fs::hard_link(other, &next).expect("a second name");
                    fs::rename(&next, &file_name).expect("it takes the place");
                    // Two names of one file: nothing was renamed.
                    drop(fs::remove_file(&next));
                }
            }
        });
        let (told, heard) = std::sync::mpsc::channel();
        // A thread that waits for the pipe does not end.
        std::thread::spawn(move || {
            let mut opened = 0;
            // On a busy machine the other thread may not run for a while.
            for tries in 0..1_000_000 {
                opened += shelves.iter().filter(|shelf| shelf.open(0).is_some()).count();
                if opened > 0 && tries >= 2000 {
                    break;
                }
            }
            told.send(opened)
        });
        let opened = heard.recv_timeout(std::time::Duration::from_mins(1)).expect("no open waits");
        is_done.store(true, std::sync::atomic::Ordering::Relaxed);
        swapper.join().expect("files can be renamed");
        assert!(opened > 0);
        fs::remove_dir_all(&root).expect("the folder can be removed");
    }

    #[test]
    fn a_file_beside_a_snapshot_is_listed_with_it() {
        let root = folder("beside");
        let run = root.join("run");
        fs::create_dir(&run).expect("a folder can be made");
        for name in ["rank0.pickle", "rank0.vramscope.json", "rank1.pickle.gz"] {
            put(&run.join(name));
        }
        put(&root.join("secret"));
        symlink(root.join("secret"), run.join("rank1.vramscope.json")).expect("a link");
        let shelf = Shelf::new(vec![run.clone()], Links::Inside);
        let [first, second] =
            <[Entry; 2]>::try_from(shelf.index(false).files).ok().expect("two files");
        let number = first.beside.as_deref().and_then(|url| url.split('?').next()?.parse().ok());
        let (path, _) = shelf.file(number.expect("an address")).expect("it is served");
        assert_eq!(path, run.join("rank0.vramscope.json"));
        assert_eq!(second.beside, None, "a link leads out of the folder");
        // It lies beside a file that is named, too.
        let named = Shelf::new(vec![run.join("rank0.pickle")], Links::Inside);
        assert!(named.index(false).files[0].beside.is_some());
        fs::remove_dir_all(&root).expect("the folder can be removed");
    }

    #[test]
    fn a_folder_or_a_pipe_in_place_of_a_file_is_not_served() {
        let root = folder("kinds");
        put(&root.join("rank0.pickle"));
        fs::create_dir(root.join("folder.pickle")).expect("a folder can be made");
        let made = std::process::Command::new("mkfifo").arg(root.join("pipe.pickle")).status();
        assert!(made.is_ok_and(|status| status.success()), "mkfifo");
        let shelf = Shelf::new(vec![root.clone()], Links::Inside);
        assert_eq!(names(&shelf), ["rank0.pickle"]);
        fs::remove_file(root.join("rank0.pickle")).expect("the file can be removed");
        fs::create_dir(root.join("rank0.pickle")).expect("a folder can be made");
        assert!(shelf.file(0).is_none());
        assert!(shelf.file(1).is_none());
        fs::remove_dir_all(&root).expect("the folder can be removed");
    }

    /// The map of numbers is asked once for each file: a look-up in a list would compare each path
    /// with all before it.
    #[test]
    fn files_keep_their_numbers_when_others_come() {
        let root = folder("many");
        let name = |n: u32| root.join(format!("rank{n:04}.pickle"));
        (0..1000).step_by(2).for_each(|n| put(&name(n)));
        let shelf = Shelf::new(vec![root.clone()], Links::Inside);
        assert_eq!(shelf.index(false).files.len(), 500);
        (1..1000).step_by(2).for_each(|n| put(&name(n)));
        let again = shelf.index(false).files;
        let numbers: Vec<usize> = again.iter().map(|file| file.number).collect();
        let old_and_new = (0..500).flat_map(|n| [n, 500 + n]);
        assert!(numbers.iter().copied().eq(old_and_new), "{numbers:?}");
        fs::remove_dir_all(&root).expect("the folder can be removed");
    }
}
