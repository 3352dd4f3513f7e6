//! What is known of a request for pinned memory.
//!
//! A trace has the size of the block that served a request: the next power of two, or, where
//! requests keep their size, what an earlier request asked for. So the request is one size where
//! the block is new and not rounded, else a range within the two powers of two around it.

use vramscope_allocator::HostSettings;

/// A request, which had at least `low` and at most `high` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) low: u64,
    pub(super) high: u64,
    pub(super) pool: u32,
}

/// The block that settings give to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    /// A replay of the largest request gives the block of all of them.
    One,
    /// The block is never cached, so two replays bound what is pinned.
    Bounded {
        /// The request with the smallest block.
        low: u64,
        /// The request with the largest block.
        high: u64,
    },
    /// Which free block serves it depends on the request.
    Unknown,
}

/// The power of two whose list has blocks of this size.
fn list_of(size: u64) -> u64 {
    size.checked_next_power_of_two().unwrap_or(u64::MAX)
}

impl Asked {
    /// The request that a block of `size` bytes served. `requested` is what the file says, which is
    /// `size` where it does not know. A new block was pinned for it.
    pub(super) fn of(
        size: u64,
        requested: u64,
        is_new: bool,
        pool: u32,
        recorded: &HostSettings,
    ) -> Self {
        let rounded = recorded.largest_rounded();
        let below = list_of(size) / 2;
        // With the exact size of a power of two, it may be from rounding if such requests are.
        let is_known = is_new && !(size.is_power_of_two() && below < rounded);
        if requested < size || is_known {
            return Self { low: requested, high: requested, pool };
        }
        Self { low: below + 1, high: size, pool }
    }

    /// The block under other settings than the recorded ones.
    pub(super) fn size(&self, recorded: &HostSettings, settings: &HostSettings) -> Size {
        let Self { low, high, .. } = *self;
        let (rounded, cached) = (settings.largest_rounded(), settings.max_cached_size);
        if low == high || high <= rounded {
            return Size::One;
        }
        let list = list_of(high);
        let keeps_blocks = cached == recorded.max_cached_size
            || (list <= cached && list <= recorded.max_cached_size);
        // Then all of the list happens as recorded: of the free blocks that are large enough for
        // the recorded block, the newest is that block.
        if low > rounded && low > recorded.largest_rounded() && keeps_blocks {
            return Size::One;
        }
        let smallest = low.max(rounded.saturating_add(1));
        if smallest <= cached {
            return Size::Unknown;
        }
        Size::Bounded { low: smallest, high: if low <= rounded { low } else { high } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const DEFAULT: HostSettings =
        HostSettings { max_round_threshold: u64::MAX, max_cached_size: u64::MAX };
    const EXACT: HostSettings = HostSettings { max_round_threshold: 0, max_cached_size: u64::MAX };

    fn cached(mib: u64) -> HostSettings {
        HostSettings { max_cached_size: mib * MIB, ..DEFAULT }
    }

    fn range(asked: Asked) -> [u64; 2] {
        [asked.low, asked.high]
    }

    #[test]
    fn requests_are_known_where_new_blocks_keep_their_size() {
        let of = |size, is_new, settings: &HostSettings| {
            range(Asked::of(size, size, is_new, 0, settings))
        };
        assert_eq!(of(4 * MIB, true, &DEFAULT), [2 * MIB + 1, 4 * MIB]);
        assert_eq!(of(4 * MIB, true, &EXACT), [4 * MIB; 2]);
        assert_eq!(of(3 * MIB, true, &EXACT), [3 * MIB; 2]);
        assert_eq!(of(3 * MIB, false, &EXACT), [2 * MIB + 1, 3 * MIB], "it served a smaller one");
        let live = Asked::of(4 * MIB, 3 * MIB, true, 0, &DEFAULT);
        assert_eq!(range(live), [3 * MIB; 2], "the file says it");
        assert_eq!(of(1, true, &DEFAULT), [1; 2]);
    }

    #[test]
    fn rounded_sizes_do_not_depend_on_the_request() {
        let asked = Asked { low: 4 * MIB + 1, high: 6 * MIB, pool: 0 };
        assert_eq!(asked.size(&EXACT, &DEFAULT), Size::One);
        let below = HostSettings { max_round_threshold: 4 * MIB, ..DEFAULT };
        assert_eq!(asked.size(&EXACT, &below), Size::One, "it is as recorded");
        let within = HostSettings { max_round_threshold: 5 * MIB, ..DEFAULT };
        assert_eq!(asked.size(&EXACT, &within), Size::Unknown);
        assert_eq!(asked.size(&DEFAULT, &EXACT), Size::Unknown);
    }

    #[test]
    fn blocks_that_are_never_cached_bound_the_sum() {
        let asked = Asked { low: 4 * MIB + 1, high: 8 * MIB, pool: 0 };
        let all = Size::Bounded { low: 4 * MIB + 1, high: 8 * MIB };
        assert_eq!(asked.size(&DEFAULT, &cached(4)), all);
        // A request of 5 MiB is rounded to 8 MiB, one of 6 MiB is not. Neither is cached.
        let some = Size::Bounded { low: 5 * MIB + 1, high: 4 * MIB + 1 };
        assert_eq!(asked.size(&DEFAULT, &cached(5)), some);
        assert_eq!(asked.size(&DEFAULT, &cached(8)), Size::One);
        let both = HostSettings { max_round_threshold: 4 * MIB, max_cached_size: 5 * MIB };
        assert_eq!(asked.size(&DEFAULT, &both), Size::Unknown, "5 MiB are cached, 6 MiB are not");
    }
}
