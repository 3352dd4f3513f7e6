//! GPUs by name: the memory that PyTorch gets on each, and the numbers by which PyTorch and the
//! libraries of Nvidia decide.

mod capability;
mod table;

pub use capability::Limits;
pub use table::{Device, devices, names};

use serde::{Deserialize, Serialize};

/// Memory that a context takes from a device at its start, in bytes. Measured on an H100 with
/// PyTorch 2.11; an estimate for others.
const CONTEXT: u64 = 500 << 20;

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

/// The highest speeds of a device, as its data sheet has them, per second. No program reaches them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speeds {
    /// The device, as users write it.
    pub name: &'static str,
    /// Multiplications and additions of 32-bit numbers.
    pub single: f64,
    /// The same in TF32.
    pub tf32: f64,
    /// The same of 16-bit numbers.
    pub half: f64,
    /// Bytes that the device's memory reads or writes.
    pub memory: f64,
    /// Bytes that cross the link to the host in one direction.
    pub link: f64,
}

impl Gpu {
    /// An H100 SXM with 80 GB, the device that dry runs were compared with.
    #[must_use]
    pub fn h100() -> Self {
        Self::named("H100").expect("a device of the table")
    }

    /// The device of a name as a user writes it: `H100`, `rtx 4090`, `A100-40GB`. Case, spaces, `-`
    /// and `_` do not matter.
    ///
    /// # Errors
    ///
    /// No device has this name, or it is not from Nvidia; the message names what was expected.
    pub fn named(text: &str) -> Result<Self, String> {
        match Device::named(text) {
            Some(device) => device.gpu(),
            None => {
                let names: Vec<&str> = names().collect();
                Err(format!("`{text}` is no known GPU: expected one of {}", names.join(", ")))
            }
        }
    }
}
