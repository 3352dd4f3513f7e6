//! Memory, processes and clocks of devices.

#![expect(unsafe_code, reason = "exported functions of the library")]

use super::{INSUFFICIENT_SIZE, INVALID_ARGUMENT, code, device};
use crate::abi::api;
use crate::device::devices;
use crate::settings::settings;
use crate::tables::put;

/// The temperature that a device reports, in degrees Celsius.
const TEMPERATURE: u32 = 30;

/// Memory of a device: used and total, in bytes.
fn memory(handle: u64) -> Result<(u64, u64), i32> {
    let number = device(handle)?;
    let mut devices = devices();
    let used = devices.used(number).map_err(|_| INVALID_ARGUMENT)?;
    Ok((used, devices.capacity()))
}

/// Writes the processes of a device as `nvmlProcessInfo_t`, whose later versions have 24 bytes.
///
/// # Safety
///
/// `places` has `count` entries of the size.
unsafe fn write_process(handle: u64, count: *mut u32, places: *mut u8, size: usize) -> i32 {
    let result = device(handle)
        .and_then(|number| devices().processes(number).map_err(|_| INVALID_ARGUMENT))
        .and_then(|processes| {
            let all = processes.len();
            // SAFETY: the caller promises count and places.
            let room = unsafe { count.replace(all as u32) } as usize;
            if room < all || all > 0 && places.is_null() {
                return Err(INSUFFICIENT_SIZE);
            }
            for (index, (pid, used)) in processes.into_iter().enumerate() {
                // SAFETY: the caller promises the room, which was compared above.
                unsafe {
                    let place = places.add(index * size);
                    put(place.cast(), pid);
                    put(place.add(8).cast(), used);
                    if size > 16 {
                        // No part of a device: all bits of both numbers.
                        put(place.add(16).cast(), u64::MAX);
                    }
                }
            }
            Ok(())
        });
    code(result)
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
