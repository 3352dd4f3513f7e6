//! Zip archives as `torch.save` writes them: the pickle is the entry `NAME/data.pkl`.
//!
//! The archive is read from its start, by the local headers, since the central directory is at its
//! end. PyTorch stores entries, and writes their sizes behind them (a data descriptor): so the end
//! of an entry is where a descriptor has the checksum and the size of what came before it. Archives
//! of other programs can deflate entries, and have the sizes in front.

use super::{NamedSnapshot, Options, Reader, TORCH_SAVE};
use crate::report::LoadError;
use flate2::{Crc, Decompress, FlushDecompress, Status};
use memchr::memmem;

/// Bytes that are looked at at once.
const PIECE_BYTES: usize = 1 << 16;

/// Bytes of a local header, without its name and extra fields.
const HEADER_BYTES: usize = 30;

/// Bytes of the longest data descriptor. The central directory behind it has more.
const DESCRIPTOR_BYTES: usize = 24;

/// Other entries may have this many bytes before the pickle. PyTorch writes the pickle first.
const MAX_BYTES_BEFORE: u64 = 64 << 20;

const LOCAL_HEADER: u32 = 0x0403_4b50;
const DESCRIPTOR: [u8; 4] = *b"PK\x07\x08";
/// The first signatures behind the last entry: of a record of the central directory, of the end of
/// an archive, of that of a large one, and of a record for decryption.
const AFTER_ENTRIES: [u32; 4] = [0x0201_4b50, 0x0605_4b50, 0x0606_4b50, 0x0806_4b50];

const STORED: u16 = 0;
const DEFLATED: u16 = 8;
const IS_ENCRYPTED: u16 = 1;
const HAS_DESCRIPTOR: u16 = 1 << 3;

const NO_PICKLE: &str = "this is a zip archive without data.pkl, which torch.save writes, so it is \
                         no memory snapshot: if it contains one, unpack it first";
const ENCRYPTED: &str = "this zip archive is encrypted: unpack it first";
const OTHER_METHOD: &str =
    "this zip archive is neither stored nor deflated: unpack it first, and open data.pkl";

const BAD_CHECKSUM: &str = "the checksum or size of an entry does not match";

/// Reads the snapshot in an archive.
pub(crate) struct Zip {
    options: Options,
    state: State,
    /// Bytes that were not consumed yet: fewer than a piece and a header.
    buffer: Vec<u8>,
    /// Bytes consumed.
    at: u64,
    /// Bytes of other entries.
    skipped: u64,
    /// The reader of the pickle, once it began.
    reader: Option<Reader>,
    /// Whether the reader only counts events, and yields no snapshot.
    only_counts: bool,
    found: Option<Vec<NamedSnapshot>>,
}

enum State {
    Header,
    Entry(Box<Entry>),
    /// A data descriptor of an entry whose size is known.
    Descriptor(Box<Entry>),
    /// The pickle was read. Nothing else counts.
    Done,
}

/// An entry that is being read.
struct Entry {
    is_pickle: bool,
    /// The offset of its bytes in the archive. Faults are said to be here, however bytes arrive.
    start: u64,
    data: Data,
    has_descriptor: bool,
    /// Whether the checksum of the bytes is in the header.
    is_checked: bool,
    /// That checksum.
    expected: u32,
    /// The checksum of the unpacked bytes so far.
    crc: Crc,
    /// Unpacked bytes so far.
    bytes: u64,
}

enum Data {
    /// Stored, with this many bytes left.
    Stored(u64),
    /// Stored until a data descriptor fits.
    Open,
    Deflated(Decompress),
}

impl Zip {
    pub(crate) fn new(options: Options) -> Self {
        Self {
            options,
            state: State::Header,
            buffer: Vec::new(),
            at: 0,
            skipped: 0,
            reader: None,
            only_counts: false,
            found: None,
        }
    }

    /// The reader of the pickle, until it has ended.
    pub(crate) fn reader(&self) -> Option<&Reader> {
        self.reader.as_ref()
    }

    /// As [`Reader::only_count`].
    pub(crate) fn only_count(&mut self) -> bool {
        self.only_counts = self.reader.as_mut().is_some_and(Reader::only_count);
        self.only_counts
    }

    pub(crate) fn reserve_ahead(&mut self, read: u64, total: u64) {
        if let Some(reader) = &mut self.reader {
            reader.reserve_ahead(read, total);
        }
    }

