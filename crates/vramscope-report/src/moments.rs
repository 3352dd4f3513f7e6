//! Dumps of one process: which files are moments of it, and what grew between them.
//!
//! No file names its process. `Dump` is the evidence of one device of one file, in a few
//! kilobytes, so that any number of files is compared.

mod words;

use crate::card::{Card, SiteBytes, sites_at};
use crate::rank_of::{iteration_of, without_iteration};
use crate::target::{Target, slot_of, time_of};
use rustc_hash::{FxBuildHasher, FxHashMap};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::hash::BuildHasher as _;
use vramscope_inference::{BlindSpot, CallSite, Category};
use vramscope_snapshot::{HOST, StackId};
use vramscope_trace::slicing::Budget;
use vramscope_units::Bytes;

/// The most hashes of a sketch.
const SKETCH: usize = 256;

/// The fewest events or blocks in both of two sketches that show one process.
const MIN_SHARED: usize = 8;

/// The most call sites of a [`Process`] whose growth is listed.
const MAX_SITES: usize = 5;

/// The most call sites that a [`Dump`] keeps of a moment.
const KEPT_SITES: usize = 32;

/// The least growth that is named, in bytes.
pub(crate) const MIN_GROWTH: u64 = 1 << 20;

/// What shows that dumps are of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// Events with equal times, addresses and sizes are in both.
    Events,
    /// The names differ by the number of the step alone, and blocks with equal addresses, sizes and
    /// call stacks are live at the end of both.
    Blocks,
    /// The paths differ by the number of the iteration alone. An index shows no more.
    Names,
}

/// When the memory of a process is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// After the last whole step of each dump.
    LastStep,
    /// After the last event of each dump.
    Dump,
}

/// Several dumps of one process.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Process {
    /// The story in two sentences.
    pub text: String,
    /// The rank in the paths; null if there is none.
    pub rank: Option<u32>,
    /// The device's ordinal.
    pub device: u32,
    /// What shows that the dumps are of one process: the weakest of all pairs.
    pub evidence: Evidence,
    /// When their memory is compared.
    pub when: When,
    /// The dumps in the order of time.
    pub moments: Vec<Moment>,
    /// The number of further dumps; absent if none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moments_omitted: Option<usize>,
    /// What `requested_bytes` grew by from the first to the last; negative if it fell.
    pub growth_bytes: i64,
    /// The same by category, without those that did not change.
    pub categories: BTreeMap<&'static str, i64>,
    /// The call sites that grew most, at most five, each by 1 MiB or more.
    pub sites: Vec<SiteGrowth>,
}

/// One dump of a process.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Moment {
    /// The file's path.
    pub path: String,
    /// The time of its last event in microseconds since 1970; null without a clock.
    pub time_us: Option<i64>,
    /// `requested_bytes` at the moment that is compared.
    pub bytes: u64,
}

/// The growth of a call site from the first dump to the last.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SiteGrowth {
    /// The call site.
    pub site: String,
    /// The growth in bytes: at least this much.
    pub bytes: u64,
}

/// What one device of a file shows of its process.
#[derive(Clone, Debug)]
pub(crate) struct Dump {
    /// The least hashes of events that have a time, with that time.
    events: Vec<(u64, i64)>,
    /// The least hashes of blocks that are live at the end and have a call stack.
    blocks: Vec<(u64, ())>,
    /// The times of the first and the last event.
    window: Option<[i64; 2]>,
    /// The memory after the last whole step.
    step: Option<Live>,
    /// The memory after the last event.
    end: Live,
}

/// The memory of a device at one moment.
#[derive(Clone, Debug)]
struct Live {
    time: Option<i64>,
    bytes: u64,
    categories: BTreeMap<Category, u64>,
    /// The largest call sites, most bytes first.
    sites: Vec<(String, u64)>,
}

