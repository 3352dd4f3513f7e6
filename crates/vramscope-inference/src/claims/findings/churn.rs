//! Memory returned to the driver and reserved again.

use crate::claims::found::{Common, Found, parts};
use crate::claims::kinds::{Basis, FindingKind};
use crate::claims::phrase::Sentence;
use crate::claims::scene::{Claim, Exhibit, Scene, Spot, SpotWhat, Words};
use crate::claims::severity::Severity;
use crate::claims::words::{EXPANDABLE, at_site, counted, times};
use crate::evidence::Evidence;
use crate::evidence::{Burst, Cause, Returns};
use crate::steps::Steps;
use rustc_hash::FxHashSet;
use std::ops::Range;
use vramscope_snapshot::StackId;
use vramscope_trace::Block;
use vramscope_trace::slicing::{Budget, STRIDE};
use vramscope_units::{Bytes, grouped};

/// The fewest bytes reserved again to report: one segment of the large pool (`kLargeBuffer`).
const MIN_BYTES: u64 = 20 << 20;

/// The fewest returns of a finding that matters.
const MIN_COSTLY_BURSTS: usize = 3;

/// The part of the reserved peak that is reserved again in a finding that matters.
const COSTLY_PEAK_DIVISOR: u64 = 4;

/// Memory that was returned to the driver and reserved again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentChurn {
    /// True if the allocator returned the segments to make room; false if the program did, or a
    /// library.
    pub by_allocator: bool,
    /// The search that returned the segments; `None` if something else did.
    pub search: Option<AlgorithmSearch>,
    /// Bytes returned.
    pub returned: Bytes,
    /// Segments, or ranges of expandable segments, returned.
    pub segments: usize,
    /// Returns. Each waits for the device.
    pub bursts: usize,
    /// Bytes reserved again, at most the bytes returned before.
    pub reserved_again: Bytes,
    /// The first event of each return.
    pub at: Vec<u32>,
}

/// cuDNN's search for the fastest algorithm of each convolution (`torch.backends.cudnn.benchmark`).
/// It tries algorithms with large workspaces, and empties the cache afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlgorithmSearch {
    /// The first step with a search; `None` where no step is known.
    pub step: Option<u32>,
    /// The number of steps with a search; 0 where none is known.
    pub steps: usize,
    /// The peak of `requested_bytes` in these steps.
    pub peak: Bytes,
    /// The peak in later steps without a search; `None` if there is none.
    pub later: Option<Bytes>,
    /// The largest workspace that was tried.
    pub largest: Bytes,
    /// Its call stack.
    pub largest_at: StackId,
}

/// A workspace that is only tried lives for at most this many events.
const MAX_TRIAL_EVENTS: u32 = 8;

/// Churn by cause. `explained` are the events of OOMs, whose own returns are part of their finding.
pub(super) async fn churn(
    cx: Evidence<'_>,
    returns: &Returns,
    explained: &[Range<u32>],
    budget: &mut Budget,
) -> Vec<Found<SegmentChurn>> {
    let mut found = Vec::new();
    for (cause, min_bursts) in [
        (Cause::MakeRoom, 1),
        // One return between two phases of a program is the purpose of empty_cache.
        (Cause::Request, 2),
        (Cause::Search, 1),
    ] {
        let bursts: Vec<&Burst> = (returns.bursts.iter())
            .filter(|burst| burst.cause == cause)
            .filter(|burst| {
                cause != Cause::MakeRoom
                    || !explained.iter().any(|range| range.contains(&burst.events.start))
            })
            .collect();
        budget.charge((returns.bursts.len() * (1 + explained.len())) as u64).await;
        if bursts.len() < min_bursts {
            continue;
        }
        let again = reserved_again(&bursts, &returns.reservations, budget).await;
        if again < MIN_BYTES {
            continue;
        }
        let search = match cause {
            Cause::Search => Some(search(cx, &bursts, budget).await),
            _ => None,
        };
        found.push(finding(cx, &bursts, search, again));
    }
    found
}

/// Bytes that are reserved again: of each reservation, what earlier bursts returned and no earlier
/// reservation took.
async fn reserved_again(
    bursts: &[&Burst],
    reservations: &[(u32, u64)],
    budget: &mut Budget,
) -> u64 {
    let (mut outstanding, mut again, mut next) = (0u64, 0u64, 0);
    for part in reservations.chunks(STRIDE) {
        budget.charge(part.len() as u64).await;
        for &(event, bytes) in part {
            while let Some(burst) = bursts.get(next).filter(|burst| burst.events.start < event) {
                outstanding = outstanding.saturating_add(burst.bytes);
                next += 1;
            }
            let taken = bytes.min(outstanding);
            outstanding -= taken;
            again = again.saturating_add(taken);
        }
    }
    again
}

