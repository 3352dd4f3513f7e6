//! Collectives. A small one copies, as if all ranks had equal values.

#![expect(unsafe_code, reason = "exported functions of the library")]

use super::{SUCCESS, communicators, sizes};
use crate::abi::api;
use crate::runtime::copy::{REAL, copy, fill};
use crate::runtime::timeline::note_collective;

/// Sizes of `ncclDataType_t`, in bytes: integers, then floating point, with bf16 and fp8 last.
const WIDTHS: [usize; 12] = [1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1];

/// Bytes of `count` values. Types that are not known have no size, so that nothing is copied.
fn bytes(count: usize, kind: i32) -> usize {
    let width = usize::try_from(kind).ok().and_then(|kind| WIDTHS.get(kind));
    count.saturating_mul(width.copied().unwrap_or(0))
}

/// Copies small data. Null stands for data that another rank has.
///
/// # Safety
///
/// The ranges are null or valid.
unsafe fn share(to: *mut u8, from: *const u8, bytes: usize) {
    if !to.is_null() && !from.is_null() && to.cast_const() != from && bytes <= REAL {
        // SAFETY: the caller promises the ranges.
        unsafe { copy(to, from, bytes) };
    }
}

/// Copies one small block to the places of all ranks.
///
/// # Safety
///
/// `to` has room for the blocks of all ranks.
unsafe fn share_to_all(to: *mut u8, from: *const u8, bytes: usize, ranks: usize) {
    if bytes.saturating_mul(ranks) <= REAL {
        for rank in 0..ranks {
            // SAFETY: the caller promises the room.
            unsafe { share(to.wrapping_add(rank * bytes), from, bytes) };
        }
    }
}

/// Runs a collective of a known communicator. The next wait of the host takes longer.
fn collective(communicator: u64, run: impl FnOnce(usize, usize)) -> i32 {
    match sizes(communicator) {
        Ok((ranks, rank)) => {
            run(ranks, rank);
            note_collective();
            SUCCESS
        }
        Err(error) => error,
    }
}

api! {
    /// Reduces: the values of this rank stand for the result.
    fn ncclAllReduce(
        from: *const u8, to: *mut u8, count: usize, kind: i32, _reduction: i32, communicator: u64,
    ) -> i32 {
        collective(communicator, |_, _| share(to, from, bytes(count, kind)))
    }

    /// Reduces: the values of this rank stand for the result.
    fn ncclReduce(
        from: *const u8, to: *mut u8, count: usize, kind: i32, _reduction: i32, _root: i32,
        communicator: u64,
    ) -> i32 {
        collective(communicator, |_, _| share(to, from, bytes(count, kind)))
    }

    /// Copies: the values of this rank stand for those of the root.
    fn ncclBroadcast(
        from: *const u8, to: *mut u8, count: usize, kind: i32, _root: i32, communicator: u64,
    ) -> i32 {
        collective(communicator, |_, _| share(to, from, bytes(count, kind)))
    }

    /// Copies in place: the values of this rank stand for those of the root.
    fn ncclBcast(
        _buffer: u64, _count: usize, _kind: i32, _root: i32, communicator: u64,
    ) -> i32 {
        collective(communicator, |_, _| {})
    }

    /// Gathers: the values of this rank stand for those of all.
    fn ncclAllGather(
        from: *const u8, to: *mut u8, count: usize, kind: i32, communicator: u64,
    ) -> i32 {
        collective(communicator, |ranks, _| share_to_all(to, from, bytes(count, kind), ranks))
    }

    /// Gathers at the root.
    fn ncclGather(
        from: *const u8, to: *mut u8, count: usize, kind: i32, root: i32, communicator: u64,
    ) -> i32 {
        collective(communicator, |ranks, rank| {
            if rank as i32 == root {
                share_to_all(to, from, bytes(count, kind), ranks);
            }
        })
    }

    /// Scatters. Only the root has the values.
    fn ncclScatter(
        from: *const u8, to: *mut u8, count: usize, kind: i32, root: i32, communicator: u64,
    ) -> i32 {
        collective(communicator, |_, rank| {
            let bytes = bytes(count, kind);
            if rank as i32 == root {
                share(to, from.wrapping_add(rank * bytes), bytes);
            } else if bytes <= REAL {
                fill(to, &[0], bytes);
            }
        })
    }

    /// Reduces and scatters: this rank gets its own part.
    fn ncclReduceScatter(
        from: *const u8, to: *mut u8, count: usize, kind: i32, _reduction: i32, communicator: u64,
    ) -> i32 {
        collective(communicator, |_, rank| {
            let bytes = bytes(count, kind);
            share(to, from.wrapping_add(rank * bytes), bytes);
        })
    }

    /// Exchanges: each rank sends to this one what this rank sends to itself.
    fn ncclAlltoAll(
        from: *const u8, to: *mut u8, count: usize, kind: i32, communicator: u64,
    ) -> i32 {
        collective(communicator, |ranks, rank| {
            let bytes = bytes(count, kind);
            share_to_all(to, from.wrapping_add(rank * bytes), bytes, ranks);
        })
    }

    /// Sends. What this rank sends to itself is kept for its receive.
    fn ncclSend(
        from: *const u8, count: usize, kind: i32, peer: i32, communicator: u64,
    ) -> i32 {
        collective(communicator, |_, rank| {
            if rank as i32 == peer
                && let Some(found) = communicators().get_mut(&communicator)
            {
                found.sent.push_back((from as u64, bytes(count, kind)));
            }
        })
    }

    /// Receives: what this rank has sent to itself, and zeros from others.
    fn ncclRecv(to: *mut u8, count: usize, kind: i32, peer: i32, communicator: u64) -> i32 {
        collective(communicator, |_, rank| {
            let bytes = bytes(count, kind);
            let own = rank as i32 == peer;
            let sent = communicators()
                .get_mut(&communicator)
                .and_then(|found| if own { found.sent.pop_front() } else { None });
            match sent {
                Some((from, sent)) => share(to, from as *const u8, bytes.min(sent)),
                None => fill(to, &[0], bytes),
            }
        })
    }
}
