//! The settings of `PYTORCH_CUDA_ALLOC_CONF` that decide how much memory is reserved, and the
//! rounding of requests.

use crate::version::Release;
use std::fmt;

/// One MiB.
pub(crate) const MIB: u64 = 1 << 20;

/// Block sizes are multiples of this many bytes (`kMinBlockSize`).
pub const MIN_BLOCK_SIZE: u64 = 512;

/// The largest block of the small pool, in bytes (`kSmallSize`).
pub const SMALL_SIZE: u64 = MIB;

/// The size of a segment of the small pool, in bytes (`kSmallBuffer`). Also the page of its
/// expandable segments.
pub const SMALL_SEGMENT: u64 = 2 * MIB;

/// The default of [`Settings::large_segment_size`], in bytes (`kLargeBuffer`).
pub const LARGE_SEGMENT: u64 = 20 * MIB;

/// Blocks of at least this many bytes get a segment of their own size (`kMinLargeAlloc`).
const MIN_OWN_SEGMENT: u64 = 10 * MIB;

/// Segments of the large pool are multiples of this many bytes (`kRoundLarge`).
const SEGMENT_STEP: u64 = 2 * MIB;

/// The number of intervals of `roundup_power2_divisions`: from below 2 MiB up to 32 GiB and more.
pub const DIVISION_INTERVALS: usize = 16;

/// Settings of the allocator. [`Settings::default`] has PyTorch's defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// `large_segment_size_mb` in bytes (PyTorch 2.11): the size of a segment for blocks of
    /// less than 10 MiB, and the page of the large pool's expandable segments. It is more than
    /// 10 MiB.
    pub large_segment_size: u64,
    /// `expandable_segments`: segments grow by pages instead of being allocated whole.
    pub expandable_segments: bool,
    /// `max_split_size_mb` in bytes: blocks of at least this size are not split. `u64::MAX` means
    /// no limit.
    pub max_split_size: u64,
    /// `max_non_split_rounding_mb` in bytes (PyTorch 2.6): how much larger than the request a block
    /// of at least `max_split_size` may be. Before 2.6 it is always 20 MiB.
    pub max_non_split_rounding_size: u64,
    /// `roundup_power2_divisions`: the number of steps between a power of two and the next, for
    /// each power from 1 MiB on. 0 and 1 mean no steps.
    pub roundup_power2_divisions: [u64; DIVISION_INTERVALS],
    /// `garbage_collection_threshold`: the part of [`Device::allowed`](crate::Device::allowed) from
    /// which old free segments are returned. 0 means never.
    pub garbage_collection_threshold: f64,
    /// `per_process_memory_fraction` (PyTorch 2.10): the part of the device that the process may
    /// reserve. It sets [`Device::allowed`](crate::Device::allowed) where nothing else does.
    pub per_process_memory_fraction: Option<f64>,
    /// `throw_on_cudamalloc_oom` (PyTorch 2.12): a request that would make the process reserve more
    /// than the whole device is refused before cached memory is returned.
    pub throw_on_cudamalloc_oom: bool,
    /// `expandable_segments_reserve` (PyTorch 2.15): the address range of an expandable segment.
    /// Without it, it is 9/8 as large as the device.
    pub expandable_segments_reserve: Option<Reserve>,
    /// The release of PyTorch, which decides between rules that changed.
    pub release: Release,
}

/// The address range of an expandable segment (`ExpandableSegmentReserveSpec`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reserve {
    /// A part of the device's memory.
    Fraction(f64),
    /// Gibibytes.
    GiB(f64),
}

impl Reserve {
    /// Reads `0.5` or `40G`; `None` for what PyTorch ignores.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let number = text.strip_suffix(['G', 'g']);
        let value: f64 = number.unwrap_or(text).parse().ok()?;
        let is_valid = value.is_finite() && value > 0.0;
        is_valid.then_some(if number.is_some() { Self::GiB(value) } else { Self::Fraction(value) })
    }

    /// Bytes, on a device with `total` bytes.
    pub(crate) fn bytes(self, total: u64) -> u64 {
        match self {
            Self::Fraction(part) => (part * total as f64) as u64,
            Self::GiB(count) => (count * (1u64 << 30) as f64) as u64,
        }
    }
}

impl fmt::Display for Reserve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fraction(part) => write!(f, "{part}"),
            Self::GiB(count) => write!(f, "{count}G"),
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            large_segment_size: LARGE_SEGMENT,
            expandable_segments: false,
            max_split_size: u64::MAX,
            max_non_split_rounding_size: LARGE_SEGMENT,
            roundup_power2_divisions: [0; DIVISION_INTERVALS],
            garbage_collection_threshold: 0.0,
            per_process_memory_fraction: None,
            throw_on_cudamalloc_oom: false,
            expandable_segments_reserve: None,
            release: Release::LATEST,
        }
    }
}

