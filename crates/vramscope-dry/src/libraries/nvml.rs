//! NVML: what tools ask of devices, and what PyTorch's message of a failed allocation says.

#![expect(unsafe_code, reason = "exported functions of the library")]

use crate::abi::api;
use crate::attributes::{PCI_BUS, pci_address, uuid};
use crate::device::device_count;
use crate::runtime::write_text;
use crate::settings::settings;
use crate::tables::{put, refuse, succeed};
use std::ffi::{CStr, c_char};

mod numbers;

/// Results, from `nvml.h`.
const SUCCESS: i32 = 0;
/// See [`SUCCESS`].
const INVALID_ARGUMENT: i32 = 2;
/// See [`SUCCESS`].
const NOT_SUPPORTED: i32 = 3;
/// See [`SUCCESS`].
const NOT_FOUND: i32 = 6;
/// See [`SUCCESS`].
const INSUFFICIENT_SIZE: i32 = 7;

/// The device of a handle: handles are numbers of PCI buses.
fn device(handle: u64) -> Result<i32, i32> {
    let device = handle as i32 - PCI_BUS;
    if (0..device_count()).contains(&device) { Ok(device) } else { Err(INVALID_ARGUMENT) }
}

/// The code of a result.
fn code(result: Result<(), i32>) -> i32 {
    result.err().unwrap_or(SUCCESS)
}

/// The text that identifies a device.
fn uuid_text(device: i32) -> String {
    let hex = format!("{:032x}", u128::from_be_bytes(uuid(device)));
    let [a, b, c, d, e] = [0..8, 8..12, 12..16, 16..20, 20..32].map(|range| &hex[range]);
    format!("GPU-{a}-{b}-{c}-{d}-{e}")
}

/// The version of a driver for this CUDA.
fn driver_version() -> &'static str {
    match settings().cuda / 1000 {
        13.. => "580.82.07",
        12 => "570.124.06",
        _ => "520.61.05",
    }
}

/// Writes the device for which `is` holds.
///
/// # Safety
///
/// `place` is valid for a write.
unsafe fn write_device(place: *mut u64, is: impl Fn(i32) -> bool) -> i32 {
    let found = (0..device_count()).find(|&device| is(device));
    // SAFETY: the caller promises the place.
    code(found.map(|device| unsafe { put(place, (PCI_BUS + device) as u64) }).ok_or(NOT_FOUND))
}

/// The text at an address.
///
/// # Safety
///
/// The address is that of a text.
unsafe fn text<'a>(address: *const c_char) -> std::borrow::Cow<'a, str> {
    // SAFETY: the caller promises the text.
    unsafe { CStr::from_ptr(address) }.to_string_lossy()
}

/// Writes a text.
///
/// # Safety
///
/// `place` has `size` bytes.
unsafe fn answer_text(place: *mut c_char, size: u32, text: &str) -> i32 {
    // SAFETY: the caller promises the size.
    code(unsafe { write_text(text, place, size as usize) }.map_err(|_| INSUFFICIENT_SIZE))
}

succeed! { nvmlInit nvmlInit_v2 nvmlInitWithFlags nvmlShutdown }

// No links between devices, no fabric, no events.
refuse! { NOT_SUPPORTED;
    nvmlDeviceGetNvLinkState nvmlDeviceGetNvLinkRemoteDeviceType
    nvmlDeviceGetNvLinkRemotePciInfo_v2 nvmlDeviceGetGpuFabricInfo nvmlDeviceGetGpuFabricInfoV
    nvmlDeviceGetFanSpeed nvmlDeviceGetMigMode nvmlEventSetCreate
}

