//! Gzipped files: flate2's push decompressor in front of another [`Reader`].

use super::{NamedSnapshot, Options, Reader};
use crate::report::LoadError;
use flate2::write::MultiGzDecoder;
use std::io::{self, Write};

/// Decompresses the members of a file into another [`Reader`].
pub(crate) struct Gzip {
    decoder: MultiGzDecoder<Unpacked>,
}

/// Takes the unpacked bytes of all members.
struct Unpacked {
    reader: Reader,
    bytes: u64,
    /// The reader has refused bytes, and takes no more: flate2 would offer the rest when dropped.
    has_failed: bool,
}

impl Write for Unpacked {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.has_failed {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.bytes += bytes.len() as u64;
        let fed = self.reader.feed(bytes);
        self.has_failed = fed.is_err();
        fed.map(|()| bytes.len()).map_err(io::Error::other)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Gzip {
    pub(crate) fn new(options: Options) -> Self {
        let reader = Reader::with_options(options);
        let unpacked = Unpacked { reader, bytes: 0, has_failed: false };
        Self { decoder: MultiGzDecoder::new(unpacked) }
    }

    pub(crate) fn feed(&mut self, chunk: &[u8]) -> Result<(), LoadError> {
        let fed = self.decoder.write_all(chunk);
        fed.map_err(|error| fault(error, self.decoder.get_ref().bytes, None))
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
        let ended = self.decoder.try_finish();
        let at = self.decoder.get_ref().bytes;
        // flate2 calls a missing checksum a wrong one.
        let reason = "it is incomplete, or its checksum does not match";
        ended
            .and_then(|()| self.decoder.finish())
            .map_err(|error| fault(error, at, Some(reason)))?
            .reader
            .finish()
    }
}

/// The error of the reader, or flate2's after `at` unpacked bytes, with its own reason or another.
fn fault(error: io::Error, at: u64, reason: Option<&str>) -> LoadError {
    error.downcast().unwrap_or_else(|error| {
        let reason = reason.map_or_else(|| error.to_string(), str::to_owned);
        LoadError::Gzip { at, reason }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, GzBuilder};
    use std::io::Write;

    const JSON: &[u8] = br#"{"segments": [], "device_traces": [[
        {"action": "alloc", "addr": 4096, "size": 100}]]}"#;

    fn member(builder: GzBuilder, bytes: &[u8]) -> Vec<u8> {
        let mut encoder = builder.write(Vec::new(), Compression::fast());
        encoder.write_all(bytes).expect("a Vec takes all bytes");
        encoder.finish().expect("a Vec takes all bytes")
    }

    /// Three members, of which one is empty, with all parts that a header can have.
    fn members() -> Vec<u8> {
        let full = GzBuilder::new().extra(vec![0; 3000]).filename("name").comment("comment");
        let empty = member(GzBuilder::new(), b"");
        [member(full, &JSON[..40]), empty, member(GzBuilder::new(), &JSON[40..])].concat()
    }

    fn read(bytes: &[u8], size: usize) -> Result<Vec<NamedSnapshot>, LoadError> {
        let mut gzip = Gzip::new(Options::default());
        bytes.chunks(size).try_for_each(|chunk| gzip.feed(chunk))?;
        gzip.finish()
    }

    #[test]
    fn members_are_read_in_any_chunks() {
        let bytes = members();
        for size in [1, 2, 7, 1000, bytes.len()] {
            let found = read(&bytes, size).expect("a gzip");
            assert_eq!(found[0].snapshot.devices[0].events, 0..1, "chunks of {size}");
        }
    }

    #[test]
    fn output_that_fills_the_buffer_is_whole() {
        let padded = [JSON, &b" ".repeat((64 << 10) - JSON.len())].concat();
        let bytes = member(GzBuilder::new(), &padded);
        assert_eq!(read(&bytes, bytes.len()).expect("a gzip").len(), 1);
    }

    #[test]
    fn damage_is_an_error_wherever_it_is() {
        let gzip = |result| matches!(result, Err(LoadError::Gzip { .. }));
        let bytes = member(GzBuilder::new().filename("name"), JSON);
        for length in 1..bytes.len() {
            assert!(gzip(read(&bytes[..length], 50)), "cut at {length}");
        }
        for at in bytes.len() - 8..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(gzip(read(&damaged, 50)), "changed at {at}");
        }
        assert!(gzip(read(&[&bytes[..], b"more"].concat(), 50)));
        let endless = [&[0x1f, 0x8b, 8, 8][..], &vec![b'x'; 256 << 10]].concat();
        assert!(gzip(read(&endless, 1000)));
    }
}
