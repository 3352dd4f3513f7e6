//! The limit of the memory that a pickle may ask for, in proportion to its length.

use crate::error::{ByteOffset, PickleError};

/// Bytes of memory that reading may take per byte of the unpacked file.
pub const MEMORY_PER_BYTE: u64 = 64;
/// Bytes of memory that a file of any size may take.
pub const FREE_MEMORY: u64 = 64 << 20;

/// A table that grows has twice its content as capacity, and the old table is there until it is
/// copied. So what is held may be a third of the promise.
const GROWTH: u64 = 3;
/// Bytes of the stream between two measurements. Operations between them take memory in proportion
/// to their length, or ask first.
const CHECK_BYTES: u64 = 1 << 14;

/// Bytes of memory that tables of `read` bytes of a file may hold.
pub fn held_limit(read: u64) -> u64 {
    MEMORY_PER_BYTE.saturating_mul(read).saturating_add(FREE_MEMORY) / GROWTH
}

/// The memory that a stream holds and has asked for, with its limits.
///
/// What is held is measured from time to time. Few operations take more memory than a small
/// multiple of their length: joining strings, copying rows. They ask before, with
/// [`Budget::ask`]. What they ask for adds up, so that it also limits their time.
#[derive(Clone, Debug)]
pub struct Budget {
    /// The limit of held bytes, whatever the length of the stream.
    max: u64,
    /// Bytes of the stream read at the last measurement.
    read: u64,
    /// Bytes held at the last measurement.
    held: u64,
    /// Bytes asked for since the start.
    asked: u64,
    next_check: ByteOffset,
    is_spent: bool,
}

impl Default for Budget {
    fn default() -> Self {
        Self { max: u64::MAX, read: 0, held: 0, asked: 0, next_check: 0, is_spent: false }
    }
}

impl Budget {
    /// Limits the held bytes, whatever the length of the stream.
    pub fn set_max(&mut self, bytes: u64) {
        self.max = bytes;
    }

    /// Whether the memory should be measured before the operation at offset `at`.
    #[inline]
    pub(crate) fn is_due(&self, at: ByteOffset) -> bool {
        at >= self.next_check
    }

    /// Asks for `bytes` of memory or, at one byte per unit, of work. Returns false if that is too
    /// much: the caller must not take the memory, and the next [`Budget::check`] fails.
    pub fn ask(&mut self, bytes: usize) -> bool {
        self.asked = self.asked.saturating_add(bytes as u64);
        // Texts are joined in one place and stored in another, and tables grow.
        let soon = (bytes as u64).saturating_mul(GROWTH).saturating_add(self.held);
        if self.asked > held_limit(self.read).saturating_mul(GROWTH) || soon > self.max {
            self.is_spent = true;
            self.next_check = 0;
        }
        !self.is_spent
    }

    /// Checks the bytes `held` after `read` bytes of the stream.
    ///
    /// # Errors
    /// When more memory is held or was asked for than the limits allow.
    pub fn check(&mut self, read: u64, held: usize) -> Result<(), PickleError> {
        self.read = read;
        self.held = held as u64;
        self.next_check = read.saturating_add(CHECK_BYTES);
        if self.held > self.max {
            return Err(PickleError::MaxMemory { max: self.max, at: read });
        }
        if self.is_spent || self.held > held_limit(read) {
            let asked = self.held.max(self.asked);
            return Err(if asked > held_limit(read) {
                PickleError::Memory { asked, at: read }
            } else {
                PickleError::MaxMemory { max: self.max, at: read }
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_may_grow_with_the_stream() {
        let mut budget = Budget::default();
        assert!(budget.check(0, 20 << 20).is_ok());
        assert!(budget.check(0, 30 << 20).is_err());
        assert!(budget.check(1 << 20, 30 << 20).is_ok());
        assert!(budget.is_due(1 << 21) && !budget.is_due(1 << 20));
    }

    #[test]
    fn what_is_asked_for_adds_up() {
        let mut budget = Budget::default();
        assert!(budget.check(0, 0).is_ok());
        for _ in 0..4 {
            assert!(budget.ask(15 << 20));
        }
        assert!(!budget.ask(15 << 20) && !budget.ask(1) && budget.is_due(0));
        assert!(matches!(budget.check(0, 0), Err(PickleError::Memory { .. })));
    }

    #[test]
    fn maximum_holds_for_any_length() {
        let mut budget = Budget::default();
        budget.set_max(1000);
        assert!(budget.check(1 << 30, 1000).is_ok() && budget.ask(0));
        assert!(!budget.ask(1));
        assert_eq!(
            budget.check(1 << 30, 900),
            Err(PickleError::MaxMemory { max: 1000, at: 1 << 30 })
        );
        assert!(budget.check(1 << 30, 1001).is_err());
    }
}
