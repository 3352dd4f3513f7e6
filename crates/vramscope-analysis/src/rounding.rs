//! Request rounding, as PyTorch's allocator does it: `round_size` and
//! `roundup_power2_next_division` in `c10/cuda/CUDACachingAllocator.cpp`.

use crate::segments::SMALL_SIZE;
use vramscope_snapshot::{Device, DeviceKind, Snapshot};

/// Block sizes are multiples of this many bytes (`kMinBlockSize`).
pub(crate) const MIN_BLOCK_SIZE: u64 = 512;

/// The allocator settings that determine block sizes. Files from before PyTorch 2.3 do not have
/// them, and get the defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rounding {
    /// Blocks of this many bytes or more are never split. `u64::MAX` means no limit.
    pub(crate) max_split_size: u64,
    /// Number of rounding steps between a power of two and the next, starting at 1 MiB. 0 and 1
    /// mean no steps.
    divisions: [u64; 16],
    /// Whether each block takes a whole segment: pinned host memory is never split.
    pub(crate) takes_whole_segments: bool,
}

impl Rounding {
    pub(crate) fn of(snapshot: &Snapshot, device: &Device) -> Self {
        let mut rounding = Self {
            max_split_size: u64::MAX,
            divisions: [0; 16],
            takes_whole_segments: device.kind == DeviceKind::Host,
        };
        for (key, value) in &snapshot.settings {
            let Ok(value) = value.parse::<i64>() else { continue };
            if key == "max_split_size" {
                // -1 and the largest size both mean no limit.
                rounding.max_split_size = u64::try_from(value).unwrap_or(u64::MAX);
            } else if let Some(power) = key.strip_prefix("roundup_power2_divisions.")
                && let Ok(power) = power.parse::<u64>()
                && power.is_power_of_two()
                && let Some(divisions) = rounding.divisions.get_mut(power.ilog2() as usize)
            {
                *divisions = u64::try_from(value).unwrap_or(0);
            }
        }
        rounding
    }

    /// The same settings, but for `roundup_power2_divisions`.
    pub(crate) fn without_divisions(&self) -> Self {
        Self { divisions: [0; 16], ..self.clone() }
    }

    /// The block size for a request, in bytes. A block can be larger if the rest of the free block
    /// is not split off.
    pub(crate) fn round(&self, request: u64) -> u64 {
        if self.takes_whole_segments {
            return request;
        }
        if request < MIN_BLOCK_SIZE {
            return MIN_BLOCK_SIZE;
        }
        let interval = request.ilog2().saturating_sub(SMALL_SIZE.ilog2()).min(15);
        let divisions = self.divisions[interval as usize];
        let stepped = if divisions > 1 && request > MIN_BLOCK_SIZE.saturating_mul(divisions) {
            next_division(request, divisions)
        } else {
            request
        };
        stepped.checked_next_multiple_of(MIN_BLOCK_SIZE).unwrap_or(stepped)
    }
}

/// Rounds `size` up to the next of the `divisions` steps between two powers of two.
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
    fn round_matches_pytorch() {
        let plain =
            Rounding { max_split_size: u64::MAX, divisions: [0; 16], takes_whole_segments: false };
        for (request, block) in
            [(0, 512), (1, 512), (512, 512), (513, 1024), (1_000_000, 1_000_448)]
        {
            assert_eq!(plain.round(request), block);
        }
        // The example in PyTorch's notes: 1200 bytes with 4 divisions lie between 1024 and 2048 and
        // become 1280. `round` gives 1536: 1200 is below the minimum size for divisions, and block
        // sizes are multiples of 512.
        let four = Rounding { divisions: [4; 16], ..plain.clone() };
        assert_eq!(next_division(1200, 4), 1280);
        assert_eq!(four.round(1200), 1536);
        assert_eq!(four.round(5 << 20), 5 << 20);
        assert_eq!(four.round((5 << 20) + 1), 6 << 20);
        assert_eq!(four.round(u64::MAX), u64::MAX);
        let host = Rounding { takes_whole_segments: true, ..four };
        assert_eq!(host.round(8), 8);
    }
}
