//! The form of Parquet's metadata, which is checked before the library reads it.
//!
//! The library takes a field by its number, whatever its type, calls itself for each level of the
//! schema, and passes a list of booleans without a byte for each. So a short file can take any
//! time, or end the program. Metadata with the types of the format, and few columns, cannot.

use Kind::{Bytes, Few, Flag, List, Number, Small, Struct};
use std::io::{self, ErrorKind, Read};

/// The type of a field.
pub(crate) enum Kind {
    Flag,
    Small,
    Number,
    Bytes,
    List(&'static Kind),
    /// A list with at most [`MAX_COLUMNS`] values.
    Few(&'static Kind),
    /// The kinds of the fields 1, 2, 3 and so on.
    Struct(&'static [Kind]),
}

/// The most columns of a table, with the levels of lists.
const MAX_COLUMNS: u64 = 256;

const NONE: Kind = Struct(&[]);
const UNIT: Kind = Struct(&[NONE, NONE, NONE]);
const TIME: Kind = Struct(&[Flag, UNIT]);
const DECIMAL: Kind = Struct(&[Number, Number]);
const INTEGER: Kind = Struct(&[Small, Flag]);
/// A type of a column. Number 9 is reserved.
const LOGICAL: Kind = Struct(&[
    NONE, NONE, NONE, NONE, DECIMAL, NONE, TIME, TIME, NONE, INTEGER, NONE, NONE, NONE, NONE, NONE,
]);
const COLUMN: Kind =
    Struct(&[Number, Number, Number, Bytes, Number, Number, Number, Number, Number, LOGICAL]);
const STATISTICS: Kind = Struct(&[Bytes, Bytes, Number, Number, Bytes, Bytes, Flag, Flag, Number]);
const NOTE: Kind = Struct(&[Bytes, Bytes]);
const NUMBERS: Kind = List(&Number);
const CHUNK: Kind = Struct(&[
    Number,
    NUMBERS,
    List(&Bytes),
    Number,
    Number,
    Number,
    Number,
    List(&NOTE),
    Number,
    Number,
    Number,
    STATISTICS,
    List(&Struct(&[Number, Number, Number])),
    Number,
    Number,
    Struct(&[Number, NUMBERS, NUMBERS]),
]);
const PLACE: Kind = Struct(&[Bytes, Number, CHUNK, Number, Number, Number, Number]);
const ORDER: Kind = Struct(&[Number, Flag, Flag]);
const GROUP: Kind = Struct(&[Few(&PLACE), Number, Number, List(&ORDER), Number, Number, Number]);

/// The metadata of a file.
pub(crate) const FILE: &[Kind] =
    &[Number, Few(&COLUMN), Number, List(&GROUP), List(&NOTE), Bytes, Few(&Struct(&[NONE, NONE]))];

/// The header of a page: its kind, its sizes unpacked and packed, its checksum, and numbers.
pub(crate) const PAGE: &[Kind] = &[
    Number,
    Number,
    Number,
    Number,
    Struct(&[Number, Number, Number, Number, STATISTICS]),
    NONE,
    Struct(&[Number, Number, Flag]),
    Struct(&[Number, Number, Number, Number, Number, Number, Flag, STATISTICS]),
];

/// Reads values in Thrift's compact protocol, and counts their bytes.
pub(crate) struct Form<R> {
    from: R,
    /// Bytes that were read.
    pub(crate) bytes: u64,
    /// Bytes that there are at most.
    most: u64,
}

fn wrong() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "its metadata are not of Parquet's form")
}

impl<R: Read> Form<R> {
    pub(crate) fn new(from: R, most: u64) -> Self {
        Self { from, bytes: 0, most }
    }

    /// Reads a struct, and returns the last numbers of its fields 1, 2 and 3.
    pub(crate) fn fields(&mut self, kinds: &[Kind]) -> io::Result<[i64; 3]> {
        let (mut numbers, mut id) = ([0; 3], 0_u64);
        loop {
            let head = self.byte()?;
            let (step, found) = (head >> 4, head & 15);
            if found == 0 {
                return Ok(numbers);
            }
            id = match step {
                0 => u64::try_from(self.number()?).map_err(|_| wrong())?,
                _ => id + u64::from(step),
            };
            let at = usize::try_from(id).ok().and_then(|id| id.checked_sub(1)).ok_or_else(wrong)?;
            let number = self.value(kinds.get(at).ok_or_else(wrong)?, found)?;
            if let (Some(number), Some(slot)) = (number, numbers.get_mut(at)) {
                *slot = number;
            }
        }
    }

    /// Reads a value with this type in the file.
    fn value(&mut self, kind: &Kind, found: u8) -> io::Result<Option<i64>> {
        match (kind, found) {
            (Flag, 1 | 2) => {}
            (Small, 3) => drop(self.byte()?),
            (Number, 4..=6) => return self.number().map(Some),
            (Bytes, 8) => {
                let length = self.unsigned()?;
                self.count(length)?;
                if io::copy(&mut self.from.by_ref().take(length), &mut io::sink())? != length {
                    return Err(wrong());
                }
            }
            (List(of) | Few(of), 9) => {
                let head = self.byte()?;
                let length = match head >> 4 {
                    15 => self.unsigned()?,
                    length => length.into(),
                };
                if matches!(kind, Few(_)) && length > MAX_COLUMNS {
                    return Err(wrong());
                }
                for _ in 0..length {
                    self.value(of, head & 15)?;
                }
            }
            (Struct(kinds), 12) => drop(self.fields(kinds)?),
            _ => return Err(wrong()),
        }
        Ok(None)
    }

    fn number(&mut self) -> io::Result<i64> {
        let number = self.unsigned()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    fn unsigned(&mut self) -> io::Result<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Ok(number);
            }
        }
        Err(wrong())
    }

    fn byte(&mut self) -> io::Result<u8> {
        self.count(1)?;
        let mut byte = [0];
        self.from.read_exact(&mut byte)?;
        Ok(byte[0])
    }

    fn count(&mut self, bytes: u64) -> io::Result<()> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.most { Err(wrong()) } else { Ok(()) }
    }
}