impl Dump {
    /// The evidence of a device. `card` is its card.
    pub(crate) async fn new(target: Target<'_>, card: &Card, budget: &mut Budget) -> Self {
        let (trace, snapshot) = (target.trace(), target.snapshot());
        let rows = trace.device.events.clone();
        budget.charge(u64::from(rows.end - rows.start) + trace.blocks.len() as u64).await;
        let (events, hasher) = (&snapshot.events, FxBuildHasher);
        let of_row = |row| {
            let (time, address) = (events.time(row)?.0, events.addr(row).0);
            let (action, size) = (events.action(row).0, events.size(row).0);
            (address != 0).then(|| (hasher.hash_one((time, address, size, action)), time))
        };
        let stays = trace.blocks.iter().filter(|block| {
            block.leaves == trace.slots() && block.stack != StackId::EMPTY && block.bytes.0 > 0
        });
        let of_block = |block: &vramscope_trace::Block| {
            let stack = target.entry.sites.get(block.stack).stack_hash;
            (hasher.hash_one((block.address.0, block.bytes.0, stack)), ())
        };
        let last = trace.slots() - 1;
        let window = time_of(trace, 1.min(last)).zip(time_of(trace, last));
        let has_step = !card.steps.is_empty() && card.kept_event.0 >= 0;
        let step = slot_of(u32::try_from(card.kept_event.0).ok());
        let kept = card.kept_sites.iter();
        let kept = kept.map(|of| (card.names.site(of.site).clone(), of.bytes.0));
        Self {
            events: sketch(rows.filter_map(of_row)),
            blocks: sketch(stays.map(of_block)),
            window: window.map(|(first, last)| [first, last]),
            step: has_step.then(|| Live::new(target, step, kept.collect())),
            end: Live::new(target, last, sites_at(target, last, budget).await),
        }
    }

    /// The time of the process's first event; `None` if the file may lack it.
    pub(crate) fn start(&self, card: &Card) -> Option<i64> {
        let lacks_first = |spot: &BlindSpot| {
            matches!(
                spot,
                BlindSpot::NoHistory { .. }
                    | BlindSpot::StateOnly
                    | BlindSpot::RingOverrun(_)
                    | BlindSpot::LateStart
            )
        };
        let [first, _] = self.window.filter(|_| !card.blind_spots.iter().any(lacks_first))?;
        Some(first)
    }
}

impl Live {
    fn new(target: Target<'_>, slot: u32, sites: Vec<(CallSite, u64)>) -> Self {
        let sites = named(sites);
        let (trace, of_block) = (target.trace(), target.entry.categories(target.index));
        let mut categories = BTreeMap::new();
        for (i, block) in (0..).zip(&trace.blocks).filter(|(_, block)| block.is_live_at(slot)) {
            *categories.entry(of_block.get(i).category).or_default() += block.bytes.0;
        }
        let bytes = trace.requested.at(slot);
        Self { time: time_of(trace, slot), bytes, categories, sites }
    }
}

/// The items with the least hashes, ascending.
fn sketch<T: Copy + Ord>(items: impl Iterator<Item = (u64, T)>) -> Vec<(u64, T)> {
    let mut least = BinaryHeap::with_capacity(SKETCH + 1);
    for item in items {
        if least.len() < SKETCH || least.peek().is_some_and(|most| item < *most) {
            least.push(item);
        }
        if least.len() > SKETCH {
            least.pop();
        }
    }
    let mut least = least.into_sorted_vec();
    least.dedup();
    least
}

/// The processes with several dumps among these devices, that with the most growth first.
pub(crate) fn processes(dumps: &[(&Card, &Dump)]) -> Vec<Process> {
    let mut same = Same((0..dumps.len()).map(|i| (i, None)).collect());
    for ((a, b), count) in shared_events(dumps) {
        let (of_a, of_b) = (dumps[a], dumps[b]);
        let agree = || lacks_few(of_a.1, of_b.1) && lacks_few(of_b.1, of_a.1);
        if count >= MIN_SHARED && are_comparable(of_a.0, of_b.0) && agree() {
            same.join(a, b, Evidence::Events);
        }
    }
    for (a, b) in named_alike(dumps) {
        if same.root(a) != same.root(b) && have_same_blocks(dumps[a], dumps[b]) {
            same.join(a, b, Evidence::Blocks);
        }
    }
    let mut found: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for i in 0..dumps.len() {
        found.entry(same.root(i)).or_default().push(i);
    }
    let process = |(root, members): (usize, Vec<usize>)| {
        let members = members.into_iter().map(|i| dumps[i]).collect();
        story(members, same.0[root].1.unwrap_or(Evidence::Events))
    };
    let mut all: Vec<Process> = found.into_iter().filter_map(process).collect();
    all.sort_by_key(|process| Reverse(process.growth_bytes));
    if all.len() > 1 {
        all.iter_mut().for_each(words::name);
    }
    all
}

