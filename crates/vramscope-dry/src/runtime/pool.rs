//! Memory pools. Each device has one, and its memory comes from `cudaMalloc`.

#![expect(unsafe_code, reason = "exported functions of the runtime")]

use super::status::status;
use crate::abi::api;
use crate::device::{check_device, current_device, devices};
use crate::errors::{Code, INVALID_VALUE};
use crate::tables::{put, succeed};

/// The handle of the pool of device 0. The other devices follow.
const FIRST_POOL: u64 = 0x8000;

/// `cudaMemPoolAttrReleaseThreshold` and those of the pool's numbers: reserved now and at most,
/// used now and at most.
const THRESHOLD: i32 = 4;
/// See [`THRESHOLD`].
const NUMBERS: [i32; 4] = [5, 6, 7, 8];

/// The device of a pool.
fn pool_device(pool: u64) -> Result<i32, Code> {
    let device = pool.checked_sub(FIRST_POOL).ok_or(INVALID_VALUE)? as i32;
    check_device(device).map_err(|_| INVALID_VALUE)?;
    Ok(device)
}

/// Allocates from the pool of a device and writes the address.
///
/// # Safety
///
/// `place` is valid for a write.
unsafe fn allocate(place: *mut u64, bytes: usize, device: Result<i32, Code>) -> Code {
    let result = device.and_then(|device| devices().allocate_pooled(device, bytes as u64));
    // SAFETY: the caller promises the place.
    unsafe { put(place, result.unwrap_or(0)) };
    status(result.map(drop))
}

succeed! {
    cudaMemPoolSetAccess cudaMemPoolTrimTo cudaDeviceGraphMemTrim cudaDeviceSetGraphMemAttribute
    cudaDeviceSetMemPool
}

api! {
    /// Allocates from the pool of the current device.
    fn cudaMallocAsync(place: *mut u64, bytes: usize, _stream: u64) -> i32 {
        allocate(place, bytes, Ok(current_device()))
    }

    /// Allocates from a pool.
    fn cudaMallocFromPoolAsync(place: *mut u64, bytes: usize, pool: u64, _stream: u64) -> i32 {
        allocate(place, bytes, pool_device(pool))
    }

    /// Gives memory back to its pool.
    fn cudaFreeAsync(address: u64, _stream: u64) -> i32 { status(devices().release(address)) }

    /// Writes the pool of a device.
    fn cudaDeviceGetDefaultMemPool(pool: *mut u64, device: i32) -> i32 {
        status(check_device(device).map(|()| put(pool, FIRST_POOL + device as u64)))
    }

    /// Writes the pool of a device.
    fn cudaDeviceGetMemPool(pool: *mut u64, device: i32) -> i32 {
        cudaDeviceGetDefaultMemPool(pool, device)
    }

    /// Writes an attribute of a pool. The first three have 32 bits, and are off.
    fn cudaMemPoolGetAttribute(pool: u64, number: i32, value: *mut u64) -> i32 {
        let result = pool_device(pool).and_then(|device| {
            let pool = *devices().pool(device)?;
            let numbers = [pool.reserved, pool.reserved_high, pool.used, pool.used_high];
            match NUMBERS.iter().position(|&attribute| attribute == number) {
                Some(place) => put(value, numbers[place]),
                None if number == THRESHOLD => put(value, 0),
                None => put(value.cast::<u32>(), 0),
            }
            Ok(())
        });
        status(result)
    }

    /// Resets the greatest numbers of a pool. Other attributes have no effect.
    fn cudaMemPoolSetAttribute(pool: u64, number: i32, _value: *const u64) -> i32 {
        let result = pool_device(pool).and_then(|device| {
            let mut devices = devices();
            let pool = devices.pool(device)?;
            match number {
                6 => pool.reserved_high = pool.reserved,
                8 => pool.used_high = pool.used,
                _ => {}
            }
            Ok(())
        });
        status(result)
    }

    /// Writes 0: graphs hold no memory of their own.
    fn cudaDeviceGetGraphMemAttribute(device: i32, _number: i32, value: *mut u64) -> i32 {
        status(check_device(device).map(|()| put(value, 0)))
    }
}