    /// Whether the pickle so far shows a part of a snapshot, or nothing of the archive is known.
    pub(crate) fn may_be_snapshot(&self) -> bool {
        self.found.is_some() || self.reader.as_ref().map_or(self.at == 0, Reader::may_be_snapshot)
    }

    pub(crate) fn memory(&self) -> usize {
        let found: usize = self.found.iter().flatten().map(|one| one.snapshot.memory()).sum();
        self.buffer.capacity() + self.reader.as_ref().map_or(0, Reader::memory) + found
    }

    pub(crate) fn feed(&mut self, chunk: &[u8]) -> Result<(), LoadError> {
        for piece in chunk.chunks(PIECE_BYTES) {
            if let State::Done = self.state {
                return Ok(());
            }
            let mut buffer = std::mem::take(&mut self.buffer);
            buffer.extend_from_slice(piece);
            let mut start = 0;
            while let Some(used) = self.step(&buffer[start..])? {
                start += used;
                self.at += used as u64;
            }
            buffer.drain(..start);
            self.buffer = buffer;
        }
        Ok(())
    }

    /// Consumes bytes, and returns their number. `None` if more bytes are needed.
    fn step(&mut self, bytes: &[u8]) -> Result<Option<usize>, LoadError> {
        match std::mem::replace(&mut self.state, State::Header) {
            State::Header => self.header(bytes),
            State::Entry(entry) => self.data(entry, bytes),
            State::Descriptor(mut entry) => {
                let Some(start) = bytes.get(..DESCRIPTOR_BYTES) else {
                    self.state = State::Descriptor(entry);
                    return Ok(None);
                };
                // Of an entry that stays packed, only the place of the next header is known.
                let length = descriptor(start, &entry);
                let length = length.ok_or_else(|| fault(entry.start, BAD_CHECKSUM))?;
                entry.has_descriptor = false;
                self.end(entry)?;
                Ok(Some(length))
            }
            State::Done => {
                self.state = State::Done;
                Ok((!bytes.is_empty()).then_some(bytes.len()))
            }
        }
    }

    fn header(&mut self, bytes: &[u8]) -> Result<Option<usize>, LoadError> {
        let Some(signature) = number(bytes, 0, 4) else { return Ok(None) };
        if AFTER_ENTRIES.contains(&(signature as u32)) {
            return Err(LoadError::Refused { what: NO_PICKLE });
        }
        if signature as u32 != LOCAL_HEADER {
            return Err(fault(self.at, "an entry was expected"));
        }
        let of = |at: usize, length: usize| number(bytes, at, length);
        let (Some(name), Some(extra)) = (of(26, 2), of(28, 2)) else { return Ok(None) };
        let (name, extra) = (name as usize, extra as usize);
        let length = HEADER_BYTES + name + extra;
        let (Some(header), Some(flags), Some(method)) = (bytes.get(..length), of(6, 2), of(8, 2))
        else {
            return Ok(None);
        };
        let (flags, method) = (flags as u16, method as u16);
        let (name, extra) = header[HEADER_BYTES..].split_at(name);
        if flags & IS_ENCRYPTED != 0 {
            return Err(LoadError::Refused { what: ENCRYPTED });
        }
        let has_descriptor = flags & HAS_DESCRIPTOR != 0;
        let packed = of(18, 4).zip(of(22, 4)).map(|sizes| packed_size(sizes, extra));
        // With a descriptor, no size in the header means that it is not known yet.
        let packed = packed.filter(|&size| !(has_descriptor && size == 0));
        let is_pickle = name == b"data.pkl" || name.ends_with(b"/data.pkl");
        let data = match (method, packed) {
            (DEFLATED, _) if is_pickle || has_descriptor => Data::Deflated(Decompress::new(false)),
            (STORED, None) => Data::Open,
            (STORED, Some(size)) => Data::Stored(size),
            (_, Some(size)) if !is_pickle && !has_descriptor => Data::Stored(size),
            _ => return Err(LoadError::Refused { what: OTHER_METHOD }),
        };
        if is_pickle {
            self.reader = Some(Reader::with_options(self.options.inside()?));
        }
        self.state = State::Entry(Box::new(Entry {
            is_pickle,
            start: self.at + length as u64,
            // The bytes of an entry that stays packed have no checksum of their own.
            is_checked: method == STORED || matches!(data, Data::Deflated(_)),
            data,
            has_descriptor,
            expected: of(14, 4).unwrap_or_default() as u32,
            crc: Crc::new(),
            bytes: 0,
        }));
        Ok(Some(length))
    }

