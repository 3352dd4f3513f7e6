//! What operations read and write, as the file beside a snapshot has it (SIDECAR.md).

use serde::{Deserialize, Serialize};

/// The operations of a traced step, in packed lists of numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct UseTrace {
    /// The step, as the program counts; null where it counts none.
    pub step: Option<u64>,
    /// When the trace began, in microseconds since 1970.
    pub begin_us: i64,
    /// When it ended.
    pub end_us: i64,
    /// False where a limit has cut it.
    pub complete: bool,
    /// Seconds that the program waited for it.
    pub seconds: f64,
    /// Uses of smaller storages were left out.
    pub least_bytes: u64,
    /// Names of operations.
    pub names: Vec<String>,
    /// Device and address of each storage.
    pub storages: Vec<u64>,
    /// Of each operation, by its begin: the index of its name, microseconds since the begin of the
    /// operation before it (of the trace), its duration in microseconds, and the number of its
    /// uses.
    pub operations: Vec<u64>,
    /// Uses in the order of operations: eight times the index of the storage, plus `READ`,
    /// `WRITE` and `RESULT`.
    pub uses: Vec<u64>,
}

/// The operation reads the storage.
pub(super) const READ: u8 = 1;
/// The operation writes the storage. Without [`READ`] it writes all of it.
pub(super) const WRITE: u8 = 2;
/// The storage is no argument: the operation returns it.
pub(super) const RESULT: u8 = 4;

/// Numbers of an operation in the list.
const FIELDS: usize = 4;
/// Numbers of a storage.
const STORAGE_FIELDS: usize = 2;

/// An operation of the list.
pub(super) struct RawOperation<'a> {
    pub(super) name: u32,
    pub(super) begin_us: i64,
    pub(super) end_us: i64,
    pub(super) uses: &'a [u64],
}

impl UseTrace {
    /// Whether the lists fit together.
    ///
    /// # Errors
    /// Which one does not.
    pub fn check(&self) -> Result<(), String> {
        if !self.storages.len().is_multiple_of(STORAGE_FIELDS) {
            return Err("`uses.storages` has an odd number of values".to_owned());
        }
        if !self.operations.len().is_multiple_of(FIELDS) {
            return Err(format!("`uses.operations` is no list of {FIELDS} values each"));
        }
        let operations = self.operations.chunks_exact(FIELDS);
        if operations.clone().any(|one| one[0] >= self.names.len() as u64) {
            return Err("an operation of `uses` has no name".to_owned());
        }
        let count = operations.fold(0_u64, |sum, one| sum.saturating_add(one[3]));
        if count != self.uses.len() as u64 {
            return Err(format!("`uses.uses` has {} values, expected {count}", self.uses.len()));
        }
        let storages = (self.storages.len() / STORAGE_FIELDS) as u64;
        if self.uses.iter().any(|one| one >> 3 >= storages) {
            return Err("a use has no storage".to_owned());
        }
        Ok(())
    }

    /// The number of operations.
    pub fn len(&self) -> usize {
        self.operations.len() / FIELDS
    }

    /// Whether no operation was seen.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// The operations. Call it after [`UseTrace::check`].
    pub(super) fn each(&self) -> impl Iterator<Item = RawOperation<'_>> {
        let (mut at, mut begin) = (0_usize, self.begin_us);
        self.operations.chunks_exact(FIELDS).map(move |one| {
            begin = begin.saturating_add_unsigned(one[1]);
            let from = at.min(self.uses.len());
            at = from.saturating_add(one[3] as usize).min(self.uses.len());
            RawOperation {
                name: one[0] as u32,
                begin_us: begin,
                end_us: begin.saturating_add_unsigned(one[2]),
                uses: &self.uses[from..at],
            }
        })
    }

    /// The device and the address of the storage of a use.
    pub(super) fn storage(&self, of: u64) -> Option<(u64, u64)> {
        let at = usize::try_from(of >> 3).ok()?.checked_mul(STORAGE_FIELDS)?;
        Some((*self.storages.get(at)?, *self.storages.get(at + 1)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace() -> UseTrace {
        UseTrace {
            begin_us: 100,
            names: vec!["aten.mm".to_owned()],
            storages: vec![0, 512, 0, 1024],
            operations: vec![0, 5, 2, 2, 0, 10, 0, 1],
            uses: vec![1, 8 | 6, 8 | 1],
            ..UseTrace::default()
        }
    }

    #[test]
    fn times_are_sums_of_differences() {
        let trace = trace();
        trace.check().expect("a trace");
        let all: Vec<_> = trace.each().map(|of| (of.begin_us, of.end_us, of.uses.len())).collect();
        assert_eq!(all, [(105, 107, 2), (115, 115, 1)]);
        assert_eq!(trace.storage(8 | 1), Some((0, 1024)));
    }

    #[test]
    fn lists_that_do_not_fit_are_refused() {
        let wrong = [
            UseTrace { names: Vec::new(), ..trace() },
            UseTrace { storages: vec![0, 512], ..trace() },
            UseTrace { storages: vec![0], ..trace() },
            UseTrace { operations: vec![0, 5, 2], ..trace() },
            UseTrace { operations: vec![0, 5, 2, u64::MAX, 0, 10, 0, 1], ..trace() },
            UseTrace { uses: vec![1], ..trace() },
        ];
        for trace in wrong {
            assert!(trace.check().is_err(), "{trace:?}");
        }
    }
}
