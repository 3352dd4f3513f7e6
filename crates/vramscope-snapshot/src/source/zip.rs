//! Zip archives as `torch.save` writes them: the pickle is the entry `NAME/data.pkl`.
//!
//! The archive is read from its start, by the local headers, since the central directory is at its
//! end. PyTorch stores entries, and writes their sizes behind them (a data descriptor): so the end
//! of an entry is where a descriptor has the checksum and the size of what came before it. Archives
//! of other programs can deflate entries, and have the sizes in front.
//!
//! `torch.load` reads by the directory, and so does Python's `zipfile`. An archive is an error
//! unless they find the pickle that was read: `torch.load` takes the folder of the first entry, and
//! a name in any case.

mod directory;
#[cfg(test)]
mod tests;

use super::{NamedSnapshot, Options, Reader, TORCH_SAVE};
use crate::report::LoadError;
use directory::{Directory, Part, Stat, of_entry, widened};
use flate2::{Crc, Decompress, FlushDecompress, Status};
use memchr::memmem;

/// Bytes that are looked at at once.
const PIECE_BYTES: usize = 1 << 16;

/// Bytes of a local header, without its name and extra fields.
const HEADER_BYTES: usize = 30;

/// Bytes of the longest data descriptor. The central directory behind it has more.
const DESCRIPTOR_BYTES: usize = 24;

/// Other entries may have this many bytes before the pickle, and may unpack to as many. PyTorch
/// writes the pickle first, and stores the others.
const MAX_OTHER_BYTES: u64 = 64 << 20;

const LOCAL_HEADER: u32 = 0x0403_4b50;
const DESCRIPTOR: [u8; 4] = *b"PK\x07\x08";
/// The first signatures behind the last entry: of a record of the central directory, of the end of
/// an archive, of that of a large one, and of a record for decryption.
const AFTER_ENTRIES: [u32; 4] =
    [directory::RECORD, directory::END, directory::LARGE_END, 0x0806_4b50];

const STORED: u16 = 0;
const DEFLATED: u16 = 8;
/// Encryption of three kinds.
const IS_ENCRYPTED: u16 = 1 | 1 << 6 | 1 << 13;
const HAS_DESCRIPTOR: u16 = 1 << 3;
/// Encryption, or a change to another file.
const UNREADABLE: u16 = IS_ENCRYPTED | 1 << 5;

const NO_PICKLE: &str = "this is a zip archive without FOLDER/data.pkl, which torch.save writes, \
                         so it is no memory snapshot: if it contains one, unpack it first";
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
    /// Bytes of other entries: all before the pickle, and unpacked ones.
    skipped: u64,
    /// The folder of the first entry, with its slash. Empty before that.
    folder: Vec<u8>,
    directory: Directory,
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
    Directory,
    /// The archive has ended.
    Done,
}