/// The iterations of each rank in an index. Nothing but the paths tells that they are of one
/// process.
pub(crate) fn of_iterations(cards: &[&Card]) -> Vec<Process> {
    let mut series: BTreeMap<(String, u32), BTreeMap<u64, &Card>> = BTreeMap::new();
    for &card in cards.iter().filter(|card| card.device != HOST) {
        if let Some((name, iteration)) = without_iteration(&card.path) {
            series.entry((name, card.device)).or_default().insert(iteration, card);
        }
    }
    let all = series.into_values().map(|of| of.into_values().collect::<Vec<_>>());
    let mut all: Vec<Process> = all.filter_map(|cards| iterations(&cards)).collect();
    if all.len() > 1 {
        all.iter_mut().for_each(words::name);
    }
    all
}

/// The names of the largest call sites, with their bytes.
fn named(sites: Vec<(CallSite, u64)>) -> Vec<(String, u64)> {
    sites.into_iter().take(KEPT_SITES).map(|(site, bytes)| (site.name, bytes)).collect()
}

/// What the iterations of a rank tell; `None` unless all keep memory at comparable moments.
fn iterations(cards: &[&Card]) -> Option<Process> {
    let [first, .., last] = cards else { return None };
    let signed = |bytes: Bytes| i64::try_from(bytes.0).unwrap_or(i64::MAX);
    let has_steps = |card: &Card| !card.steps.is_empty();
    if cards.iter().any(|card| has_steps(card) != has_steps(first)) {
        return None;
    }
    let live = |card: &Card| {
        let of_site = |of: &SiteBytes| (card.names.site(of.site).clone(), of.bytes.0);
        let sites = named(card.kept_sites.iter().map(of_site).collect());
        Live { time: None, bytes: card.kept.0, categories: BTreeMap::new(), sites }
    };
    let moment =
        |card: &&Card| Moment { path: card.path.clone(), time_us: None, bytes: card.kept.0 };
    let mut process = Process {
        text: String::new(),
        rank: first.rank,
        device: first.device,
        evidence: Evidence::Names,
        when: if has_steps(first) { When::LastStep } else { When::Dump },
        moments: cards.iter().map(moment).collect(),
        moments_omitted: None,
        growth_bytes: signed(last.kept).saturating_sub(signed(first.kept)),
        categories: BTreeMap::new(),
        sites: grown_sites(&live(first), &live(last)),
    };
    process.text = words::text(&process);
    Some(process)
}

/// Sets of dumps, each with the weakest evidence for it: a forest of indices.
struct Same(Vec<(usize, Option<Evidence>)>);

impl Same {
    fn root(&self, mut i: usize) -> usize {
        while self.0[i].0 != i {
            i = self.0[i].0;
        }
        i
    }

    fn join(&mut self, a: usize, b: usize, evidence: Evidence) {
        let (a, b) = (self.root(a), self.root(b));
        let (low, high) = (a.min(b), a.max(b));
        let known = self.0[high].1.or(self.0[low].1);
        let weakest = [self.0[low].1, known, Some(evidence)].contains(&Some(Evidence::Blocks));
        self.0[high].0 = low;
        self.0[low].1 = Some(if weakest { Evidence::Blocks } else { Evidence::Events });
    }
}

/// Whether two dumps may be of one process: paths that name two ranks are of two.
fn are_comparable(a: &Card, b: &Card) -> bool {
    a.device == b.device && a.device != HOST && a.rank == b.rank && a.path != b.path
}

/// The number of events that two dumps share, for each pair of neighbors among those that have an
/// event.
fn shared_events(dumps: &[(&Card, &Dump)]) -> BTreeMap<(usize, usize), usize> {
    let mut last: FxHashMap<(u32, u64), usize> = FxHashMap::default();
    let mut counts = BTreeMap::new();
    for (i, (card, dump)) in dumps.iter().enumerate() {
        for &(hash, _) in &dump.events {
            if let Some(before) = last.insert((card.device, hash), i) {
                *counts.entry((before, i)).or_default() += 1;
            }
        }
    }
    counts
}

/// Whether `b` has nine in ten of the events of `a` that lie in its window. Two processes may have
/// some equal events only if a program wrote their files.
fn lacks_few(a: &Dump, b: &Dump) -> bool {
    let Some([start, end]) = b.window else { return false };
    // A full sketch says nothing of greater hashes.
    let limit =
        b.events.last().filter(|_| b.events.len() >= SKETCH).map_or(u64::MAX, |last| last.0);
    let in_window = a.events.iter().filter(|&&(hash, time)| {
        // Events of one microsecond may be divided between windows.
        hash <= limit && start < time && time < end
    });
    let (all, known) = in_window.fold((0, 0), |(all, known), event| {
        (all + 1, known + usize::from(b.events.binary_search(event).is_ok()))
    });
    known * 10 >= all * 9
}

