//! NVML: what tools ask of devices, and what PyTorch's message of a failed allocation says.

#![expect(unsafe_code, reason = "exported functions of the library")]

use crate::abi::api;
use crate::attributes::{PCI_BUS, pci_address, uuid};
use crate::device::{device_count, devices};
use crate::runtime::write_text;
use crate::settings::settings;
use crate::tables::{put, refuse, succeed};
use std::ffi::{CStr, c_char};

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

/// The temperature that a device reports, in degrees Celsius.
const TEMPERATURE: u32 = 30;

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

/// Memory of a device: used and total, in bytes.
fn memory(handle: u64) -> Result<(u64, u64), i32> {
    let number = device(handle)?;
    let mut devices = devices();
    let used = devices.used(number).map_err(|_| INVALID_ARGUMENT)?;
    Ok((used, devices.capacity()))
}

/// Writes this process, the only one of a device, as `nvmlProcessInfo_t`, whose later versions
/// have 24 bytes.
///
/// # Safety
///
/// `places` has `count` entries of the size.
unsafe fn write_process(handle: u64, count: *mut u32, places: *mut u8, size: usize) -> i32 {
    let result = memory(handle).and_then(|(used, _)| {
        // SAFETY: the caller promises count and places.
        unsafe {
            if count.replace(1) < 1 || places.is_null() {
                return Err(INSUFFICIENT_SIZE);
            }
            put(places.cast(), std::process::id());
            put(places.add(8).cast(), used);
            if size > 16 {
                // No part of a device: all bits of both numbers.
                put(places.add(16).cast(), u64::MAX);
            }
        }
        Ok(())
    });
    code(result)
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

/// Exports functions that write a number of 32 bits for a device.
macro_rules! numbers {
    ($($name:ident $value:expr;)*) => {api! {$(
        /// Writes a number.
        fn $name(handle: u64, place: *mut u32) -> i32 {
            code(device(handle).map(|_| put(place, $value)))
        }
    )*}};
}

numbers! {
    nvmlDeviceGetPowerUsage 0;
    nvmlDeviceGetEnforcedPowerLimit 0;
    nvmlDeviceGetPowerManagementLimit 0;
    nvmlDeviceGetPerformanceState 0;
    nvmlDeviceGetComputeMode 0;
    nvmlDeviceGetPersistenceMode 1;
    nvmlDeviceGetNumGpuCores settings().gpu.multiprocessors * 128;
    nvmlDeviceGetMemoryBusWidth settings().gpu.memory_bus_bits;
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

    /// Writes total, free and used memory of a device, in bytes.
    fn nvmlDeviceGetMemoryInfo(handle: u64, place: *mut [u64; 3]) -> i32 {
        code(memory(handle).map(|(used, total)| {
            put(place, [total, total.saturating_sub(used), used]);
        }))
    }

    /// Writes total, reserved, free and used memory of a device, in bytes, behind the version.
    fn nvmlDeviceGetMemoryInfo_v2(handle: u64, place: *mut [u64; 5]) -> i32 {
        code(memory(handle).map(|(used, total)| {
            let version = (*place)[0];
            put(place, [version, total, 0, total.saturating_sub(used), used]);
        }))
    }

    /// Writes how busy a device and its memory are: not at all.
    fn nvmlDeviceGetUtilizationRates(handle: u64, place: *mut [u32; 2]) -> i32 {
        code(device(handle).map(|_| put(place, [0; 2])))
    }

    /// Writes the temperature.
    fn nvmlDeviceGetTemperature(handle: u64, _sensor: i32, place: *mut u32) -> i32 {
        code(device(handle).map(|_| put(place, TEMPERATURE)))
    }

    /// Writes the clock of the memory (2) or of the multiprocessors, in MHz.
    fn nvmlDeviceGetClockInfo(handle: u64, kind: i32, place: *mut u32) -> i32 {
        let gpu = &settings().gpu;
        let clock = if kind == 2 { gpu.memory_clock_khz } else { gpu.clock_khz } / 1000;
        code(device(handle).map(|_| put(place, clock)))
    }

    /// Writes the clock of the memory or of the multiprocessors, in MHz.
    fn nvmlDeviceGetMaxClockInfo(handle: u64, kind: i32, place: *mut u32) -> i32 {
        nvmlDeviceGetClockInfo(handle, kind, place)
    }

    /// Writes the compute capability.
    fn nvmlDeviceGetCudaComputeCapability(handle: u64, major: *mut u32, minor: *mut u32) -> i32 {
        code(device(handle).map(|_| {
            put(major, settings().gpu.capability.0);
            put(minor, settings().gpu.capability.1);
        }))
    }

    /// Writes 1: devices reach each other's memory, but 0 (no link) for a link between them.
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

    /// Writes the processes of a device.
    fn nvmlDeviceGetComputeRunningProcesses(
        handle: u64, count: *mut u32, places: *mut u8,
    ) -> i32 {
        write_process(handle, count, places, 16)
    }

    /// Writes the processes of a device.
    fn nvmlDeviceGetComputeRunningProcesses_v2(
        handle: u64, count: *mut u32, places: *mut u8,
    ) -> i32 {
        write_process(handle, count, places, 24)
    }

    /// Writes the processes of a device.
    fn nvmlDeviceGetComputeRunningProcesses_v3(
        handle: u64, count: *mut u32, places: *mut u8,
    ) -> i32 {
        write_process(handle, count, places, 24)
    }

    /// Writes 0 processes that draw.
    fn nvmlDeviceGetGraphicsRunningProcesses_v3(
        handle: u64, count: *mut u32, _places: *mut u8,
    ) -> i32 {
        code(device(handle).map(|_| put(count, 0)))
    }

    /// Writes 0 processes that draw.
    fn nvmlDeviceGetGraphicsRunningProcesses(
        handle: u64, count: *mut u32, places: *mut u8,
    ) -> i32 {
        nvmlDeviceGetGraphicsRunningProcesses_v3(handle, count, places)
    }
}
