//! Memory of devices and pinned memory of the host.

#![expect(unsafe_code, reason = "exported functions of the driver")]

use super::context;
use crate::abi::api;
use crate::device::{Devices, current_device, devices};
use crate::errors::{Code, INVALID_VALUE, NOT_FOUND, NOT_SUPPORTED, SUCCESS, code};
use crate::runtime::{allocate_host, free_host};
use crate::tables::{put, refuse};
use std::ffi::c_void;

/// Attributes of pointers, from `cuda.h` of CUDA 13.0: `CU_POINTER_ATTRIBUTE_*`.
const CONTEXT: i32 = 1;
/// See [`CONTEXT`].
const MEMORY_TYPE: i32 = 2;
/// See [`CONTEXT`].
const DEVICE_POINTER: i32 = 3;
/// See [`CONTEXT`].
const HOST_POINTER: i32 = 4;
/// See [`CONTEXT`].
const BUFFER_ID: i32 = 7;
/// See [`CONTEXT`].
const DEVICE_ORDINAL: i32 = 9;
/// See [`CONTEXT`].
const RANGE_START: i32 = 11;
/// See [`CONTEXT`].
const RANGE_SIZE: i32 = 12;

/// Writes an attribute of a pointer.
///
/// # Safety
///
/// `place` has the size of the attribute.
unsafe fn attribute(
    devices: &mut Devices,
    place: *mut c_void,
    attribute: i32,
    address: u64,
) -> Result<(), Code> {
    let device = devices.device_of(address);
    let (first, size) = devices.range_of(address).ok_or(INVALID_VALUE)?;
    let ordinal = device.unwrap_or_else(current_device);
    // SAFETY: the caller promises the size.
    unsafe {
        match attribute {
            CONTEXT => put(place.cast(), context(ordinal)),
            // 1: host, 2: device.
            MEMORY_TYPE => put(place.cast(), if device.is_some() { 2_u32 } else { 1 }),
            DEVICE_POINTER => put(place.cast(), address),
            HOST_POINTER if device.is_none() => put(place.cast(), address),
            HOST_POINTER => return Err(INVALID_VALUE),
            // Equal for addresses of one piece.
            BUFFER_ID | RANGE_START => put(place.cast(), first),
            DEVICE_ORDINAL => put(place.cast(), ordinal),
            RANGE_SIZE => put(place.cast(), size),
            // All others are flags of features that the memory lacks: at most 32 bits.
            _ => put(place.cast(), 0_u8),
        }
    }
    Ok(())
}

refuse! { NOT_SUPPORTED; cuIpcGetMemHandle cuIpcOpenMemHandle_v2 cuIpcCloseMemHandle
cuIpcGetEventHandle cuIpcOpenEventHandle cuMemGetHandleForAddressRange }

api! {
    /// Allocates memory.
    fn cuMemAlloc_v2(place: *mut u64, bytes: usize) -> i32 {
        if bytes == 0 {
            return INVALID_VALUE;
        }
        let result = devices().allocate(current_device(), bytes as u64);
        code(result.map(|address| put(place, address)))
    }

    /// Allocates memory that host and devices use.
    fn cuMemAllocManaged(place: *mut u64, bytes: usize, _flags: u32) -> i32 {
        cuMemAlloc_v2(place, bytes)
    }

    /// Allocates memory from the pool of the current device.
    fn cuMemAllocAsync(place: *mut u64, bytes: usize, _stream: u64) -> i32 {
        let result = devices().allocate_pooled(current_device(), bytes as u64);
        code(result.map(|address| put(place, address)))
    }

    /// Frees memory.
    fn cuMemFree_v2(address: u64) -> i32 { code(devices().release(address)) }

    /// Frees memory.
    fn cuMemFreeAsync(address: u64, _stream: u64) -> i32 { code(devices().release(address)) }

    /// Writes free and total memory of the current device, in bytes.
    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> i32 {
        let mut devices = devices();
        let bytes = devices.free(current_device());
        put(total, devices.capacity() as usize);
        code(bytes.map(|bytes| put(free, bytes as usize)))
    }

    /// Allocates pinned memory of the host.
    fn cuMemHostAlloc(place: *mut u64, bytes: usize, _flags: u32) -> i32 {
        code(allocate_host(bytes).map(|address| put(place, address)))
    }

    /// Allocates pinned memory of the host.
    fn cuMemAllocHost_v2(place: *mut u64, bytes: usize) -> i32 {
        cuMemHostAlloc(place, bytes, 0)
    }

    /// Frees pinned memory of the host.
    fn cuMemFreeHost(address: u64) -> i32 { code(free_host(address)) }

    /// Pins memory of the host.
    fn cuMemHostRegister_v2(address: u64, bytes: usize, _flags: u32) -> i32 {
        code(devices().pin(address, bytes as u64, true))
    }

    /// Ends the pinning of memory of the host.
    fn cuMemHostUnregister(address: u64) -> i32 { code(devices().unpin(address, true)) }

    /// Writes the address of pinned memory for devices.
    fn cuMemHostGetDevicePointer_v2(place: *mut u64, address: u64, _flags: u32) -> i32 {
        let pinned = devices().pinned_range(address);
        code(pinned.map(|_| put(place, address)).ok_or(INVALID_VALUE))
    }

    /// Writes first address and size of the memory that an address lies in.
    fn cuMemGetAddressRange_v2(first: *mut u64, bytes: *mut usize, address: u64) -> i32 {
        let mut devices = devices();
        let device = devices.device_of(address).ok_or(NOT_FOUND);
        let range = device.and_then(|_| devices.range_of(address).ok_or(NOT_FOUND));
        code(range.map(|(start, size)| {
            put(first, start);
            put(bytes, size as usize);
        }))
    }

    /// Writes an attribute of a pointer.
    fn cuPointerGetAttribute(place: *mut c_void, number: i32, address: u64) -> i32 {
        code(attribute(&mut devices(), place, number, address))
    }

    /// Writes attributes of a pointer. Those that it lacks become 0.
    fn cuPointerGetAttributes(
        count: u32, numbers: *const i32, places: *const *mut c_void, address: u64,
    ) -> i32 {
        let mut devices = devices();
        for index in 0..count as usize {
            let (number, place) = (*numbers.add(index), *places.add(index));
            if attribute(&mut devices, place, number, address).is_err() {
                match number {
                    CONTEXT | DEVICE_POINTER | HOST_POINTER | BUFFER_ID | RANGE_START
                    | RANGE_SIZE => put(place.cast(), 0_u64),
                    MEMORY_TYPE => put(place.cast(), 0_u32),
                    DEVICE_ORDINAL => put(place.cast(), -2),
                    _ => put(place.cast(), 0_u8),
                }
            }
        }
        SUCCESS
    }

    /// Accepts an attribute of a pointer, which has no effect.
    fn cuPointerSetAttribute(_value: *const c_void, _number: i32, _address: u64) -> i32 {
        SUCCESS
    }
}