/// The cost of the search at its peak.
async fn search(cx: Evidence<'_>, bursts: &[&Burst], budget: &mut Budget) -> AlgorithmSearch {
    let slots = cx.trace.slots();
    let steps = cx.steps.filter(|steps| steps.are_training());
    let mut searching: Vec<u32> =
        (bursts.iter()).filter_map(|burst| steps?.at(burst.events.start + 1)).collect();
    searching.dedup();
    let last = bursts.last().map_or(0, |burst| burst.events.end);
    // The slots of the steps with a search, and those of later steps without one.
    let (mut with, mut without): (Vec<Range<u32>>, Vec<Range<u32>>) = (Vec::new(), Vec::new());
    match (steps, searching.first()) {
        (Some(Steps { begins, .. }), Some(&first)) => {
            for (step, edges) in (0..).zip(begins.windows(2)).skip(first as usize) {
                let is_searching = searching.binary_search(&step).is_ok();
                let slots = edges[0] + 1..edges[1] + 1;
                if is_searching { with.push(slots) } else { without.push(slots) }
            }
        }
        _ => {
            with.push(0..(last + 1).min(slots));
            without.push((last + 1).min(slots)..slots);
        }
    }
    let mut peaks = [None; 2];
    for (peak, ranges) in peaks.iter_mut().zip([with, without]) {
        for slots in ranges {
            let largest = cx.trace.requested.largest_sliced(slots, budget).await;
            *peak = (*peak).max(largest.map(|most| most.1));
        }
    }
    let stacks: FxHashSet<StackId> = bursts.iter().map(|burst| burst.stack).collect();
    let mut largest = (0, StackId::EMPTY);
    let visit = |_, block: &Block| {
        let is_trial = block.leaves.saturating_sub(block.enters) <= MAX_TRIAL_EVENTS
            && block.enters <= last
            && stacks.contains(&block.stack);
        if is_trial && block.bytes.0 > largest.0 {
            largest = (block.bytes.0, block.stack);
        }
    };
    cx.trace.each_block(1, budget, visit).await;
    AlgorithmSearch {
        step: searching.first().copied(),
        steps: searching.len(),
        peak: Bytes(peaks[0].unwrap_or(0)),
        later: peaks[1].map(Bytes),
        largest: Bytes(largest.0),
        largest_at: largest.1,
    }
}

fn finding(
    cx: Evidence<'_>,
    bursts: &[&Burst],
    search: Option<AlgorithmSearch>,
    again: u64,
) -> Found<SegmentChurn> {
    let by_allocator = bursts.first().is_some_and(|burst| burst.cause == Cause::MakeRoom);
    let facts = SegmentChurn {
        by_allocator,
        search,
        returned: Bytes(bursts.iter().map(|burst| burst.bytes).sum()),
        segments: bursts.iter().map(|burst| burst.events.len()).sum(),
        bursts: bursts.len(),
        reserved_again: Bytes(again),
        at: bursts.iter().map(|burst| burst.events.start).collect(),
    };
    let mut parts = parts(bursts.iter().map(|burst| (burst.stack, burst.bytes)));
    for part in &mut parts {
        part.blocks = 0;
    }
    let peak = cx.trace.reserved_band.peak.max(0) as u64;
    let is_costly = bursts.len() >= MIN_COSTLY_BURSTS && again >= peak / COSTLY_PEAK_DIVISOR;
    let what = match search {
        Some(_) => "search",
        None if by_allocator => "make-room",
        None => "on-request",
    };
    let cost = search
        .map(|AlgorithmSearch { peak, later, .. }| peak.0.saturating_sub(later.unwrap_or(peak).0));
    // A search is wanted, and its peak fitted.
    let is_costly = is_costly && search.is_none();
    let severity = if is_costly { Severity::Medium } else { Severity::Low };
    let bytes = cost.filter(|&cost| cost > 0).unwrap_or(again);
    let events = facts.at.clone();
    Common {
        severity,
        basis: Basis::Exact,
        parts,
        step: search.and_then(|search| search.step.filter(|_| search.steps == 1)),
        ..cx.found(FindingKind::Churn, what, bytes, bytes, events)
    }
    .with(facts)
}

impl Claim for SegmentChurn {
    fn words(&self, scene: &Scene<'_>) -> Words {
        if let Some(of) = &self.search {
            return search_words(scene, self, of);
        }
        let at = at_site(&scene.main_site());
        let calls_empty_cache = scene.finding.stack().is_some_and(|stack| {
            let mut frames = scene.cx.snapshot.stack(stack);
            frames.any(|frame| scene.cx.snapshot.text(frame.name).contains("empty_cache"))
        });
        let called = format!("called {}.empty_cache()", scene.device_kind().module());
        let (subject, verb, reason) = match (self.by_allocator, calls_empty_cache) {
            (true, _) if threshold(scene).is_some() => (
                "The allocator",
                "made room",
                " when the driver refused more memory, or when use exceeded \
                 garbage_collection_threshold",
            ),
            (true, _) => ("The allocator", "made room", " when the driver refused more memory"),
            (false, true) => ("The program", called.as_str(), ""),
            (false, false) => {
                ("The program", "returned memory", " with empty_cache or by ending a pool")
            }
        };
        let times = times(self.bursts);
        let place = scene.at(self.spot(scene).as_ref());
        let by = match (self.by_allocator, calls_empty_cache) {
            (true, _) => Sentence::new(" for lack of memory").and(place),
            (false, true) => Sentence::new(" by empty_cache()").and(place),
            (false, false) => place,
        };
        Words {
            title: Sentence::new("Cache emptied ")
                .event(&times, scene.first_event())
                .and(by)
                .text(if self.bursts == 1 { ": a wait" } else { ": each a wait" })
                .text(" for the GPU"),
            text: format!(
                "{subject} {verb} {times}{at}{reason}. That returned {} ({}), and {} were reserved \
                 again. Each return waits for the device: {}.",
                self.returned,
                counted(self.segments, "segment"),
                self.reserved_again,
                counted(self.bursts, "synchronization"),
            ),
            action: action(scene, self, &at),
        }
    }

