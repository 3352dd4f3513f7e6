//! Indices into a snapshot's tables.

/// Index into [`Frames`](crate::Frames).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FrameId(pub u32);

/// Index into [`Stacks`](crate::Stacks). Zero is the empty stack: none was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackId(pub u32);

impl StackId {
    /// No stack was recorded.
    pub const EMPTY: Self = Self(0);
}

/// Index into a snapshot's streams, which hold the stream handles as PyTorch wrote them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(pub u16);

/// Index into a snapshot's pools. [`PoolIndex::UNKNOWN`] where the file says none (before PyTorch
/// 2.1, and for trace entries before 2.12).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PoolIndex(pub u16);

impl PoolIndex {
    /// The file does not say.
    pub const UNKNOWN: Self = Self(u16::MAX);
}

/// PyTorch's `MempoolId_t`: (0, 0) is the default pool, (n, 0) belongs to a graph capture, (0, n)
/// was made by `graph_pool_handle` or `MemPool` (`c10/core/CachingDeviceAllocator.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PoolId(pub u64, pub u64);

impl PoolId {
    /// The pool that memory comes from unless a program says otherwise.
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
