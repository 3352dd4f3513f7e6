//! Decoding operands from a chunk of the stream.

/// A cursor over a chunk of the stream.
pub(crate) struct Operands<'a> {
    bytes: &'a [u8],
    /// The index of the next byte.
    pub(crate) pos: usize,
}

/// The chunk ends inside the operand: a lower bound of the missing bytes, or [`UNTIL_NEWLINE`].
pub(crate) struct MissingBytes(pub(crate) usize);

/// The operand ends with the next newline, however far away.
pub(crate) const UNTIL_NEWLINE: usize = 0;

impl<'a> Operands<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, pos: 0 }
    }

    pub(crate) fn take(&mut self, n: usize) -> Result<&'a [u8], MissingBytes> {
        match self.bytes.get(self.pos..).and_then(|rest| rest.get(..n)) {
            Some(taken) => {
                self.pos += n;
                Ok(taken)
            }
            None => Err(MissingBytes(self.pos.saturating_add(n) - self.bytes.len())),
        }
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], MissingBytes> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, MissingBytes> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u32(&mut self) -> Result<u32, MissingBytes> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// The text up to the next newline, without a carriage return before it.
    pub(crate) fn line(&mut self) -> Result<&'a [u8], MissingBytes> {
        let line = self.whole_line()?;
        Ok(line.strip_suffix(b"\r").unwrap_or(line))
    }

    /// The text up to the next newline.
    pub(crate) fn whole_line(&mut self) -> Result<&'a [u8], MissingBytes> {
        let rest = self.bytes.get(self.pos..).unwrap_or_default();
        let end = memchr::memchr(b'\n', rest).ok_or(MissingBytes(UNTIL_NEWLINE))?;
        self.pos += end + 1;
        Ok(&rest[..end])
    }
}
