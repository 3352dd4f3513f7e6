//! Ranks that are alone.

use super::collective::{ncclAllGather, ncclAlltoAll, ncclRecv, ncclReduceScatter, ncclSend};
use super::{
    INVALID_ARGUMENT, UniqueId, ncclCommCount, ncclCommDestroy, ncclCommInitRank, ncclCommSplit,
    ncclCommUserRank, ncclMemAlloc, ncclMemFree,
};

/// `ncclInt32`.
const INT: i32 = 2;

/// The communicator of rank 1 of 3.
fn communicator() -> u64 {
    let mut place = 0;
    let id = UniqueId { bytes: [0; 128] };
    // SAFETY: the place is valid.
    assert_eq!(unsafe { ncclCommInitRank(&raw mut place, 3, id, 1) }, 0);
    place
}

/// Runs a collective over three numbers, into places that hold 9.
fn run(call: impl FnOnce(*const u8, *mut u8) -> i32) -> [i32; 3] {
    let (from, mut to) = ([10, 20, 30], [9; 3]);
    assert_eq!(call(from.as_ptr().cast(), to.as_mut_ptr().cast()), 0);
    to
}

#[test]
fn other_ranks_have_equal_values() {
    let all = communicator();
    // SAFETY: the collectives stay within three numbers.
    unsafe {
        assert_eq!(run(|from, to| ncclAllGather(from, to, 1, INT, all)), [10; 3]);
        assert_eq!(run(|from, to| ncclReduceScatter(from, to, 1, INT, 0, all)), [20, 9, 9]);
        assert_eq!(run(|from, to| ncclAlltoAll(from, to, 1, INT, all)), [20; 3]);
        assert_eq!(ncclCommDestroy(all), 0);
        assert_eq!(ncclCommDestroy(all), INVALID_ARGUMENT);
    }
}

#[test]
fn rank_receives_from_itself_and_zeros_from_others() {
    let all = communicator();
    // SAFETY: the calls stay within three numbers.
    unsafe {
        let to = run(|from, to| {
            let sent = ncclSend(from, 2, INT, 1, all) | ncclSend(from, 3, INT, 0, all);
            sent | ncclRecv(to, 2, INT, 1, all)
        });
        assert_eq!(to, [10, 20, 9]);
        assert_eq!(run(|_, to| ncclRecv(to, 2, INT, 0, all)), [0, 0, 9]);
        assert_eq!(ncclCommDestroy(all), 0);
    }
}

#[test]
fn split_knows_its_rank() {
    let all = communicator();
    let (mut part, mut count, mut rank) = (0, 0, 0);
    // SAFETY: the places are valid.
    unsafe {
        assert_eq!(ncclCommSplit(all, 5, 1, &raw mut part, 0), 0);
        assert_eq!(ncclCommCount(part, &raw mut count), 0);
        assert_eq!(ncclCommUserRank(part, &raw mut rank), 0);
        assert_eq!((count, rank), (2, 1));
        assert_eq!(run(|from, to| ncclAllGather(from, to, 1, INT, part)), [10, 10, 9]);
        assert_eq!(ncclCommDestroy(part), 0);
        assert_eq!(ncclCommSplit(all, -1, 0, &raw mut part, 0), 0);
        assert_eq!(part, 0);
        assert_eq!(ncclCommDestroy(all), 0);
    }
}

#[test]
fn memory_comes_from_the_device() {
    let mut address = 0;
    // SAFETY: the place is valid.
    unsafe {
        assert_eq!(ncclMemAlloc(&raw mut address, 1 << 20), 0);
        assert!(crate::device::is_device_memory(address));
        assert_eq!(ncclMemFree(address), 0);
        assert_ne!(ncclMemFree(address), 0);
    }
}
