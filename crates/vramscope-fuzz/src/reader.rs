//! Reads a file without any report, so that long inputs are fast.

use crate::pieces;
use vramscope_snapshot::{LoadError, Reader, dump};

/// Memory that a file of any size may take, and per byte, as FORMAT.md promises.
const FREE_MEMORY: u64 = 64 << 20;
const MEMORY_PER_BYTE: u64 = 64;
/// Bytes of a file that gzip may make of one.
const UNPACKED_PER_BYTE: u64 = 1032;

/// Reads the bytes as one piece and in several. Both must give equal tables or an error, and hold
/// no more memory than promised.
///
/// # Panics
/// When an invariant is broken.
pub fn reader(data: &[u8]) {
    let Some((size, bytes)) = pieces(data) else { return };
    let (whole, pieces) = (read(bytes, bytes.len().max(1)), read(bytes, size));
    match (whole, pieces) {
        (Ok(whole), Ok(pieces)) => assert!(whole == pieces, "in pieces of {size} bytes"),
        (Err(_), Err(_)) => {}
        (whole, pieces) => {
            panic!("in pieces of {size} bytes: {:?}, {:?}", whole.map(drop), pieces.map(drop))
        }
    }
}

fn read(bytes: &[u8], size: usize) -> Result<Vec<String>, LoadError> {
    let mut reader = Reader::default();
    let unpacked = if bytes.starts_with(b"\x1f\x8b") { UNPACKED_PER_BYTE } else { 1 };
    let limit = FREE_MEMORY + MEMORY_PER_BYTE * unpacked * bytes.len() as u64;
    for piece in bytes.chunks(size) {
        let fed = reader.feed(piece);
        let held = reader.memory() as u64;
        assert!(held <= limit, "{held} bytes held for {} read", bytes.len());
        fed?;
    }
    Ok(reader.finish()?.iter().map(|named| dump(&named.snapshot)).collect())
}
