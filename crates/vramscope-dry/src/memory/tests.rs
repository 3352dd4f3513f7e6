//! Addresses that were computed by hand from the rule.

use super::{Addresses, CHUNK, PIECE, Reservations, SPACE};

/// The end of the addresses of the device under test.
const END: u64 = 0x7680_0000_0000;

/// The device under test has 512 GiB of addresses.
const FIRST: u64 = END - (512 << 30);

/// 1 MiB.
const MIB: u64 = 1 << 20;

/// Requests `mib` MiB. Returns how many MiB lie between the address and the end of the device.
fn request(addresses: &mut Addresses, mib: u64) -> u64 {
    (END - addresses.request(mib * MIB).unwrap()) / MIB
}

/// A device after four requests of 32 MiB whose holes are full: each chunk serves as a whole. The
/// lowest chunk begins 576 MiB below the end.
fn warm() -> Addresses {
    let mut addresses = Addresses::new(FIRST, END);
    // Code takes the last 2 MiB of the scratch area, and 26 MiB of a chunk at 512 MiB. The fourth
    // request finds the scratch area free.
    assert_eq!([32; 4].map(|mib| request(&mut addresses, mib)), [480, 544, 576, 448]);
    // The rests of the scratch area, of the context's chunk and of the code's chunk.
    assert_eq!([382, 24, 6].map(|mib| request(&mut addresses, mib)), [416, 24, 512 - 26]);
    addresses
}

#[test]
fn first_requests_find_the_context_the_code_and_the_scratch_area() {
    let mut addresses = Addresses::new(FIRST, END);
    // The chunk of the scratch area begins 448 MiB below the end. Its last 2 MiB are free.
    assert_eq!(request(&mut addresses, 2), 34);
    // Code takes 2 MiB behind the context's 8 MiB, and 26 MiB of a new chunk at 480 MiB. 20 MiB do
    // not fit behind the 26, so they go behind the first code.
    assert_eq!(request(&mut addresses, 20), 22);
    // No hole has 20 MiB: a new chunk.
    assert_eq!(request(&mut addresses, 20), 512);
    // The scratch area is a hole now. Newer chunks have 12 and 6 MiB.
    assert_eq!(request(&mut addresses, 20), 448);
    // 12 MiB behind the 20 MiB of the newest chunk, then 6 MiB behind the code.
    assert_eq!(request(&mut addresses, 12), 512 - 20);
    assert_eq!(request(&mut addresses, 6), 480 - 26);
}

#[test]
fn large_request_gets_a_multiple_of_a_chunk_and_small_requests_its_rest() {
    let mut addresses = warm();
    // 450 MiB need a chunk of 480 MiB. It goes below the lowest chunk.
    assert_eq!(request(&mut addresses, 450), 576 + 480);
    assert_eq!(request(&mut addresses, 30), 576 + 30);
}

#[test]
fn newest_chunk_with_a_hole_serves_first_from_below() {
    let mut addresses = warm();
    assert_eq!([16; 4].map(|mib| request(&mut addresses, mib)), [608, 592, 640, 624]);
    for distance in [608, 640] {
        assert_eq!(addresses.release(END - distance * MIB), Some(16 * MIB));
    }
    // Both chunks have a hole of 16 MiB: the newer serves.
    assert_eq!(request(&mut addresses, 10), 640);
    // It has 6 MiB left, which are too few.
    assert_eq!(request(&mut addresses, 8), 608);
    assert_eq!(request(&mut addresses, 6), 640 - 10);
}

#[test]
fn chunk_without_pieces_is_given_back() {
    let mut addresses = warm();
    assert_eq!([32; 3].map(|mib| request(&mut addresses, mib)), [608, 640, 672]);
    for distance in [608, 640] {
        assert_eq!(addresses.release(END - distance * MIB), Some(CHUNK));
    }
    // 64 MiB of addresses are free between the chunks. Chunks take them from above.
    assert_eq!(request(&mut addresses, 20), 608);
    assert_eq!(request(&mut addresses, 34), 672 + 64);
    assert_eq!(request(&mut addresses, 32), 640);
}

#[test]
fn release_knows_only_pieces() {
    let mut addresses = warm();
    let address = END - 544 * MIB;
    assert_eq!(addresses.piece(address + 5), Some((address, CHUNK)));
    assert_eq!(addresses.piece(address - 1), Some((address - CHUNK, CHUNK)));
    assert_eq!(addresses.release(address + PIECE), None);
    assert_eq!(addresses.release(address), Some(CHUNK));
    assert_eq!(addresses.release(address), None);
    assert_eq!(addresses.piece(address), None);
}

#[test]
fn request_beyond_the_addresses_fails() {
    let mut addresses = Addresses::new(FIRST, END);
    assert_eq!(addresses.request(512 << 30), None);
    assert_eq!(addresses.request(u64::MAX / PIECE * PIECE), None);
    assert_eq!(request(&mut addresses, 32), 512);
}

#[test]
fn gaps_join_when_everything_is_released() {
    let mut addresses = Addresses::new(FIRST, END);
    let sizes = [2, 20, 34, 450, 2, 1024, 66, 6];
    let pieces: Vec<u64> = sizes.iter().filter_map(|mib| addresses.request(mib * MIB)).collect();
    assert_eq!(pieces.len(), sizes.len());
    for piece in pieces {
        assert!(addresses.release(piece).is_some());
    }
    // The context keeps 8 MiB, and code 2 MiB behind them and 26 MiB at 480 MiB.
    assert_eq!(addresses.pieces.len(), 3);
    let gaps: Vec<_> = addresses.gaps.iter().map(|(&at, &n)| ((END - at) / MIB, n / MIB)).collect();
    assert_eq!(gaps, [(512 << 10, (512 << 10) - 480), (448, 416)]);
}

#[test]
fn reservations_use_addresses_again() {
    let mut ranges = Reservations::new(0x6000_0000_0000, 0x6800_0000_0000);
    let first = ranges.reserve(90 << 30, 0).unwrap();
    let second = ranges.reserve(5, 0).unwrap();
    assert_eq!(first, 0x6000_0000_0000);
    assert_eq!(second, first + (91 << 30));
    assert!(ranges.contains(second, PIECE));
    assert!(!ranges.contains(second, PIECE + 1));
    assert!(!ranges.release(first + PIECE));
    assert!(ranges.release(first));
    assert!(!ranges.contains(first, 1));
    // The freed range has room for 90 GiB, not for 91.
    assert_eq!(ranges.reserve(91 << 30, 0), Some(second + PIECE + SPACE));
    assert_eq!(ranges.reserve(90 << 30, 0), Some(first));
    assert_eq!(ranges.reserve(8 << 40, 0), None);
    // A range at a multiple of 1 TiB leaves the addresses before it free.
    let aligned = ranges.reserve(PIECE, 1 << 40).unwrap();
    assert_eq!(aligned, 0x6100_0000_0000);
    assert!(ranges.reserve(PIECE, 0).unwrap() < aligned);
}
