//! Pinned host memory of no use. PyTorch's allocator of pinned memory
//! (`ATen/core/CachingHostAllocator.h`) rounds requests up to powers of two, never splits a block,
//! and keeps freed blocks for requests of their size.

use crate::claims::found::{Common, Found, parts};
use crate::claims::kinds::{Basis, FindingKind};
use crate::claims::scene::{Claim, Exhibit, Parts, Scene, Words};
use crate::claims::words::{at_site, counted, percent, subject};
use crate::evidence::{Evidence, Materiality};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use vramscope_snapshot::{DeviceKind, StackId};
use vramscope_trace::slicing::Budget;
use vramscope_trace::{Block, Span};
use vramscope_units::{Bytes, grouped};

/// Lower amounts are no finding, of all pinned memory.
const MATTERS: Materiality = Materiality::percent(10);

/// The same for blocks that nothing uses: the program may use them later.
const UNUSED_MATTERS: Materiality = Materiality::percent(25);

/// The fewest sizes of one call stack whose sizes change.
const MIN_SIZES: usize = 4;

/// The fewest events after the last use of a cached block.
const MIN_EVENTS: u32 = 100;

/// The facts of a finding about pinned host memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pinned {
    /// Pinned bytes at the end.
    pub reserved: Bytes,
    /// The use of the memory.
    pub cause: PinnedCause,
}

/// Why pinned memory is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PinnedCause {
    /// Live blocks at the end are larger than their requests, which the file has.
    Rounding {
        /// The requested bytes of the block that loses most.
        requested: Bytes,
        /// Its size.
        size: Bytes,
        /// Requested bytes of all these blocks.
        all_requested: Bytes,
    },
    /// A call stack asked for ever other sizes. Blocks of earlier sizes were free when it pinned
    /// more memory, and are at the end.
    Sizes {
        /// The different sizes that it pinned in the window.
        sizes: usize,
        /// The smallest of them.
        smallest: Bytes,
        /// The largest of them.
        largest: Bytes,
        /// The bytes that it pinned in the window.
        pinned: Bytes,
        /// The most that its blocks held at once.
        live: Bytes,
    },
    /// Freed blocks are still pinned at the end, and no request has used them since.
    Unused {
        /// Events of pinned memory after the last use of any of these blocks.
        events: u32,
    },
}

impl PinnedCause {
    /// The name in the id of the finding.
    fn name(self) -> &'static str {
        match self {
            Self::Rounding { .. } => "rounding",
            Self::Sizes { .. } => "sizes",
            Self::Unused { .. } => "unused",
        }
    }
}

/// A segment that is pinned at the end, and free.
#[derive(Clone, Copy)]
struct Free {
    /// The first slot in which it is free.
    from: u32,
    size: u64,
    /// The call stack that pinned it.
    stack: StackId,
    /// The last event that used it; `None` before the window.
    event: Option<u32>,
}

pub(super) async fn pinned(cx: Evidence<'_>, budget: &mut Budget) -> Vec<Found<Pinned>> {
    debug_assert_eq!(cx.trace.device.kind, DeviceKind::Host);
    let reserved = u64::try_from(cx.trace.reserved_band.end).unwrap_or(0);
    let mut found: Vec<Found<Pinned>> = rounding(cx, reserved, budget).await.into_iter().collect();
    let free = free_at_end(cx, budget).await;
    let sizes = of_sizes(cx, reserved, &free, budget).await;
    let named: BTreeSet<StackId> = sizes.iter().filter_map(|found| found.stack()).collect();
    found.extend(sizes);
    let rest = free.into_iter().filter(|free| !named.contains(&free.stack)).collect();
    found.extend(unused(cx, reserved, rest));
    found
}

/// A finding about `blocks`: their call stack, their bytes and an event each.
fn finding(
    cx: Evidence<'_>,
    reserved: u64,
    cause: PinnedCause,
    what: impl std::fmt::Display,
    blocks: &[(StackId, u64, Option<u32>)],
) -> Found<Pinned> {
    let bytes = blocks.iter().map(|block| block.1).sum();
    let events = blocks.iter().filter_map(|block| block.2).collect();
    Common {
        basis: Basis::Exact,
        blocks: blocks.len() as u32,
        parts: parts(blocks.iter().map(|block| (block.0, block.1))),
        ..cx.found(FindingKind::Pinned, what, bytes, bytes, events)
    }
    .with(Pinned { reserved: Bytes(reserved), cause })
}

