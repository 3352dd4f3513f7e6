//! NCCL: each rank is alone. A small collective copies, as if all ranks had equal values.

#![expect(unsafe_code, reason = "exported functions of the library")]

use crate::abi::api;
use crate::device::fork::watch;
use crate::device::{current_device, devices};
use crate::settings::settings;
use crate::tables::{new_handle, put, refuse, succeed};
use std::collections::{BTreeMap, VecDeque};
use std::ffi::c_char;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

/// Results, from `nccl.h`.
const SUCCESS: i32 = 0;
/// See [`SUCCESS`].
const UNHANDLED_CUDA_ERROR: i32 = 1;
/// See [`SUCCESS`].
const INVALID_ARGUMENT: i32 = 4;
/// See [`SUCCESS`].
const INVALID_USAGE: i32 = 5;

/// A rank that belongs to no new communicator.
const NO_COLOR: i32 = -1;

/// The number that ranks of a communicator share.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct UniqueId {
    /// 128 bytes.
    bytes: [u8; 128],
}

/// A communicator.
#[derive(Debug)]
pub(crate) struct Communicator {
    /// The number of ranks. That of a split is not known: the least that has this rank.
    ranks: usize,
    /// This rank.
    rank: usize,
    /// The device.
    device: i32,
    /// What this rank has sent to itself: address and size in bytes.
    sent: VecDeque<(u64, usize)>,
}

/// Communicators by handle.
pub(crate) type Communicators = BTreeMap<u64, Communicator>;

/// The communicators of this process.
pub(crate) static COMMUNICATORS: LazyLock<Mutex<Communicators>> = LazyLock::new(|| {
    watch();
    Mutex::default()
});

/// The communicators of this process.
fn communicators() -> MutexGuard<'static, Communicators> {
    COMMUNICATORS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a communicator and writes its handle.
///
/// # Safety
///
/// `place` is valid for a write.
unsafe fn create(place: *mut u64, ranks: i32, rank: i32, device: i32) -> i32 {
    if rank < 0 || rank >= ranks {
        return INVALID_ARGUMENT;
    }
    let (ranks, rank) = (ranks as usize, rank as usize);
    let handle = new_handle();
    communicators().insert(handle, Communicator { ranks, rank, device, sent: VecDeque::new() });
    // SAFETY: the caller promises the place.
    unsafe { put(place, handle) };
    SUCCESS
}

/// Ranks and rank of a communicator.
fn sizes(communicator: u64) -> Result<(usize, usize), i32> {
    let all = communicators();
    all.get(&communicator).map(|found| (found.ranks, found.rank)).ok_or(INVALID_ARGUMENT)
}

succeed! {
    ncclGroupStart ncclGroupEnd ncclGroupSimulateEnd ncclCommFinalize ncclCommDeregister
    ncclCommWindowDeregister ncclRedOpDestroy ncclCommRevoke ncclCommSuspend ncclCommResume
}

// Kernels and memory that ranks reach without a collective, and ranks that join.
refuse! { INVALID_USAGE;
    ncclDevCommCreate ncclDevCommDestroy ncclGetLsaMultimemDevicePointer ncclGetPeerDevicePointer
    ncclPutSignal ncclSignal ncclWaitSignal ncclWinGetUserPtr ncclCommGrow ncclCommGetUniqueId
    ncclCommMemStats
}

