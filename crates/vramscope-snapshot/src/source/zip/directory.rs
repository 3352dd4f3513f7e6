//! The central directory, at the end of a zip archive.
//!
//! Other programs read an archive by its directory, from its end. So the directory must list each
//! entry that was read from the start, once, and no other; and every search for the directory's end
//! must find the same end.

use super::{fault, number};
use crate::report::LoadError;
use std::collections::BTreeMap;
use vramscope_pickle::PickleError;
use vramscope_units::shown_name;

pub(super) const RECORD: u32 = 0x0201_4b50;
pub(super) const END: u32 = 0x0605_4b50;
pub(super) const LARGE_END: u32 = 0x0606_4b50;
const LOCATOR: u32 = 0x0706_4b50;

/// Bytes of a record, without its name, extra fields and comment.
const RECORD_BYTES: usize = 46;
const LARGE_END_BYTES: usize = 56;
const LOCATOR_BYTES: usize = 20;
/// Bytes of the end, without its comment.
const END_BYTES: usize = 22;

/// The extra field with sizes of 64 bits, and the one with another name.
const LARGE: u64 = 1;
const OTHER_NAME: u64 = 0x7075;

/// The newest version that Python reads.
const NEWEST: u64 = 63;

/// The attribute of a folder. PyTorch reads no data of an entry that has it.
const IS_FOLDER: u64 = 0x10;

/// Limit of the bytes held of names and sizes. A file of `torch.save` has some tens per tensor.
const MAX_BYTES: usize = 16 << 20;
/// Bytes held of an entry, without its name.
const ENTRY_BYTES: usize = size_of::<(Vec<u8>, Stat)>();

/// An entry, as its local header and its data have it, or its record in the directory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Stat {
    /// The offset of the local header.
    pub(super) offset: u64,
    pub(super) method: u16,
    pub(super) crc: u32,
    pub(super) packed: u64,
    pub(super) unpacked: u64,
}

/// Compares the entries that were read with the directory.
pub(super) struct Directory {
    /// The entries that the directory has not listed yet.
    entries: BTreeMap<Vec<u8>, Stat>,
    /// Bytes held of all entries.
    memory: usize,
    max_memory: u64,
    /// The offset of the first record.
    start: u64,
    records: u64,
    /// Whether an end with 64 bits was read.
    is_large: bool,
}

/// The next part of a directory.
pub(super) enum Part {
    /// A part of this many bytes.
    Some(usize),
    /// The end of the archive, with this many bytes.
    End(usize),
    /// More bytes are needed.
    Cut,
}

impl Directory {
    pub(super) fn new(max_memory: u64) -> Self {
        let entries = BTreeMap::new();
        Self { entries, memory: 0, max_memory, start: 0, records: 0, is_large: false }
    }

    pub(super) fn memory(&self) -> usize {
        self.memory
    }

    /// Takes an entry that was read.
    pub(super) fn add(&mut self, name: Vec<u8>, stat: Stat) -> Result<(), LoadError> {
        self.memory += name.len() + ENTRY_BYTES;
        if self.memory as u64 > self.max_memory {
            let (max, at) = (self.max_memory, stat.offset);
            return Err(PickleError::MaxMemory { max, at }.into());
        }
        if self.memory > MAX_BYTES {
            let reason = "its entries have more than 16 MiB of names and sizes";
            return Err(fault(stat.offset, reason));
        }
        if self.entries.contains_key(&name) {
            return Err(of_entry(stat.offset, &name, "is in it twice"));
        }
        self.entries.insert(name, stat);
        Ok(())
    }

    /// Begins the directory at an offset.
    pub(super) fn begin(&mut self, at: u64) {
        self.start = at;
    }

    /// Reads the part at an offset.
    pub(super) fn step(&mut self, at: u64, bytes: &[u8]) -> Result<Part, LoadError> {
        let Some(signature) = number(bytes, 0, 4) else { return Ok(Part::Cut) };
        match signature as u32 {
            RECORD if !self.is_large => self.record(at, bytes),
            LARGE_END if !self.is_large => self.large_end(at, bytes),
            END => self.end(at, bytes),
            _ => Err(fault(at, "a record of its directory or its end was expected")),
        }
    }

