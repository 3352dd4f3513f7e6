//! Memory of devices: capacity, mappings, pinned memory, pools.

use super::{Devices, Pool};
use crate::errors::{
    ALREADY_REGISTERED, INVALID_DEVICE, INVALID_VALUE, NOT_REGISTERED, OUT_OF_MEMORY,
};
use crate::settings::Settings;

/// 1 MiB.
const MIB: u64 = 1 << 20;

/// Two devices of 1,000 MiB, of which the context takes 100.
fn two_devices() -> Devices {
    let mut settings = Settings { devices: 2, ..Settings::default() };
    settings.gpu.total_bytes = 1000 * MIB;
    settings.gpu.context_bytes = 100 * MIB;
    Devices::new(&settings)
}

#[test]
fn capacity_counts_whole_pieces_and_the_context() {
    let mut devices = two_devices();
    assert_eq!(devices.free(0), Ok(900 * MIB));
    let first = devices.allocate(0, 1).unwrap();
    assert_eq!(devices.free(0), Ok(898 * MIB));
    assert_eq!(devices.allocate(0, 898 * MIB + 1), Err(OUT_OF_MEMORY));
    let second = devices.allocate(0, 898 * MIB).unwrap();
    assert_eq!(devices.free(0), Ok(0));
    assert_eq!(devices.allocate(0, 1), Err(OUT_OF_MEMORY));
    assert_eq!(devices.free(1), Ok(900 * MIB));
    assert_eq!(devices.release(first), Ok(()));
    assert_eq!(devices.release(second), Ok(()));
    assert_eq!(devices.free(0), Ok(900 * MIB));
}

#[test]
fn scratch_area_is_not_counted() {
    let mut devices = two_devices();
    for request in 1..=6 {
        devices.allocate(0, 2 * MIB).unwrap();
        assert_eq!(devices.used(0), Ok((100 + 2 * request) * MIB));
    }
}

#[test]
fn smaller_capacity_leaves_what_is_in_use() {
    let mut devices = two_devices();
    let address = devices.allocate(0, 500 * MIB).unwrap();
    devices.set_capacity(300 * MIB);
    assert_eq!(devices.free(0), Ok(0));
    assert_eq!(devices.allocate(0, 1), Err(OUT_OF_MEMORY));
    assert_eq!(devices.release(address), Ok(()));
    assert_eq!(devices.free(0), Ok(200 * MIB));
}

#[test]
fn unknown_addresses_and_devices_are_refused() {
    let mut devices = two_devices();
    assert_eq!(devices.allocate(0, 0), Ok(0));
    assert_eq!(devices.release(0), Ok(()));
    assert_eq!(devices.release(0x1000), Err(INVALID_VALUE));
    assert_eq!(devices.allocate(2, 1), Err(INVALID_DEVICE));
    assert_eq!(devices.allocate(-1, 1), Err(INVALID_DEVICE));
    let address = devices.allocate(1, 5 * MIB).unwrap();
    assert_eq!(devices.release(address + 2 * MIB), Err(INVALID_VALUE));
    assert_eq!(devices.device_of(address), Some(1));
    assert_eq!(devices.range_of(address + 5 * MIB), Some((address, 6 * MIB)));
    assert_eq!(devices.release(address), Ok(()));
    assert_eq!(devices.release(address), Err(INVALID_VALUE));
    let context = devices.context(0).unwrap();
    assert_eq!(devices.release(context), Err(INVALID_VALUE));
}

