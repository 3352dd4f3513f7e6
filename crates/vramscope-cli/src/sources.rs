//! Finds the source files of recorded paths in folders that the user names.
//!
//! A recorded path comes from a snapshot, which anyone may have written. So a file is only taken if
//! it lies in one of the folders, without links that lead out of them.

use crate::Failure;
use crate::arguments::SourceArguments;
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};
use std::time::UNIX_EPOCH;
use vramscope_dataset::open_regular;
use vramscope_report::annotate::FoundFile;

/// The largest source file that is read, in bytes.
pub(crate) const MAX_BYTES: u64 = 4 << 20;

/// The most files and folders of a source folder that are listed.
const MAX_ENTRIES: usize = 200_000;

/// Ends of names of source files. A recorded path may name any file of the folder, such as `.env`.
const ENDINGS: [&str; 16] = [
    "py", "pyi", "pyx", "pxd", "pxi", "cu", "cuh", "c", "cc", "cpp", "cxx", "h", "hh", "hpp",
    "inc", "rs",
];

/// Folders below a source folder that are not searched, beside those with a dot.
const SKIPPED: [&str; 3] = ["node_modules", "__pycache__", "site-packages"];

/// The folders that the user names, and the files in them.
pub(crate) struct Sources {
    /// Recorded prefixes in parts, with the folder in their place. The longest is first.
    maps: Vec<(Vec<String>, PathBuf)>,
    /// The files in the folders, by name.
    files: BTreeMap<String, Vec<Candidate>>,
    /// All folders, without links.
    roots: Vec<PathBuf>,
}

/// A file in a source folder.
struct Candidate {
    path: PathBuf,
    /// The number of parts of its path below the folder.
    below: usize,
}

fn is_source(path: &Path) -> bool {
    path.extension().is_some_and(|end| ENDINGS.iter().any(|known| end == *known))
}

impl Sources {
    /// Lists the folders.
    ///
    /// # Errors
    /// A folder cannot be listed, or has too many files.
    pub(crate) fn new(arguments: &SourceArguments) -> Result<Self, Failure> {
        let root = |folder: &Path| {
            let root = folder.canonicalize().and_then(|root| root.read_dir().map(|_| root));
            root.map_err(|why| Failure::Usage(format!("{}: {why}", folder.display())))
        };
        let mut sources = Self { maps: Vec::new(), files: BTreeMap::new(), roots: Vec::new() };
        for (prefix, folder) in &arguments.maps {
            let root = root(folder)?;
            sources.maps.push((parts(prefix), root.clone()));
            sources.roots.push(root);
        }
        sources.maps.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
        for folder in &arguments.folders {
            let root = root(folder)?;
            sources.list(&root)?;
            sources.roots.push(root);
        }
        Ok(sources)
    }

    /// Whether no folder is named.
    pub(crate) fn is_empty(&self) -> bool {
        self.roots.is_empty()
    }

    fn list(&mut self, root: &Path) -> Result<(), Failure> {
        let mut folders = vec![(root.to_owned(), 1)];
        let mut seen = 0;
        while let Some((folder, below)) = folders.pop() {
            // A folder below that cannot be listed has no files to show.
            let Ok(entries) = folder.read_dir() else { continue };
            for entry in entries.flatten() {
                seen += 1;
                if seen > MAX_ENTRIES {
                    return Err(Failure::Usage(format!(
                        "{} has more than {MAX_ENTRIES} files: name a folder in it",
                        root.display()
                    )));
                }
                let (Ok(kind), Ok(name)) = (entry.file_type(), entry.file_name().into_string())
                else {
                    continue;
                };
                if kind.is_dir() {
                    if !name.starts_with('.') && !SKIPPED.contains(&&*name) {
                        folders.push((entry.path(), below + 1));
                    }
                } else {
                    let candidate = Candidate { path: entry.path(), below };
                    self.files.entry(name).or_default().push(candidate);
                }
            }
        }
        Ok(())
    }

