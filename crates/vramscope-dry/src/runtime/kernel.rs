//! Kernels: registered, asked about and launched, without work.

#![expect(unsafe_code, reason = "exported functions of the runtime")]

use super::status::status;
use crate::abi::api;
use crate::device::{current_device, devices};
use crate::errors::SUCCESS;
use crate::lookup::find;
use crate::settings::settings;
use crate::tables::{put, succeed};
use std::cell::RefCell;
use std::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicI32, Ordering};

#[cfg(test)]
mod tests;

/// Blocks of any kernel that fit into a multiprocessor at once.
pub(crate) const ACTIVE_BLOCKS: i32 = 8;

/// Registers of any kernel.
pub(crate) const REGISTERS: i32 = 32;

/// Sizes of a grid or of a block.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dim3 {
    /// Along x, y and z.
    sizes: [u32; 3],
}

/// How the next kernel of a thread is launched.
#[derive(Clone, Copy, Debug)]
struct Configuration {
    /// Blocks.
    grid: Dim3,
    /// Threads of a block.
    block: Dim3,
    /// Shared memory, in bytes.
    shared: usize,
    /// The stream.
    stream: u64,
}

thread_local! {
    /// The configurations that the compiler's code has pushed.
    static PUSHED: RefCell<Vec<Configuration>> = const { RefCell::new(Vec::new()) };
}

/// `cudaFuncAttributes`, with the fields that all versions have.
#[repr(C)]
#[derive(Default)]
pub(crate) struct FunctionAttributes {
    /// Shared memory, constant memory and local memory of the kernel, in bytes.
    sizes: [usize; 3],
    /// Threads that a block can have.
    threads_per_block: i32,
    /// Registers of a thread.
    registers: i32,
    /// Versions of the PTX and of the binary, such as 90.
    versions: [i32; 2],
    /// Whether global loads are cached in L1.
    cache_mode: i32,
    /// Shared memory that can be asked for, in bytes.
    dynamic_shared: i32,
    /// The preferred part of shared memory.
    carveout: i32,
}

/// Bytes of `cudaFuncAttributes` behind those fields since CUDA 12 (`driver_types.h` of 12.8.90 and
/// 13.0.96: 144 in all; 56 in 11.8.89).
const MORE_ATTRIBUTES: usize = 144 - size_of::<FunctionAttributes>();

/// The version of PyTorch's code that the device loads. 0: not known.
static CODE_VERSION: AtomicI32 = AtomicI32::new(0);

/// From now on, kernels report code of `version`, such as 86. 0: code for the very device.
pub(crate) fn set_code_version(version: i32) {
    CODE_VERSION.store(version, Ordering::Relaxed);
}

/// The version of the code that was loaded, such as 86. A device of version 89 loads that code if
/// PyTorch has none for 89, and CUB refuses to launch code of a version that it was not built for.
pub(crate) fn code_version() -> i32 {
    let (major, minor) = settings().gpu.capability;
    match CODE_VERSION.load(Ordering::Relaxed) {
        0 => (major * 10 + minor) as i32,
        version => version,
    }
}

succeed! {
    cudaLaunchKernel __cudaLaunchKernel cudaLaunchKernelExC cudaLaunchCooperativeKernel
    cudaLaunchKernel_ptsz __cudaLaunchKernel_ptsz cudaLaunchKernelExC_ptsz
    cudaLaunchCooperativeKernel_ptsz cudaFuncSetAttribute cudaFuncSetCacheConfig
    cudaFuncSetSharedMemConfig cudaMemcpyToSymbol cudaMemcpyToSymbolAsync
    __cudaRegisterFatBinaryEnd __cudaUnregisterFatBinary __cudaRegisterFunction __cudaRegisterVar
    __cudaRegisterManagedVar __cudaRegisterHostVar __cudaRegisterTexture __cudaRegisterSurface
}

