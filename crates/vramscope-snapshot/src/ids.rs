//! Indices into a snapshot's tables.

/// Index into [`Frames`](crate::Frames).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FrameId(pub u32);

/// Index into [`Stacks`](crate::Stacks). Zero is the empty stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackId(pub u32);

impl StackId {
    /// The empty stack: no stack was recorded.
    pub const EMPTY: Self = Self(0);
}

/// Index into [`Snapshot::streams`](crate::Snapshot::streams).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(pub u16);

/// Index into [`Snapshot::pools`](crate::Snapshot::pools), or [`PoolIndex::UNKNOWN`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PoolIndex(pub u16);

impl PoolIndex {
    /// The file does not name the pool (before PyTorch 2.1, and trace entries before 2.12).
    pub const UNKNOWN: Self = Self(u16::MAX);
}

/// PyTorch's `MempoolId_t` (`c10/core/CachingDeviceAllocator.h`): (0, 0) is the default pool, (n,
/// 0) belongs to a graph capture, (0, n) was made by `graph_pool_handle` or `MemPool`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PoolId(pub u64, pub u64);

impl PoolId {
    /// The pool of allocations that name no pool.
    pub const DEFAULT: Self = Self(0, 0);
}

impl std::fmt::Display for PoolId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if *self == Self::DEFAULT {
            f.write_str("default")
        } else {
            write!(f, "({}, {})", self.0, self.1)
        }
    }
}
