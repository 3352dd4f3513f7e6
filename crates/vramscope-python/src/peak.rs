//! The rows of a peak that the report of the program does not have.

use serde::Serialize;
use std::collections::BTreeMap;
pub(crate) use vramscope_report::peak::peak;
use vramscope_report::peak::{BandKind, FrameShareRecord};
use vramscope_report::{FrameRecord, Target};

/// The memory of a line of the user's program.
#[derive(Serialize)]
pub(crate) struct Line {
    /// The line: `model.py:212 forward`.
    label: String,
    #[serde(flatten)]
    frame: FrameRecord<'static>,
    /// Bytes of all call stacks with the line.
    bytes: u64,
    /// Bytes of the stacks whose innermost own frame this is.
    own_bytes: u64,
    /// The blocks of these stacks.
    own_blocks: u32,
}

/// The lines of the user's program in the call stacks at a band's peak, most bytes first.
pub(crate) fn lines(target: Target<'_>, band: BandKind) -> Vec<Line> {
    let report = peak(target, band, None);
    let mut own: BTreeMap<&FrameRecord<'_>, (u64, u32)> = BTreeMap::new();
    for stack in &report.stacks {
        if let Some(frame) = stack.frames.iter().find(|frame| !frame.is_framework()) {
            let sum = own.entry(frame).or_default();
            *sum = (sum.0 + stack.bytes, sum.1 + stack.blocks);
        }
    }
    let line = |share: &FrameShareRecord<'_>| {
        let (own_bytes, own_blocks) = own.get(&share.frame).copied().unwrap_or_default();
        Line {
            label: share.frame.label(),
            frame: share.frame.clone().into_owned(),
            bytes: share.inclusive,
            own_bytes,
            own_blocks,
        }
    };
    report.frames.iter().filter(|share| !share.frame.is_framework()).map(line).collect()
}
