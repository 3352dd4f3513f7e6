//! Gzipped files: a push decompressor in front of another [`Reader`].

use super::{NamedSnapshot, Options, Reader};
use crate::report::LoadError;
use flate2::write::MultiGzDecoder;
use std::io::{self, Write};

/// Decompresses into another [`Reader`].
pub(crate) struct Gzip {
    decoder: MultiGzDecoder<Inner>,
}

/// Receives the decompressed bytes. Keeps the reader's error, because the decompressor's errors are
/// `io::Error`s.
struct Inner {
    reader: Reader,
    error: Option<LoadError>,
    bytes: u64,
}

impl Write for Inner {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes += bytes.len() as u64;
        self.reader.feed(bytes).map_err(|error| {
            self.error = Some(error);
            io::Error::other("the content is not a snapshot")
        })?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Gzip {
    pub(crate) fn new(options: Options) -> Self {
        let inner = Inner { reader: Reader::with_options(options), error: None, bytes: 0 };
        Self { decoder: MultiGzDecoder::new(inner) }
    }

    pub(crate) fn feed(&mut self, chunk: &[u8]) -> Result<(), LoadError> {
        let result = self.decoder.write_all(chunk);
        result.map_err(|e| wrong(self.decoder.get_mut(), &e))
    }

    pub(crate) fn reserve_ahead(&mut self, read: u64, total: u64) {
        self.decoder.get_mut().reader.reserve_ahead(read, total);
    }

    pub(crate) fn may_be_snapshot(&self) -> bool {
        self.decoder.get_ref().reader.may_be_snapshot()
    }

    pub(crate) fn memory(&self) -> usize {
        self.decoder.get_ref().reader.memory()
    }

    pub(crate) fn finish(mut self) -> Result<Vec<NamedSnapshot>, LoadError> {
        let result = self.decoder.try_finish();
        result.map_err(|e| wrong(self.decoder.get_mut(), &e))?;
        let inner =
            self.decoder.finish().map_err(|e| LoadError::Gzip { at: 0, reason: e.to_string() })?;
        inner.reader.finish()
    }
}

fn wrong(inner: &mut Inner, error: &io::Error) -> LoadError {
    inner
        .error
        .take()
        .unwrap_or_else(|| LoadError::Gzip { at: inner.bytes, reason: error.to_string() })
}
