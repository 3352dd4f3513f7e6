//! Requested sizes of pinned host memory.
//!
//! PyTorch's allocator of pinned memory rounds a request up to a power of two, unless it is above
//! `pinned_max_round_threshold`. Its trace has the rounded sizes
//! (`ATen/core/CachingHostAllocator.h`).

use crate::blocks::Block;
use rustc_hash::FxHashMap;
use vramscope_snapshot::{Device, Report, Snapshot, WarningKind};
use vramscope_units::Bytes;

/// Takes the requested sizes of blocks that are live at the end from the final segments. Warns
/// about blocks whose request may have been smaller than their size.
pub(crate) fn set_requests(
    snapshot: &Snapshot,
    device: &Device,
    blocks: &mut [Block],
    report: &mut Report,
) {
    let end = device.events.len() as u32 + 1;
    let at_end: FxHashMap<u64, (Bytes, Bytes)> = snapshot
        .segments_of(device)
        .iter()
        .flat_map(|segment| snapshot.blocks_of(segment))
        .filter(|block| block.state.is_active())
        .map(|block| (block.address.0, (block.requested_size, block.size)))
        .collect();
    let mut unknown = 0;
    for block in blocks {
        let live = at_end.get(&block.address.0).filter(|_| block.leaves == end);
        if let Some(&(requested, size)) = live
            && requested < size
        {
            block.bytes = requested;
        } else if block.bytes.0.is_power_of_two() {
            unknown += 1;
        }
    }
    if unknown > 0 {
        report.warn_many(WarningKind::HostRequests, None, unknown, || {
            "a size of pinned memory is a power of two, to which PyTorch rounds requests up: the \
             program may have requested less"
                .to_owned()
        });
    }
}
