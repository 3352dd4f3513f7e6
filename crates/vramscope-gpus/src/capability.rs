//! Numbers that all devices of a compute capability share.

/// What a multiprocessor has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Shared memory, in bytes.
    pub shared_memory: u32,
    /// Shared memory that a block of threads can ask for, in bytes.
    pub shared_memory_per_block_optin: u32,
    /// Threads.
    pub threads: u32,
    /// Blocks of threads.
    pub blocks: u32,
}

/// Shared memory that the system takes for each block, in bytes, from capability 8.0 on.
const RESERVED_PER_BLOCK: u32 = 1 << 10;

impl Limits {
    /// The limits of a compute capability. `None` for one that no device of the table has.
    ///
    /// Source: CUDA programming guide, "Technical Specifications per Compute Capability"
    /// (docs.nvidia.com/cuda/cuda-programming-guide, appendix on compute capabilities). For 12.0
    /// the Blackwell tuning guide differs: 32 blocks, 128 KiB. A public profile of an RTX 5090 has
    /// the numbers of the programming guide.
    #[must_use]
    pub const fn of(capability: (u32, u32)) -> Option<Self> {
        let (kib, threads, blocks) = match capability {
            (7, 0) => (96, 2048, 32),
            (7, 5) => (64, 1024, 16),
            (8, 0) => (164, 2048, 32),
            (8, 6) => (100, 1536, 16),
            (8, 9) | (12, 0) => (100, 1536, 24),
            (9 | 10, 0) => (228, 2048, 32),
            _ => return None,
        };
        let shared_memory = kib << 10;
        let reserved = if capability.0 >= 8 { RESERVED_PER_BLOCK } else { 0 };
        let shared_memory_per_block_optin = shared_memory - reserved;
        Some(Self { shared_memory, shared_memory_per_block_optin, threads, blocks })
    }
}
