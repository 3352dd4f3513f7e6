//! Blocks summed by call stack.

use super::disambiguate;
use super::shares::fraction;
use crate::messages::views::StackShareRow;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use vramscope_layout::site_color;
use vramscope_report::{Quantity, Target, row_site};
use vramscope_snapshot::StackId;
use vramscope_trace::{NoStack, Sites, Trace};
use vramscope_units::Bytes;

/// The blocks of one call stack.
pub(super) struct StackShare {
    pub(super) stack: StackId,
    /// Whether the stack is that of the frees, because the allocs are not in the trace.
    pub(super) is_of_free: bool,
    /// Why there is no stack.
    no_stack: Option<NoStack>,
    pub(super) bytes: u64,
    pub(super) blocks: u32,
    /// Bytes of the blocks that are live after the slot of [`StackShares`].
    pub(super) live_bytes: u64,
    /// The index of the largest block.
    largest: u32,
}

/// Sums blocks by call stack.
pub(super) struct StackShares<'a> {
    trace: &'a Trace,
    sites: &'a Sites,
    /// [`StackShare::live_bytes`] counts blocks that are live after this slot.
    slot: u32,
    /// The index in `shares` of each stack, by whether it is that of a free, and of each reason for
    /// a missing one.
    indices: FxHashMap<(StackId, bool, Option<NoStack>), usize>,
    shares: Vec<StackShare>,
}

impl<'a> StackShares<'a> {
    /// No blocks yet.
    pub(super) fn new(at: Target<'a>, slot: u32) -> Self {
        let (trace, sites) = (at.trace(), &at.entry.sites);
        Self { trace, sites, slot, indices: FxHashMap::default(), shares: Vec::new() }
    }

    /// Adds a block.
    pub(super) fn add(&mut self, index: u32) {
        let block = &self.trace.blocks[index as usize];
        let (stack, is_of_free) = (self.sites.same_line(block.stack), block.has_stack_of_free());
        let no_stack = self.trace.no_stack(block);
        let next = self.shares.len();
        let at = *self.indices.entry((stack, is_of_free, no_stack)).or_insert(next);
        if at == next {
            self.shares.push(StackShare {
                stack,
                is_of_free,
                no_stack,
                bytes: 0,
                blocks: 0,
                live_bytes: 0,
                largest: index,
            });
        }
        let share = &mut self.shares[at];
        share.bytes = share.bytes.saturating_add(block.bytes.0);
        share.blocks += 1;
        if block.leaves > self.slot {
            share.live_bytes = share.live_bytes.saturating_add(block.bytes.0);
        }
        if block.bytes > self.trace.blocks[share.largest as usize].bytes {
            share.largest = index;
        }
    }

    /// The shares, the largest first.
    pub(super) fn finish(mut self) -> Vec<StackShare> {
        self.shares.sort_by_key(|s| (Reverse(s.bytes), s.stack, s.is_of_free, s.no_stack));
        self.shares
    }
}

/// The largest shares as rows, at most `max`. `whole` is the number of bytes of a full bar.
pub(super) fn share_rows(
    at: Target<'_>,
    shares: &[StackShare],
    max: usize,
    whole: u64,
    note: impl Fn(&StackShare) -> String,
) -> Vec<StackShareRow> {
    let row = |share: &StackShare| StackShareRow {
        site: row_site(at.entry, share.stack, share.no_stack),
        terms: vec![format!("site:{}", row_site(at.entry, share.stack, share.no_stack))],
        via: String::new(),
        bytes: Quantity::bytes(Bytes(share.bytes)),
        blocks: Quantity::count(share.blocks.into(), "block", "blocks"),
        shape: String::new(),
        share: fraction(share.bytes, whole),
        color: site_color(&at.entry.sites, share.stack).word(),
        block: share.largest,
        note: note(share),
    };
    let listed = &shares[..max.min(shares.len())];
    let mut rows: Vec<_> = listed.iter().map(row).collect();
    let stacks: Vec<_> = listed.iter().map(|share| share.stack).collect();
    disambiguate::add_vias(at.snapshot(), &mut rows, &stacks);
    rows
}