    fn data(&mut self, mut entry: Box<Entry>, bytes: &[u8]) -> Result<Option<usize>, LoadError> {
        let (used, has_moved, has_ended) = match &mut entry.data {
            Data::Stored(left) => {
                let used = (bytes.len() as u64).min(*left);
                *left -= used;
                let has_ended = *left == 0;
                self.put(&mut entry, &bytes[..used as usize])?;
                (used as usize, used > 0, has_ended)
            }
            Data::Open => return self.open(entry, bytes),
            Data::Deflated(inflate) => {
                let mut out = vec![0; PIECE_BYTES];
                let before = (inflate.total_in(), inflate.total_out());
                let status = inflate.decompress(bytes, &mut out, FlushDecompress::None);
                let used = (inflate.total_in() - before.0) as usize;
                let made = (inflate.total_out() - before.1) as usize;
                let status = status.map_err(|error| fault(entry.start, &error.to_string()))?;
                self.put(&mut entry, &out[..made])?;
                (used, used > 0 || made > 0, status == Status::StreamEnd)
            }
        };
        if !has_ended {
            self.state = State::Entry(entry);
            return Ok(has_moved.then_some(used));
        }
        if !entry.has_descriptor && entry.is_checked && entry.crc.sum() != entry.expected {
            return Err(fault(entry.start, BAD_CHECKSUM));
        }
        self.end(entry)?;
        Ok(Some(used))
    }

    /// Reads an entry up to its data descriptor.
    fn open(&mut self, mut entry: Box<Entry>, bytes: &[u8]) -> Result<Option<usize>, LoadError> {
        let found = memmem::find(bytes, &DESCRIPTOR);
        // A descriptor can begin in the last bytes.
        let data = found.unwrap_or(bytes.len().saturating_sub(DESCRIPTOR.len() - 1));
        self.put(&mut entry, &bytes[..data])?;
        let candidate = found.map(|at| &bytes[at..]);
        let used = match candidate.map(|of| of.get(..DESCRIPTOR_BYTES + DESCRIPTOR.len())) {
            Some(Some(start)) => match descriptor(start, &entry).filter(|&at| is_next(start, at)) {
                Some(length) => {
                    entry.has_descriptor = false;
                    self.end(entry)?;
                    return Ok(Some(data + length));
                }
                // The data have the bytes of a signature.
                None => {
                    self.put(&mut entry, &DESCRIPTOR)?;
                    data + DESCRIPTOR.len()
                }
            },
            Some(None) | None => data,
        };
        self.state = State::Entry(entry);
        Ok((used > 0).then_some(used))
    }

    /// Takes unpacked bytes of an entry.
    fn put(&mut self, entry: &mut Entry, bytes: &[u8]) -> Result<(), LoadError> {
        entry.crc.update(bytes);
        entry.bytes += bytes.len() as u64;
        if let Some(reader) = self.reader.as_mut().filter(|_| entry.is_pickle) {
            return reader.feed(bytes).map_err(not_a_checkpoint);
        }
        self.skipped += bytes.len() as u64;
        if self.skipped > MAX_BYTES_BEFORE {
            return Err(LoadError::Refused { what: NO_PICKLE });
        }
        Ok(())
    }

    /// Ends an entry, up to its descriptor.
    fn end(&mut self, entry: Box<Entry>) -> Result<(), LoadError> {
        if entry.is_pickle && !entry.has_descriptor {
            self.state = State::Done;
            if let Some(reader) = self.reader.take_if(|_| !self.only_counts) {
                self.found = Some(reader.finish().map_err(not_a_checkpoint)?);
            }
            return Ok(());
        }
        self.state = if entry.has_descriptor { State::Descriptor(entry) } else { State::Header };
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<Vec<NamedSnapshot>, LoadError> {
        let reason = match self.state {
            State::Header => "it ends before data.pkl",
            _ => "it ends inside an entry, or the entry has changed",
        };
        self.found.ok_or_else(|| fault(self.at + self.buffer.len() as u64, reason))
    }
}

fn fault(at: u64, reason: &str) -> LoadError {
    LoadError::Zip { at, reason: reason.to_owned() }
}

/// A little-endian number of so many bytes, if they are there.
fn number(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + length)?;
    Some(bytes.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte)))
}