/// Live blocks at the end whose request is in the file.
async fn rounding(cx: Evidence<'_>, reserved: u64, budget: &mut Budget) -> Option<Found<Pinned>> {
    let mut lost = Vec::new();
    let (mut all_requested, mut worst) = (0, (Bytes(0), Bytes(0)));
    let visit = |index, block: &Block| {
        let size = cx.carving.sizes[index as usize];
        let is_live = block.leaves == cx.trace.slots();
        if let Some(bytes @ 1..) = size.0.checked_sub(block.bytes.0).filter(|_| is_live) {
            lost.push((block.stack, bytes, block.alloc_event().map(|event| event.0)));
            all_requested += block.bytes.0;
            if worst.1.0 - worst.0.0 < bytes {
                worst = (block.bytes, size);
            }
        }
    };
    cx.trace.each_block(1, budget, visit).await;
    let bytes: u64 = lost.iter().map(|block| block.1).sum();
    let cause = PinnedCause::Rounding {
        requested: worst.0,
        size: worst.1,
        all_requested: Bytes(all_requested),
    };
    MATTERS.is_met(bytes, reserved).then(|| finding(cx, reserved, cause, cause.name(), &lost))
}

/// The segments that are pinned at the end and free. A segment of pinned memory is one block.
async fn free_at_end(cx: Evidence<'_>, budget: &mut Budget) -> Vec<Free> {
    let mut last: FxHashMap<u64, u32> = FxHashMap::default();
    let visit = |_, block: &Block| {
        let leaves = last.entry(block.address.0).or_insert(0);
        *leaves = block.leaves.max(*leaves);
    };
    cx.trace.each_block(1, budget, visit).await;
    let spans = &cx.carving.segments.spans;
    budget.charge(spans.len() as u64).await;
    let at_end = spans.iter().filter(|span| span.leaves == cx.trace.slots());
    let free = |span: &Span| {
        let used = last.get(&span.address.0).copied().filter(|&slot| slot > span.enters);
        let from = used.unwrap_or(span.enters);
        (from < cx.trace.slots()).then(|| Free {
            from,
            size: span.size.0,
            stack: span.stack,
            event: from.checked_sub(1),
        })
    };
    at_end.filter_map(free).collect()
}

/// One finding for each call stack whose sizes change.
async fn of_sizes(
    cx: Evidence<'_>,
    reserved: u64,
    free: &[Free],
    budget: &mut Budget,
) -> Vec<Found<Pinned>> {
    let spans = &cx.carving.segments.spans;
    budget.charge(spans.len() as u64).await;
    let mut by_stack: BTreeMap<StackId, Vec<&Span>> = BTreeMap::new();
    for span in spans.iter().filter(|span| span.event.is_some() && span.stack != StackId::EMPTY) {
        by_stack.entry(span.stack).or_default().push(span);
    }
    let mut found = Vec::new();
    for (stack, pinned) in by_stack {
        let sizes: BTreeSet<Bytes> = pinned.iter().map(|span| span.size).collect();
        let Some(last) = pinned.iter().map(|span| span.enters).max() else { continue };
        // At the beginning each program pins what it needs.
        if sizes.len() < MIN_SIZES || last < cx.trace.slots() / 2 {
            continue;
        }
        let outgrown: Vec<&Free> =
            free.iter().filter(|free| free.stack == stack && free.from < last).collect();
        let bytes: u64 = outgrown.iter().map(|free| free.size).sum();
        let live = most_live(cx, stack, budget).await;
        let all: u64 = pinned.iter().map(|span| span.size.0).sum();
        if !MATTERS.is_met(bytes, reserved) || all < live.saturating_add(bytes) {
            continue;
        }
        let cause = PinnedCause::Sizes {
            sizes: sizes.len(),
            smallest: *sizes.first().expect("at least four"),
            largest: *sizes.last().expect("at least four"),
            pinned: Bytes(all),
            live: Bytes(live),
        };
        let blocks: Vec<_> =
            outgrown.iter().map(|free| (free.stack, free.size, free.event)).collect();
        let what = format!("{}-{}", cause.name(), cx.hash(stack));
        found.push(finding(cx, reserved, cause, what, &blocks));
    }
    found
}

/// The most bytes that blocks of a call stack hold at once.
async fn most_live(cx: Evidence<'_>, stack: StackId, budget: &mut Budget) -> u64 {
    let mut changes: Vec<(u32, i64)> = Vec::new();
    let visit = |index, block: &Block| {
        if block.stack == stack {
            let size = cx.carving.sizes[index as usize].0 as i64;
            changes.extend([(block.enters, size), (block.leaves, -size)]);
        }
    };
    cx.trace.each_block(1, budget, visit).await;
    budget.charge(8 * changes.len() as u64).await;
    changes.sort_unstable();
    let (mut live, mut most) = (0, 0);
    for (_, change) in changes {
        live += change;
        most = live.max(most);
    }
    most.unsigned_abs()
}