impl Settings {
    /// What `per_process_memory_fraction` allows on a device with `total` bytes
    /// (`setMemoryFraction`); `None` without one.
    pub fn allowed(&self, total: u64) -> Option<u64> {
        let bytes = self.per_process_memory_fraction? * total as f64;
        Some(if self.release.rounds_fractions() { bytes.round() as u64 } else { bytes as u64 })
    }

    /// The block size for a request, in bytes (`round_size`). A block can be larger when the rest
    /// of the free block is not split off.
    pub fn round(&self, request: u64) -> u64 {
        if request < MIN_BLOCK_SIZE {
            return MIN_BLOCK_SIZE;
        }
        let interval = request.ilog2().saturating_sub(SMALL_SIZE.ilog2()) as usize;
        let divisions = self.roundup_power2_divisions[interval.min(DIVISION_INTERVALS - 1)];
        if divisions > 1 && request > MIN_BLOCK_SIZE.saturating_mul(divisions) {
            // The step is a multiple of 512 bytes: the power of two below is at least 512 times the
            // number of divisions.
            return next_division(request, divisions);
        }
        request.checked_next_multiple_of(MIN_BLOCK_SIZE).unwrap_or(request)
    }

    /// The size of an ordinary segment for a block of `size` bytes (`get_allocation_size`).
    pub fn segment_size(&self, size: u64) -> u64 {
        if size <= SMALL_SIZE {
            SMALL_SEGMENT
        } else if size < MIN_OWN_SEGMENT {
            self.large_segment_size
        } else {
            size.checked_next_multiple_of(SEGMENT_STEP).unwrap_or(size)
        }
    }

    /// The page of an expandable segment, in bytes.
    pub fn page(&self, is_small: bool) -> u64 {
        if is_small { SMALL_SEGMENT } else { self.large_segment_size }
    }

    /// Whether the rest of a free block is split off a block of `size` bytes (`should_split`).
    pub fn splits(&self, size: u64, rest: u64, is_small: bool) -> bool {
        if is_small || self.expandable_segments {
            rest >= MIN_BLOCK_SIZE
        } else {
            size < self.max_split_size && rest > SMALL_SIZE
        }
    }

    /// Whether a free block of `available` bytes may serve a block of `size` bytes, as far as
    /// `max_split_size` decides it.
    pub(crate) fn may_serve(&self, size: u64, available: u64) -> bool {
        if size < self.max_split_size {
            available < self.max_split_size
        } else {
            available < size.saturating_add(self.max_non_split_rounding_size)
        }
    }
}

/// Rounds `size` up to the next of the `divisions` steps between two powers of two
/// (`roundup_power2_next_division`).
fn next_division(size: u64, divisions: u64) -> u64 {
    if size.is_power_of_two() {
        return size;
    }
    let floor = 1u64 << size.ilog2();
    let step = floor >> divisions.ilog2();
    if step == 0 {
        floor.saturating_mul(2)
    } else {
        size.checked_next_multiple_of(step).unwrap_or(size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_rounded_as_by_pytorch() {
        let plain = Settings::default();
        for (request, block) in
            [(0, 512), (1, 512), (512, 512), (513, 1024), (1_000_000, 1_000_448)]
        {
            assert_eq!(plain.round(request), block);
        }
        // The example in PyTorch's notes: 1200 bytes with 4 divisions lie between 1024 and 2048 and
        // become 1280. `round` gives 1536: 1200 is below the minimum size for divisions, and block
        // sizes are multiples of 512.
        let four = Settings { roundup_power2_divisions: [4; 16], ..plain };
        assert_eq!(next_division(1200, 4), 1280);
        assert_eq!(four.round(1200), 1536);
        assert_eq!(four.round(5 << 20), 5 << 20);
        assert_eq!(four.round((5 << 20) + 1), 6 << 20);
        assert_eq!(four.round(u64::MAX), u64::MAX);
    }

    #[test]
    fn divisions_differ_by_interval() {
        let mut settings = Settings::default();
        settings.roundup_power2_divisions[0] = 8;
        settings.roundup_power2_divisions[3] = 2;
        assert_eq!(settings.round(1_000_000), 1 << 20);
        assert_eq!(settings.round(5 << 20), 5 << 20);
        assert_eq!(settings.round((9 << 20) + 1), 12 << 20);
    }

    #[test]
    fn segments_have_three_kinds_of_sizes() {
        let plain = Settings::default();
        for (size, segment) in
            [(512, 2), (MIB, 2), (MIB + 512, 20), (10 * MIB, 10), (10 * MIB + 512, 12)]
        {
            assert_eq!(plain.segment_size(size), segment * MIB);
        }
        let other = Settings { large_segment_size: 40 * MIB, ..plain };
        assert_eq!(other.segment_size(2 * MIB), 40 * MIB);
        assert_eq!(other.segment_size(12 * MIB), 12 * MIB);
    }
}
