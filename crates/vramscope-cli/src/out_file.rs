//! Files that commands write. An output never replaces an input, a folder, a link or a file of
//! another kind, and has its name only when it is complete.

use crate::Failure;
use flate2::read::MultiGzDecoder;
use std::fs::{self, File, FileType, Metadata};
use std::io::{self, BufWriter, ErrorKind, Read as _, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;
use vramscope_dataset::open_regular;

/// Bytes at a file's start that tell its kind.
const HEAD: u64 = 64 << 10;

/// What a command writes. An earlier output of the same kind may be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A report.
    Html,
    /// Events for the Perfetto UI.
    Perfetto,
    /// A profile for speedscope.
    Speedscope,
    /// Folded stacks.
    Folded,
    /// A table.
    Csv,
    /// An index of ranks.
    Index,
    /// A snapshot. Recordings are alike, so none is replaced.
    Snapshot,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Html => "report of vramscope",
            Self::Perfetto => "trace for Perfetto",
            Self::Speedscope => "profile for speedscope",
            Self::Folded => "file of folded stacks",
            Self::Csv => "table of vramscope",
            Self::Index => "index of vramscope",
            Self::Snapshot => "file that may be replaced",
        }
    }

    /// Whether a file begins as one that a command wrote before.
    fn is_kind_of(self, head: &str) -> bool {
        let first = head.lines().next().unwrap_or_default();
        match self {
            Self::Html => head.starts_with("<!doctype html>") && head.contains("vramscope"),
            Self::Perfetto => first.starts_with(['{', '[']) && head.contains("\"traceEvents\""),
            Self::Speedscope => first.starts_with('{') && head.contains("speedscope"),
            Self::Folded => first
                .rsplit_once(' ')
                .is_some_and(|(_, weight)| !weight.is_empty() && weight.bytes().all(is_digit)),
            Self::Csv => {
                first.split(',').any(|column| column == "requested_bytes")
                    || first.split(',').any(|column| column == "bytes")
            }
            Self::Index => first.contains("vramscope.index/"),
            Self::Snapshot => false,
        }
    }
}

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_digit()
}

/// An output that is being written.
pub(crate) struct OutFile {
    to: To,
}

enum To {
    /// A new file, which gets its name at the end.
    New { file: NamedTempFile, path: PathBuf },
    /// A device or pipe, such as `/dev/null`.
    Stream(File),
}

impl OutFile {
    /// Begins an output at this path.
    ///
    /// # Errors
    /// Wrong usage if the path is an input, a folder, a link, or a file of another kind and not
    /// `force`. A file cannot be created in its folder.
    pub(crate) fn create(
        path: &Path,
        kind: Kind,
        inputs: &[&Path],
        force: bool,
    ) -> Result<Self, Failure> {
        let refused = |why: &str| Err(Failure::Usage(format!("-o {}: {why}", path.display())));
        let failed = |error: io::Error| {
            io::Error::new(error.kind(), format!("cannot write {}: {error}", path.display()))
        };
        match fs::symlink_metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error).into()),
            Ok(there) => {
                let leads_to = path.metadata().unwrap_or_else(|_| there.clone());
                if is_stream(leads_to.file_type()) {
                    let file = File::options().write(true).open(path).map_err(failed)?;
                    return Ok(Self { to: To::Stream(file) });
                }
                if inputs.iter().any(|input| is_same(input, path)) {
                    return refused("it is an input and stays as it is. Choose another file.");
                }
                if there.is_dir() {
                    return refused("it is a folder. Name a file in it.");
                }
                if !there.is_file() {
                    return refused("it is a link. Name the file itself, or choose another one.");
                }
                if !force && !may_replace(path, &there, kind).map_err(failed)? {
                    let name = kind.name();
                    return refused(&format!(
                        "it is there and is no {name}. Choose another file, or replace it with \
                         --force."
                    ));
                }
            }
        }
        let folder = path.parent().filter(|folder| *folder != Path::new(""));
        let mut new = tempfile::Builder::new();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            // The process's mask takes away what others may not do.
            new.permissions(fs::Permissions::from_mode(0o666));
        }
        let new = new.prefix(".vramscope.").suffix(".part");
        let file = new.tempfile_in(folder.unwrap_or(Path::new("."))).map_err(failed)?;
        Ok(Self { to: To::New { file, path: path.to_owned() } })
    }

    /// Gives the file its name. Returns its size in bytes; 0 for a device or pipe.
    ///
    /// # Errors
    /// The file cannot get its name.
    pub(crate) fn keep(self) -> io::Result<u64> {
        match self.to {
            To::Stream(_) => Ok(0),
            To::New { file, path } => {
                let bytes = file.as_file().metadata()?.len();
                file.persist(&path).map_err(|error| {
                    let why = format!("cannot write {}: {}", path.display(), error.error);
                    io::Error::new(error.error.kind(), why)
                })?;
                Ok(bytes)
            }
        }
    }
}

