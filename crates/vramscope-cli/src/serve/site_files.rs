//! The files of the built site that the program has. The build script packs them into a release; a
//! debug build reads them.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// Starts of paths that the program does without. It sends the headers that `isolated` works
/// around, and needs no service worker. The licenses lie beside it. Gallery and documents are on
/// the site alone.
const LEFT_OUT: [&str; 8] = [
    "isolated/",
    "open/",
    "gallery/",
    "assets/gallery-",
    "docs/",
    "assets/docs-",
    "sw.js",
    "THIRD_PARTY.txt",
];

/// The built site.
pub(crate) fn site() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/site/dist")
}

/// The files by their path in the site, with slashes.
///
/// # Errors
///
/// If the site is not built, or cannot be listed.
pub(crate) fn all() -> io::Result<BTreeMap<String, PathBuf>> {
    let mut found = BTreeMap::new();
    let mut open = vec![(String::new(), site())];
    while let Some((start, folder)) = open.pop() {
        for entry in folder.read_dir()? {
            let path = entry?.path();
            let name = format!("{start}{}", path.file_name().unwrap_or_default().display());
            if path.is_dir() {
                open.push((format!("{name}/"), path));
            } else if !LEFT_OUT.iter().any(|left_out| name.starts_with(left_out)) {
                found.insert(name, path);
            }
        }
    }
    Ok(found)
}