/// Cached blocks that the second half of the window did not use, although it used others.
fn unused(cx: Evidence<'_>, reserved: u64, mut free: Vec<Free>) -> Option<Found<Pinned>> {
    let slots = cx.trace.slots();
    let half = slots / 2;
    free.retain(|free| free.from <= half.min(slots.saturating_sub(MIN_EVENTS + 1)));
    let last = free.iter().map(|free| free.from).max()?;
    let cause = PinnedCause::Unused { events: slots - 1 - last };
    let blocks: Vec<_> = free.iter().map(|free| (free.stack, free.size, free.event)).collect();
    let bytes: u64 = free.iter().map(|free| free.size).sum();
    UNUSED_MATTERS
        .is_met(bytes, reserved)
        .then(|| finding(cx, reserved, cause, cause.name(), &blocks))
}

/// Returns what PyTorch caches of pinned memory.
const EMPTY_CACHE: &str = "torch._C._host_emptyCache()";

impl Claim for Pinned {
    fn words(&self, scene: &Scene<'_>) -> Words {
        let bytes = scene.bytes();
        let reserved = self.reserved;
        let share = percent(bytes, reserved);
        let blocks = counted(scene.finding.blocks as usize, "block");
        let site = scene.main_site();
        let (title, rest, text, action) = match self.cause {
            PinnedCause::Rounding { requested, size, all_requested } => (
                "Pinned memory rounded up",
                " more than asked",
                format!(
                    "{all_requested} of the pinned host memory that is live at the end were \
                     requested, in {blocks} that take {bytes} more ({share} % of {reserved}). \
                     PyTorch rounds a request up to a power of two. The block that loses most was \
                     requested with {requested} and takes {size}{}.",
                    at_site(&site)
                ),
                format!(
                    "If these sizes repeat, {}. Else request sizes just below a power of two.",
                    threshold(scene)
                ),
            ),
            PinnedCause::Sizes { sizes, smallest, largest, pinned, live } => (
                "Pinned memory of outgrown sizes kept",
                "",
                format!(
                    "{} pinned {} sizes, from {smallest} to {largest}: {pinned} in all, though its \
                     blocks held at most {live} at once. {blocks} of earlier sizes ({bytes}, \
                     {share} % of {reserved}) were free when it pinned more, and are still pinned \
                     at the end. A freed block serves only requests that fit it and round to its \
                     power of two.",
                    subject(&site),
                    grouped(sizes as u64),
                ),
                format!(
                    "Pin one buffer of the largest size{} and use parts of it. Or return freed \
                     blocks with {EMPTY_CACHE} when sizes change.",
                    at_site(&site)
                ),
            ),
            PinnedCause::Unused { events } => (
                "Freed memory kept pinned",
                "",
                format!(
                    "{blocks} ({bytes}, {share} % of {reserved}) are free and still pinned at the \
                     end. None was used in the last {} of pinned memory. PyTorch keeps freed \
                     blocks for requests of their size.",
                    counted(events as usize, "event"),
                ),
                format!(
                    "Call {EMPTY_CACHE} when the program no longer needs them. \
                     PYTORCH_ALLOC_CONF=pinned_max_cached_size_mb:N (PyTorch 2.13 or later) \
                     returns larger blocks at once."
                ),
            ),
        };
        let title = scene.titled(title, self.spot(scene).as_ref(), bytes).text(rest);
        Words { title, text, action }
    }

    fn why(&self, _scene: &Scene<'_>) -> String {
        match self.cause {
            PinnedCause::Rounding { requested, size, .. } => {
                format!("one request of {requested} takes {size}")
            }
            PinnedCause::Sizes { sizes, live, .. } => {
                format!("one line pinned {sizes} sizes, and holds at most {live} at once")
            }
            PinnedCause::Unused { events } => {
                format!("nothing used them in the last {}", counted(events as usize, "event"))
            }
        }
    }

    fn exhibit(&self, scene: &Scene<'_>) -> Exhibit {
        let rest = self.reserved.0.saturating_sub(scene.finding.bytes);
        Exhibit::Parts(Parts {
            title: "pinned memory at the end",
            parts: vec![("other", Bytes(rest), false), ("of no use", scene.bytes(), true)],
            line: None,
        })
    }
}

/// The advice to round less. A file without the setting is from before PyTorch 2.13.
fn threshold(scene: &Scene<'_>) -> String {
    let release = match scene.cx.setting("max_round_threshold") {
        Some(_) => "",
        None => " of PyTorch 2.13 or later",
    };
    format!("set PYTORCH_ALLOC_CONF=pinned_max_round_threshold_mb:N{release} to a smaller size")
}

#[cfg(test)]
crate::claims::cases::cases! {
    Pinned,
    fires: ["recorded/pinned/threshold_0.pickle.gz"],
    silent: ["recorded/t215_pinned_loader.pickle"]
}
