//! Reads ranges of a file, and says which table a bad range belongs to.

use super::error::{Error, io_error};
use object::pod::{Pod, slice_from_all_bytes};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// A file that is read by ranges.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) path: PathBuf,
    file: File,
    pub(super) length: u64,
}

impl Source {
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(io_error("open", path))?;
        let length = file.metadata().map_err(io_error("read", path))?.len();
        Ok(Self { path: path.to_owned(), file, length })
    }

    pub(super) fn broken(&self, what: &str) -> Error {
        let what = format!("its {what} are damaged or lie outside of its {} bytes", self.length);
        Error::Elf { file: self.path.clone(), what }
    }

    pub(super) fn range(&mut self, at: u64, size: u64, what: &str) -> Result<Vec<u8>, Error> {
        if at.checked_add(size).is_none_or(|end| end > self.length) {
            return Err(self.broken(what));
        }
        let mut bytes = vec![0; size as usize];
        self.file
            .seek(SeekFrom::Start(at))
            .and_then(|_| self.file.read_exact(&mut bytes))
            .map_err(io_error("read", &self.path))?;
        Ok(bytes)
    }

    pub(super) fn table<T: Pod>(
        &mut self,
        at: u64,
        count: u64,
        what: &str,
    ) -> Result<Vec<T>, Error> {
        let size = count.checked_mul(size_of::<T>() as u64).ok_or_else(|| self.broken(what))?;
        let bytes = self.range(at, size, what)?;
        let table = slice_from_all_bytes::<T>(&bytes).map_err(|()| self.broken(what))?;
        Ok(table.to_vec())
    }

    pub(super) fn words(&mut self, at: u64, count: u64, what: &str) -> Result<Vec<u32>, Error> {
        let bytes = self.range(at, 4 * count, what)?;
        Ok(bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
    }
}