/// The packed size of an entry, by its 32-bit sizes (packed, unpacked) and its extra fields: the
/// field with tag 1 has the sizes that do not fit, the unpacked one first.
fn packed_size((packed, unpacked): (u64, u64), mut extra: &[u8]) -> u64 {
    const TOO_LARGE: u64 = u32::MAX as u64;
    if packed != TOO_LARGE {
        return packed;
    }
    while let (Some(tag), Some(length)) = (number(extra, 0, 2), number(extra, 2, 2)) {
        let field = extra.get(4..4 + length as usize);
        if tag == 1 {
            let at = if unpacked == TOO_LARGE { 8 } else { 0 };
            return field.and_then(|field| number(field, at, 8)).unwrap_or(packed);
        }
        extra = extra.get(4 + length as usize..).unwrap_or_default();
    }
    packed
}

/// The length of the data descriptor that `bytes` start with, if it is that of an entry. Its sizes
/// have four bytes each, or eight in large archives. Its signature is optional.
fn descriptor(bytes: &[u8], entry: &Entry) -> Option<usize> {
    let (unpacked, packed) = (entry.bytes, entry.packed_bytes());
    let crc = u64::from(entry.crc.sum());
    let signature = if bytes.starts_with(&DESCRIPTOR) { DESCRIPTOR.len() } else { 0 };
    [4, 8].into_iter().find_map(|size| {
        let at = signature + 4;
        let sizes = [packed, unpacked].map(|n| if size == 4 { n & 0xffff_ffff } else { n });
        let found = [number(bytes, at, size)?, number(bytes, at + size, size)?];
        (number(bytes, signature, 4)? == crc && found == sizes).then_some(at + 2 * size)
    })
}

/// Whether an entry or the end of all follows. An entry can begin with the descriptor of an empty
/// one.
fn is_next(bytes: &[u8], at: usize) -> bool {
    let signature = number(bytes, at, 4).unwrap_or_default() as u32;
    signature == LOCAL_HEADER || AFTER_ENTRIES.contains(&signature)
}

impl Entry {
    /// Packed bytes so far.
    fn packed_bytes(&self) -> u64 {
        match &self.data {
            Data::Deflated(inflate) => inflate.total_in(),
            _ => self.bytes,
        }
    }
}

