//! Attributes of a device, by the numbers that the driver and the runtime share.

use crate::settings::settings;

/// The PCI bus of the first device. The next devices follow.
pub(crate) const PCI_BUS: i32 = 16;

/// The 16 bytes that identify a device.
pub(crate) fn uuid(device: i32) -> [u8; 16] {
    let mut uuid = *b"vramscope-dry-00";
    uuid[15] = device as u8;
    uuid
}

/// The PCI address of a device.
pub(crate) fn pci_address(device: i32) -> String {
    format!("0000:{:02X}:00.0", PCI_BUS + device)
}

/// The value of an attribute. The numbers are those of `CUdevice_attribute` (`cuda.h` of CUDA
/// 13.0); `cudaDeviceAttr` has the same. Attributes that are not listed are 0: a device of a dry
/// run lacks the feature.
pub(crate) fn attribute(number: i32, device: i32) -> i32 {
    let gpu = &settings().gpu;
    let value = match number {
        // Threads of a block, along x, along y; shared memory that the system takes of a block.
        1 | 2 | 3 | 111 => 1024,
        // Threads of a block along z.
        4 => 64,
        // Blocks of a grid along x, y, z; the pitch of a copy.
        5 | 11 => i32::MAX as u32,
        6 | 7 => 65_535,
        // Shared memory of a block: without asking, if asked for, of a multiprocessor.
        8 => 49_152,
        97 => gpu.shared_memory_per_block_optin,
        81 => gpu.shared_memory_per_multiprocessor,
        // Constant memory; registers of a block and of a multiprocessor.
        9 | 12 | 82 => 65_536,
        // Threads of a warp.
        10 => 32,
        13 => gpu.clock_khz,
        36 => gpu.memory_clock_khz,
        37 => gpu.memory_bus_bits,
        38 => gpu.l2_bytes,
        // Alignment of textures and surfaces.
        14 | 30 => 512,
        16 => gpu.multiprocessors,
        39 => gpu.threads_per_multiprocessor,
        106 => gpu.blocks_per_multiprocessor,
        33 => (PCI_BUS + device) as u32,
        // Engines for copies.
        40 => 3,
        75 => gpu.capability.0,
        76 => gpu.capability.1,
        // Copies beside kernels; host memory in the device's addresses; kernels beside kernels;
        // one address space; priorities of streams; L1 cache for global and local memory;
        // managed memory, also used by both sides at once; preemption; the host's pointers for
        // registered memory; cooperative launches; registering host memory; mapping of memory,
        // with file descriptors as handles; memory pools.
        15 | 19 | 31 | 41 | 78 | 79 | 80 | 83 | 89 | 90 | 91 | 95 | 96 | 99 | 102 | 103 | 115 => 1,
        // Launches of clusters.
        120 => u32::from(gpu.capability.0 >= 9),
        _ => 0,
    };
    value as i32
}
