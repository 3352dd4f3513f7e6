//! Terms with what they mean in one trace: the stacks, events and blocks that they match.

use super::terms::{Address, Moment, Path, Pool, Term};
use crate::derived::Derived;
use crate::holders::of_holder;
use crate::modules::of_module;
use crate::{BlockPlaces, Target, rank_of, slot_of, text};
use rustc_hash::FxHashMap;
use std::ops::RangeInclusive;
use vramscope_inference::Category;
use vramscope_snapshot::{Frame, FrameId, Snapshot, StackId};
use vramscope_trace::slicing::{Budget, strides};
use vramscope_trace::{Block, NoStack};
use vramscope_units::EventIndex;

/// A term that can be tested on blocks of one trace.
pub(crate) enum Test {
    Address(Address),
    Size(RangeInclusive<u64>),
    Event(u32),
    /// Call stacks, and reasons for missing ones.
    Stacks(Stacks),
    Category(Category),
    /// Ranges of events, ascending, that contain the alloc.
    Allocated(Vec<(u32, u32)>),
    Stream(i64),
    /// Blocks by index.
    Blocks(Vec<bool>),
    LifetimeMicros(RangeInclusive<u64>),
    LifetimeEvents(RangeInclusive<u64>),
    /// The slot in which the block is live.
    Live(u32),
    /// All blocks or none.
    All(bool),
}

/// A set of call stacks.
#[derive(Default)]
pub(crate) struct Stacks {
    /// By [`StackId`].
    wanted: Vec<bool>,
    /// Reasons for a missing call stack.
    reasons: Vec<NoStack>,
    /// Whether the stack of a free does not count: the block's own is unknown.
    is_of_alloc: bool,
}

impl Stacks {
    fn of_block(&self, at: Target<'_>, block: &Block) -> bool {
        match at.trace().no_stack(block) {
            Some(why) => self.reasons.contains(&why),
            None if self.is_of_alloc && block.has_stack_of_free() => false,
            None => self.of_stack(block.stack),
        }
    }

    fn of_stack(&self, stack: StackId) -> bool {
        self.wanted[stack.0 as usize]
    }
}

impl Test {
    /// Finds what a term matches in a trace.
    pub(crate) async fn new(at: Target<'_>, term: Term, budget: &mut Budget) -> Self {
        match term {
            Term::Address(address) => Self::Address(address),
            Term::Size(min, max) => Self::Size(min..=max),
            Term::Event(event) => Self::Event(event),
            Term::Site(site) => Self::Stacks(of_site(at, &site, budget).await),
            Term::Via(frame) => {
                let frames = of_frame(at, &frame, budget).await;
                let has_frame = |stack: &[FrameId]| stack.iter().any(|f| frames[f.0 as usize]);
                Self::Stacks(of_stacks(at, has_frame, &frame, budget).await)
            }
            Term::Path(path) => Self::Stacks(of_path(at, &path, true, budget).await),
            Term::Leaf(path) => Self::Stacks(of_path(at, &path, false, budget).await),
            Term::Stack(hash) => {
                budget.charge(at.snapshot().stacks.len() as u64).await;
                let is_it = |id| hash.is_of(at.entry.sites.get(StackId(id)).stack_hash);
                let stacks = (0..at.snapshot().stacks.len() as u32).map(is_it).collect();
                Self::Stacks(Stacks { wanted: stacks, ..Stacks::default() })
            }
            Term::Category(category) => Self::Category(category),
            Term::Module(name) => Self::Blocks(of_module(at, &name, budget).await),
            Term::Holder(name) => {
                budget.charge(at.trace().blocks.len() as u64).await;
                Self::Blocks(of_holder(at, &name))
            }
            Term::Phase(name) => {
                Self::Allocated(ranges(at, |_, phase| phase == name, budget).await)
            }
            Term::Step(first, last) => {
                let is_in = |step: Option<u32>| step.is_some_and(|s| (first..=last).contains(&s));
                Self::Allocated(ranges(at, |step, _| is_in(step), budget).await)
            }
            Term::Stream(handle) => Self::Stream(handle),
            Term::Pool(pool) => Self::Blocks(of_pool(at, pool, budget).await),
            Term::LifetimeMicros(min, max) => Self::LifetimeMicros(min..=max),
            Term::LifetimeEvents(min, max) => Self::LifetimeEvents(min..=max),
            Term::Rank(rank) => Self::All(rank_of(at.path) == Some(rank)),
            Term::Live(moment) => Self::Live(match moment {
                Moment::Peak => slot_of(at.trace().requested_band.peak_event),
                Moment::Start => 0,
                Moment::End => at.trace().slots() - 1,
                Moment::Event(event) => event.saturating_add(1),
            }),
        }
    }