/// The message for a checkpoint, whose pickle is of something else.
fn not_a_checkpoint(error: LoadError) -> LoadError {
    match error {
        LoadError::NotASnapshot { .. } => LoadError::Refused { what: TORCH_SAVE },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::DeflateEncoder;
    use std::io::Write;

    const JSON: &[u8] = br#"{"segments": [], "device_traces": [[
        {"action": "alloc", "addr": 4096, "size": 100}]]}"#;

    fn deflated(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).expect("a Vec takes all bytes");
        encoder.finish().expect("a Vec takes all bytes")
    }

    /// A local header and its data: flags, method, sizes, name, extra fields.
    fn entry(flags: u16, method: u16, [crc, size]: [u32; 2], name: &str, data: &[u8]) -> Vec<u8> {
        let mut out = LOCAL_HEADER.to_le_bytes().to_vec();
        for number in [20, flags, method, 0, 0] {
            out.extend(u16::to_le_bytes(number));
        }
        for number in [crc, size, size] {
            out.extend(u32::to_le_bytes(number));
        }
        out.extend((name.len() as u16).to_le_bytes());
        out.extend([0, 0]);
        [&out, name.as_bytes(), data].concat()
    }

    fn crc(bytes: &[u8]) -> u32 {
        let mut crc = Crc::new();
        crc.update(bytes);
        crc.sum()
    }

    fn stored(name: &str, data: &[u8]) -> Vec<u8> {
        entry(0, STORED, [crc(data), data.len() as u32], name, data)
    }

    fn read(bytes: &[u8], size: usize) -> Result<usize, LoadError> {
        let mut zip = Zip::new(Options::default());
        bytes.chunks(size).try_for_each(|chunk| zip.feed(chunk))?;
        zip.finish().map(|found| found.len())
    }

    #[test]
    fn an_archive_is_read_in_any_chunks() {
        let archive = [stored("a/version", b"3\n"), stored("a/data.pkl", JSON)].concat();
        for size in [1, 2, 7, 30, 1000] {
            assert_eq!(read(&archive, size), Ok(1), "chunks of {size}");
        }
        for length in 0..archive.len() {
            let cut = read(&archive[..length], 50);
            assert!(matches!(cut, Err(LoadError::Zip { .. })), "cut at {length}: {cut:?}");
        }
    }

    #[test]
    fn descriptors_may_lack_a_signature_behind_deflated_data() {
        let packed = deflated(b"text");
        let sizes: Vec<u8> =
            [crc(b"text"), packed.len() as u32, 4].into_iter().flat_map(u32::to_le_bytes).collect();
        let other = entry(HAS_DESCRIPTOR, DEFLATED, [0, 0], "other", &packed);
        let archive = [other.clone(), sizes.clone(), stored("data.pkl", JSON)].concat();
        assert_eq!(read(&archive, 9), Ok(1));
        let signed = [other.clone(), DESCRIPTOR.to_vec(), sizes, stored("data.pkl", JSON)].concat();
        assert_eq!(read(&signed, 9), Ok(1));
        let wrong = [other, vec![0; 12], stored("data.pkl", JSON)].concat();
        assert!(matches!(read(&wrong, 9), Err(LoadError::Zip { .. })));
    }

    #[test]
    fn an_entry_may_begin_with_the_descriptor_of_an_empty_one() {
        let data = [&DESCRIPTOR[..], &[0; 60]].concat();
        let sizes = [crc(&data), data.len() as u32, data.len() as u32];
        let sizes: Vec<u8> = sizes.into_iter().flat_map(u32::to_le_bytes).collect();
        let open = entry(HAS_DESCRIPTOR, STORED, [0, 0], "data/0", &data);
        let archive =
            [open, DESCRIPTOR.to_vec(), sizes, stored("data.pkl", JSON), vec![0; 9]].concat();
        for size in [1, 9, 1000] {
            assert_eq!(read(&archive, size), Ok(1), "chunks of {size}");
        }
    }

    #[test]
    fn other_archives_are_refused() {
        let refused = |bytes: &[u8]| match read(bytes, 50) {
            Err(LoadError::Refused { what }) => what,
            other => panic!("{other:?}"),
        };
        let end = [0x50, 0x4b, 1, 2];
        assert_eq!(refused(&[&stored("snapshot.pickle", JSON)[..], &end].concat()), NO_PICKLE);
        assert_eq!(refused(&stored("archive/data.pkl", b"{\"a\": 1}")), TORCH_SAVE);
        let sizes = [crc(JSON), JSON.len() as u32];
        assert_eq!(refused(&entry(IS_ENCRYPTED, STORED, sizes, "data.pkl", JSON)), ENCRYPTED);
        assert_eq!(refused(&entry(0, 93, sizes, "data.pkl", JSON)), OTHER_METHOD);
        let long = stored("data/0", &vec![b'P'; MAX_BYTES_BEFORE as usize + 1]);
        assert_eq!(refused(&long), NO_PICKLE);
        let wrong = read(&entry(0, STORED, [1, JSON.len() as u32], "data.pkl", JSON), 50);
        assert!(matches!(wrong, Err(LoadError::Zip { at: 38, .. })), "{wrong:?}");
    }

    #[test]
    fn archives_inside_each_other_are_limited() {
        let mut archive = JSON.to_vec();
        for level in 0..6 {
            archive = stored("data.pkl", &archive);
            let result = read(&archive, 1000);
            assert_eq!(result.is_ok(), level < 4, "{level}: {result:?}");
        }
    }

    #[test]
    fn large_sizes_are_in_an_extra_field() {
        let field = |sizes: &[u64]| -> Vec<u8> {
            let bytes: Vec<u8> = sizes.iter().flat_map(|size| size.to_le_bytes()).collect();
            let length = (bytes.len() as u16).to_le_bytes();
            [b"FB\x01\0Z".to_vec(), vec![1, 0], length.to_vec(), bytes].concat()
        };
        let max = u64::from(u32::MAX);
        assert_eq!(packed_size((max, max), &field(&[9 << 32, 5 << 32])), 5 << 32);
        assert_eq!(packed_size((max, 7), &field(&[5 << 32])), 5 << 32);
        assert_eq!(packed_size((12, 7), &field(&[5 << 32])), 12);
        assert_eq!(packed_size((max, max), &field(&[1])[..6]), max);
    }

    #[test]
    fn many_unpacked_bytes_are_not_held() {
        let packed = deflated(&[JSON, &vec![b' '; 40 << 20]].concat());
        let archive =
            entry(HAS_DESCRIPTOR, DEFLATED, [0, 0], "other", &deflated(&vec![0; 8 << 20]));
        let mut zip = Zip::new(Options { max_memory: 1 << 20, ..Options::default() });
        zip.feed(&archive).expect("the entry is skipped");
        assert!(zip.memory() < 1 << 20, "{}", zip.memory());
        let text = entry(0, DEFLATED, [0, packed.len() as u32], "data.pkl", &packed);
        let mut zip = Zip::new(Options { max_memory: 1 << 20, ..Options::default() });
        assert!(matches!(zip.feed(&text), Err(LoadError::Pickle(_))));
    }
}