/// An entry that is being read.
struct Entry {
    name: Vec<u8>,
    is_pickle: bool,
    /// What its header says.
    stat: Stat,
    /// The offset of its bytes in the archive. Faults are said to be here, however bytes arrive.
    start: u64,
    data: Data,
    has_descriptor: bool,
    /// Whether the bytes are unpacked.
    is_checked: bool,
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
            directory: Directory::new(options.max_memory),
            options,
            state: State::Header,
            buffer: Vec::new(),
            at: 0,
            skipped: 0,
            folder: Vec::new(),
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
        let reader = self.reader.as_ref().map_or(0, Reader::memory);
        self.buffer.capacity() + self.directory.memory() + reader + found
    }

    pub(crate) fn feed(&mut self, chunk: &[u8]) -> Result<(), LoadError> {
        for piece in chunk.chunks(PIECE_BYTES) {
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
            State::Descriptor(entry) => {
                let Some(start) = bytes.get(..DESCRIPTOR_BYTES + DESCRIPTOR.len()) else {
                    self.state = State::Descriptor(entry);
                    return Ok(None);
                };
                let length = descriptor(start, &entry);
                let length = length.ok_or_else(|| fault(entry.start, BAD_CHECKSUM))?;
                self.end(*entry)?;
                Ok(Some(length))
            }
            State::Directory => {
                self.state = State::Directory;
                Ok(match self.directory.step(self.at, bytes)? {
                    Part::Some(length) => Some(length),
                    Part::Cut => None,
                    Part::End(length) => {
                        self.state = State::Done;
                        Some(length)
                    }
                })
            }
            State::Done => {
                self.state = State::Done;
                if bytes.is_empty() {
                    Ok(None)
                } else {
                    Err(fault(self.at, "bytes follow its end"))
                }
            }
        }
    }

    fn header(&mut self, bytes: &[u8]) -> Result<Option<usize>, LoadError> {
        let Some(signature) = number(bytes, 0, 4) else { return Ok(None) };
        if AFTER_ENTRIES.contains(&(signature as u32)) {
            if !self.has_pickle() {
                return Err(LoadError::Refused { what: NO_PICKLE });
            }
            self.directory.begin(self.at);
            self.state = State::Directory;
            return Ok(Some(0));
        }
        if signature as u32 != LOCAL_HEADER {
            return Err(fault(self.at, "an entry was expected"));
        }
        let of = |at: usize, length: usize| number(bytes, at, length);
        let (Some(name), Some(extra)) = (of(26, 2), of(28, 2)) else { return Ok(None) };
        let (name, extra) = (name as usize, extra as usize);
        let length = HEADER_BYTES + name + extra;
        let Some(header) = bytes.get(..length) else { return Ok(None) };
        let of = |at: usize, length: usize| number(header, at, length).unwrap_or_default();
        let (flags, method) = (of(6, 2) as u16, of(8, 2) as u16);
        let (name, extra) = header[HEADER_BYTES..].split_at(name);
        let is_pickle = self.is_pickle(name)?;
        if flags & UNREADABLE != 0 {
            let what = if flags & IS_ENCRYPTED != 0 { ENCRYPTED } else { OTHER_METHOD };
            return Err(LoadError::Refused { what });
        }
        let has_descriptor = flags & HAS_DESCRIPTOR != 0;
        let [unpacked, packed] = widened([of(22, 4), of(18, 4)], extra)
            .ok_or_else(|| of_entry(self.at, name, "lacks sizes of 64 bits"))?;
        let data = match method {
            DEFLATED if is_pickle || has_descriptor => Data::Deflated(Decompress::new(false)),
            // With a descriptor, no size in the header means that it is not known yet.
            STORED if has_descriptor && packed == 0 => Data::Open,
            STORED => Data::Stored(packed),
            _ if !is_pickle && !has_descriptor => Data::Stored(packed),
            _ => return Err(LoadError::Refused { what: OTHER_METHOD }),
        };
        if is_pickle {
            self.reader = Some(Reader::with_options(self.options.inside()?));
        }
        let crc = of(14, 4) as u32;
        self.state = State::Entry(Box::new(Entry {
            name: name.to_vec(),
            is_pickle,
            stat: Stat { offset: self.at, method, crc, packed, unpacked },
            start: self.at + length as u64,
            // The bytes of an entry that stays packed have no checksum of their own.
            is_checked: method == STORED || matches!(data, Data::Deflated(_)),
            data,
            has_descriptor,
            crc: Crc::new(),
            bytes: 0,
        }));
        Ok(Some(length))
    }

    fn has_pickle(&self) -> bool {
        self.reader.is_some() || self.found.is_some()
    }

    /// Whether an entry is the pickle, by its name.
    ///
    /// # Errors
    /// The name is of no file of `torch.save`, or other programs could read it as the pickle's.
    fn is_pickle(&mut self, name: &[u8]) -> Result<bool, LoadError> {
        if self.folder.is_empty() {
            let end = memchr::memchr(b'/', name).map_or(0, |slash| slash + 1);
            self.folder = name[..end].to_vec();
        }
        let wrong = |what: &str| Err(of_entry(self.at, name, what));
        let inside = name.strip_prefix(&self.folder[..]).filter(|_| !self.folder.is_empty());
        // PyTorch reads an archive with constants as a program, not as a pickle.
        let Some(inside) = inside.filter(|&inside| inside != b"constants.pkl") else {
            return if self.has_pickle() {
                wrong("is not of an archive of torch.save")
            } else {
                Err(LoadError::Refused { what: NO_PICKLE })
            };
        };
        // As programs on Windows and PyTorch compare names.
        let mut plain = inside.to_ascii_lowercase();
        plain.iter_mut().filter(|byte| **byte == b'\\').for_each(|byte| *byte = b'/');
        let looks_so = plain == b"data.pkl" || plain.ends_with(b"/data.pkl");
        if name.contains(&0) || looks_so && (inside != b"data.pkl" || self.has_pickle()) {
            return wrong("can be taken for data.pkl, which must be one entry");
        }
        Ok(looks_so)
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
        if entry.has_descriptor {
            self.state = State::Descriptor(entry);
        } else {
            self.end(*entry)?;
        }
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
                    self.end(*entry)?;
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
        let is_before = !self.has_pickle();
        if is_before || matches!(entry.data, Data::Deflated(_)) {
            self.skipped += bytes.len() as u64;
        }
        if self.skipped <= MAX_OTHER_BYTES {
            return Ok(());
        }
        Err(if is_before {
            LoadError::Refused { what: NO_PICKLE }
        } else {
            of_entry(entry.stat.offset, &entry.name, "unpacks to more than 64 MiB")
        })
    }

    /// Ends an entry, whose descriptor fits if it has one.
    fn end(&mut self, entry: Entry) -> Result<(), LoadError> {
        let stat = entry.ended().ok_or_else(|| fault(entry.start, BAD_CHECKSUM))?;
        self.directory.add(entry.name, stat)?;
        if entry.is_pickle
            && let Some(reader) = self.reader.take_if(|_| !self.only_counts)
        {
            self.found = Some(reader.finish().map_err(not_a_checkpoint)?);
        }
        self.state = State::Header;
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<Vec<NamedSnapshot>, LoadError> {
        let reason = match self.state {
            State::Done => return self.found.ok_or(LoadError::Refused { what: NO_PICKLE }),
            State::Directory => "it ends inside its directory",
            State::Header if self.has_pickle() => "it ends before its directory",
            State::Header => "it ends before data.pkl",
            _ => "it ends inside an entry, or the entry has changed",
        };
        Err(fault(self.at + self.buffer.len() as u64, reason))
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

/// The length of the data descriptor that `bytes` start with, if it is that of an entry. Its sizes
/// have four bytes each, or eight in large archives: those of an empty entry fit both, so what
/// follows decides. Its signature is optional.
fn descriptor(bytes: &[u8], entry: &Entry) -> Option<usize> {
    let (unpacked, packed) = (entry.bytes, entry.packed_bytes());
    let crc = u64::from(entry.crc.sum());
    let signature = if bytes.starts_with(&DESCRIPTOR) { DESCRIPTOR.len() } else { 0 };
    let fits = [4, 8].into_iter().filter_map(|size| {
        let at = signature + 4;
        let sizes = [packed, unpacked].map(|n| if size == 4 { n & 0xffff_ffff } else { n });
        let found = [number(bytes, at, size)?, number(bytes, at + size, size)?];
        (number(bytes, signature, 4)? == crc && found == sizes).then_some(at + 2 * size)
    });
    fits.clone().find(|&at| is_next(bytes, at)).or_else(|| fits.clone().next())
}

/// Whether an entry or the end of all follows. An entry can begin with the descriptor of an empty
/// one.
fn is_next(bytes: &[u8], at: usize) -> bool {
    let signature = number(bytes, at, 4).unwrap_or_default() as u32;
    signature == LOCAL_HEADER || AFTER_ENTRIES.contains(&signature)
}

impl Entry {
    /// The numbers of its data, if its header has these. The header may have zeros if a descriptor
    /// follows the data.
    fn ended(&self) -> Option<Stat> {
        if !self.is_checked {
            return Some(self.stat);
        }
        let (crc, packed, unpacked) = (self.crc.sum(), self.packed_bytes(), self.bytes);
        let found = Stat { crc, packed, unpacked, ..self.stat };
        let numbers = |of: &Stat| [of.crc.into(), of.packed, of.unpacked];
        let fits = std::iter::zip(numbers(&self.stat), numbers(&found))
            .all(|(said, is)| said == is || self.has_descriptor && said == 0);
        fits.then_some(found)
    }

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
