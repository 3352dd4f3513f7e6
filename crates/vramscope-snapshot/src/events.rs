//! Trace entries, one column per field.

use crate::constant_column::ConstantColumn;
use crate::delta_column::{ADDRESSES, DeltaColumn, SIZES, TIMES};
use crate::ids::{PoolIndex, StackId, StreamId};
use vramscope_pickle::{StrId, reserve_for};
use vramscope_units::{Addr, Bytes, Micros};

/// The action of a trace entry: an index into the snapshot's action names. PyTorch's actions have
/// fixed indices.
///
/// The names are those of `TraceEntry::Action` in `c10/core/CachingDeviceAllocator.h`. Actions of
/// later releases are listed by name and have no other effect. So are those that `torch_npu` makes
/// up: they describe the state at the dump, and nothing happened at their place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Action(pub u8);

#[expect(missing_docs, reason = "PyTorch documents the names")]
impl Action {
    pub const ALLOC: Self = Self(0);
    pub const FREE_REQUESTED: Self = Self(1);
    pub const FREE_COMPLETED: Self = Self(2);
    pub const SEGMENT_ALLOC: Self = Self(3);
    pub const SEGMENT_FREE: Self = Self(4);
    pub const SEGMENT_MAP: Self = Self(5);
    pub const SEGMENT_UNMAP: Self = Self(6);
    pub const OOM: Self = Self(7);
    pub const SNAPSHOT: Self = Self(8);
    pub const ANNOTATE: Self = Self(9);
    /// Not in PyTorch. Viewers merge a free request and its completion into it, so re-exported
    /// files may hold it.
    pub const FREE: Self = Self(10);
    /// The first of three events that `torch_npu` makes up, at the dump and in front of a trace,
    /// for each block of its workspace allocator.
    pub const WORKSPACE_SNAPSHOT: Self = Self(11);
    /// The second of them, which reads `segment_alloc`.
    pub const WORKSPACE_SEGMENT: Self = Self(12);
    /// The third of them, which reads `alloc`.
    pub const WORKSPACE_ALLOC: Self = Self(13);
    /// The last action with a fixed index.
    pub(crate) const LAST: Self = Self::WORKSPACE_ALLOC;
}

/// A column of a field that few events have: pairs of row and value, sorted by row.
pub type SparseColumn<T> = Vec<(u32, T)>;

/// All trace entries of a file. Each device's trace is a range of rows, in file order.
#[derive(Clone, Debug)]
pub struct Events {
    pub(crate) action: Vec<Action>,
    pub(crate) addr: DeltaColumn,
    pub(crate) size: DeltaColumn,
    pub(crate) time: DeltaColumn,
    pub(crate) stack: Vec<StackId>,
    pub(crate) stream: ConstantColumn<StreamId>,
    pub(crate) pool: ConstantColumn<PoolIndex>,
    /// `device_free` of OOM events: free bytes that the driver reported.
    pub device_free: SparseColumn<Bytes>,
    /// The innermost `Torch-Compiled Region`, if any.
    pub compile_context: SparseColumn<StrId>,
    /// The argument of `_set_memory_metadata`, or the payload of an `annotate` event. Dicts are
    /// JSON text.
    pub user_metadata: SparseColumn<StrId>,
    /// Non-empty `internal_metadata`.
    pub internal_metadata: SparseColumn<StrId>,
    /// The traceback of the forward call, for allocations in backward under anomaly mode.
    pub forward_frames: SparseColumn<StrId>,
    /// `category`, in snapshots made from a profile.
    pub category: SparseColumn<StrId>,
    /// The number of rows at the last [`Events::reserve_ahead`].
    len_at_reserve: usize,
}

/// The time of an event without `time_us`.
pub(crate) const NO_TIME: i64 = i64::MIN;

/// One row of the columns that are not sparse.
#[derive(Clone, Copy)]
pub(crate) struct Event {
    pub(crate) action: Action,
    pub(crate) addr: u64,
    pub(crate) size: u64,
    pub(crate) time: i64,
    pub(crate) stack: StackId,
    pub(crate) stream: StreamId,
    pub(crate) pool: PoolIndex,
}

impl Event {
    /// An event without data.
    pub(crate) const UNKNOWN: Self = Self {
        action: Action(u8::MAX),
        addr: 0,
        size: 0,
        time: NO_TIME,
        stack: StackId::EMPTY,
        stream: StreamId(0),
        pool: PoolIndex::UNKNOWN,
    };
}