    /// Whether a block matches.
    pub(crate) fn block(&self, at: Target<'_>, index: u32, block: &Block) -> bool {
        let is_at = |event: Option<EventIndex>, wanted| event == Some(EventIndex(wanted));
        match self {
            Self::Address(address) => {
                address.matches(block.address.0, block.bytes.0) || address.is_reuse(block)
            }
            Self::Size(range) => range.contains(&block.bytes.0),
            &Self::Event(event) => {
                is_at(block.alloc_event(), event)
                    || is_at(block.free_requested(), event)
                    || is_at(block.free_completed(), event)
            }
            Self::Stacks(stacks) => stacks.of_block(at, block),
            &Self::Category(category) => {
                at.entry.categories(at.index).get(index).category == category
            }
            Self::Allocated(ranges) => {
                block.alloc_event().is_some_and(|event| contains(ranges, event.0))
            }
            &Self::Stream(handle) => at.snapshot().stream(block.stream) == handle,
            Self::Blocks(blocks) => blocks[index as usize],
            // Without a clock, no lifetime in time is known.
            Self::LifetimeMicros(range) => {
                at.trace().clock.is_some()
                    && range.contains(&vramscope_trace::lifetime(at.trace(), block))
            }
            Self::LifetimeEvents(range) => range.contains(&u64::from(block.leaves - block.enters)),
            &Self::Live(slot) => block.is_live_at(slot),
            &Self::All(matches) => matches,
        }
    }

    /// Whether only the block of an event can tell if the event matches.
    pub(crate) fn is_of_blocks(&self) -> bool {
        !matches!(self, Self::Address(_) | Self::Size(_) | Self::Event(_) | Self::All(_))
    }

    /// Whether an event matches. False for tests of blocks.
    pub(crate) fn event(&self, at: Target<'_>, event: u32) -> bool {
        let (events, row) = (&at.snapshot().events, at.trace().device.events.start + event);
        let (address, size) = (events.addr(row).0, events.size(row).0);
        match self {
            // Events without an address have address 0.
            Self::Address(wanted) => address != 0 && wanted.matches(address, size),
            Self::Size(range) => range.contains(&size),
            &Self::Event(wanted) => event == wanted,
            &Self::All(matches) => matches,
            _ => false,
        }
    }
}

fn contains(ranges: &[(u32, u32)], event: u32) -> bool {
    let next = ranges.partition_point(|&(begin, _)| begin <= event);
    next.checked_sub(1).is_some_and(|at| event < ranges[at].1)
}

/// Reasons for a missing call stack whose label is `wanted`.
fn reasons(wanted: &str) -> Vec<NoStack> {
    let all = [NoStack::BeforeRecording, NoStack::Backward, NoStack::NotRecorded];
    all.into_iter().filter(|&why| is_label(text::no_stack(why), wanted)).collect()
}

/// Whether a label in the tables' spelling is `wanted`, which may leave out the function, or the
/// line and the function: `gpt.py:43 forward`, `gpt.py:43`, `gpt.py`.
fn is_label(label: &str, wanted: &str) -> bool {
    let label = label.to_ascii_lowercase();
    label == wanted
        || label.strip_prefix(wanted).is_some_and(|rest| rest.starts_with([' ', ':', ',']))
}

/// Whether a place names its file by a whole path: `/train/gpt.py:43`.
fn is_path(wanted: &str) -> bool {
    wanted.contains(['/', '\\'])
}

/// Whether a frame is at a place that names the whole path of its file: `/train/gpt.py:43`,
/// `/train/gpt.py`, `/train/gpt.py forward`.
fn is_at_path(snapshot: &Snapshot, frame: Frame, wanted: &str) -> bool {
    let (name, file) = (snapshot.text(frame.name), snapshot.text(frame.file));
    // Most frames are in other files.
    file.get(..1).is_some_and(|first| wanted.starts_with(&first.to_ascii_lowercase()))
        && (is_label(&format!("{file}:{} {name}", frame.line), wanted)
            || is_label(&format!("{file} {name}"), wanted))
}

/// Stacks by a test of their frames, innermost first.
async fn of_stacks(
    at: Target<'_>,
    is_wanted: impl Fn(&[FrameId]) -> bool,
    reason: &str,
    budget: &mut Budget,
) -> Stacks {
    let snapshot = at.snapshot();
    let mut stacks: Vec<bool> = Vec::with_capacity(snapshot.stacks.len());
    for part in strides(snapshot.stacks.len()) {
        budget.charge(32 * part.len() as u64).await;
        stacks.extend(part.map(|id| is_wanted(snapshot.stacks.frames(StackId(id as u32)))));
    }
    Stacks { wanted: stacks, reasons: reasons(reason), is_of_alloc: is_path(reason) }
}