    fn why(&self, _scene: &Scene<'_>) -> String {
        match &self.search {
            Some(_) => "cuDNN tries workspaces for each convolution (cudnn.benchmark)".to_owned(),
            None => format!("{} were reserved again", self.reserved_again),
        }
    }

    fn spot(&self, scene: &Scene<'_>) -> Option<Spot> {
        Some(Spot { what: SpotWhat::Text(String::new()), ..scene.own_spot()? })
    }

    fn exhibit(&self, _scene: &Scene<'_>) -> Exhibit {
        Exhibit::Returns
    }
}

/// The words of a search for algorithms.
fn search_words(scene: &Scene<'_>, churn: &SegmentChurn, of: &AlgorithmSearch) -> Words {
    let AlgorithmSearch { step, steps, peak, later, largest, largest_at } = *of;
    let searched = match step {
        Some(step) if steps == 1 => format!("step {}", grouped(u64::from(step))),
        Some(_) => counted(steps, "step"),
        None => "the search".to_owned(),
    };
    let verb = if steps > 1 { "peak" } else { "peaks" };
    let cause = Sentence::new("Search of cuDNN for algorithms")
        .and(scene.at(churn.spot(scene).as_ref()))
        .text(": ");
    let title = match later {
        Some(later) if later < peak => {
            let more = Bytes(peak.0 - later.0).brief();
            cause.event(more, scene.first_event()).text(" above later steps")
        }
        _ => cause.text("cache emptied ").event(times(churn.bursts), scene.first_event()),
    };
    let after = match later {
        Some(later) if later < peak => {
            let others = if step.is_some() { "Later steps need" } else { "What follows needs" };
            format!("With it {searched} {verb} at {peak}. {others} {later}.")
        }
        Some(later) => format!("It costs no memory at the peak: what follows needs {later}."),
        None => format!(
            "Every step searches, and the peak is {peak}: each new shape of an input \
                         starts another search."
        ),
    };
    Words {
        title,
        text: format!(
            "cuDNN searches for the fastest algorithm of each convolution \
             (torch.backends.cudnn.benchmark). It tries workspaces of up to {largest}{}, and \
             empties the cache afterwards: {}, {} returned. {after}",
            at_site(&scene.site(largest_at)),
            times(churn.bursts),
            churn.returned,
        ),
        action: "Set torch.backends.cudnn.benchmark = False if the peak of the search does not \
                 fit. Keep the shapes of inputs fixed, so that each convolution is searched once."
            .to_owned(),
    }
}

/// `garbage_collection_threshold`, if it is set.
fn threshold<'a>(scene: &'a Scene<'_>) -> Option<&'a str> {
    let value = scene.cx.setting("garbage_collection_threshold")?;
    value.parse().is_ok_and(|value: f64| value > 0.0).then_some(value)
}

fn action(scene: &Scene<'_>, churn: &SegmentChurn, at: &str) -> String {
    if !churn.by_allocator {
        return format!("Remove the return{at} from the loop, or do it once after a phase.");
    }
    let mut steps = Vec::new();
    if let Some(value) = threshold(scene) {
        steps.push(format!("Raise or remove garbage_collection_threshold:{value}."));
    }
    let limit = scene.cx.setting("max_split_size").and_then(|value| value.parse::<i64>().ok());
    if limit.is_some_and(|limit| (0..1 << 62).contains(&limit)) {
        steps.push("Remove max_split_size_mb.".to_owned());
    }
    // Where the model has replayed other settings, another finding says what they do.

    if scene.can_expand() && steps.is_empty() && !scene.has_replays {
        steps.push(format!("Try {EXPANDABLE}."));
    }
    if steps.is_empty() {
        steps.push("Lower the peak.".to_owned());
    }
    steps.join(" ")
}

#[cfg(test)]
crate::claims::cases::cases! {
    Churn,
    fires: ["findings/oom_halved.pickle.gz", "findings/real_cudnn_benchmark.pickle.gz"],
    silent: ["findings/g14_prefetch_stream.pickle.gz"]
}