/// Pairs of dumps whose paths differ by the number of the step alone, each with the one after it.
fn named_alike(dumps: &[(&Card, &Dump)]) -> Vec<(usize, usize)> {
    let mut series: BTreeMap<(String, u32), Vec<(u64, usize)>> = BTreeMap::new();
    for (i, (card, _)) in dumps.iter().enumerate() {
        if let Some((name, step)) = without_iteration(&card.path) {
            series.entry((name, card.device)).or_default().push((step, i));
        }
    }
    let mut pairs = Vec::new();
    for mut steps in series.into_values() {
        steps.sort_unstable();
        let next = steps.windows(2).filter(|pair| pair[0].0 < pair[1].0);
        pairs.extend(next.map(|pair| (pair[0].1, pair[1].1)));
    }
    pairs
}

/// Whether blocks that stay connect two dumps, of which `a` is the earlier one by its name: a
/// quarter of the blocks of one, in windows that do not overlap.
fn have_same_blocks((card_a, a): (&Card, &Dump), (card_b, b): (&Card, &Dump)) -> bool {
    let follows = match (a.window, b.window) {
        (Some([_, end]), Some([start, _])) => end <= start,
        _ => true,
    };
    let shared = a.blocks.iter().filter(|block| b.blocks.binary_search(block).is_ok()).count();
    let fewest = a.blocks.len().min(b.blocks.len());
    follows && shared >= MIN_SHARED.max(fewest / 4) && are_comparable(card_a, card_b)
}

/// What the dumps of one process tell; `None` without a second moment: files with one last event
/// are copies.
fn story(mut dumps: Vec<(&Card, &Dump)>, evidence: Evidence) -> Option<Process> {
    let end = |dump: &Dump| dump.window.map(|window| window[1]);
    dumps.sort_by_key(|(card, dump)| (end(dump), iteration_of(&card.path), card.path.as_str()));
    dumps.dedup_by(|(_, next), (_, known)| end(next).is_some() && end(next) == end(known));
    if dumps.len() < 2 {
        return None;
    }
    // Two dumps within one step have one last whole step.
    let are_apart = dumps.windows(2).all(|pair| match (&pair[0].1.step, &pair[1].1.step) {
        (Some(a), Some(b)) => a.time.is_none() || a.time < b.time,
        _ => false,
    });
    let when = if are_apart { When::LastStep } else { When::Dump };
    let live = |dump: &'_ Dump| -> Live {
        let step = dump.step.as_ref().filter(|_| are_apart);
        step.unwrap_or(&dump.end).clone()
    };
    let (first, last) = (live(dumps[0].1), live(dumps[dumps.len() - 1].1));
    let difference = |before: u64, after: u64| after as i64 - before as i64;
    let categories = Category::ALL.into_iter().filter_map(|category| {
        let of = |live: &Live| live.categories.get(&category).copied().unwrap_or(0);
        let grown = difference(of(&first), of(&last));
        (grown != 0).then(|| (category.name(), grown))
    });
    let moment = |&(card, dump): &(&Card, &Dump)| Moment {
        path: card.path.clone(),
        time_us: end(dump),
        bytes: live(dump).bytes,
    };
    let mut process = Process {
        text: String::new(),
        rank: dumps[0].0.rank,
        device: dumps[0].0.device,
        evidence,
        when,
        moments: dumps.iter().map(moment).collect(),
        moments_omitted: None,
        growth_bytes: difference(first.bytes, last.bytes),
        categories: categories.collect(),
        sites: grown_sites(&first, &last),
    };
    process.text = words::text(&process);
    Some(process)
}

/// The call sites that grew most. One that is not among the largest of the first dump had at most
/// the bytes of the last of these.
fn grown_sites(first: &Live, last: &Live) -> Vec<SiteGrowth> {
    let is_full = first.sites.len() >= KEPT_SITES;
    let rest = first.sites.last().filter(|_| is_full).map_or(0, |site| site.1);
    let known: FxHashMap<&str, u64> =
        first.sites.iter().map(|(site, bytes)| (site.as_str(), *bytes)).collect();
    let growth = |(site, bytes): &(String, u64)| {
        let before = known.get(site.as_str()).copied().unwrap_or(rest);
        SiteGrowth { site: site.clone(), bytes: bytes.saturating_sub(before) }
    };
    let mut sites: Vec<SiteGrowth> = last.sites.iter().map(growth).collect();
    sites.retain(|site| site.bytes >= MIN_GROWTH);
    sites.sort_by_key(|site| Reverse(Bytes(site.bytes)));
    sites.truncate(MAX_SITES);
    sites
}