    /// The file of a recorded path, if there is one.
    ///
    /// # Errors
    /// Several files fit equally.
    pub(crate) fn find(&self, recorded: &str) -> Result<Option<PathBuf>, String> {
        let wanted = parts(recorded);
        // A path with `..` names no file of its own.
        if wanted.iter().any(|part| part == "..") || !is_source(Path::new(recorded)) {
            return Ok(None);
        }
        for (prefix, root) in &self.maps {
            let Some(rest) = wanted.strip_prefix(&prefix[..]).filter(|rest| !rest.is_empty())
            else {
                continue;
            };
            if let Some(path) = inside(root, &rest.iter().collect::<PathBuf>()) {
                return Ok(Some(path));
            }
        }
        let Some(name) = wanted.last() else { return Ok(None) };
        let candidates = self.files.get(name).map_or(&[][..], Vec::as_slice);
        let mut best: (usize, Vec<&Candidate>) = (0, Vec::new());
        for candidate in candidates {
            let common = common_end(&wanted, &candidate.path);
            // The name alone tells a file only directly in its folder: each package has a
            // `utils.py`.
            if common < required(&wanted, candidate.below) || common < best.0 {
                continue;
            }
            if common > best.0 {
                best = (common, Vec::new());
            }
            best.1.push(candidate);
        }
        match &best.1[..] {
            [] => Ok(None),
            [only] => Ok(Some(only.path.clone())),
            several => {
                let mut paths: Vec<_> =
                    several.iter().take(3).map(|one| one.path.display().to_string()).collect();
                paths.sort();
                Err(format!(
                    "{} files fit {recorded} equally, such as {}: choose with --source-map.",
                    several.len(),
                    paths.join(" and ")
                ))
            }
        }
    }

    /// Finds the file of a recorded path and reads it.
    ///
    /// # Errors
    /// Several files fit equally, or the file cannot be read.
    pub(crate) fn read(&self, recorded: &str) -> Result<Option<FoundFile>, String> {
        let Some(path) = self.find(recorded)? else { return Ok(None) };
        let failed = |why: std::io::Error| format!("{}: {why}", path.display());
        // A link may lead out of the folder, and the folder may have changed since it was listed.
        let target = path.canonicalize().map_err(failed)?;
        if !self.roots.iter().any(|root| target.starts_with(root)) {
            return Err(format!("{} leads out of its folder.", path.display()));
        }
        if !is_source(&target) {
            return Err(format!("{} leads to a file that is no source.", path.display()));
        }
        // Opening a device can act on it.
        if !target.is_file() {
            return Err(format!("{} is no file.", path.display()));
        }
        let file = open_regular(&target).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        let mut bytes = Vec::new();
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(format!("{} has more than {MAX_BYTES} bytes.", path.display()));
        }
        // Some file systems keep no times. Then it is not known if the file was changed, and the
        // lines are marked.
        let modified = metadata.modified().ok();
        let age = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        Ok(Some(FoundFile {
            path: path.to_string_lossy().into_owned(),
            text: String::from_utf8_lossy(&bytes).into_owned(),
            modified_us: age.and_then(|age| i64::try_from(age.as_micros()).ok()),
        }))
    }
}

/// The parts of a recorded path, of any system.
fn parts(path: &str) -> Vec<String> {
    path.split(['/', '\\']).filter(|part| !matches!(*part, "" | ".")).map(str::to_owned).collect()
}

/// A file below a folder. `None` if it does not exist or lies elsewhere, by a link, say.
fn inside(root: &Path, below: &Path) -> Option<PathBuf> {
    let is_plain = below.components().all(|part| matches!(part, Component::Normal(_)));
    let path = is_plain.then(|| root.join(below).canonicalize().ok())??;
    (path.starts_with(root) && path.is_file()).then_some(path)
}

/// The number of parts that a recorded path and a file have in common at their ends.
fn common_end(wanted: &[String], path: &Path) -> usize {
    let parts = path.components().rev();
    wanted.iter().rev().zip(parts).take_while(|(a, b)| b.as_os_str() == a.as_str()).count()
}

