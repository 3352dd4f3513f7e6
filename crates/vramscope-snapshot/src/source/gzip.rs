//! Gzipped files: a push decompressor in front of another [`Reader`].
//!
//! flate2 unpacks the data. Header and trailer are read here, because flate2's own reader of gzip
//! brings a checksum with 16 kB of tables to the page, which only needs it for gzips inside pages.

use super::crc::Crc;
use super::{NamedSnapshot, Options, Reader};
use crate::report::LoadError;
use flate2::{Decompress, FlushDecompress, Status};

/// What every member begins with: two bytes of gzip, and the only method.
const START: [u8; 3] = [0x1f, 0x8b, 8];
/// Flags of what follows the ten fixed bytes of a header, in this order.
const EXTRA: u8 = 4;
const NAME: u8 = 8;
const COMMENT: u8 = 16;
const HEADER_CHECKSUM: u8 = 2;
/// Limit of a header. The extra field has at most 64 KiB.
const MAX_HEADER: usize = 128 << 10;
/// Bytes that are looked at for a header at a time.
const HEADER_PART: usize = 1 << 10;
/// The checksum and the length after the data.
const TRAILER: usize = 8;
/// Bytes that are unpacked at a time.
const UNPACKED: usize = 32 << 10;

/// Decompresses the members of a file into another [`Reader`].
pub(crate) struct Gzip {
    reader: Reader,
    stage: Stage,
    /// The bytes so far of a header or trailer.
    held: Vec<u8>,
    inflate: Decompress,
    unpacked: Box<[u8]>,
    crc: Crc,
    /// Unpacked bytes of all members.
    bytes: u64,
}

enum Stage {
    Header,
    Data,
    Trailer,
}

impl Gzip {
    pub(crate) fn new(options: Options) -> Self {
        Self {
            reader: Reader::with_options(options),
            stage: Stage::Header,
            held: Vec::new(),
            inflate: Decompress::new(false),
            unpacked: vec![0; UNPACKED].into(),
            crc: Crc::new(),
            bytes: 0,
        }
    }

    pub(crate) fn feed(&mut self, mut chunk: &[u8]) -> Result<(), LoadError> {
        while !chunk.is_empty() {
            chunk = match self.stage {
                Stage::Header => self.header(chunk)?,
                Stage::Data => self.data(chunk)?,
                Stage::Trailer => self.trailer(chunk)?,
            };
        }
        Ok(())
    }

    /// Takes bytes of a header, and returns those after it.
    fn header<'a>(&mut self, chunk: &'a [u8]) -> Result<&'a [u8], LoadError> {
        let before = self.held.len();
        let part = &chunk[..chunk.len().min(HEADER_PART)];
        self.held.extend_from_slice(part);
        if self.held.iter().zip(START).any(|(byte, start)| *byte != start) {
            return Err(self.damaged("no gzip header"));
        }
        let Some(length) = header_length(&self.held) else {
            if self.held.len() > MAX_HEADER {
                return Err(self.damaged("a gzip header without end"));
            }
            return Ok(&chunk[part.len()..]);
        };
        self.held.clear();
        self.stage = Stage::Data;
        self.inflate.reset(false);
        self.crc.reset();
        Ok(&chunk[length - before..])
    }

    /// Unpacks bytes of the data, and returns those after it.
    fn data<'a>(&mut self, mut chunk: &'a [u8]) -> Result<&'a [u8], LoadError> {
        let mut more = true;
        while more {
            let (taken, given) = (self.inflate.total_in(), self.inflate.total_out());
            let flush = FlushDecompress::None;
            let status = match self.inflate.decompress(chunk, &mut self.unpacked, flush) {
                Ok(status) => status,
                Err(error) => return Err(self.damaged(&error.to_string())),
            };
            let taken = (self.inflate.total_in() - taken) as usize;
            let given = (self.inflate.total_out() - given) as usize;
            self.crc.update(&self.unpacked[..given]);
            self.bytes += given as u64;
            self.reader.feed(&self.unpacked[..given])?;
            chunk = &chunk[taken..];
            if status == Status::StreamEnd {
                self.stage = Stage::Trailer;
                return Ok(chunk);
            }
            if taken + given == 0 && !chunk.is_empty() {
                return Err(self.damaged("the data does not go on"));
            }
            // A full buffer: there may be more without further bytes.
            more = given == UNPACKED || !chunk.is_empty();
        }
        Ok(chunk)
    }

    /// Takes bytes of a trailer, and returns those after it.
    fn trailer<'a>(&mut self, chunk: &'a [u8]) -> Result<&'a [u8], LoadError> {
        let (part, rest) = chunk.split_at(chunk.len().min(TRAILER - self.held.len()));
        self.held.extend_from_slice(part);
        if self.held.len() == TRAILER {
            let length = self.inflate.total_out() as u32;
            if self.held != [self.crc.sum().to_le_bytes(), length.to_le_bytes()].concat() {
                return Err(self.damaged("the checksum does not match"));
            }
            self.held.clear();
            self.stage = Stage::Header;
        }
        Ok(rest)
    }

    pub(crate) fn reserve_ahead(&mut self, read: u64, total: u64) {
        self.reader.reserve_ahead(read, total);
    }

    pub(crate) fn may_be_snapshot(&self) -> bool {
        self.reader.may_be_snapshot()
    }

    pub(crate) fn memory(&self) -> usize {
        self.reader.memory()
    }

    pub(crate) fn finish(self) -> Result<Vec<NamedSnapshot>, LoadError> {
        match self.stage {
            Stage::Header if self.held.is_empty() => self.reader.finish(),
            _ => Err(self.damaged("it is incomplete")),
        }
    }

    fn damaged(&self, reason: &str) -> LoadError {
        LoadError::Gzip { at: self.bytes, reason: reason.to_owned() }
    }
}

/// The length of a header; `None` if these bytes are not all of it.
fn header_length(bytes: &[u8]) -> Option<usize> {
    let flags = bytes.get(3)?;
    let mut length = 10;
    if flags & EXTRA != 0 {
        let extra = bytes.get(length..length + 2)?;
        length += 2 + usize::from(u16::from_le_bytes([extra[0], extra[1]]));
    }
    for text in [NAME, COMMENT] {
        if flags & text != 0 {
            length += memchr::memchr(0, bytes.get(length..)?)? + 1;
        }
    }
    if flags & HEADER_CHECKSUM != 0 {
        length += 2;
    }
    (length <= bytes.len()).then_some(length)
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
        let padded = [JSON, &b" ".repeat(2 * UNPACKED - JSON.len())].concat();
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
        for at in bytes.len() - TRAILER..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(gzip(read(&damaged, 50)), "changed at {at}");
        }
        assert!(gzip(read(&[&bytes[..], b"more"].concat(), 50)));
        let endless = [&START[..], &[NAME], &vec![b'x'; 2 * MAX_HEADER]].concat();
        assert!(gzip(read(&endless, 1000)));
    }
}
