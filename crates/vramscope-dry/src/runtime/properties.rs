//! Devices and their properties.

#![expect(unsafe_code, reason = "exported functions of the runtime")]

use super::status::status;
use super::timeline::synchronize;
use crate::abi::api;
use crate::attributes::{attribute, pci_address, uuid};
use crate::device::{check_device, current_device, device_count, devices, set_current_device};
use crate::errors::{INVALID_VALUE, SUCCESS};
use crate::settings::settings;
use crate::tables::{put, succeed};
use std::ffi::c_char;

/// The layouts of `cudaDeviceProp`, a column each: that of CUDA 11 (which CUDA 12 keeps under the
/// name without a version), that of CUDA 12, that of CUDA 13.
#[derive(Clone, Copy)]
enum Layout {
    /// CUDA 11.8.
    Cuda11,
    /// CUDA 12.8.
    Cuda12,
    /// CUDA 13.0.
    Cuda13,
}

/// The size of `cudaDeviceProp`, in bytes.
const SIZES: [usize; 3] = [728, 1032, 1008];

/// Where CUDA 13 has no such field.
const NONE: usize = usize::MAX;

/// Offsets of fields that hold an attribute in 32 bits, in bytes: the attribute, offsets by layout.
/// By `offsetof` from `driver_types.h` of nvidia-cuda-runtime 11.8.89, 12.8.90 and 13.0.96.
const FIELDS: &[(i32, [usize; 3])] = &[
    (12, [304, 304, 304]),   // regsPerBlock
    (10, [308, 308, 308]),   // warpSize
    (1, [320, 320, 320]),    // maxThreadsPerBlock
    (2, [324, 324, 324]),    // maxThreadsDim
    (3, [328, 328, 328]),    //
    (4, [332, 332, 332]),    //
    (5, [336, 336, 336]),    // maxGridSize
    (6, [340, 340, 340]),    //
    (7, [344, 344, 344]),    //
    (13, [348, 348, NONE]),  // clockRate
    (75, [360, 360, 360]),   // major
    (76, [364, 364, 364]),   // minor
    (16, [388, 388, 384]),   // multiProcessorCount
    (19, [400, 400, 392]),   // canMapHostMemory
    (31, [576, 576, 560]),   // concurrentKernels
    (33, [584, 584, 568]),   // pciBusID
    (40, [600, 600, 584]),   // asyncEngineCount
    (41, [604, 604, 588]),   // unifiedAddressing
    (36, [608, 608, NONE]),  // memoryClockRate
    (37, [612, 612, 592]),   // memoryBusWidth
    (38, [616, 616, 596]),   // l2CacheSize
    (39, [624, 624, 604]),   // maxThreadsPerMultiProcessor
    (78, [628, 628, 608]),   // streamPrioritiesSupported
    (79, [632, 632, 612]),   // globalL1CacheSupported
    (80, [636, 636, 616]),   // localL1CacheSupported
    (82, [648, 648, 632]),   // regsPerMultiprocessor
    (83, [652, 652, 636]),   // managedMemory
    (89, [676, 676, 656]),   // concurrentManagedAccess
    (90, [680, 680, 660]),   // computePreemptionSupported
    (91, [684, 684, 664]),   // canUseHostPointerForRegisteredMem
    (95, [688, 688, 668]),   // cooperativeLaunch
    (96, [692, 692, NONE]),  // cooperativeMultiDeviceLaunch
    (106, [712, 712, 688]),  // maxBlocksPerMultiProcessor
    (99, [NONE, 728, 704]),  // hostRegisterSupported
    (115, [NONE, 744, 720]), // memoryPoolsSupported
    (120, [NONE, 772, 748]), // clusterLaunch
];

/// Offsets of fields that hold an attribute in 64 bits.
const WIDE_FIELDS: &[(i32, [usize; 3])] = &[
    (8, [296, 296, 296]),   // sharedMemPerBlock
    (9, [352, 352, 352]),   // totalConstMem
    (14, [368, 368, 368]),  // textureAlignment
    (81, [640, 640, 624]),  // sharedMemPerMultiprocessor
    (97, [696, 696, 672]),  // sharedMemPerBlockOptin
    (111, [720, 720, 696]), // reservedSharedMemPerBlock
];

/// The offset of `uuid`.
const UUID: usize = 256;

/// The offset of `totalGlobalMem`.
const TOTAL: usize = 288;

/// The bytes of `cudaDeviceProp`.
fn properties(layout: Layout, device: i32, total: u64) -> Vec<u8> {
    let mut bytes = vec![0; SIZES[layout as usize]];
    let mut write = |offset: usize, value: &[u8]| {
        if offset != NONE {
            bytes[offset..offset + value.len()].copy_from_slice(value);
        }
    };
    let name = settings().gpu.name.as_bytes();
    // The name ends with a zero.
    write(0, &name[..name.len().min(UUID - 1)]);
    write(UUID, &uuid(device));
    write(TOTAL, &total.to_ne_bytes());
    for &(number, offsets) in FIELDS {
        write(offsets[layout as usize], &attribute(number, device).to_ne_bytes());
    }
    for &(number, offsets) in WIDE_FIELDS {
        write(offsets[layout as usize], &i64::from(attribute(number, device)).to_ne_bytes());
    }
    bytes
}