api! {
    /// Writes the version: 2.21.5, or 2.28.9 for CUDA 13.
    fn ncclGetVersion(version: *mut i32) -> i32 {
        put(version, if settings().cuda >= 13000 { 22809 } else { 22105 });
        SUCCESS
    }

    /// Returns the text of a result.
    fn ncclGetErrorString(result: i32) -> *const c_char {
        match result {
            SUCCESS => c"no error",
            UNHANDLED_CUDA_ERROR => c"unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
            INVALID_ARGUMENT => c"invalid argument (run with NCCL_DEBUG=WARN for details)",
            INVALID_USAGE => c"invalid usage (run with NCCL_DEBUG=WARN for details)",
            _ => c"unknown result code",
        }
        .as_ptr()
    }

    /// Returns an empty text.
    fn ncclGetLastError(_communicator: u64) -> *const c_char { c"".as_ptr() }

    /// Writes a number for a new communicator.
    fn ncclGetUniqueId(place: *mut UniqueId) -> i32 {
        let mut id = [0; 128];
        id[..8].copy_from_slice(&new_handle().to_ne_bytes());
        id[8..12].copy_from_slice(&std::process::id().to_ne_bytes());
        put(place, UniqueId { bytes: id });
        SUCCESS
    }

    /// Makes the communicator of a rank.
    fn ncclCommInitRank(place: *mut u64, ranks: i32, _id: UniqueId, rank: i32) -> i32 {
        create(place, ranks, rank, current_device())
    }

    /// Makes the communicator of a rank.
    fn ncclCommInitRankConfig(
        place: *mut u64, ranks: i32, _id: UniqueId, rank: i32, _configuration: u64,
    ) -> i32 {
        create(place, ranks, rank, current_device())
    }

    /// Makes the communicator of a rank.
    fn ncclCommInitRankScalable(
        place: *mut u64, ranks: i32, rank: i32, _count: i32, _ids: u64, _configuration: u64,
    ) -> i32 {
        create(place, ranks, rank, current_device())
    }

    /// Makes the communicators of all ranks.
    fn ncclCommInitAll(places: *mut u64, ranks: i32, list: *const i32) -> i32 {
        for rank in 0..ranks {
            let device = if list.is_null() { rank } else { *list.add(rank as usize) };
            let result = create(places.add(rank as usize), ranks, rank, device);
            if result != SUCCESS {
                return result;
            }
        }
        SUCCESS
    }

    /// Makes the communicator of the ranks with one color. Only they know how many they are.
    fn ncclCommSplit(
        communicator: u64, color: i32, key: i32, place: *mut u64, _configuration: u64,
    ) -> i32 {
        if let Err(error) = sizes(communicator) {
            return error;
        }
        if color == NO_COLOR {
            put(place, 0);
            return SUCCESS;
        }
        // PyTorch passes the rank in the new group as the key.
        create(place, key + 1, key, current_device())
    }

    /// Makes the communicator of the ranks that are not excluded.
    fn ncclCommShrink(
        communicator: u64, excluded: *const i32, count: i32, place: *mut u64,
        _configuration: u64, _flags: i32,
    ) -> i32 {
        match sizes(communicator) {
            Ok((ranks, rank)) => {
                let below = |&index: &usize| (*excluded.add(index) as usize) < rank;
                let lower = (0..count as usize).filter(below).count();
                create(place, ranks as i32 - count, (rank - lower) as i32, current_device())
            }
            Err(error) => error,
        }
    }

    /// Destroys a communicator.
    fn ncclCommDestroy(communicator: u64) -> i32 {
        let found = communicators().remove(&communicator);
        if found.is_some() { SUCCESS } else { INVALID_ARGUMENT }
    }

    /// Destroys a communicator.
    fn ncclCommAbort(communicator: u64) -> i32 { ncclCommDestroy(communicator) }

    /// Writes the number of ranks.
    fn ncclCommCount(communicator: u64, place: *mut i32) -> i32 {
        let result = sizes(communicator).map(|(ranks, _)| put(place, ranks as i32));
        result.err().unwrap_or(SUCCESS)
    }

    /// Writes the rank.
    fn ncclCommUserRank(communicator: u64, place: *mut i32) -> i32 {
        let result = sizes(communicator).map(|(_, rank)| put(place, rank as i32));
        result.err().unwrap_or(SUCCESS)
    }

    /// Writes the device.
    fn ncclCommCuDevice(communicator: u64, place: *mut i32) -> i32 {
        match communicators().get(&communicator) {
            Some(found) => {
                put(place, found.device);
                SUCCESS
            }
            None => INVALID_ARGUMENT,
        }
    }

    /// Writes that a communicator works.
    fn ncclCommGetAsyncError(_communicator: u64, place: *mut i32) -> i32 {
        put(place, SUCCESS);
        SUCCESS
    }

    /// Registers a buffer. Its handle is its address.
    fn ncclCommRegister(
        _communicator: u64, buffer: u64, _bytes: usize, handle: *mut u64,
    ) -> i32 {
        put(handle, buffer);
        SUCCESS
    }

    /// Registers a window. Its handle is its address.
    fn ncclCommWindowRegister(
        communicator: u64, buffer: u64, bytes: usize, handle: *mut u64, _flags: i32,
    ) -> i32 {
        ncclCommRegister(communicator, buffer, bytes, handle)
    }

    /// Writes a reduction behind those of `ncclRedOp_t`.
    fn ncclRedOpCreatePreMulSum(place: *mut i32) -> i32 {
        put(place, 5);
        SUCCESS
    }

    /// Allocates memory of the current device.
    fn ncclMemAlloc(place: *mut u64, bytes: usize) -> i32 {
        let result = devices().allocate(current_device(), bytes as u64);
        put(place, result.unwrap_or(0));
        if result.is_ok() { SUCCESS } else { UNHANDLED_CUDA_ERROR }
    }

    /// Frees memory.
    fn ncclMemFree(address: u64) -> i32 {
        if devices().release(address).is_ok() { SUCCESS } else { UNHANDLED_CUDA_ERROR }
    }
}

mod collective;
#[cfg(test)]
mod tests;