    fn record(&mut self, at: u64, bytes: &[u8]) -> Result<Part, LoadError> {
        let lengths = [28, 30, 32].map(|field| number(bytes, field, 2).map(|n| n as usize));
        let [Some(name), Some(extra), Some(comment)] = lengths else { return Ok(Part::Cut) };
        let length = RECORD_BYTES + name + extra + comment;
        let Some(record) = bytes.get(..length) else { return Ok(Part::Cut) };
        let of = |at: usize, length: usize| number(record, at, length).unwrap_or_default();
        let (name, rest) = record[RECORD_BYTES..].split_at(name);
        let wrong = |what: &str| of_entry(at, name, what);
        let extra = &rest[..extra];
        let tags = || fields(extra).map(|(tag, _)| tag);
        let is_whole =
            fields(extra).map(|(_, field)| 4 + field.len()).sum::<usize>() == extra.len();
        if !is_whole
            || tags().any(|tag| tag == OTHER_NAME)
            || tags().filter(|&tag| tag == LARGE).count() > 1
        {
            return Err(wrong("has damaged fields, or a second name or size, in the directory"));
        }
        // Every search looks for the locator of an end with 64 bits this far before the end.
        if number(record, length - LOCATOR_BYTES, 4) == Some(LOCATOR.into()) {
            return Err(wrong("has the bytes of an end in the directory"));
        }
        let sizes = [of(24, 4), of(20, 4), of(42, 4)];
        let [unpacked, packed, offset] = widened(sizes, extra)
            .ok_or_else(|| wrong("lacks sizes of 64 bits in the directory"))?;
        let stat =
            Stat { offset, method: of(10, 2) as u16, crc: of(16, 4) as u32, packed, unpacked };
        let read = self.entries.remove(name);
        let read = read.ok_or_else(|| wrong("is in the directory only, or twice"))?;
        let flags = of(8, 2) as u16 & super::UNREADABLE;
        if stat != read || flags != 0 || of(34, 2) != 0 {
            return Err(wrong(
                "has another offset, size, checksum or method in the directory than in its header",
            ));
        }
        if of(6, 1) > NEWEST {
            return Err(wrong("needs a newer version of zip"));
        }
        if of(38, 4) & IS_FOLDER != 0 && unpacked > 0 {
            return Err(wrong("has data, but is a folder in the directory"));
        }
        self.records += 1;
        Ok(Part::Some(length))
    }

    /// Reads the end with 64 bits, and the locator behind it.
    fn large_end(&mut self, at: u64, bytes: &[u8]) -> Result<Part, LoadError> {
        let length = LARGE_END_BYTES + LOCATOR_BYTES;
        let Some(bytes) = bytes.get(..length) else { return Ok(Part::Cut) };
        let found = [(4, 8), (16, 4), (20, 4), (24, 8), (32, 8), (40, 8), (48, 8)]
            .into_iter()
            .chain([(56, 4), (60, 4), (64, 8), (72, 4)])
            .map(|(at, length)| number(bytes, at, length).unwrap_or_default());
        let [disk_records, records, size, start] = self.totals(at);
        let own = LARGE_END_BYTES as u64 - 12;
        let locator = [LOCATOR.into(), 0, at, 1];
        let expected = [own, 0, 0, disk_records, records, size, start];
        if !found.eq(expected.into_iter().chain(locator)) {
            return Err(fault(at, "its end with 64 bits does not fit its directory"));
        }
        self.is_large = true;
        Ok(Part::Some(length))
    }

    fn end(&mut self, at: u64, bytes: &[u8]) -> Result<Part, LoadError> {
        let Some(comment) = number(bytes, 20, 2) else { return Ok(Part::Cut) };
        let length = END_BYTES + comment as usize;
        let Some(bytes) = bytes.get(..length) else { return Ok(Part::Cut) };
        // The end with 64 bits and its locator are no part of the directory.
        let large = if self.is_large { (LARGE_END_BYTES + LOCATOR_BYTES) as u64 } else { 0 };
        if let Some((name, stat)) = self.entries.first_key_value() {
            return Err(of_entry(stat.offset, name, "is not in the directory"));
        }
        let totals = self.totals(at - large).into_iter();
        let fits = totals.zip([(8, 2), (10, 2), (12, 4), (16, 4)]).all(|(total, (at, length))| {
            let found = number(bytes, at, length);
            let most = (1 << (8 * length)) - 1;
            found == Some(total) || self.is_large && found == Some(most)
        });
        if !fits || number(bytes, 4, 4) != Some(0) {
            return Err(fault(at, "its end does not fit its directory"));
        }
        // A search from the end of the file would find this one first.
        if memchr::memmem::find(&bytes[4..], &END.to_le_bytes()).is_some() {
            return Err(fault(at, "its comment has the bytes of another end"));
        }
        Ok(Part::End(length))
    }

    /// The totals of a directory that ends at an offset: records, twice, its size and its start.
    fn totals(&self, end: u64) -> [u64; 4] {
        [self.records, self.records, end - self.start, self.start]
    }
}

/// The extra fields of a header, up to one that is cut: tags and contents.
fn fields(mut extra: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    std::iter::from_fn(move || {
        let (tag, length) = (number(extra, 0, 2)?, number(extra, 2, 2)?);
        let (field, rest) = extra[4..].split_at_checked(length as usize)?;
        extra = rest;
        Some((tag, field))
    })
}

/// Numbers of a header. Those of all ones are in the extra field with numbers of 64 bits.
pub(super) fn widened<const N: usize>(mut numbers: [u64; N], extra: &[u8]) -> Option<[u64; N]> {
    let large = fields(extra).find(|(tag, _)| *tag == LARGE).map(|(_, field)| field);
    let mut at = 0;
    for found in numbers.iter_mut().filter(|found| **found == u64::from(u32::MAX)) {
        *found = number(large?, at, 8)?;
        at += 8;
    }
    Some(numbers)
}

/// An error about an entry.
pub(super) fn of_entry(at: u64, name: &[u8], what: &str) -> LoadError {
    fault(at, &format!("the entry `{}` {what}", shown_name(&String::from_utf8_lossy(name))))
}