impl Default for Events {
    fn default() -> Self {
        Self {
            action: Vec::new(),
            addr: DeltaColumn::new(ADDRESSES),
            size: DeltaColumn::new(SIZES),
            time: DeltaColumn::new(TIMES),
            stack: Vec::new(),
            stream: ConstantColumn::new(StreamId(0)),
            pool: ConstantColumn::new(PoolIndex::UNKNOWN),
            device_free: SparseColumn::new(),
            compile_context: SparseColumn::new(),
            user_metadata: SparseColumn::new(),
            internal_metadata: SparseColumn::new(),
            forward_frames: SparseColumn::new(),
            category: SparseColumn::new(),
            len_at_reserve: 0,
        }
    }
}

impl Events {
    /// The number of rows of all devices.
    pub fn len(&self) -> usize {
        self.action.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.action.is_empty()
    }

    /// The event's action.
    pub fn action(&self, row: u32) -> Action {
        self.action[row as usize]
    }

    /// The event's address; 0 if it has none (OOM).
    pub fn addr(&self, row: u32) -> Addr {
        Addr(self.addr.get(row as usize))
    }

    /// The event's `size`. Its meaning depends on the action: requested bytes for allocs and frees.
    pub fn size(&self, row: u32) -> Bytes {
        Bytes(self.size.get(row as usize))
    }

    /// The event's `time_us`, since the Unix epoch.
    pub fn time(&self, row: u32) -> Option<Micros> {
        let time = self.recorded_time(row);
        (time.0 != NO_TIME).then_some(time)
    }

    /// [`Events::time`] of an event that is known to have one.
    #[inline]
    pub fn recorded_time(&self, row: u32) -> Micros {
        Micros(self.time.get(row as usize) as i64)
    }

    /// A quick check, true for nearly all recordings, that all events in these rows have a time and
    /// that times never decrease. False does not mean the opposite: the caller then has to compare
    /// the times.
    ///
    /// # Panics
    /// When a row does not exist.
    pub fn times_rise(&self, rows: std::ops::Range<u32>) -> bool {
        // In a damaged file the offsets may wrap around once. Then the last time is below the
        // first.
        let ends = self.time(rows.start) <= self.time(rows.end - 1);
        ends && self.time.is_sorted(rows.start as usize..rows.end as usize)
    }

    /// The event's stack, or [`StackId::EMPTY`] if none was recorded.
    pub fn stack(&self, row: u32) -> StackId {
        self.stack[row as usize]
    }

    /// The event's stream.
    pub fn stream(&self, row: u32) -> StreamId {
        self.stream.get(row as usize)
    }

    /// The event's pool, or [`PoolIndex::UNKNOWN`].
    pub fn pool(&self, row: u32) -> PoolIndex {
        self.pool.get(row as usize)
    }

    /// The value of a sparse column in a row.
    pub fn sparse<T: Copy>(column: &SparseColumn<T>, row: u32) -> Option<T> {
        column.binary_search_by_key(&row, |c| c.0).ok().map(|i| column[i].1)
    }

    /// Adds a row.
    #[expect(clippy::inline_always, reason = "the frequent caller saves a copy of the event")]
    #[inline(always)]
    pub(crate) fn push(&mut self, event: Event) -> u32 {
        self.action.push(event.action);
        self.addr.push(event.addr);
        self.size.push(event.size);
        self.time.push(event.time as u64);
        self.stack.push(event.stack);
        self.stream.push(event.stream);
        self.pool.push(event.pool);
        self.action.len() as u32 - 1
    }

    /// Out-of-line [`Events::push`], for infrequent callers.
    #[inline(never)]
    pub(crate) fn push_outlined(&mut self, event: Event) -> u32 {
        self.push(event)
    }

    pub(crate) fn get(&self, row: u32) -> Event {
        let i = row as usize;
        Event {
            action: self.action[i],
            addr: self.addr.get(i),
            size: self.size.get(i),
            time: self.time.get(i) as i64,
            stack: self.stack[i],
            stream: self.stream.get(i),
            pool: self.pool.get(i),
        }
    }

    pub(crate) fn set(&mut self, row: u32, event: Event) {
        let i = row as usize;
        self.action[i] = event.action;
        self.addr.set(i, event.addr);
        self.size.set(i, event.size);
        self.time.set(i, event.time as u64);
        self.stack[i] = event.stack;
        self.stream.set(i, event.stream);
        self.pool.set(i, event.pool);
    }