/// Writes `cudaDeviceProp` to `place`.
///
/// # Safety
///
/// `place` has the size of the layout.
unsafe fn write_properties(place: *mut u8, layout: Layout, device: i32) -> i32 {
    let result = check_device(device).map(|()| {
        let bytes = properties(layout, device, devices().capacity());
        // SAFETY: the caller promises the size.
        unsafe { place.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    });
    status(result)
}

succeed! {
    cudaDeviceDisablePeerAccess cudaDeviceSetCacheConfig cudaDeviceSetLimit cudaDeviceReset
    cudaProfilerStart cudaProfilerStop cudaSetDeviceFlags cudaSetValidDevices
}

api! {
    /// Writes the number of devices.
    fn cudaGetDeviceCount(count: *mut i32) -> i32 {
        put(count, device_count());
        SUCCESS
    }

    /// Writes the thread's device.
    fn cudaGetDevice(device: *mut i32) -> i32 {
        put(device, current_device());
        SUCCESS
    }

    /// Changes the thread's device.
    fn cudaSetDevice(device: i32) -> i32 { status(set_current_device(device)) }

    /// Changes the thread's device and initializes it.
    fn cudaInitDevice(device: i32, _device_flags: u32, _flags: u32) -> i32 {
        status(check_device(device))
    }

    /// Writes the version of CUDA that the driver supports.
    fn cudaDriverGetVersion(version: *mut i32) -> i32 {
        put(version, settings().cuda);
        SUCCESS
    }

    /// Writes the version of the runtime.
    fn cudaRuntimeGetVersion(version: *mut i32) -> i32 {
        put(version, settings().cuda);
        SUCCESS
    }

    /// Writes the properties of a device. CUDA 12 keeps the layout of CUDA 11 under this name.
    fn cudaGetDeviceProperties(place: *mut u8, device: i32) -> i32 {
        let new = settings().cuda >= 13000;
        write_properties(place, if new { Layout::Cuda13 } else { Layout::Cuda11 }, device)
    }

    /// Writes the properties of a device.
    fn cudaGetDeviceProperties_v2(place: *mut u8, device: i32) -> i32 {
        let new = settings().cuda >= 13000;
        write_properties(place, if new { Layout::Cuda13 } else { Layout::Cuda12 }, device)
    }

    /// Writes an attribute of a device.
    fn cudaDeviceGetAttribute(value: *mut i32, number: i32, device: i32) -> i32 {
        status(check_device(device).map(|()| put(value, attribute(number, device))))
    }

    /// Writes the PCI address of a device.
    fn cudaDeviceGetPCIBusId(text: *mut c_char, size: i32, device: i32) -> i32 {
        let address = pci_address(device);
        let result = check_device(device).and_then(|()| write_text(&address, text, size as usize));
        status(result)
    }

    /// Writes the device with a PCI address.
    fn cudaDeviceGetByPCIBusId(device: *mut i32, address: *const c_char) -> i32 {
        let text = std::ffi::CStr::from_ptr(address).to_string_lossy();
        let found = (0..device_count()).find(|&n| pci_address(n).eq_ignore_ascii_case(&text));
        status(found.map(|number| put(device, number)).ok_or(INVALID_VALUE))
    }

    /// Writes the range of priorities of streams.
    fn cudaDeviceGetStreamPriorityRange(least: *mut i32, greatest: *mut i32) -> i32 {
        put(least, 0);
        put(greatest, -5);
        SUCCESS
    }

    /// Writes 1: devices reach each other's memory.
    fn cudaDeviceCanAccessPeer(can: *mut i32, device: i32, peer: i32) -> i32 {
        let result = check_device(device).and_then(|()| check_device(peer));
        status(result.map(|()| put(can, i32::from(device != peer))))
    }

    /// Permits access to the memory of another device.
    fn cudaDeviceEnablePeerAccess(peer: i32, _flags: u32) -> i32 { status(check_device(peer)) }

    /// Writes 0: limits do not apply to kernels that do nothing.
    fn cudaDeviceGetLimit(value: *mut usize, _limit: i32) -> i32 {
        put(value, 0);
        SUCCESS
    }

    /// Writes 0, the default.
    fn cudaGetDeviceFlags(flags: *mut u32) -> i32 {
        put(flags, 0);
        SUCCESS
    }

    /// Waits for all work.
    fn cudaDeviceSynchronize() -> i32 {
        synchronize();
        SUCCESS
    }
}

/// Writes a text and a zero. Fails if `size` bytes are too few.
///
/// # Safety
///
/// `place` has `size` bytes.
pub(crate) unsafe fn write_text(
    text: &str,
    place: *mut c_char,
    size: usize,
) -> Result<(), crate::errors::Code> {
    if text.len() >= size {
        return Err(INVALID_VALUE);
    }
    // SAFETY: the text and its zero fit into the place.
    unsafe {
        place.copy_from_nonoverlapping(text.as_ptr().cast(), text.len());
        place.add(text.len()).write(0);
    }
    Ok(())
}
