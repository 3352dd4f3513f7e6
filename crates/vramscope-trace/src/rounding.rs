//! The settings of a file that decide the size of a block.

use crate::segments::SMALL_SIZE;
use vramscope_allocator::{DIVISION_INTERVALS, Settings};
use vramscope_snapshot::{Device, Snapshot};

/// The allocator settings that determine block sizes. Files from before PyTorch 2.3 do not have
/// them, and get the defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct Rounding {
    settings: Settings,
    /// Whether each block takes a whole segment: pinned host memory is never split.
    pub takes_whole_segments: bool,
    /// Bytes that the allocator adds to a request before it rounds.
    padding: u64,
}

impl Rounding {
    /// The settings of a snapshot, for one of its devices.
    pub fn of(snapshot: &Snapshot, device: &Device) -> Self {
        let mut settings = Settings::default();
        for (key, value) in &snapshot.settings {
            let Ok(value) = value.parse::<i64>() else { continue };
            if key == "max_split_size" {
                // -1 and the largest size both mean no limit.
                settings.max_split_size = u64::try_from(value).unwrap_or(u64::MAX);
            } else if let Some(power) = key.strip_prefix("roundup_power2_divisions.")
                && let Ok(power) = power.parse::<u64>()
                && power.is_power_of_two()
                && let Some(divisions) =
                    settings.roundup_power2_divisions.get_mut(power.ilog2() as usize)
            {
                *divisions = u64::try_from(value).unwrap_or(0);
            }
        }
        let takes_whole_segments = device.kind.is_host();
        let padding = if takes_whole_segments { 0 } else { snapshot.padding.0 };
        Self { settings, takes_whole_segments, padding }
    }

    /// The same settings, but for `roundup_power2_divisions`.
    #[must_use]
    pub fn without_divisions(&self) -> Self {
        let roundup_power2_divisions = [0; DIVISION_INTERVALS];
        let settings = Settings { roundup_power2_divisions, ..self.settings.clone() };
        Self { settings, ..*self }
    }

    /// Blocks of this many bytes or more are never split. `u64::MAX` means no limit.
    pub fn max_split_size(&self) -> u64 {
        self.settings.max_split_size
    }

    /// The block size for a request, in bytes. A block can be larger if the rest of the free block
    /// is not split off.
    pub fn round(&self, request: u64) -> u64 {
        if self.takes_whole_segments {
            return request;
        }
        self.settings.round(request.saturating_add(self.padding))
    }

    /// Whether `rest` bytes are split off a block of `size` bytes. The file says of each segment
    /// whether it is expandable, so the setting, which may have changed, does not count.
    pub fn splits(&self, size: u64, rest: u64, is_expandable: bool) -> bool {
        let to_the_last = size <= SMALL_SIZE || is_expandable;
        !self.takes_whole_segments && self.settings.splits(size, rest, to_the_last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_memory_is_neither_rounded_nor_split() {
        let device =
            Rounding { settings: Settings::default(), takes_whole_segments: false, padding: 0 };
        assert_eq!(device.round(8), 512);
        assert!(device.splits(512, 512, false));
        let host = Rounding { takes_whole_segments: true, ..device };
        assert_eq!(host.round(8), 8);
        assert!(!host.splits(512, 512, false));
    }

    #[test]
    fn padding_is_added_before_rounding() {
        let rounding =
            Rounding { settings: Settings::default(), takes_whole_segments: false, padding: 32 };
        assert_eq!([1, 480, 481, 512].map(|bytes| rounding.round(bytes)), [512, 512, 1024, 1024]);
        assert_eq!(rounding.round(4 << 20), (4 << 20) + 512);
    }

    #[test]
    fn expandable_segments_are_split_to_the_last_512_bytes() {
        let rounding =
            Rounding { settings: Settings::default(), takes_whole_segments: false, padding: 0 };
        assert!(rounding.splits(2 << 20, 512, true));
        assert!(!rounding.splits(2 << 20, 512, false));
    }
}
