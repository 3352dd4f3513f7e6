//! Functions for the Python side of a dry run.

use super::{device_count, devices, is_mapped, ranges};
use crate::runtime::set_code_version;
use crate::runtime::timeline::timeline;

/// 1: device memory is mapped, so that small values are true. 0: values are not computed.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn dry_has_values() -> i32 {
    i32::from(is_mapped())
}

/// Changes the memory of each device, in MiB.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn dry_set_capacity_mb(mib: u64) {
    devices().set_capacity(mib << 20);
}

/// From now on, kernels report that they were built for `version`, such as 86 or 90: of the
/// versions that PyTorch has code for, the highest of the same major that the device is not below.
/// 0: that of the device.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn dry_set_code_version(version: i32) {
    set_code_version(version);
}

/// From now on, `lag` queries of a recorded event find it pending.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn dry_set_event_lag(lag: u32) {
    timeline().set_lag(lag);
}

/// [`dry_set_event_lag`] for callers that know only names with the prefix of shims.
#[unsafe(export_name = "vs_dry_set_event_lag")]
pub(crate) extern "C" fn dry_set_event_lag_for_shims(lag: u32) {
    dry_set_event_lag(lag);
}

/// Writes the ranges that device memory lies in, and returns their number. `places` has room for
/// `count` ranges of two numbers each: the first address, and the one after
/// the last.
///
/// # Safety
///
/// `places` has the room.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn dry_ranges(places: *mut u64, count: i32) -> i32 {
    let ranges = ranges(device_count());
    for (index, (first, end)) in ranges.iter().enumerate().take(count.max(0) as usize) {
        // SAFETY: the caller promises the room.
        unsafe { places.add(2 * index).cast::<[u64; 2]>().write([*first, *end]) };
    }
    ranges.len() as i32
}
