//! The driver below the allocator: an address range with a limit.

use crate::settings::SMALL_SEGMENT;
use std::collections::BTreeMap;

/// First address of ordinary segments. Both directions have room for more bytes than a program can
/// ever allocate.
const FIRST_ADDRESS: u64 = 1 << 62;

/// First address of the address ranges of expandable segments.
const FIRST_RANGE: u64 = 1 << 50;

/// Where address ranges of expandable segments end.
const LAST_RANGE: u64 = 1 << 61;

/// A limit above every device, so that sums of sizes cannot overflow.
const MAX_AVAILABLE: u64 = 1 << 48;

/// The device that memory comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Device {
    /// The bytes that PyTorch can have on this device. `u64::MAX` means no limit. It is less than
    /// `total`: the CUDA context, other libraries and other programs need memory too.
    pub available: u64,
    /// The size of the device, in bytes (`totalGlobalMem`). An expandable segment has an address
    /// range of 9/8 of it.
    pub total: u64,
    /// `allowed_memory_maximum`: the bytes that `set_per_process_memory_fraction` allows. `None`
    /// when the program did not call it.
    pub allowed: Option<u64>,
    /// Where the driver places segments.
    pub order: AddressOrder,
}

impl Default for Device {
    fn default() -> Self {
        Self { available: u64::MAX, total: 1 << 40, allowed: None, order: AddressOrder::default() }
    }
}

/// The order in which a driver hands out addresses. Free blocks of one size are used in address
/// order, so it can decide which block serves a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AddressOrder {
    /// The lowest free addresses first.
    #[default]
    Ascending,
    /// Every new segment lies below all others.
    Descending,
    /// New segments lie above or below the others, by a fixed pattern.
    Mixed,
}

/// Hands out addresses and counts bytes.
#[derive(Clone, Debug)]
pub(crate) struct Driver {
    available: u64,
    used: u64,
    order: AddressOrder,
    /// Free address ranges below `top`: start and size.
    holes: BTreeMap<u64, u64>,
    top: u64,
    bottom: u64,
    placed: u64,
    next_range: u64,
    /// Address ranges that were given back.
    free_ranges: Vec<u64>,
    /// Bytes of an address range, before it is rounded to pages.
    address_space: u64,
    /// The distance of address ranges. One with pages of either pool fits.
    range_step: u64,
    /// The address of the next ordinary segment, when it is known, and the bytes that it must have.
    pub(crate) next_segment: Option<(u64, Option<u64>)>,
}

impl Driver {
    /// A driver for a device. `reserve` is the address range of an expandable segment, in bytes;
    /// `None` for 9/8 of the device, which is also the most.
    pub(crate) fn new(device: &Device, large_page: u64, reserve: Option<u64>) -> Self {
        let total = device.total.clamp(large_page.min(MAX_AVAILABLE), MAX_AVAILABLE);
        let whole = total + total / 8;
        let space = reserve.map_or(whole, |reserve| reserve.min(whole));
        Self {
            available: device.available.min(MAX_AVAILABLE),
            used: 0,
            order: device.order,
            holes: BTreeMap::new(),
            top: FIRST_ADDRESS,
            bottom: FIRST_ADDRESS,
            placed: 0,
            next_range: FIRST_RANGE,
            free_ranges: Vec::new(),
            address_space: space,
            range_step: space
                .next_multiple_of(large_page)
                .max(space.next_multiple_of(SMALL_SEGMENT)),
            next_segment: None,
        }
    }

    /// The address range of an expandable segment with this page, in bytes.
    pub(crate) fn range_size(&self, page: u64) -> u64 {
        self.address_space.next_multiple_of(page)
    }

    /// Sets the limit.
    pub(crate) fn set_available(&mut self, bytes: u64) {
        self.available = bytes.min(MAX_AVAILABLE);
    }

    /// Takes memory of expandable segments. Returns whether there was enough.
    pub(crate) fn take(&mut self, bytes: u64) -> bool {
        if self.used.saturating_add(bytes) > self.available {
            return false;
        }
        self.used += bytes;
        true
    }

    /// Counts memory that was there before, whatever the limit.
    pub(crate) fn count(&mut self, bytes: u64) {
        self.used = self.used.saturating_add(bytes);
    }

    /// Gives back memory of expandable segments.
    pub(crate) fn give(&mut self, bytes: u64) {
        self.used = self.used.saturating_sub(bytes);
    }

    /// Takes memory for an ordinary segment (`cudaMalloc`). `None` when there is not enough.
    pub(crate) fn allocate(&mut self, bytes: u64) -> Option<u64> {
        if !self.take(bytes) {
            return None;
        }
        if let Some((address, _)) =
            self.next_segment.take().filter(|(_, size)| size.is_none_or(|size| size == bytes))
        {
            self.cut_holes(address, address.saturating_add(bytes));
            return Some(address);
        }
        if self.order == AddressOrder::Ascending
            && let Some((&start, &size)) = self.holes.iter().find(|(_, size)| **size >= bytes)
        {
            self.holes.remove(&start);
            if size > bytes {
                self.holes.insert(start + bytes, size - bytes);
            }
            return Some(start);
        }
        self.placed += 1;
        // A multiplicative hash of the count: reproducible, and without a pattern that programs
        // have.
        let is_below = match self.order {
            AddressOrder::Ascending => false,
            AddressOrder::Descending => true,
            AddressOrder::Mixed => self.placed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 63 == 1,
        };
        if is_below {
            self.bottom -= bytes;
            return Some(self.bottom);
        }
        let address = self.top;
        self.top += bytes;
        Some(address)
    }

    /// Returns an ordinary segment (`cudaFree`).
    pub(crate) fn free(&mut self, address: u64, bytes: u64) {
        self.give(bytes);
        if self.order != AddressOrder::Ascending {
            return;
        }
        let (mut start, mut size) = (address, bytes);
        if let Some((&before, &length)) = self.holes.range(..address).next_back()
            && before + length == address
        {
            (start, size) = (before, length + size);
        }
        if let Some(length) = self.holes.remove(&(address + bytes)) {
            size += length;
        }
        self.holes.insert(start, size);
    }

    /// Removes an address range from the holes. The recording says that a segment lies there.
    fn cut_holes(&mut self, start: u64, end: u64) {
        while let Some((&hole, &size)) = self.holes.range(..end).next_back()
            && hole + size > start
        {
            self.holes.remove(&hole);
            if hole + size > end {
                self.holes.insert(end, hole + size - end);
            }
            if hole < start {
                self.holes.insert(hole, start - hole);
            }
        }
    }

    /// The start of a new address range for an expandable segment (`cuMemAddressReserve`).
    pub(crate) fn reserve_range(&mut self) -> u64 {
        let end = self.next_range.saturating_add(self.range_step);
        if end < LAST_RANGE {
            return std::mem::replace(&mut self.next_range, end);
        }
        // Only a program that gives back millions of ranges comes here.
        self.free_ranges.pop().unwrap_or(self.next_range)
    }

    /// Gives back an address range (`cuMemAddressFree`). One that the allocator started with is not
    /// used again, because its end is unknown.
    pub(crate) fn free_range(&mut self, start: u64) {
        if (FIRST_RANGE..self.next_range).contains(&start)
            && (start - FIRST_RANGE).is_multiple_of(self.range_step)
        {
            self.free_ranges.push(start);
        }
    }
}
