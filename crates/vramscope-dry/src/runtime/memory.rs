//! Memory of devices and pinned memory of the host.

#![expect(unsafe_code, reason = "exported functions of the runtime")]

use super::status::status;
use super::timeline::timeline;
use crate::abi::api;
use crate::device::{current_device, devices};
use crate::errors::{Code, INVALID_VALUE, NOT_SUPPORTED, OUT_OF_MEMORY};
use crate::settings::settings;
use crate::tables::{put, refuse, succeed};

/// The alignment of pinned host memory, in bytes.
const PAGE: usize = 4096;

/// `cudaMemoryTypeUnregistered`, `cudaMemoryTypeHost` and `cudaMemoryTypeDevice`.
const UNREGISTERED: i32 = 0;
/// See [`UNREGISTERED`].
const HOST: i32 = 1;
/// See [`UNREGISTERED`].
const DEVICE: i32 = 2;

/// `cudaPointerAttributes`, with the fields that all versions have.
#[repr(C)]
pub(crate) struct PointerAttributes {
    /// The type of the memory.
    kind: i32,
    /// The device.
    device: i32,
    /// The address for devices.
    device_pointer: u64,
    /// The address for the host.
    host_pointer: u64,
}

/// Bytes of `cudaPointerAttributes` behind those fields in CUDA 13 (`driver_types.h` of 13.0.96).
const MORE_ATTRIBUTES: usize = 64;

/// Allocates pinned memory of the host.
pub(crate) fn allocate_host(bytes: usize) -> Result<u64, Code> {
    let mut place = std::ptr::null_mut();
    // SAFETY: the call writes the address to `place`.
    if unsafe { libc::posix_memalign(&raw mut place, PAGE, bytes.max(1)) } != 0 {
        return Err(OUT_OF_MEMORY);
    }
    devices().pin(place as u64, bytes as u64, false)?;
    Ok(place as u64)
}

/// Frees pinned memory of the host.
pub(crate) fn free_host(address: u64) -> Result<(), Code> {
    if address != 0 {
        devices().unpin(address, false)?;
        // SAFETY: `allocate_host` gave the address out, and it was not freed before.
        unsafe { libc::free(address as *mut libc::c_void) };
    }
    Ok(())
}

/// Allocates memory of the current device and writes its address.
///
/// # Safety
///
/// `place` is valid for a write.
unsafe fn allocate(place: *mut u64, bytes: u64) -> Code {
    let result = devices().allocate(current_device(), bytes);
    // SAFETY: the caller promises the place. It gets null if there is no memory.
    unsafe { put(place, result.unwrap_or(0)) };
    status(result.map(drop))
}

succeed! { cudaMemAdvise cudaMemAdvise_v2 cudaMemPrefetchAsync cudaMemPrefetchAsync_v2 }

// Handles between processes would need memory that is shared.
refuse! { super::status::status(Err(NOT_SUPPORTED));
    cudaIpcGetMemHandle cudaIpcOpenMemHandle cudaIpcCloseMemHandle
    cudaIpcGetEventHandle cudaIpcOpenEventHandle
}

api! {
    /// Allocates memory.
    fn cudaMalloc(place: *mut u64, bytes: usize) -> i32 { allocate(place, bytes as u64) }

    /// Allocates memory that host and devices use. It counts as memory of the current device.
    fn cudaMallocManaged(place: *mut u64, bytes: usize, _flags: u32) -> i32 {
        allocate(place, bytes as u64)
    }

    /// Frees memory, after all work.
    fn cudaFree(address: u64) -> i32 {
        let result = devices().release(address);
        timeline().wait();
        status(result)
    }

    /// Writes free and total memory of the current device, in bytes.
    fn cudaMemGetInfo(free: *mut usize, total: *mut usize) -> i32 {
        let mut devices = devices();
        let bytes = devices.free(current_device());
        put(free, bytes.unwrap_or(0) as usize);
        put(total, devices.capacity() as usize);
        status(bytes.map(drop))
    }

    /// Allocates pinned memory of the host.
    fn cudaHostAlloc(place: *mut u64, bytes: usize, _flags: u32) -> i32 {
        let result = allocate_host(bytes);
        put(place, result.unwrap_or(0));
        status(result.map(drop))
    }

    /// Allocates pinned memory of the host.
    fn cudaMallocHost(place: *mut u64, bytes: usize) -> i32 { cudaHostAlloc(place, bytes, 0) }

    /// Frees pinned memory of the host.
    fn cudaFreeHost(address: u64) -> i32 { status(free_host(address)) }

    /// Pins memory of the host.
    fn cudaHostRegister(address: u64, bytes: usize, _flags: u32) -> i32 {
        let size = if address == 0 { Err(INVALID_VALUE) } else { Ok(bytes as u64) };
        status(size.and_then(|size| devices().pin(address, size, true)))
    }

    /// Ends the pinning of memory of the host.
    fn cudaHostUnregister(address: u64) -> i32 { status(devices().unpin(address, true)) }

    /// Writes the address of pinned memory for devices: that for the host.
    fn cudaHostGetDevicePointer(place: *mut u64, address: u64, _flags: u32) -> i32 {
        let pinned = devices().pinned_range(address).is_some();
        put(place, if pinned { address } else { 0 });
        status(if pinned { Ok(()) } else { Err(INVALID_VALUE) })
    }

    /// Writes to which memory an address belongs.
    fn cudaPointerGetAttributes(place: *mut PointerAttributes, address: u64) -> i32 {
        let devices = devices();
        let attributes = if let Some(device) = devices.device_of(address) {
            PointerAttributes { kind: DEVICE, device, device_pointer: address, host_pointer: 0 }
        } else if devices.pinned_range(address).is_some() {
            PointerAttributes {
                kind: HOST,
                device: current_device(),
                device_pointer: address,
                host_pointer: address,
            }
        } else {
            PointerAttributes {
                kind: UNREGISTERED, device: -1, device_pointer: 0, host_pointer: 0,
            }
        };
        put(place, attributes);
        if settings().cuda >= 13000 && !place.is_null() {
            place.add(1).cast::<u8>().write_bytes(0, MORE_ATTRIBUTES);
        }
        crate::errors::SUCCESS
    }
}
