//! Writes plain data as CPython's pickler does with protocol 4: CPython reads such a file and
//! pickles it into the same bytes, which a test checks.

use rustc_hash::FxHashMap;
use std::io::{self, Write};

/// A frame ends with the object in which it reaches this length, in bytes
/// (`_Pickler_OpcodeBoundary` in CPython's `_pickle.c`).
const FRAME_BYTES: usize = 64 << 10;
/// Items that one APPENDS or SETITEMS takes (`BATCHSIZE` in CPython's `_pickle.c`).
const BATCH: usize = 1000;

pub(crate) struct Pickler<W> {
    out: W,
    frame: Vec<u8>,
    /// The next memo number.
    memo: u32,
    /// Memo numbers of interned strings.
    words: FxHashMap<&'static str, u32>,
    written: u64,
}

/// A list that is being filled. Its length must be known: one item takes another opcode than
/// several.
pub(crate) struct List {
    length: usize,
    filled: usize,
}

impl<W: Write> Pickler<W> {
    pub(crate) fn new(mut out: W) -> io::Result<Self> {
        out.write_all(b"\x80\x04")?;
        let frame = Vec::with_capacity(2 * FRAME_BYTES);
        Ok(Self { out, frame, memo: 0, words: FxHashMap::default(), written: 2 })
    }

    /// Call before each object: frames end between objects.
    fn object(&mut self) -> io::Result<()> {
        if self.frame.len() >= FRAME_BYTES { self.end_frame() } else { Ok(()) }
    }

    fn end_frame(&mut self) -> io::Result<()> {
        self.out.write_all(b"\x95")?;
        self.out.write_all(&(self.frame.len() as u64).to_le_bytes())?;
        self.out.write_all(&self.frame)?;
        self.written += 9 + self.frame.len() as u64;
        self.frame.clear();
        Ok(())
    }

    fn memoize(&mut self) -> u32 {
        self.frame.push(b'\x94');
        self.memo += 1;
        self.memo - 1
    }

    /// Refers to an object by its memo number.
    pub(crate) fn get(&mut self, memo: u32) -> io::Result<()> {
        self.object()?;
        match u8::try_from(memo) {
            Ok(memo) => self.frame.extend([b'h', memo]),
            Err(_) => {
                self.frame.push(b'j');
                self.frame.extend(memo.to_le_bytes());
            }
        }
        Ok(())
    }

    /// Writes a new string object, and returns its memo number.
    pub(crate) fn string(&mut self, text: &str) -> io::Result<u32> {
        self.object()?;
        match u8::try_from(text.len()) {
            Ok(length) => self.frame.extend([b'\x8c', length]),
            Err(_) => {
                self.frame.push(b'X');
                self.frame.extend((text.len() as u32).to_le_bytes());
            }
        }
        self.frame.extend(text.as_bytes());
        Ok(self.memoize())
    }

    /// Writes an interned string: a new object the first time, then a reference to it.
    pub(crate) fn word(&mut self, word: &'static str) -> io::Result<()> {
        if let Some(&memo) = self.words.get(word) {
            return self.get(memo);
        }
        let memo = self.string(word)?;
        self.words.insert(word, memo);
        Ok(())
    }

    pub(crate) fn int(&mut self, value: i64) -> io::Result<()> {
        self.object()?;
        let bytes = value.to_le_bytes();
        if (0..=0xff).contains(&value) {
            self.frame.extend([b'K', bytes[0]]);
        } else if (0..=0xffff).contains(&value) {
            self.frame.extend([b'M', bytes[0], bytes[1]]);
        } else if i32::try_from(value).is_ok() {
            self.frame.push(b'J');
            self.frame.extend(&bytes[..4]);
        } else {
            // The fewest bytes that keep the sign.
            let unused = if value < 0 { value.leading_ones() } else { value.leading_zeros() };
            let length = (65 - unused as usize).div_ceil(8);
            self.frame.extend([b'\x8a', length as u8]);
            self.frame.extend(&bytes[..length]);
        }
        Ok(())
    }

