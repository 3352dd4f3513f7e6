//! GPUs by name: the memory that PyTorch gets on each, and the numbers by which PyTorch and the
//! libraries of Nvidia decide.

use serde::{Deserialize, Serialize};

/// The numbers of a device. The names are those of `cudaDeviceProp`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gpu {
    /// The name that CUDA reports, such as `NVIDIA H100 80GB HBM3`.
    pub name: String,
    /// Memory that CUDA reports as the total, in bytes.
    pub total_bytes: u64,
    /// Memory that the context takes from the start, in bytes.
    pub context_bytes: u64,
    /// Compute capability: major and minor.
    pub capability: (u32, u32),
    /// Multiprocessors.
    pub multiprocessors: u32,
    /// Shared memory of a multiprocessor, in bytes.
    pub shared_memory_per_multiprocessor: u32,
    /// Shared memory that a block of threads can ask for, in bytes.
    pub shared_memory_per_block_optin: u32,
    /// Threads of a multiprocessor.
    pub threads_per_multiprocessor: u32,
    /// Blocks of threads of a multiprocessor.
    pub blocks_per_multiprocessor: u32,
    /// Level 2 cache, in bytes.
    pub l2_bytes: u32,
    /// Clock of the multiprocessors, in kHz.
    pub clock_khz: u32,
    /// Clock of the memory, in kHz.
    pub memory_clock_khz: u32,
    /// Width of the memory's bus, in bits.
    pub memory_bus_bits: u32,
}

impl Gpu {
    /// An H100 SXM with 80 GB, the device that dry runs were compared with.
    #[must_use]
    pub fn h100() -> Self {
        Self {
            name: "NVIDIA H100 80GB HBM3".into(),
            total_bytes: 85_017_493_504,
            context_bytes: 500 << 20,
            capability: (9, 0),
            multiprocessors: 132,
            shared_memory_per_multiprocessor: 233_472,
            shared_memory_per_block_optin: 232_448,
            threads_per_multiprocessor: 2048,
            blocks_per_multiprocessor: 32,
            l2_bytes: 50 << 20,
            clock_khz: 1_980_000,
            memory_clock_khz: 2_619_000,
            memory_bus_bits: 5120,
        }
    }
}
