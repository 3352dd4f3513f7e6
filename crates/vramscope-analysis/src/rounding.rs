//! How PyTorch's allocator rounds a request: `round_size` and `roundup_power2_next_division` in
//! `c10/cuda/CUDACachingAllocator.cpp`.

use crate::segments::SMALL_SIZE;
use vramscope_snapshot::Snapshot;

/// All blocks are multiples of this (`kMinBlockSize`).
pub(crate) const MIN_BLOCK_SIZE: u64 = 512;

/// The settings that decide block sizes. Before PyTorch 2.3 the file does not hold them: then they
/// are the defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rounding {
    /// Blocks of this size and more are never split; `u64::MAX` when there is no limit.
    pub(crate) max_split_size: u64,
    /// Steps for a power of two, by its exponent from 1 MiB on; 0 or 1 for none.
    divisions: [u64; 16],
}

impl Rounding {
    pub(crate) fn new(snapshot: &Snapshot) -> Self {
        let mut rounding = Self { max_split_size: u64::MAX, divisions: [0; 16] };
        for (key, value) in &snapshot.settings {
            let Ok(value) = value.parse::<i64>() else { continue };
            if key == "max_split_size" {
                // -1 and the largest size both mean that there is no limit.
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

    /// The block size for a request, before anything is left unsplit.
    pub(crate) fn round(&self, request: u64) -> u64 {
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
    fn requests_are_rounded_as_pytorch_rounds_them() {
        let plain = Rounding { max_split_size: u64::MAX, divisions: [0; 16] };
        for (request, block) in
            [(0, 512), (1, 512), (512, 512), (513, 1024), (1_000_000, 1_000_448)]
        {
            assert_eq!(plain.round(request), block);
        }
        // The example in PyTorch's notes: 1200 with 4 divisions lies between 1024 and 2048 and
        // becomes 1280; blocks are then multiples of 512, and so few bytes are below the least size
        // for divisions.
        let four = Rounding { max_split_size: u64::MAX, divisions: [4; 16] };
        assert_eq!(next_division(1200, 4), 1280);
        assert_eq!(four.round(1200), 1536);
        assert_eq!(four.round(5 << 20), 5 << 20);
        assert_eq!(four.round((5 << 20) + 1), 6 << 20);
        assert_eq!(four.round(u64::MAX), u64::MAX);
    }
}