    pub(crate) fn bool(&mut self, value: bool) -> io::Result<()> {
        self.object()?;
        self.frame.push(if value { b'\x88' } else { b'\x89' });
        Ok(())
    }

    pub(crate) fn float(&mut self, value: f64) -> io::Result<()> {
        self.object()?;
        self.frame.push(b'G');
        self.frame.extend(value.to_be_bytes());
        Ok(())
    }

    /// Writes a tuple of two numbers.
    pub(crate) fn pair(&mut self, a: i64, b: i64) -> io::Result<()> {
        self.object()?;
        self.int(a)?;
        self.int(b)?;
        self.frame.push(b'\x86');
        self.memoize();
        Ok(())
    }

    /// Opens a dict of 2 to 1000 pairs, whose keys and values follow. Returns its memo number.
    pub(crate) fn dict(&mut self) -> io::Result<u32> {
        self.object()?;
        self.frame.push(b'}');
        let memo = self.memoize();
        self.frame.push(b'(');
        Ok(memo)
    }

    pub(crate) fn end_dict(&mut self) {
        self.frame.push(b'u');
    }

    /// Opens a dict of one pair, which [`Self::end_pair`] closes.
    pub(crate) fn dict_of_one(&mut self) -> io::Result<()> {
        self.object()?;
        self.frame.push(b'}');
        self.memoize();
        Ok(())
    }

    pub(crate) fn end_pair(&mut self) {
        self.frame.push(b's');
    }

    /// Opens a list of `length` items. Returns its memo number, too.
    pub(crate) fn list(&mut self, length: usize) -> io::Result<(List, u32)> {
        self.object()?;
        self.frame.push(b']');
        Ok((List { length, filled: 0 }, self.memoize()))
    }

    /// Call before each item.
    pub(crate) fn item(&mut self, list: &mut List) {
        if list.length > 1 && list.filled.is_multiple_of(BATCH) {
            self.frame.extend(if list.filled > 0 { b"e(".as_slice() } else { b"(" });
        }
        list.filled += 1;
    }

    pub(crate) fn end_list(&mut self, list: &List) {
        assert!(list.filled == list.length, "a list of {} got {} items", list.length, list.filled);
        match list.length {
            0 => {}
            1 => self.frame.push(b'a'),
            _ => self.frame.push(b'e'),
        }
    }

    /// Ends the pickle, and returns its size in bytes.
    pub(crate) fn finish(mut self) -> io::Result<u64> {
        self.frame.push(b'.');
        self.end_frame()?;
        self.out.flush()?;
        Ok(self.written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn int_takes_the_shortest_form() {
        let written = |value| {
            let mut out = Vec::new();
            let mut pickler = Pickler::new(&mut out).expect("a Vec takes all bytes");
            pickler.int(value).expect("a Vec takes all bytes");
            pickler.finish().expect("a Vec takes all bytes");
            out.split_off(11)
        };
        // From `pickle.dumps(value, 4)`.
        assert_eq!(written(255), b"K\xff.");
        assert_eq!(written(256), b"M\x00\x01.");
        assert_eq!(written(-1), b"J\xff\xff\xff\xff.");
        assert_eq!(written((1 << 31) - 1), b"J\xff\xff\xff\x7f.");
        assert_eq!(written(1 << 31), b"\x8a\x05\x00\x00\x00\x80\x00.");
        assert_eq!(written(-(1 << 31) - 1), b"\x8a\x05\xff\xff\xff\x7f\xff.");
        assert_eq!(written((1 << 39) - 1), b"\x8a\x05\xff\xff\xff\xff\x7f.");
        assert_eq!(written(1 << 39), b"\x8a\x06\x00\x00\x00\x00\x80\x00.");
        assert_eq!(written(i64::MAX), b"\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f.");
    }
}