/// The fewest parts that must be equal: the path in an installed package, else the path below the
/// folder, or two parts.
fn required(wanted: &[String], below: usize) -> usize {
    let packages = wanted.iter().rposition(|part| part.ends_with("-packages"));
    packages.map_or(below.min(2), |at| wanted.len() - at - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A folder with these files, and the sources of some of its folders.
    struct Tree(PathBuf);

    impl Tree {
        fn new(name: &str, files: &[&str]) -> Self {
            let root = std::env::temp_dir()
                .join(format!("vramscope-sources-{name}-{}", std::process::id()));
            if root.is_dir() {
                fs::remove_dir_all(&root).expect("the folder can be emptied");
            }
            for file in files {
                let path = root.join(file);
                fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
                fs::write(path, file).expect("a file");
            }
            Self(root.canonicalize().expect("the folder is there"))
        }

        fn sources(&self, folders: &[&str], maps: &[(&str, &str)]) -> Sources {
            let arguments = SourceArguments {
                folders: folders.iter().map(|folder| self.0.join(folder)).collect(),
                maps: maps.iter().map(|(from, to)| ((*from).into(), self.0.join(to))).collect(),
            };
            let Ok(sources) = Sources::new(&arguments) else { panic!("folders can be listed") };
            sources
        }

        /// The file of a path, below the root; the reason if there is none.
        fn found(&self, sources: &Sources, recorded: &str) -> Result<Option<String>, String> {
            let below = |path: PathBuf| {
                let below = path.strip_prefix(&self.0).expect("it lies in the folder").to_owned();
                below.to_string_lossy().replace('\\', "/")
            };
            sources.find(recorded).map(|path| path.map(below))
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).expect("the folder can be removed");
        }
    }

    #[test]
    fn the_longest_common_end_decides() {
        let tree = Tree::new(
            "end",
            &["src/gpt.py", "src/model/gpt.py", "src/model/utils.py", "src/.venv/gpt.py"],
        );
        let sources = tree.sources(&["src"], &[]);
        let found = |recorded: &str| tree.found(&sources, recorded).expect("one file");
        assert_eq!(found("/train/gpt.py").as_deref(), Some("src/gpt.py"));
        assert_eq!(found("/train/model/gpt.py").as_deref(), Some("src/model/gpt.py"));
        assert_eq!(found(r"C:\train\model\gpt.py").as_deref(), Some("src/model/gpt.py"));
        // The name alone is not enough below the folder, or in a package.
        assert_eq!(found("/train/other/utils.py"), None);
        assert_eq!(found("/venv/site-packages/gpt/gpt.py"), None);
        assert_eq!(found("/venv/site-packages/model/gpt.py").as_deref(), Some("src/model/gpt.py"));
        for odd in ["", "/", "..", "/train/../gpt.py", "<string>", "gpt"] {
            assert_eq!(found(odd), None, "{odd}");
        }
    }

    #[test]
    fn files_that_fit_equally_are_refused() {
        let tree = Tree::new("equal", &["a/model/gpt.py", "b/model/gpt.py"]);
        let sources = tree.sources(&["a", "b"], &[]);
        let why = tree.found(&sources, "/train/model/gpt.py").expect_err("two files");
        assert!(why.starts_with("2 files fit /train/model/gpt.py equally"), "{why}");
        let told = tree.sources(&["a", "b"], &[("/train", "b")]);
        let found = tree.found(&told, "/train/model/gpt.py").expect("one file");
        assert_eq!(found.as_deref(), Some("b/model/gpt.py"));
    }

    #[test]
    fn the_longest_prefix_maps_a_path() {
        let tree = Tree::new("maps", &["a/x.py", "b/x.py", "secret.py"]);
        let sources = tree.sources(&[], &[("/train", "a"), ("/train/lib/", "b")]);
        let found = |recorded: &str| tree.found(&sources, recorded).expect("at most one");
        assert_eq!(found("/train/x.py").as_deref(), Some("a/x.py"));
        assert_eq!(found("/train/lib/x.py").as_deref(), Some("b/x.py"));
        for outside in ["/train/../secret.py", "/train", "/trainer/x.py", "/train/absent.py"] {
            assert_eq!(found(outside), None, "{outside}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_that_lead_out_and_large_files_are_not_read() {
        use std::os::unix::fs::symlink;
        let tree = Tree::new("links", &["src/real.py", "src/big.py", "secret.py"]);
        let src = tree.0.join("src");
        symlink(tree.0.join("secret.py"), src.join("out.py")).expect("a link");
        symlink(&tree.0, src.join("up")).expect("a link");
        let big =
            fs::File::options().write(true).open(src.join("big.py")).expect("the file is there");
        big.set_len(MAX_BYTES + 1).expect("it can grow");
        let sources = tree.sources(&["src"], &[("/mapped", "src")]);
        let read = |recorded: &str| sources.read(recorded);
        let real = read("/train/real.py").expect("it can be read").expect("it is there");
        assert_eq!(real.text, "src/real.py");
        assert!(real.modified_us.is_some());
        assert!(read("/train/out.py").expect_err("a link").contains("leads out of its folder"));
        std::fs::write(src.join(".env"), "KEY=1").expect("a file");
        symlink(src.join(".env"), src.join("env.py")).expect("a link");
        let sources = tree.sources(&["src"], &[("/mapped", "src")]);
        assert!(sources.read("/mapped/.env").is_ok_and(|found| found.is_none()));
        let leads = sources.read("/mapped/env.py").expect_err("a link to another kind of file");
        assert!(leads.contains("a file that is no source"), "{leads}");
        assert!(read("/train/big.py").expect_err("too large").contains("more than 4194304 bytes"));
        for out in ["/mapped/out.py", "/mapped/up/secret.py"] {
            assert!(read(out).is_ok_and(|found| found.is_none()) || read(out).is_err(), "{out}");
        }
        assert!(read("/train/up/secret.py").is_ok_and(|found| found.is_none()));
    }
}