async fn of_site(at: Target<'_>, site: &str, budget: &mut Budget) -> Stacks {
    let (snapshot, sites) = (at.snapshot(), &at.entry.sites);
    // Many stacks share a site.
    let mut known: FxHashMap<Frame, bool> = FxHashMap::default();
    let mut stacks: Vec<bool> = Vec::with_capacity(snapshot.stacks.len());
    for part in strides(snapshot.stacks.len()) {
        budget.charge(8 * part.len() as u64).await;
        for id in part {
            let frame = sites.get(StackId(id as u32)).frame;
            // Of a stack without a site, no frame says anything.
            let is_unknown = || id as u32 != StackId::EMPTY.0 && is_label(text::NO_STACK, site);
            stacks.push(frame.map_or_else(is_unknown, |frame| {
                *known.entry(frame).or_insert_with(|| {
                    is_label(&text::label_of(snapshot, frame), site)
                        || is_path(site) && is_at_path(snapshot, frame, site)
                })
            }));
        }
    }
    Stacks { wanted: stacks, reasons: reasons(site), is_of_alloc: is_path(site) }
}

/// Whether each frame has a label in the tables' spelling, by [`FrameId`].
async fn of_frame(at: Target<'_>, wanted: &str, budget: &mut Budget) -> Vec<bool> {
    let snapshot = at.snapshot();
    let mut frames: Vec<bool> = Vec::with_capacity(snapshot.frames.len());
    for part in strides(snapshot.frames.len()) {
        budget.charge(32 * part.len() as u64).await;
        frames.extend(part.map(|id| {
            let frame = snapshot.frame(FrameId(id as u32));
            is_label(&text::label_of(snapshot, frame), wanted)
                || is_label(&text::full_label(snapshot, frame), wanted)
                || is_path(wanted) && is_at_path(snapshot, frame, wanted)
        }));
    }
    frames
}

/// Stacks whose frames begin with a path, from the outermost frame on, or from the innermost.
/// Frames of the framework that the path does not name are skipped, unless the path is whole.
async fn of_path(
    at: Target<'_>,
    path: &Path,
    is_from_outermost: bool,
    budget: &mut Budget,
) -> Stacks {
    let snapshot = at.snapshot();
    let mut steps: Vec<Vec<bool>> = Vec::with_capacity(path.frames.len());
    for step in &path.frames {
        steps.push(of_frame(at, step, budget).await);
    }
    let mut is_framework: Vec<bool> = Vec::with_capacity(snapshot.frames.len());
    for part in strides(snapshot.frames.len()) {
        budget.charge(32 * part.len() as u64).await;
        is_framework.extend(
            part.map(|id| text::is_framework(snapshot, snapshot.frame(FrameId(id as u32)))),
        );
    }
    let begins = |frames: &mut dyn Iterator<Item = &FrameId>| {
        let mut wanted = steps.iter();
        let mut next = wanted.next();
        for frame in frames {
            let Some(step) = next else { break };
            if step[frame.0 as usize] {
                next = wanted.next();
            } else if path.is_whole || !is_framework[frame.0 as usize] {
                return false;
            }
        }
        next.is_none()
    };
    let is_wanted = |stack: &[FrameId]| {
        if is_from_outermost { begins(&mut stack.iter().rev()) } else { begins(&mut stack.iter()) }
    };
    let reason = if let [only] = &path.frames[..] { only.as_str() } else { "" };
    of_stacks(at, is_wanted, reason, budget).await
}

/// The events of the wanted steps and phases.
async fn ranges(
    at: Target<'_>,
    is_wanted: impl Fn(Option<u32>, &str) -> bool,
    budget: &mut Budget,
) -> Vec<(u32, u32)> {
    at.entry.derive(Derived::Passes, at.index, budget).await;
    let parts = &at.entry.passes(at.index).parts;
    let wanted = parts.iter().filter(|part| is_wanted(part.step, part.phase.name()));
    wanted.map(|part| (part.begin, part.end)).collect()
}

async fn of_pool(at: Target<'_>, pool: Pool, budget: &mut Budget) -> Vec<bool> {
    let places = BlockPlaces::new(at, budget).await;
    let is_wanted = |block: u32| match pool {
        Pool::Default => places.pool(block) == Some([0, 0]),
        Pool::Private => places.pool(block).is_some_and(|id| id != [0, 0]),
        Pool::Id(id) => places.pool(block) == Some(id),
        Pool::Small => places.segment_type(block) == "small",
        Pool::Large => places.segment_type(block) == "large",
    };
    let mut blocks: Vec<bool> = Vec::with_capacity(at.trace().blocks.len());
    for part in strides(at.trace().blocks.len()) {
        budget.charge(4 * part.len() as u64).await;
        blocks.extend(part.map(|block| is_wanted(block as u32)));
    }
    blocks
}
