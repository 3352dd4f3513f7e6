//! The line that a finding is about, with its source and what it allocates.

use super::FindingPlace;
use crate::frames::FrameRecord;
use crate::shapes::BlockShapes;
use crate::target::Target;
use crate::text::label_of;
use vramscope_inference::{Spot, SpotWhat};
use vramscope_trace::Block;
use vramscope_units::{Bytes, grouped};

/// Sizes of requests are rounded up to this many bytes: `kMinBlockSize` of `CUDACachingAllocator`.
const ROUNDING: u64 = 512;

impl FindingPlace {
    /// The place of which the call site alone is known.
    pub(super) fn of_site(site: String) -> Self {
        Self {
            site,
            note: String::new(),
            file: String::new(),
            line: 0,
            source: None,
            what: String::new(),
        }
    }
}

/// The place of a finding.
pub(super) fn of_spot(target: Target<'_>, spot: Spot) -> FindingPlace {
    let snapshot = target.snapshot();
    let file = snapshot.text(spot.frame.file).into_owned();
    let source = target.entry.sidecar().and_then(|sidecar| sidecar.source(&file, spot.frame.line));
    FindingPlace {
        site: label_of(snapshot, spot.frame),
        note: spot.note,
        source: source.map(str::to_owned),
        file,
        line: spot.frame.line,
        what: match spot.what {
            SpotWhat::Text(text) => text,
            SpotWhat::SameSize { requested, slot } => same_size(target, requested, slot),
        },
    }
}

/// The shape of blocks that are live at a slot and have the size of a request, and their number.
fn same_size(target: Target<'_>, requested: Bytes, slot: u32) -> String {
    let is_alike = |block: &Block| {
        block.is_live_at(slot) && block.bytes.0.next_multiple_of(ROUNDING) == requested.0
    };
    let blocks = target.trace().blocks.iter().zip(0..);
    let alike: Vec<u32> = blocks.filter(|(block, _)| is_alike(block)).map(|one| one.1).collect();
    let shape = BlockShapes::new(target).of_all(alike.iter().copied());
    let shape = shape.filter(|shape| shape.is_certain).map(|shape| shape.text);
    let count = match alike.len() {
        0 => None,
        1 => Some("1 block of this size is live".to_owned()),
        count => Some(format!("{} blocks of this size are live", grouped(count as u64))),
    };
    shape.into_iter().chain(count).collect::<Vec<_>>().join(", ")
}

/// The place of a finding across ranks: the innermost frame of the program.
pub(super) fn of_ranks(frames: &[FrameRecord<'_>]) -> Option<FindingPlace> {
    let frame = frames.iter().find(|frame| !frame.is_framework())?;
    Some(FindingPlace {
        file: frame.file.to_string(),
        line: frame.line,
        ..FindingPlace::of_site(frame.label())
    })
}
