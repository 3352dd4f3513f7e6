//! Modules and libraries of kernels, their attributes and launches. The real cuDNN loads and links
//! kernels that it has compiled.

#![expect(unsafe_code, reason = "exported functions of the driver")]

use crate::abi::api;
use crate::device::{current_device, devices};
use crate::errors::{SUCCESS, code};
use crate::runtime::{ACTIVE_BLOCKS, REGISTERS, code_version};
use crate::settings::settings;
use crate::tables::{handles, put, succeed};
use std::ffi::{c_char, c_void};

/// Attributes of functions, from `cuda.h` of CUDA 13.0: threads of a block, registers, versions of
/// PTX and binary, shared memory that can be asked for.
fn function_attribute(number: i32) -> i32 {
    match number {
        0 => 1024,
        4 => REGISTERS,
        5 | 6 => code_version(),
        8 => settings().gpu.shared_memory_per_block_optin as i32,
        _ => 0,
    }
}

succeed! {
    cuModuleUnload cuLibraryUnload cuLinkAddData cuLinkAddData_v2 cuLinkAddFile cuLinkAddFile_v2
    cuLinkDestroy
    cuFuncSetAttribute cuFuncSetCacheConfig cuFuncSetSharedMemConfig cuKernelSetAttribute
    cuKernelSetCacheConfig cuLaunchKernel cuLaunchKernelEx cuLaunchCooperativeKernel cuFuncLoad
}

handles! {
    cuModuleLoad cuModuleLoadData cuModuleLoadDataEx cuModuleLoadFatBinary cuModuleGetFunction
    cuLibraryLoadData cuLibraryLoadFromFile cuLibraryGetKernel cuLibraryGetModule
}

api! {
    /// Writes the address of a variable: one for all, in the context's memory.
    fn cuModuleGetGlobal_v2(
        place: *mut u64, bytes: *mut usize, _module: u64, _name: *const c_char,
    ) -> i32 {
        put(bytes, 0);
        code(devices().context(current_device()).map(|address| put(place, address)))
    }

    /// Writes the address of a variable.
    fn cuLibraryGetGlobal(
        place: *mut u64, bytes: *mut usize, library: u64, name: *const c_char,
    ) -> i32 {
        cuModuleGetGlobal_v2(place, bytes, library, name)
    }

    /// Writes the function of a kernel: its handle.
    fn cuKernelGetFunction(function: *mut u64, kernel: u64) -> i32 {
        put(function, kernel);
        SUCCESS
    }

    /// Writes 2: kernels are loaded when they are used.
    fn cuModuleGetLoadingMode(mode: *mut i32) -> i32 {
        put(mode, 2);
        SUCCESS
    }

    /// Begins to link kernels.
    fn cuLinkCreate_v2(
        _count: u32, _options: *mut i32, _values: *mut *mut c_void, state: *mut u64,
    ) -> i32 {
        put(state, crate::tables::new_handle());
        SUCCESS
    }

    /// Begins to link kernels. cuDNN asks for the name without a version.
    fn cuLinkCreate(
        count: u32, options: *mut i32, values: *mut *mut c_void, state: *mut u64,
    ) -> i32 {
        cuLinkCreate_v2(count, options, values, state)
    }

    /// Writes an empty binary.
    fn cuLinkComplete(_state: u64, binary: *mut *const c_void, bytes: *mut usize) -> i32 {
        static EMPTY: [u8; 64] = [0; 64];
        put(binary, EMPTY.as_ptr().cast());
        put(bytes, EMPTY.len());
        SUCCESS
    }

    /// Writes an attribute of a function.
    fn cuFuncGetAttribute(value: *mut i32, number: i32, _function: u64) -> i32 {
        put(value, function_attribute(number));
        SUCCESS
    }

    /// Writes an attribute of a kernel.
    fn cuKernelGetAttribute(value: *mut i32, number: i32, _kernel: u64, _device: i32) -> i32 {
        put(value, function_attribute(number));
        SUCCESS
    }

    /// Writes a name, equal for all.
    fn cuFuncGetName(name: *mut *const c_char, _function: u64) -> i32 {
        put(name, c"kernel".as_ptr());
        SUCCESS
    }

    /// Writes a name, equal for all.
    fn cuKernelGetName(name: *mut *const c_char, _kernel: u64) -> i32 {
        put(name, c"kernel".as_ptr());
        SUCCESS
    }

    /// Writes how many blocks fit into a multiprocessor.
    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks: *mut i32, _function: u64, _threads: i32, _shared: usize,
    ) -> i32 {
        put(blocks, ACTIVE_BLOCKS);
        SUCCESS
    }

    /// Writes how many blocks fit into a multiprocessor.
    fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks: *mut i32, _function: u64, _threads: i32, _shared: usize, _flags: u32,
    ) -> i32 {
        put(blocks, ACTIVE_BLOCKS);
        SUCCESS
    }

    /// Writes how many clusters fit into a device.
    fn cuOccupancyMaxActiveClusters(
        clusters: *mut i32, _function: u64, _configuration: *const c_void,
    ) -> i32 {
        put(clusters, ACTIVE_BLOCKS);
        SUCCESS
    }

    /// Writes the greatest cluster.
    fn cuOccupancyMaxPotentialClusterSize(
        blocks: *mut i32, _function: u64, _configuration: *const c_void,
    ) -> i32 {
        put(blocks, ACTIVE_BLOCKS);
        SUCCESS
    }

    /// Writes a description of a tensor, which no kernel reads: 128 bytes.
    fn cuTensorMapEncodeTiled(place: *mut [u64; 16]) -> i32 {
        put(place, [0; 16]);
        SUCCESS
    }
}
