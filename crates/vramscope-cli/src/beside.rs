//! Reads the file beside a snapshot. Anyone may have put it there, so it must be a regular file of
//! limited size in the snapshot's own folder. A link that leaves the folder is refused: a report
//! would hand out what it leads to.

use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use vramscope_dataset::open_regular;
use vramscope_report::sidecar;

/// The bytes of the file beside a snapshot; `None` if there is none.
pub(crate) fn read(snapshot: &Path) -> Option<io::Result<Vec<u8>>> {
    let beside = sidecar::path_of(&snapshot.to_string_lossy()).map(PathBuf::from)?;
    match beside.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => Some(Err(error)),
        Ok(_) => Some(read_inside(&beside)),
    }
}

fn read_inside(beside: &Path) -> io::Result<Vec<u8>> {
    let refused = |why: &str| Err(io::Error::new(ErrorKind::InvalidInput, why.to_owned()));
    let target = beside.canonicalize()?;
    let folder = beside.parent().filter(|folder| *folder != Path::new(""));
    if !target.starts_with(folder.unwrap_or(Path::new(".")).canonicalize()?) {
        return refused("it is a link that leaves its folder");
    }
    // Opening a device can act on it.
    if !target.metadata()?.is_file() {
        return refused("it is no regular file");
    }
    let file = open_regular(&target)?;
    let mut json = Vec::new();
    // One byte more than is accepted: the file may have grown.
    file.take(sidecar::MAX_BYTES + 1).read_to_end(&mut json)?;
    Ok(json)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_regular_files_of_the_folder_are_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let run = folder.path().join("run");
        fs::create_dir(&run).expect("a folder");
        let (snapshot, beside) = (run.join("rank0.pickle"), run.join("rank0.vramscope.json"));
        assert!(read(&snapshot).is_none());
        fs::write(folder.path().join("key"), "secret").expect("a file");
        symlink("../key", &beside).expect("a link");
        let why = read(&snapshot).expect("a link").expect_err("it leaves the folder");
        assert_eq!(why.to_string(), "it is a link that leaves its folder");
        fs::remove_file(&beside).expect("a link");
        symlink("/dev/zero", &beside).expect("a link");
        assert!(read(&snapshot).expect("a link").is_err());
        fs::remove_file(&beside).expect("a link");
        fs::create_dir(&beside).expect("a folder");
        let why = read(&snapshot).expect("a folder").expect_err("it is no file");
        assert_eq!(why.to_string(), "it is no regular file");
        fs::remove_dir(&beside).expect("a folder");
        fs::write(run.join("other.json"), "{}").expect("a file");
        symlink("other.json", &beside).expect("a link");
        assert_eq!(read(&snapshot).expect("a link").expect("a file of the folder"), b"{}");
    }
}