impl Write for OutFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.to {
            To::New { file, .. } => file.write(bytes),
            To::Stream(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.to {
            To::New { file, .. } => file.flush(),
            To::Stream(file) => file.flush(),
        }
    }
}

/// Runs `write` with a buffered output, and gives the file its name if that succeeds.
///
/// # Errors
/// As [`OutFile::create`], and of `write`.
pub(crate) fn write_file(
    path: &Path,
    kind: Kind,
    inputs: &[&Path],
    force: bool,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut out = BufWriter::new(OutFile::create(path, kind, inputs, force)?);
    write(&mut out)?;
    let out = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    out.keep()?;
    Ok(())
}

#[cfg(unix)]
fn is_stream(of: FileType) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    of.is_char_device() || of.is_fifo()
}

#[cfg(not(unix))]
fn is_stream(_: FileType) -> bool {
    false
}

fn is_same(a: &Path, b: &Path) -> bool {
    a.canonicalize().is_ok_and(|a| b.canonicalize().is_ok_and(|b| a == b))
}

/// Whether a file is empty or an earlier output of this kind.
fn may_replace(path: &Path, there: &Metadata, kind: Kind) -> io::Result<bool> {
    if there.len() == 0 {
        return Ok(true);
    }
    let mut head = Vec::new();
    open_regular(path)?.take(HEAD).read_to_end(&mut head)?;
    if head.starts_with(&[0x1f, 0x8b]) {
        let mut unpacked = Vec::new();
        // The head of a gzip ends early: what it gives until then is enough.
        let mut gzip = MultiGzDecoder::new(&head[..]).take(HEAD);
        let mut piece = [0; 4096];
        while let Ok(count @ 1..) = gzip.read(&mut piece) {
            unpacked.extend_from_slice(&piece[..count]);
        }
        head = unpacked;
    }
    Ok(kind.is_kind_of(&String::from_utf8_lossy(&head)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a folder")
    }

    fn usage(result: Result<OutFile, Failure>) -> String {
        match result {
            Err(Failure::Usage(text)) => text,
            Err(Failure::Io(error)) => panic!("{error}"),
            _ => panic!("it may be written"),
        }
    }

    #[test]
    fn an_output_has_its_name_when_it_is_complete() {
        let folder = folder();
        let path = folder.path().join("a.csv");
        let failed = write_file(&path, Kind::Csv, &[], false, |out| {
            out.write_all(b"half")?;
            Err(Failure::Input)
        });
        assert!(failed.is_err());
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0, "nothing is left");
        let written = write_file(&path, Kind::Csv, &[], false, |out| Ok(out.write_all(b"whole")?));
        assert!(written.is_ok());
        assert_eq!(fs::read(&path).expect("a file"), b"whole");
    }

    #[test]
    fn files_of_others_stay() {
        let folder = folder();
        let path = folder.path().join("train.py");
        fs::write(&path, "import torch\n").expect("a file");
        let create = |inputs: &[&Path], force| OutFile::create(&path, Kind::Csv, inputs, force);
        assert!(usage(create(&[], false)).contains("is no table of vramscope"));
        assert!(usage(create(&[&path], true)).contains("is an input"), "not even with --force");
        assert!(create(&[], true).is_ok());
        let text = usage(OutFile::create(folder.path(), Kind::Csv, &[], true));
        assert!(text.contains("is a folder"), "{text}");
        assert_eq!(fs::read(&path).expect("a file"), b"import torch\n");
    }

    #[test]
    fn earlier_outputs_are_replaced() {
        let folder = folder();
        let path = folder.path().join("old");
        for (kind, text) in [
            (Kind::Html, "<!doctype html>\n<title>vramscope</title>"),
            (Kind::Perfetto, "{\"traceEvents\": []}"),
            (Kind::Speedscope, "{\"$schema\": \"https://www.speedscope.app/file\"}"),
            (Kind::Folded, "train;forward 1024\n"),
            (Kind::Csv, "block,requested_bytes\n"),
            (Kind::Index, "{\"schema\": \"vramscope.index/1\"}\n"),
        ] {
            fs::write(&path, text).expect("a file");
            assert!(OutFile::create(&path, kind, &[], false).is_ok(), "{kind:?}");
            fs::write(&path, "name: notes\n").expect("a file");
            assert!(OutFile::create(&path, kind, &[], false).is_err(), "{kind:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_are_not_followed() {
        let folder = folder();
        let (victim, link) = (folder.path().join("victim"), folder.path().join("a.html"));
        fs::write(&victim, "").expect("a file");
        std::os::unix::fs::symlink(&victim, &link).expect("a link");
        let text = usage(OutFile::create(&link, Kind::Html, &[], true));
        assert!(text.contains("is a link"), "{text}");
        assert!(OutFile::create(Path::new("/dev/null"), Kind::Html, &[], false).is_ok());
    }
}