api! {
    /// Notes how the next kernel is launched. 0: success.
    fn __cudaPushCallConfiguration(grid: Dim3, block: Dim3, shared: usize, stream: u64) -> u32 {
        let configuration = Configuration { grid, block, shared, stream };
        PUSHED.with_borrow_mut(|pushed| pushed.push(configuration));
        0
    }

    /// Writes the configuration that was noted last.
    fn __cudaPopCallConfiguration(
        grid: *mut Dim3, block: *mut Dim3, shared: *mut usize, stream: *mut u64,
    ) -> i32 {
        let one = Dim3 { sizes: [1; 3] };
        let none = Configuration { grid: one, block: one, shared: 0, stream: 0 };
        let last = PUSHED.with_borrow_mut(Vec::pop).unwrap_or(none);
        put(grid, last.grid);
        put(block, last.block);
        put(shared, last.shared);
        put(stream, last.stream);
        SUCCESS
    }

    /// Registers a binary. Returns a handle that others only pass back.
    fn __cudaRegisterFatBinary(_binary: *const c_void) -> *mut u64 {
        static HANDLE: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        HANDLE.as_ptr()
    }

    /// Returns 1: the module is initialized.
    fn __cudaInitModule(_binary: *mut u64) -> c_char { 1 }

    /// Writes the kernel of a function of the host.
    fn __cudaGetKernel(kernel: *mut u64, function: u64) -> i32 {
        put(kernel, function);
        SUCCESS
    }

    /// Writes the kernel of a function of the host.
    fn cudaGetFuncBySymbol(kernel: *mut u64, function: u64) -> i32 {
        put(kernel, function);
        SUCCESS
    }

    /// Writes the kernel of a function of the host.
    fn cudaGetKernel(kernel: *mut u64, function: u64) -> i32 {
        put(kernel, function);
        SUCCESS
    }

    /// Writes the attributes of a kernel, equal for all.
    fn cudaFuncGetAttributes(place: *mut FunctionAttributes, _function: u64) -> i32 {
        put(place, FunctionAttributes {
            threads_per_block: 1024,
            registers: REGISTERS,
            versions: [code_version(); 2],
            dynamic_shared: settings().gpu.shared_memory_per_block_optin as i32,
            ..FunctionAttributes::default()
        });
        if settings().cuda >= 12000 && !place.is_null() {
            place.add(1).cast::<u8>().write_bytes(0, MORE_ATTRIBUTES);
        }
        SUCCESS
    }

    /// Writes how many blocks fit into a multiprocessor.
    fn cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks: *mut i32, _function: u64, _threads: i32, _shared: usize,
    ) -> i32 {
        put(blocks, ACTIVE_BLOCKS);
        SUCCESS
    }

    /// Writes how many blocks fit into a multiprocessor.
    fn cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks: *mut i32, _function: u64, _threads: i32, _shared: usize, _flags: u32,
    ) -> i32 {
        put(blocks, ACTIVE_BLOCKS);
        SUCCESS
    }

    /// Writes how many clusters fit into a device.
    fn cudaOccupancyMaxActiveClusters(
        clusters: *mut i32, _function: u64, _configuration: *const c_void,
    ) -> i32 {
        put(clusters, ACTIVE_BLOCKS);
        SUCCESS
    }

    /// Writes the address of a variable of a kernel: one for all, in the context's memory.
    fn cudaGetSymbolAddress(place: *mut u64, _symbol: u64) -> i32 {
        status(devices().context(current_device()).map(|address| put(place, address)))
    }

    /// Writes a function of the driver by its name. Its state is 0: found; 1: not found.
    fn cudaGetDriverEntryPoint(
        name: *const c_char, place: *mut *mut c_void, _flags: u64, state: *mut i32,
    ) -> i32 {
        let function = find(name);
        put(place, function);
        put(state, i32::from(function.is_null()));
        SUCCESS
    }

    /// Writes a function of the driver by its name.
    fn cudaGetDriverEntryPointByVersion(
        name: *const c_char, place: *mut *mut c_void, _version: u32, flags: u64, state: *mut i32,
    ) -> i32 {
        cudaGetDriverEntryPoint(name, place, flags, state)
    }

    /// Fails: a dry run has no private tables.
    fn cudaGetExportTable(table: *mut u64, _number: *const c_void) -> i32 {
        put(table, 0);
        crate::errors::UNKNOWN
    }
}
