//! The driver by its exported functions.

#![expect(unsafe_code, reason = "calls of exported functions")]

use super::mapping::{
    Properties, cuMemAddressFree, cuMemAddressReserve, cuMemCreate, cuMemExportToShareableHandle,
    cuMemMap, cuMemRelease, cuMemUnmap,
};
use super::memory::{cuMemAlloc_v2, cuMemFree_v2, cuPointerGetAttribute, cuPointerGetAttributes};
use super::{cuDeviceGetAttribute, cuDeviceGetName, cuGetErrorString, cuGetProcAddress_v2};
use crate::errors::{INVALID_DEVICE, INVALID_VALUE, NOT_FOUND, NOT_SUPPORTED};
use std::ffi::CStr;
use std::ptr::null_mut;

/// Memory of device 0.
static DEVICE: Properties = Properties { kind: 1, handle_types: 1, location_kind: 1, device: 0 };

/// 20 MiB.
const BYTES: usize = 20 << 20;

#[test]
fn memory_is_mapped_and_addresses_are_used_again() {
    let (mut address, mut again, mut handle) = (0, 0, 0);
    // SAFETY: the places are valid.
    unsafe {
        assert_eq!(cuMemAddressReserve(&raw mut address, 1 << 40, 0, 0, 0), 0);
        assert_eq!(cuMemCreate(&raw mut handle, BYTES, &raw const DEVICE, 0), 0);
        assert_eq!(cuMemMap(address, BYTES, 2, handle, 0), INVALID_VALUE);
        assert_eq!(cuMemMap(address, BYTES, 0, handle, 0), 0);
        assert_eq!(cuMemExportToShareableHandle(), NOT_SUPPORTED);
        assert_eq!(cuMemRelease(handle), 0);
        assert_eq!(cuMemUnmap(address, BYTES), 0);
        assert_eq!(cuMemRelease(handle), INVALID_VALUE);
        assert_eq!(cuMemAddressFree(address, 1 << 40), 0);
        assert_eq!(cuMemAddressReserve(&raw mut again, 1 << 40, 0, 0, 0), 0);
        assert_eq!(again, address);
        assert_eq!(cuMemAddressFree(address, 1 << 40), 0);
    }
}

#[test]
fn memory_for_other_devices_or_a_fabric_is_refused() {
    let mut handle = 0_u64;
    let place = &raw mut handle;
    let create = |properties: Properties, bytes| {
        // SAFETY: the places are valid.
        unsafe { cuMemCreate(place, bytes, &raw const properties, 0) }
    };
    assert_eq!(create(Properties { device: 7, ..DEVICE }, BYTES), INVALID_DEVICE);
    assert_eq!(create(Properties { handle_types: 8, ..DEVICE }, BYTES), NOT_SUPPORTED);
    assert_eq!(create(DEVICE, BYTES + 1), INVALID_VALUE);
}

#[test]
fn pointers_have_attributes_by_their_memory() {
    let (mut address, mut value) = (0, 0_u64);
    let place = (&raw mut value).cast();
    // SAFETY: the places have 8 bytes, more than any attribute needs.
    unsafe {
        assert_eq!(cuMemAlloc_v2(&raw mut address, 3 << 20), 0);
        assert_eq!(cuPointerGetAttribute(place, 3, address + 5), 0);
        assert_eq!(value, address + 5);
        assert_eq!(cuPointerGetAttribute(place, 12, address + 5), 0);
        assert_eq!(value, 4 << 20);
        let (mut first, mut kind) = (1_u64, 0_u64);
        let places = [(&raw mut first).cast(), (&raw mut kind).cast()];
        let numbers = [11, 2];
        let result = cuPointerGetAttributes(2, numbers.as_ptr(), places.as_ptr(), address + 5);
        assert_eq!((result, first, kind), (0, address, 2));
        // The address of a variable of the host.
        assert_eq!(cuPointerGetAttribute(place, 3, place as u64), INVALID_VALUE);
        let result = cuPointerGetAttributes(2, numbers.as_ptr(), places.as_ptr(), place as u64);
        assert_eq!((result, first, kind), (0, 0, 0));
        assert_eq!(cuMemFree_v2(address), 0);
        assert_eq!(cuPointerGetAttribute(place, 3, address), INVALID_VALUE);
    }
}

#[test]
fn attributes_are_those_of_the_settings() {
    let attribute = |number| {
        let mut value = -1;
        // SAFETY: the place is valid.
        assert_eq!(unsafe { cuDeviceGetAttribute(&raw mut value, number, 0) }, 0);
        value
    };
    assert_eq!([75, 76, 16, 38, 33].map(attribute), [9, 0, 132, 50 << 20, 16]);
    assert_eq!([97, 81, 102, 120, 128, 132].map(attribute), [232_448, 233_472, 1, 1, 0, 0]);
    let mut name = [1; 10];
    // SAFETY: the place has the size.
    assert_eq!(unsafe { cuDeviceGetName(name.as_mut_ptr(), 10, 0) }, 0);
    // SAFETY: the function has written a text.
    assert_eq!(unsafe { CStr::from_ptr(name.as_ptr()) }, c"NVIDIA H1");
}

#[test]
fn unknown_names_and_errors_are_not_found() {
    let (mut function, mut state, mut text) = (null_mut(), 0, std::ptr::null());
    let name = c"cuNoSuchFunction".as_ptr();
    // SAFETY: the places are valid.
    unsafe {
        let place = &raw mut function;
        assert_eq!(cuGetProcAddress_v2(name, place, 12080, 0, &raw mut state), NOT_FOUND);
        assert_eq!((function.is_null(), state), (true, 1));
        assert_eq!(cuGetErrorString(2, &raw mut text), 0);
        assert_eq!(CStr::from_ptr(text), c"out of memory");
        assert_eq!(cuGetErrorString(77_777, &raw mut text), INVALID_VALUE);
        assert!(text.is_null());
    }
}
