//! Opens files that a search of a folder found. Anyone may have put them there, and may put
//! something else in their place before they are opened.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::Path;

/// Open flags that keep a pipe from waiting for its other end. Regular files ignore them.
#[cfg(unix)]
pub const WITHOUT_WAITING: i32 = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();

/// Opens a regular file for reading. A pipe, a device or a folder in its place is refused at once.
///
/// # Errors
/// The file cannot be opened. `InvalidInput` if it is no regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    checked(without_waiting(File::options().read(true)).open(path)?)
}

/// The file, if it is regular.
///
/// # Errors
/// `InvalidInput` if it is not.
pub fn checked(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(ErrorKind::InvalidInput, "it is no regular file"))
}

/// Open options that keep a pipe from waiting for its other end.
pub(crate) fn without_waiting(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.custom_flags(WITHOUT_WAITING);
    }
    options
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::{Cards, Plan};
    use std::process::Command;
    use std::sync::mpsc;
    use std::time::Duration;

    /// The result of work that must not wait.
    #[expect(clippy::disallowed_methods, reason = "a thread that waits for a pipe does not end")]
    fn at_once<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
        let (told, heard) = mpsc::channel();
        // A thread that waits for a pipe does not end.
        std::thread::spawn(move || told.send(work()));
        heard.recv_timeout(Duration::from_secs(20)).expect("it does not wait")
    }

    fn pipe(path: &Path) {
        assert!(Command::new("mkfifo").arg(path).status().is_ok_and(|made| made.success()));
    }

    #[test]
    fn a_pipe_in_place_of_a_part_is_refused_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let dataset = folder.path().to_owned();
        let part = dataset.join("ranks/run=r/iteration=0/part-0123456789abcdef.parquet");
        std::fs::create_dir_all(part.parent().expect("a folder")).expect("a folder");
        pipe(&part);
        let (count, plan) = at_once(move || {
            let cards = Cards::open(&dataset).expect("a folder").expect("a dataset");
            (cards.count(), Plan::new(&dataset, Vec::new()))
        });
        for why in [count.expect_err("a pipe"), plan.expect_err("a pipe")] {
            assert!(why.to_string().ends_with("it is no regular file"), "{why}");
        }
        assert!(part.exists());
    }

    #[test]
    fn a_pipe_or_a_folder_is_refused_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let named = folder.path().join("pipe");
        pipe(&named);
        std::fs::write(folder.path().join("file"), "text").expect("a file");
        for path in [named, folder.path().to_owned(), "/dev/null".into()] {
            let opened = at_once(move || open_regular(&path));
            assert_eq!(opened.expect_err("no file").to_string(), "it is no regular file");
        }
        assert!(open_regular(&folder.path().join("file")).is_ok());
    }
}