#[test]
fn physical_memory_is_counted_until_handles_and_mappings_are_gone() {
    let mut devices = two_devices();
    let first = devices.reserve(100 * MIB, 0).unwrap();
    let handle = devices.create(1, 20 * MIB).unwrap();
    assert_eq!(devices.create(1, 900 * MIB), Err(OUT_OF_MEMORY));
    assert_eq!(devices.free(1), Ok(880 * MIB));
    assert_eq!(devices.map(first, 20 * MIB, handle), Ok(()));
    assert_eq!(devices.device_of(first + 20 * MIB - 1), Some(1));
    assert_eq!(devices.device_of(first + 20 * MIB), None);
    assert_eq!(devices.release_handle(handle), Ok(()));
    assert_eq!(devices.release_handle(handle), Err(INVALID_VALUE));
    assert_eq!(devices.free(1), Ok(880 * MIB));
    assert_eq!(devices.retain(first + 5), Ok(handle));
    assert_eq!(devices.unmap(first, 20 * MIB), Ok(()));
    assert_eq!(devices.free(1), Ok(880 * MIB));
    assert_eq!(devices.release_handle(handle), Ok(()));
    assert_eq!(devices.free(1), Ok(900 * MIB));
    assert!(devices.physical(handle).is_err());
}

#[test]
fn mappings_lie_in_reserved_addresses_and_do_not_overlap() {
    let mut devices = two_devices();
    let first = devices.reserve(40 * MIB, 0).unwrap();
    let [a, b] = [0; 2].map(|device| devices.create(device, 20 * MIB).unwrap());
    assert_eq!(devices.map(first + 30 * MIB, 20 * MIB, a), Err(INVALID_VALUE));
    assert_eq!(devices.map(first, 22 * MIB, a), Err(INVALID_VALUE));
    assert_eq!(devices.map(first, 20 * MIB, a), Ok(()));
    assert_eq!(devices.map(first + 18 * MIB, 20 * MIB, b), Err(INVALID_VALUE));
    assert_eq!(devices.map(first + 20 * MIB, 20 * MIB, b), Ok(()));
    assert_eq!(devices.unreserve(first, 40 * MIB), Err(INVALID_VALUE));
    assert_eq!(devices.unmap(first, 30 * MIB), Err(INVALID_VALUE));
    assert_eq!(devices.unmap(first, 40 * MIB), Ok(()));
    assert_eq!(devices.unmap(first, 40 * MIB), Err(INVALID_VALUE));
    assert_eq!(devices.unreserve(first, 40 * MIB), Ok(()));
    assert_eq!(devices.unreserve(first, 40 * MIB), Err(INVALID_VALUE));
    assert_eq!(devices.reserve(40 * MIB, 0), Ok(first));
    assert_eq!(devices.reserve(MIB, 3), Err(INVALID_VALUE));
}

#[test]
fn pinned_memory_is_found_by_any_of_its_addresses() {
    let mut devices = two_devices();
    assert_eq!(devices.pin(0x10_0000, 0x1000, false), Ok(()));
    assert_eq!(devices.pin(0x10_0800, 0x1000, true), Err(ALREADY_REGISTERED));
    assert_eq!(devices.pin(0xf_f800, 0x1000, true), Err(ALREADY_REGISTERED));
    assert_eq!(devices.pin(0x10_1000, 0x1000, true), Ok(()));
    assert_eq!(devices.pinned_range(0x10_0fff), Some((0x10_0000, 0x1000)));
    assert_eq!(devices.pinned_range(0x10_2000), None);
    assert_eq!(devices.unpin(0x10_0000, true), Err(NOT_REGISTERED));
    assert_eq!(devices.unpin(0x10_1000, false), Err(INVALID_VALUE));
    assert_eq!(devices.unpin(0x10_0000, false), Ok(()));
    assert_eq!(devices.pinned_range(0x10_0000), None);
}

#[test]
fn pool_has_its_numbers_and_their_greatest() {
    let mut devices = two_devices();
    let address = devices.allocate_pooled(0, 3 * MIB).unwrap();
    devices.release(address).unwrap();
    devices.allocate_pooled(0, MIB).unwrap();
    devices.allocate(0, 50 * MIB).unwrap();
    let Pool { reserved, reserved_high, used, used_high } = *devices.pool(0).unwrap();
    let numbers = [reserved, reserved_high, used, used_high];
    assert_eq!(numbers.map(|bytes| bytes / MIB), [2, 4, 1, 3]);
}
