//! Memory without an address, and reserved addresses to map it to.

#![expect(unsafe_code, reason = "exported functions of the driver")]

use crate::abi::api;
use crate::device::{check_device, devices};
use crate::errors::{Code, INVALID_VALUE, NOT_SUPPORTED, SUCCESS, code};
use crate::memory::PIECE;
use crate::tables::{put, refuse, succeed};
use std::ffi::c_void;

/// The start of `CUmemAllocationProp` (`cuda.h` of CUDA 11.8 to 13.0).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Properties {
    /// 1: pinned, the only kind.
    pub(crate) kind: i32,
    /// The kinds of handles for other processes.
    pub(crate) handle_types: i32,
    /// 1: a device.
    pub(crate) location_kind: i32,
    /// The number of the device.
    pub(crate) device: i32,
}

/// Bytes of `CUmemAllocationProp` behind those fields.
const MORE_PROPERTIES: usize = 16;

/// A handle for other processes through a fabric of devices.
const FABRIC: i32 = 8;

// Handles between processes would need memory that is shared, and multicasts a fabric.
refuse! { NOT_SUPPORTED;
    cuMemExportToShareableHandle cuMemImportFromShareableHandle cuMulticastCreate
    cuMulticastAddDevice cuMulticastBindMem cuMulticastBindAddr cuMulticastUnbind
    cuMulticastGetGranularity cuGreenCtxCreate cuDeviceGetDevResource
}

succeed! { cuMemSetAccess cuMemAdvise cuMemPrefetchAsync }

api! {
    /// Writes the granularity of mappings, in bytes.
    fn cuMemGetAllocationGranularity(
        bytes: *mut usize, _properties: *const Properties, _option: i32,
    ) -> i32 {
        put(bytes, PIECE as usize);
        SUCCESS
    }

    /// Makes memory of a device, and writes its handle.
    fn cuMemCreate(
        place: *mut u64, bytes: usize, properties: *const Properties, _flags: u64,
    ) -> i32 {
        let result = (|| -> Result<u64, Code> {
            let properties = properties.as_ref().ok_or(INVALID_VALUE)?;
            check_device(properties.device)?;
            if properties.handle_types & FABRIC != 0 {
                return Err(NOT_SUPPORTED);
            }
            if bytes == 0 || !(bytes as u64).is_multiple_of(PIECE) {
                return Err(INVALID_VALUE);
            }
            devices().create(properties.device, bytes as u64)
        })();
        code(result.map(|handle| put(place, handle)))
    }

    /// Releases a handle.
    fn cuMemRelease(handle: u64) -> i32 { code(devices().release_handle(handle)) }

    /// Writes the handle of the memory at an address.
    fn cuMemRetainAllocationHandle(place: *mut u64, address: u64) -> i32 {
        code(devices().retain(address).map(|handle| put(place, handle)))
    }

    /// Writes what memory was made with.
    fn cuMemGetAllocationPropertiesFromHandle(place: *mut Properties, handle: u64) -> i32 {
        let device = devices().physical(handle).map(|physical| physical.device);
        code(device.map(|device| {
            put(place, Properties { kind: 1, handle_types: 0, location_kind: 1, device });
            if !place.is_null() {
                place.add(1).cast::<u8>().write_bytes(0, MORE_PROPERTIES);
            }
        }))
    }

    /// Reserves addresses.
    fn cuMemAddressReserve(
        place: *mut u64, bytes: usize, alignment: usize, _hint: u64, _flags: u64,
    ) -> i32 {
        let result = devices().reserve(bytes as u64, alignment as u64);
        code(result.map(|address| put(place, address)))
    }

    /// Gives reserved addresses back.
    fn cuMemAddressFree(address: u64, bytes: usize) -> i32 {
        code(devices().unreserve(address, bytes as u64))
    }

    /// Maps memory.
    fn cuMemMap(address: u64, bytes: usize, offset: usize, handle: u64, _flags: u64) -> i32 {
        // The driver documents that the offset must be 0.
        let offset = if offset == 0 { Ok(()) } else { Err(INVALID_VALUE) };
        code(offset.and_then(|()| devices().map(address, bytes as u64, handle)))
    }

    /// Unmaps memory.
    fn cuMemUnmap(address: u64, bytes: usize) -> i32 {
        code(devices().unmap(address, bytes as u64))
    }

    /// Writes 3, read and write, for mapped memory.
    fn cuMemGetAccess(flags: *mut u64, _location: *const c_void, address: u64) -> i32 {
        let range = devices().range_of(address).ok_or(INVALID_VALUE);
        code(range.map(|_| put(flags, 3)))
    }
}
