//! Reading files, in chunks.

use memstrata_engine::protocol::Failure;
use memstrata_engine::{File, Loader};
use std::io::Read as _;
use std::path::Path;

const CHUNK: usize = 1 << 20;

/// A file's snapshots, and its size.
pub(crate) fn load(path: &Path) -> (u64, Result<File, Failure>) {
    let mut bytes = 0;
    let result = stream(path, &mut bytes);
    (bytes, result)
}

fn stream(path: &Path, bytes: &mut u64) -> Result<File, Failure> {
    let failure = |e: std::io::Error| Failure { id: None, message: format!("cannot read the file: {e}"), hint: None };
    let mut file = std::fs::File::open(path).map_err(failure)?;
    *bytes = file.metadata().map_err(failure)?.len();
    let mut loader = Loader::new(&path.to_string_lossy(), *bytes);
    let mut chunk = vec![0; CHUNK];
    loop {
        match file.read(&mut chunk).map_err(failure)? {
            0 => return loader.finish(),
            n => drop(loader.feed(&chunk[..n])?),
        }
    }
}