api! {
    /// Returns the text of a result.
    fn nvmlErrorString(result: i32) -> *const c_char {
        match result {
            SUCCESS => c"Success",
            1 => c"Uninitialized",
            INVALID_ARGUMENT => c"Invalid Argument",
            NOT_SUPPORTED => c"Not Supported",
            NOT_FOUND => c"Not Found",
            INSUFFICIENT_SIZE => c"Insufficient Size",
            _ => c"Unknown Error",
        }
        .as_ptr()
    }

    /// Writes the number of devices.
    fn nvmlDeviceGetCount_v2(count: *mut u32) -> i32 {
        put(count, device_count() as u32);
        SUCCESS
    }

    /// Writes the number of devices.
    fn nvmlDeviceGetCount(count: *mut u32) -> i32 { nvmlDeviceGetCount_v2(count) }

    /// Writes a device.
    fn nvmlDeviceGetHandleByIndex_v2(number: u32, place: *mut u64) -> i32 {
        if number >= device_count() as u32 {
            return INVALID_ARGUMENT;
        }
        write_device(place, |device| device as u32 == number)
    }

    /// Writes a device.
    fn nvmlDeviceGetHandleByIndex(number: u32, place: *mut u64) -> i32 {
        nvmlDeviceGetHandleByIndex_v2(number, place)
    }

    /// Writes the device with a PCI address, whose domain has four digits or eight.
    fn nvmlDeviceGetHandleByPciBusId_v2(address: *const c_char, place: *mut u64) -> i32 {
        let address = text(address).to_ascii_uppercase();
        write_device(place, |device| address.ends_with(&pci_address(device)))
    }

    /// Writes the device with a PCI address.
    fn nvmlDeviceGetHandleByPciBusId(address: *const c_char, place: *mut u64) -> i32 {
        nvmlDeviceGetHandleByPciBusId_v2(address, place)
    }

    /// Writes the device with an identifying text.
    fn nvmlDeviceGetHandleByUUID(uuid: *const c_char, place: *mut u64) -> i32 {
        let uuid = text(uuid);
        write_device(place, |device| uuid_text(device) == uuid)
    }

    /// Writes the number of a device.
    fn nvmlDeviceGetIndex(handle: u64, place: *mut u32) -> i32 {
        code(device(handle).map(|device| put(place, device as u32)))
    }

    /// Writes the number of a device.
    fn nvmlDeviceGetMinorNumber(handle: u64, place: *mut u32) -> i32 {
        nvmlDeviceGetIndex(handle, place)
    }

    /// Writes the name of a device.
    fn nvmlDeviceGetName(handle: u64, place: *mut c_char, size: u32) -> i32 {
        match device(handle) {
            Ok(_) => answer_text(place, size, &settings().gpu.name),
            Err(error) => error,
        }
    }

    /// Writes the text that identifies a device.
    fn nvmlDeviceGetUUID(handle: u64, place: *mut c_char, size: u32) -> i32 {
        match device(handle) {
            Ok(device) => answer_text(place, size, &uuid_text(device)),
            Err(error) => error,
        }
    }

    /// Writes 0: devices reach each other's memory.
    fn nvmlDeviceGetP2PStatus(_first: u64, _second: u64, _kind: i32, state: *mut i32) -> i32 {
        put(state, 0);
        SUCCESS
    }

    /// Writes the version of the driver.
    fn nvmlSystemGetDriverVersion(place: *mut c_char, size: u32) -> i32 {
        answer_text(place, size, driver_version())
    }

    /// Writes the version of NVML.
    fn nvmlSystemGetNVMLVersion(place: *mut c_char, size: u32) -> i32 {
        answer_text(place, size, &format!("{}.{}", settings().cuda / 1000, driver_version()))
    }

    /// Writes the version of CUDA.
    fn nvmlSystemGetCudaDriverVersion_v2(version: *mut i32) -> i32 {
        put(version, settings().cuda);
        SUCCESS
    }

    /// Writes the version of CUDA.
    fn nvmlSystemGetCudaDriverVersion(version: *mut i32) -> i32 {
        nvmlSystemGetCudaDriverVersion_v2(version)
    }
}
