//! The line that a finding is about.

use super::{counted, why};
use crate::findings::FindingPlace;
use crate::frames;
use crate::shapes::BlockShapes;
use crate::target::Target;
use crate::text::label_of;
use vramscope_inference::{BackwardBasis, BackwardSite, Facts, Finding, GrowthKind, OomStory};
use vramscope_snapshot::{Frame, StackId};
use vramscope_trace::Block;

/// Sizes of requests are rounded up to this many bytes: `kMinBlockSize` of `CUDACachingAllocator`.
const ROUNDING: u64 = 512;

/// The place of a finding; `None` without a call stack.
pub(crate) fn place(target: Target<'_>, finding: &Finding) -> Option<FindingPlace> {
    let entry = target.entry;
    let of_stack = |stack: StackId| entry.sites.get(stack).frame;
    let own = finding.stack().and_then(of_stack);
    let (frame, note) = match &finding.facts {
        Facts::Oom(story) => match likely_forward(story).and_then(of_stack) {
            Some(frame) => (Some(frame), why::in_backward(entry, story)),
            None => (own, own.map(|frame| inside(target, finding, frame)).unwrap_or_default()),
        },
        Facts::Growth(growth) => {
            let frame = growth.at.filter(|_| growth.sites > 1).or(own);
            let called = growth.called_from.map(|frame| label_of(&entry.snapshot, frame));
            (frame, called.map(|site| why::called_from(&site)).unwrap_or_default())
        }
        Facts::NoGrad(facts) => (facts.called_at.or(facts.dropped_at).or(own), String::new()),
        Facts::Reserved(_) | Facts::StrandedPool(_) | Facts::GradientsHeld(_) => return None,
        Facts::GraphPools(pools) => (pools.at, String::new()),
        _ => (own, String::new()),
    };
    let what = match &finding.facts {
        Facts::Oom(story) => alike(target, story),
        Facts::Growth(growth) if growth.kind == GrowthKind::Kept && !growth.is_queue => {
            format!("{}, none freed", counted(finding.blocks as usize, "block"))
        }
        Facts::NoGrad(_) => counted(finding.blocks as usize, "inner result"),
        Facts::Churn(_) | Facts::GraphPools(_) | Facts::Cycle(_) => String::new(),
        _ if finding.blocks > 1 => counted(finding.blocks as usize, "block"),
        _ => String::new(),
    };
    Some(of_frame(target, frame?, note, what))
}

/// The line of a library that allocates for a line of the program: `in utils.py:98 concat`. Empty
/// where the program's line is the innermost one outside of PyTorch.
fn inside(target: Target<'_>, finding: &Finding, own: Frame) -> String {
    let Some(stack) = finding.stack() else { return String::new() };
    let frames = frames::frames(target.snapshot(), stack);
    let innermost = frames.iter().find(|frame| !frame.is_framework());
    innermost
        .map(frames::FrameRecord::label)
        .filter(|label| *label != label_of(target.snapshot(), own))
        .map(|label| format!("in {label}"))
        .unwrap_or_default()
}

/// The place of a frame.
fn of_frame(target: Target<'_>, frame: Frame, note: String, what: String) -> FindingPlace {
    let snapshot = target.snapshot();
    let file = snapshot.text(frame.file).into_owned();
    let source = target.entry.sidecar().and_then(|sidecar| sidecar.source(&file, frame.line));
    let site = label_of(snapshot, frame);
    FindingPlace {
        note: if note == why::called_from(&site) { String::new() } else { note },
        site,
        source: source.map(str::to_owned),
        file,
        line: frame.line,
        what,
    }
}

/// The forward line of a request of backward, where it is likely.
pub(super) fn likely_forward(story: &OomStory) -> Option<StackId> {
    // Without a node, order alone does not tell lines with blocks of one size apart.
    let is_likely = |backward: &&BackwardSite| match backward.basis {
        Some(BackwardBasis::EqualBytes) => true,
        Some(BackwardBasis::GraphOrder) => backward.node.is_some(),
        Some(BackwardBasis::NearestSize) | None => false,
    };
    story.backward.as_ref().filter(is_likely)?.forward
}

/// The shape of what was asked for, and how many live blocks have its size.
fn alike(target: Target<'_>, story: &OomStory) -> String {
    let slot = story.event.0 + 1;
    let is_alike = |block: &Block| {
        (block.enters..block.leaves).contains(&slot)
            && block.bytes.0.next_multiple_of(ROUNDING) == story.requested.0
    };
    let blocks = target.trace().blocks.iter().zip(0..);
    let alike: Vec<u32> = blocks.filter(|(block, _)| is_alike(block)).map(|one| one.1).collect();
    let shape = BlockShapes::new(target).of_all(alike.iter().copied());
    let shape = shape.filter(|shape| shape.is_certain).map(|shape| shape.text);
    let count = match alike.len() {
        0 => None,
        1 => Some("1 block of this size is live".to_owned()),
        count => Some(format!("{} of this size are live", counted(count, "block"))),
    };
    shape.into_iter().chain(count).collect::<Vec<_>>().join(", ")
}

/// The place of a finding across ranks: the innermost frame of the program.
pub(crate) fn rank_place(frames: &[frames::FrameRecord<'_>]) -> Option<FindingPlace> {
    let frame = frames.iter().find(|frame| !frame.is_framework())?;
    Some(FindingPlace {
        site: frame.label(),
        note: String::new(),
        file: frame.file.to_string(),
        line: frame.line,
        source: None,
        what: String::new(),
    })
}
