//! What Ascend's allocator does otherwise (`NPUCachingAllocator.cpp` of `torch_npu`).
//!
//! It asks the setting whether a rest is split off, not the block. So with expandable segments,
//! the blocks of ordinary segments too are split to the last 512 bytes. And it aligns large blocks
//! then, which leaves small free pieces in front of them. The file has no settings. The setting is
//! on from the first mapped range or aligned block on.

use super::Replay;
use crate::segments::Segments;
use vramscope_snapshot::{Action, Device, DeviceKind};

/// Blocks of at least this many bytes are aligned (`kRoundLarge`).
const MIN_ALIGNED: u64 = 2 << 20;

/// The alignment, in bytes. `base_addr_aligned_kb` can lower it, and is 16 unless set.
const MAX_ALIGNMENT: u64 = 16 << 10;

/// Whether `expandable_segments` is on, as far as the trace shows.
#[derive(Default)]
pub(super) struct Npu {
    is_npu: bool,
    is_expandable: bool,
}

impl Npu {
    pub(super) fn of(device: &Device) -> Self {
        Self { is_npu: device.kind == DeviceKind::Npu, is_expandable: false }
    }

    /// Whether all blocks are split to the last 512 bytes.
    pub(super) fn splits_all(&self) -> bool {
        self.is_npu && self.is_expandable
    }

    /// Learns the setting from the segments before the window.
    pub(super) fn start(&mut self, segments: &Segments) {
        let before = segments.spans.iter().take_while(|span| span.enters == 0);
        self.is_expandable = before.into_iter().any(|span| span.is_expandable);
    }

    /// Learns the setting from an event.
    pub(super) fn observe(&mut self, action: Action) {
        self.is_expandable |= action == Action::SEGMENT_MAP;
    }

    /// The largest piece that is left free in front of a block of `size` bytes, in bytes.
    fn max_piece(&self, address: u64, size: u64) -> u64 {
        let alignment = MAX_ALIGNMENT.min(1 << address.trailing_zeros().min(63));
        if self.is_npu && size >= MIN_ALIGNED { alignment - 1 } else { 0 }
    }
}

impl Replay<'_> {
    /// Makes a free extent start at `address`, where a block of `size` bytes enters that the
    /// allocator has aligned.
    pub(super) fn cut_aligned(&mut self, address: u64, size: u64) {
        let max = self.npu.max_piece(address, size);
        if max > 0 && self.arena.get(address).is_none() {
            self.npu.is_expandable |= self.arena.cut_free(address, max);
        }
    }
}
