//! Releases of PyTorch, and which rules of the allocator each has.

use std::fmt;

/// A release of PyTorch 2: the number after `2.`. It decides between rules that changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release(pub u32);

impl Release {
    /// The newest release that the model was compared with.
    pub const LATEST: Self = Self(15);

    /// The release of a text such as `2.9.1+cu128`; `None` for what is no version of PyTorch 2.
    pub fn parse(text: &str) -> Option<Self> {
        let minor = text.trim().strip_prefix("2.")?;
        let end = minor.find(|c: char| !c.is_ascii_digit()).unwrap_or(minor.len());
        minor[..end].parse().ok().map(Self)
    }

    /// Whether the allocators of two releases behave alike.
    pub fn allocates_like(self, other: Self) -> bool {
        let rules = |release: Self| {
            [
                release.expands_private_pools(),
                release.tries_pools_before_flush(),
                release.takes_expandable_help(),
                release.prefers_older_segments(),
                release.counts_parts_as_new(),
                release.flushes_for_pools(),
                release.returns_ended_pools(),
            ]
        };
        rules(self) == rules(other)
    }

    /// Whether `expandable_segments` holds for private pools.
    pub(crate) fn expands_private_pools(self) -> bool {
        self >= Self(5)
    }

    /// Whether pools with `use_on_oom` are tried before cached memory is returned.
    pub(crate) fn tries_pools_before_flush(self) -> bool {
        self >= Self(11)
    }

    /// Whether free blocks of expandable segments may serve the default pool as well.
    pub(crate) fn takes_expandable_help(self) -> bool {
        self < Self(10)
    }

    /// Whether the oldest of several segments with equal free blocks serves a request. Before, the
    /// one with the lowest address does.
    pub(crate) fn prefers_older_segments(self) -> bool {
        self >= Self(12)
    }

    /// Whether a block that is split off counts as a segment that is taken now, by the thread that
    /// asks: each thread counts its own. The model has one thread.
    pub(crate) fn counts_parts_as_new(self) -> bool {
        self == Self(12)
    }

    /// Whether a request of a private pool returns cached memory, too, unless a graph is captured.
    pub(crate) fn flushes_for_pools(self) -> bool {
        self >= Self(13)
    }

    /// Whether the bytes of a fraction of the device are rounded. Before, they are cut: 2.11 cuts,
    /// 2.14 rounds.
    pub(crate) fn rounds_fractions(self) -> bool {
        self >= Self(12)
    }

    /// Whether the end of a `torch.cuda.MemPool` returns its memory at once. Before, nothing ever
    /// returns it.
    pub(crate) fn returns_ended_pools(self) -> bool {
        self >= Self(6)
    }

    /// Whether `>` in `roundup_power2_divisions` also replaces the value of the last size.
    pub(crate) fn overwrites_last(self) -> bool {
        self <= Self(9)
    }
}

impl Default for Release {
    fn default() -> Self {
        Self::LATEST
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "2.{}", self.0)
    }
}
