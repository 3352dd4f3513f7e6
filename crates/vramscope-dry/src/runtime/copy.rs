//! Copies of memory. Small copies are real.

#![expect(unsafe_code, reason = "exported functions of the runtime, and copies of memory")]

use crate::abi::api;
use crate::device::{is_device_memory, is_mapped};
use crate::errors::SUCCESS;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

/// A larger copy to or from a device is not made, in bytes. It would touch pages for values that
/// nothing computed.
pub(crate) const REAL: usize = 1 << 20;

/// A copy to the host of at most this size can be that of a count, in bytes.
const COUNT: usize = 8;

/// Copies from a device to the host.
static READS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Counts for the next small copies to the host.
    static NEXT: RefCell<VecDeque<u64>> = const { RefCell::new(VecDeque::new()) };
}

/// The next copy of at most 8 bytes from a device to the host, in this thread, finds `count`: a
/// kernel would have written it.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn dry_next(count: u64) {
    NEXT.with_borrow_mut(|next| next.push_back(count));
}

/// Takes the next count of this thread.
pub(crate) fn next_count() -> Option<u64> {
    NEXT.with_borrow_mut(VecDeque::pop_front)
}

/// Forgets the counts that no copy has found, and returns their number.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn dry_next_clear() -> i32 {
    NEXT.with_borrow_mut(|next| next.drain(..).len() as i32)
}

/// The number of copies from a device to the host.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn dry_reads() -> u64 {
    READS.load(Ordering::Relaxed)
}

/// Copies `rows` rows of `width` bytes that lie `to.1` and `from.1` bytes apart.
///
/// A copy of more than [`REAL`] bytes leaves a device as it is, and gives zeros to the host.
///
/// # Safety
///
/// The ranges are valid, in the host or in a device.
pub(crate) unsafe fn copy_rows(
    to: (*mut u8, usize),
    from: (*const u8, usize),
    width: usize,
    rows: usize,
) {
    let to_device = is_device_memory(to.0 as u64);
    let from_device = is_device_memory(from.0 as u64);
    let bytes = width.saturating_mul(rows);
    if from_device && !to_device {
        READS.fetch_add(1, Ordering::Relaxed);
        if bytes <= COUNT
            && let Some(count) = next_count()
        {
            // SAFETY: the caller promises the range, and a count has as many bytes.
            unsafe { to.0.copy_from_nonoverlapping(count.to_ne_bytes().as_ptr(), bytes) };
            return;
        }
    }
    let real = !to_device && !from_device || is_mapped() && bytes <= REAL;
    if !real && to_device {
        return;
    }
    for row in 0..rows {
        // SAFETY: the caller promises the ranges, and those of devices are mapped if `real`.
        unsafe {
            let (to, from) = (to.0.add(row * to.1), from.0.add(row * from.1));
            if real {
                to.copy_from(from, width);
            } else {
                to.write_bytes(0, width);
            }
        }
    }
}

/// Copies `bytes` bytes.
///
/// # Safety
///
/// As for [`copy_rows`].
pub(crate) unsafe fn copy(to: *mut u8, from: *const u8, bytes: usize) {
    if bytes > 0 {
        // SAFETY: the caller promises the ranges.
        unsafe { copy_rows((to, bytes), (from, bytes), bytes, 1) };
    }
}

/// Fills `bytes` bytes with a pattern of 1, 2 or 4 bytes.
///
/// # Safety
///
/// The range is valid, in the host or in a device.
pub(crate) unsafe fn fill(to: *mut u8, pattern: &[u8], bytes: usize) {
    let device = is_device_memory(to as u64);
    if device && (bytes > REAL || !is_mapped()) || bytes == 0 {
        return;
    }
    // SAFETY: the caller promises the range.
    let range = unsafe { std::slice::from_raw_parts_mut(to, bytes) };
    if let [byte] = pattern {
        range.fill(*byte);
    } else {
        for place in range.chunks_exact_mut(pattern.len()) {
            place.copy_from_slice(pattern);
        }
    }
}

api! {
    /// Copies.
    fn cudaMemcpy(to: *mut u8, from: *const u8, bytes: usize, _kind: i32) -> i32 {
        copy(to, from, bytes);
        SUCCESS
    }

    /// Copies.
    fn cudaMemcpyAsync(
        to: *mut u8, from: *const u8, bytes: usize, _kind: i32, _stream: u64,
    ) -> i32 {
        copy(to, from, bytes);
        SUCCESS
    }

    /// Copies between devices.
    fn cudaMemcpyPeer(
        to: *mut u8, _to_device: i32, from: *const u8, _from_device: i32, bytes: usize,
    ) -> i32 {
        copy(to, from, bytes);
        SUCCESS
    }

    /// Copies between devices.
    fn cudaMemcpyPeerAsync(
        to: *mut u8, _to_device: i32, from: *const u8, _from_device: i32, bytes: usize,
        _stream: u64,
    ) -> i32 {
        copy(to, from, bytes);
        SUCCESS
    }

    /// Copies rows.
    fn cudaMemcpy2D(
        to: *mut u8, to_pitch: usize, from: *const u8, from_pitch: usize, width: usize,
        rows: usize, _kind: i32,
    ) -> i32 {
        copy_rows((to, to_pitch), (from, from_pitch), width, rows);
        SUCCESS
    }

    /// Copies rows.
    fn cudaMemcpy2DAsync(
        to: *mut u8, to_pitch: usize, from: *const u8, from_pitch: usize, width: usize,
        rows: usize, _kind: i32, _stream: u64,
    ) -> i32 {
        copy_rows((to, to_pitch), (from, from_pitch), width, rows);
        SUCCESS
    }

    /// Fills memory with a byte.
    fn cudaMemset(to: *mut u8, value: i32, bytes: usize) -> i32 {
        fill(to, &[value as u8], bytes);
        SUCCESS
    }

    /// Fills memory with a byte.
    fn cudaMemsetAsync(to: *mut u8, value: i32, bytes: usize, _stream: u64) -> i32 {
        fill(to, &[value as u8], bytes);
        SUCCESS
    }
}
