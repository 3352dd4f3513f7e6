//! The driver API (libcuda): devices, contexts and errors.

#![expect(unsafe_code, reason = "exported functions of the driver")]

use crate::abi::api;
use crate::attributes::{attribute, pci_address, uuid};
use crate::device::{check_device, current_device, device_count, devices, set_current_device};
use crate::errors::{self, Code, INVALID_VALUE, NOT_FOUND, SUCCESS, code};
use crate::lookup::find;
use crate::runtime::timeline::synchronize;
use crate::settings::settings;
use crate::tables::{put, succeed, zeros};
use std::ffi::{CStr, c_char, c_void};

mod copy;
mod mapping;
mod memory;
mod module;
mod stream;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use module::cuFuncGetAttribute;

/// The handle of the context of device 0. The other devices follow.
const FIRST_CONTEXT: u64 = 0x4000;

/// The context of a device.
fn context(device: i32) -> u64 {
    FIRST_CONTEXT + device as u64
}

/// Makes the device of a context current. The null context is left out: a thread of a dry run
/// always has a device.
fn set_context(context: u64) -> Result<(), Code> {
    if context == 0 {
        return Ok(());
    }
    let device = context.checked_sub(FIRST_CONTEXT).ok_or(errors::INVALID_HANDLE)?;
    set_current_device(device as i32)
}

// No kernel logs anything.
zeros! { one u64, 3: cuLogsRegisterCallback; }

succeed! {
    cuLogsUnregisterCallback cuInit cuCtxSetLimit cuCtxSetCacheConfig cuCtxSetFlags
    cuCtxResetPersistingL2Cache cuCtxEnablePeerAccess cuCtxDisablePeerAccess cuCtxDestroy_v2
    cuCtxDetach cuProfilerStart cuProfilerStop cuDevicePrimaryCtxRelease_v2
    cuDevicePrimaryCtxReset_v2 cuDevicePrimaryCtxSetFlags_v2
}

