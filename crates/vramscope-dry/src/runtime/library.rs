//! Libraries of kernels that a program loads.

#![expect(unsafe_code, reason = "exported functions of the runtime")]

use super::status::status;
use crate::abi::api;
use crate::device::{current_device, devices};
use crate::errors::SUCCESS;
use crate::tables::{handles, put, succeed};
use std::ffi::c_char;

succeed! { cudaLibraryUnload cudaKernelSetAttributeForDevice }

handles! {
    cudaLibraryLoadData cudaLibraryLoadFromFile cudaLibraryGetKernel cudaLibraryGetUnifiedFunction
}

api! {
    /// Writes 0: kernels have names, but none is known before it is asked for.
    fn cudaLibraryGetKernelCount(count: *mut u32, _library: u64) -> i32 {
        put(count, 0);
        SUCCESS
    }

    /// Writes the address of a variable: one for all, in the context's memory.
    fn cudaLibraryGetGlobal(
        place: *mut u64, bytes: *mut usize, _library: u64, _name: *const c_char,
    ) -> i32 {
        put(bytes, 0);
        status(devices().context(current_device()).map(|address| put(place, address)))
    }

    /// Writes the address of a managed variable.
    fn cudaLibraryGetManaged(
        place: *mut u64, bytes: *mut usize, library: u64, name: *const c_char,
    ) -> i32 {
        cudaLibraryGetGlobal(place, bytes, library, name)
    }
}