    /// Adds a copy of `row`, for files in which one entry is in two lists.
    pub(crate) fn copy(&mut self, row: u32) -> u32 {
        let new = self.push_outlined(self.get(row));
        copy_sparse(&mut self.device_free, row, new);
        for column in self.sparse_text_columns() {
            copy_sparse(column, row, new);
        }
        new
    }

    /// The sparse columns of strings.
    fn sparse_text_columns(&mut self) -> [&mut SparseColumn<StrId>; 5] {
        [
            &mut self.compile_context,
            &mut self.user_metadata,
            &mut self.internal_metadata,
            &mut self.forward_frames,
            &mut self.category,
        ]
    }

    /// Bytes per row, without the sparse columns.
    pub(crate) fn row_bytes(&self) -> usize {
        let numbers = self.addr.row_bytes() + self.size.row_bytes() + self.time.row_bytes();
        size_of::<Action>()
            + numbers
            + size_of::<StackId>()
            + self.stream.row_bytes()
            + self.pool.row_bytes()
    }

    /// Reserves capacity for the rest of the file. `remaining` is its length, in multiples of the
    /// bytes read since the last call.
    pub(crate) fn reserve_ahead(&mut self, remaining: f64) {
        let recent = self.len() - self.len_at_reserve;
        self.len_at_reserve += recent;
        self.reserve(recent, remaining);
    }

    /// Reserves capacity for `remaining` times the `recent` rows that were added last.
    pub(crate) fn reserve(&mut self, recent: usize, remaining: f64) {
        reserve_for(&mut self.action, recent, remaining);
        self.addr.reserve(recent, remaining);
        self.size.reserve(recent, remaining);
        self.time.reserve(recent, remaining);
        reserve_for(&mut self.stack, recent, remaining);
        self.stream.reserve(recent, remaining);
        self.pool.reserve(recent, remaining);
    }

    /// Drops the rows of a range for which `keep` is false, and moves later rows up. Returns the
    /// number of dropped rows.
    pub(crate) fn retain_rows(
        &mut self,
        rows: std::ops::Range<u32>,
        keep: impl Fn(u32) -> bool,
    ) -> u32 {
        let mut to = rows.start;
        let mut numbers = Vec::with_capacity(rows.len());
        for row in rows.clone() {
            numbers.push(keep(row).then_some(to));
            if keep(row) {
                self.set(to, self.get(row));
                to += 1;
            }
        }
        let dropped = rows.end - to;
        for row in rows.end..self.len() as u32 {
            self.set(row - dropped, self.get(row));
        }
        let len = self.len() - dropped as usize;
        self.truncate(len);
        let number = |row: u32| match row.checked_sub(rows.start) {
            None => Some(row),
            Some(i) => numbers.get(i as usize).map_or_else(|| Some(row - dropped), |&kept| kept),
        };
        renumber(&mut self.device_free, number);
        for column in self.sparse_text_columns() {
            renumber(column, number);
        }
        dropped
    }

    fn truncate(&mut self, len: usize) {
        self.action.truncate(len);
        self.addr.truncate(len);
        self.size.truncate(len);
        self.time.truncate(len);
        self.stack.truncate(len);
        self.stream.truncate(len);
        self.pool.truncate(len);
    }

    /// Frees spare capacity.
    pub(crate) fn shrink(&mut self) {
        self.action.shrink_to_fit();
        self.addr.shrink();
        self.size.shrink();
        self.time.shrink();
        self.stack.shrink_to_fit();
        self.stream.shrink();
        self.pool.shrink();
    }

    /// Bytes of memory that the columns hold.
    pub fn memory(&self) -> usize {
        let sparse: usize = [
            &self.compile_context,
            &self.user_metadata,
            &self.internal_metadata,
            &self.forward_frames,
            &self.category,
        ]
        .iter()
        .map(|c| c.capacity() * 8)
        .sum();
        self.action.capacity()
            + self.addr.memory()
            + self.size.memory()
            + self.time.memory()
            + self.stack.capacity() * 4
            + self.stream.memory()
            + self.pool.memory()
            + self.device_free.capacity() * 16
            + sparse
    }
}

fn copy_sparse<T: Copy>(column: &mut SparseColumn<T>, from: u32, to: u32) {
    if let Some(value) = Events::sparse(column, from) {
        column.push((to, value));
    }
}

fn renumber<T>(column: &mut SparseColumn<T>, number: impl Fn(u32) -> Option<u32>) {
    column.retain_mut(|(row, _)| match number(*row) {
        Some(new) => {
            *row = new;
            true
        }
        None => false,
    });
}