api! {
    /// Writes the version of CUDA.
    fn cuDriverGetVersion(version: *mut i32) -> i32 {
        put(version, settings().cuda);
        SUCCESS
    }

    /// Writes the number of devices.
    fn cuDeviceGetCount(count: *mut i32) -> i32 {
        put(count, device_count());
        SUCCESS
    }

    /// Writes the handle of a device: its number.
    fn cuDeviceGet(device: *mut i32, number: i32) -> i32 {
        code(check_device(number).map(|()| put(device, number)))
    }

    /// Writes an attribute of a device.
    fn cuDeviceGetAttribute(value: *mut i32, number: i32, device: i32) -> i32 {
        code(check_device(device).map(|()| put(value, attribute(number, device))))
    }

    /// Writes the name of a device, cut to the size.
    fn cuDeviceGetName(place: *mut c_char, size: i32, device: i32) -> i32 {
        let result = check_device(device).and_then(|()| {
            let room = usize::try_from(size).ok().and_then(|size| size.checked_sub(1));
            let room = room.ok_or(INVALID_VALUE)?;
            let name = &settings().gpu.name;
            let end = name.floor_char_boundary(room);
            crate::runtime::write_text(&name[..end], place, room + 1)
        });
        code(result)
    }

    /// Writes the 16 bytes that identify a device.
    fn cuDeviceGetUuid_v2(place: *mut [u8; 16], device: i32) -> i32 {
        code(check_device(device).map(|()| put(place, uuid(device))))
    }

    /// Writes the 16 bytes that identify a device.
    fn cuDeviceGetUuid(place: *mut [u8; 16], device: i32) -> i32 {
        cuDeviceGetUuid_v2(place, device)
    }

    /// Writes the memory of a device, in bytes.
    fn cuDeviceTotalMem_v2(bytes: *mut usize, device: i32) -> i32 {
        code(check_device(device).map(|()| put(bytes, devices().capacity() as usize)))
    }

    /// Writes the PCI address of a device.
    fn cuDeviceGetPCIBusId(place: *mut c_char, size: i32, device: i32) -> i32 {
        let result = check_device(device).and_then(|()| {
            crate::runtime::write_text(&pci_address(device), place, size as usize)
        });
        code(result)
    }

    /// Writes the device with a PCI address.
    fn cuDeviceGetByPCIBusId(device: *mut i32, address: *const c_char) -> i32 {
        crate::runtime::cudaDeviceGetByPCIBusId(device, address)
    }

    /// Writes 1: devices reach each other's memory.
    fn cuDeviceCanAccessPeer(can: *mut i32, device: i32, peer: i32) -> i32 {
        let result = check_device(device).and_then(|()| check_device(peer));
        code(result.map(|()| put(can, i32::from(device != peer))))
    }

    /// Writes the text of an error.
    fn cuGetErrorString(number: i32, text: *mut *const c_char) -> i32 {
        let found = errors::find(number);
        put(text, found.map_or(std::ptr::null(), |error| error.text.as_ptr()));
        code(found.map(drop).ok_or(INVALID_VALUE))
    }

    /// Writes the name of an error.
    fn cuGetErrorName(number: i32, text: *mut *const c_char) -> i32 {
        let found = errors::find(number);
        put(text, found.map_or(std::ptr::null(), |error| error.driver.as_ptr()));
        code(found.map(drop).ok_or(INVALID_VALUE))
    }

    /// Writes the context of the thread.
    fn cuCtxGetCurrent(place: *mut u64) -> i32 {
        put(place, context(current_device()));
        SUCCESS
    }

    /// Changes the context of the thread.
    fn cuCtxSetCurrent(context: u64) -> i32 { code(set_context(context)) }

    /// Changes the context of the thread.
    fn cuCtxPushCurrent_v2(context: u64) -> i32 { code(set_context(context)) }

    /// Writes the context of the thread, which stays: each device has one.
    fn cuCtxPopCurrent_v2(place: *mut u64) -> i32 { cuCtxGetCurrent(place) }

    /// Writes the device of the thread.
    fn cuCtxGetDevice(device: *mut i32) -> i32 {
        put(device, current_device());
        SUCCESS
    }

    /// Writes 0, the default.
    fn cuCtxGetFlags(flags: *mut u32) -> i32 {
        put(flags, 0);
        SUCCESS
    }

    /// Writes the version of a context.
    fn cuCtxGetApiVersion(_context: u64, version: *mut u32) -> i32 {
        put(version, 3020);
        SUCCESS
    }

    /// Writes a limit, in bytes: enough for each buffer that a program asks for.
    fn cuCtxGetLimit(value: *mut usize, _limit: i32) -> i32 {
        put(value, 1 << 20);
        SUCCESS
    }

    /// Writes the range of priorities of streams.
    fn cuCtxGetStreamPriorityRange(least: *mut i32, greatest: *mut i32) -> i32 {
        put(least, 0);
        put(greatest, -5);
        SUCCESS
    }

    /// Waits for all work.
    fn cuCtxSynchronize() -> i32 {
        synchronize();
        SUCCESS
    }

    /// Makes a context: that of the device.
    fn cuCtxCreate_v2(place: *mut u64, _flags: u32, device: i32) -> i32 {
        let result = set_current_device(device);
        code(result.map(|()| put(place, context(device))))
    }

    /// Writes the context of a device.
    fn cuDevicePrimaryCtxRetain(place: *mut u64, device: i32) -> i32 {
        code(check_device(device).map(|()| put(place, context(device))))
    }

    /// Writes that a device has a context.
    fn cuDevicePrimaryCtxGetState(device: i32, flags: *mut u32, active: *mut i32) -> i32 {
        put(flags, 0);
        code(check_device(device).map(|()| put(active, 1)))
    }

    /// Writes a function by its name.
    fn cuGetProcAddress(
        name: *const c_char, place: *mut *mut c_void, version: i32, flags: u64,
    ) -> i32 {
        cuGetProcAddress_v2(name, place, version, flags, std::ptr::null_mut())
    }

    /// Writes a function by its name. Its state is 0: found; 1: not found.
    fn cuGetProcAddress_v2(
        name: *const c_char, place: *mut *mut c_void, version: i32, _flags: u64, state: *mut i32,
    ) -> i32 {
        // CUDA 11 gave the function with four parameters under this name.
        let old = version < 12000 && CStr::from_ptr(name) == c"cuGetProcAddress";
        let own: unsafe extern "C" fn(_, _, _, _) -> _ = cuGetProcAddress;
        let function = if old { own as *mut c_void } else { find(name) };
        put(place, function);
        put(state, i32::from(function.is_null()));
        if function.is_null() { NOT_FOUND } else { SUCCESS }
    }

    /// Fails: a dry run has no private tables.
    fn cuGetExportTable(table: *mut u64, _number: *const c_void) -> i32 {
        put(table, 0);
        NOT_FOUND
    }
}
