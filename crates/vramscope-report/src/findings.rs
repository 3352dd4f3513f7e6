//! The record of a finding, the findings of a device, and those across ranks.

pub use blind::BlindSpotRecord;

pub(crate) mod blind;
mod place;

use crate::card::{Card, CardFinding};
use crate::frames::{FrameRecord, owned_frames, site};
use crate::holders::{self, Holder, HolderKind};
use crate::levers;
use crate::lines::call_of;
use crate::proof::{self, Proof};
use crate::target::Target;
use crate::text::file_name;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::hash::Hash;
use vramscope_inference::{
    About, Basis, CallSite, Facts, Finding, FindingId, FindingKind, Lever, Look, Phase, Phrase,
    Predicted, RankFacts, RankSkew, Sentence, Severity, Simulated, Words, lower_first, plain,
    rank_skew, rank_why, rank_words,
};
use vramscope_snapshot::StackId;
use vramscope_units::{Blocks, Bytes, EventIndex, grouped};

/// A finding, as every door of vramscope writes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct FindingRecord {
    /// A stable id: one file gives one id on every machine.
    pub id: FindingId,
    /// The kind.
    pub kind: FindingKind,
    /// The severity.
    pub severity: Severity,
    /// The file's path.
    pub path: String,
    /// The rank in the path; null if there is none.
    pub rank: Option<u32>,
    /// The device's ordinal.
    pub device: u32,
    /// The finding in a few words.
    pub title: String,
    /// Subject, numbers and cause.
    pub text: String,
    /// What to do.
    pub action: String,
    /// The line that it is about; null without a call stack.
    #[serde(default)]
    pub place: Option<FindingPlace>,
    /// Why, in one line without the figures of the title; empty where the title says it.
    #[serde(default)]
    pub why: String,
    /// Bytes that the finding is about.
    pub bytes: Bytes,
    /// What the peak loses without it; null where that is not measured.
    #[serde(default)]
    pub saving_bytes: Option<Bytes>,
    /// The training step, from 0; null if the finding is about several or none.
    pub step: Option<u32>,
    /// The phase; null if the finding is about several or none.
    pub phase: Option<Phase>,
    /// How the numbers were obtained.
    pub basis: Basis,
    /// Evidence: event indices from 0.
    pub events: Vec<EventIndex>,
    /// The call sites that the finding is about, most bytes first.
    pub sites: Vec<String>,
    /// The callers of the first site, innermost first: frames outside of PyTorch.
    pub called_from: Vec<String>,
    /// The number of blocks that the finding is about.
    pub blocks: Blocks,
    /// The shares of the call sites, if there are several.
    pub children: Vec<FindingChild>,
    /// What the model of the allocator says: first about the run as recorded, then about changes.
    /// Absent where it says nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "typescript", ts(as = "Option<Vec<Simulated>>", optional))]
    pub simulated: Vec<Simulated>,
    /// The changes with which a run goes through that failed, replayed over the whole run: what
    /// fits first, then by cost. Absent for other findings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "typescript", ts(as = "Option<Vec<Lever>>", optional))]
    pub fixes: Vec<Lever>,
    /// Known causes of memory that the file shows, whose cures do not suffice alone: those with
    /// most bytes first. Absent for other findings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "typescript", ts(as = "Option<Vec<Look>>", optional))]
    pub look: Vec<Look>,
    /// What holds its blocks that are live at the end, most bytes first. Of a failed allocation:
    /// what to drop beside the model. Absent unless the file beside the snapshot tells it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "typescript", ts(as = "Option<Vec<Holder>>", optional))]
    pub holders: Vec<Holder>,
    /// The numbers that prove it; absent where there are none to draw. The page has its chart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(skip))]
    pub proof: Option<Proof>,
}

/// The line that a finding is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct FindingPlace {
    /// The call site: `gpt.py:44 forward`.
    pub site: String,
    /// What of it: `in its backward (LogSoftmaxBackward0)`, `called from train.py:40 main`. Empty
    /// if it is the line itself.
    pub note: String,
    /// The recorded path of the file.
    pub file: String,
    /// The line; 0 if unknown.
    pub line: u32,
    /// The line of source; null if it is not known.
    pub source: Option<String>,
    /// What it allocates: shape, number of blocks. Empty if nothing more is known.
    pub what: String,
}

/// The share of one call site in a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct FindingChild {
    /// The call site.
    pub site: String,
    /// Its bytes.
    pub bytes: Bytes,
    /// Its blocks.
    pub blocks: Blocks,
}

/// A finding where it is made: the record, and the parts that only sentences with links, pictures
/// and searches need. It serializes as the record.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct FindingEntry {
    /// The record.
    pub record: FindingRecord,
    /// The rank or ranks before the title: `Rank 3: `. Empty for a file without other ranks, and
    /// for findings across ranks, whose titles name the rank.
    #[serde(skip)]
    pub owner: String,
    /// The title with its nouns as links, without an owner.
    #[serde(skip)]
    pub title: Vec<Phrase>,
    /// Whether it can have the first words: [`Finding`] says when.
    #[serde(skip)]
    pub leads: bool,
    /// What to do beside the changes that were replayed.
    #[serde(skip)]
    pub advice: String,
    /// The number of other dumps of its process that have an equal one.
    #[serde(skip)]
    pub other_moments: usize,
    /// The largest call stack, innermost frame first; empty if there is none.
    #[serde(skip)]
    pub frames: Vec<FrameRecord<'static>>,
    /// The largest call stack in the file's tables; `None` without a stack, and for findings across
    /// ranks.
    #[serde(skip)]
    pub stack: Option<StackId>,
}

/// The cause of a finding. Findings of two ranks with one cause are one finding. Bytes and blocks
/// differ from rank to rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CauseKey<'a> {
    kind: FindingKind,
    what: &'a str,
}

impl FindingRecord {
    /// The terms of a search for its blocks: its call sites, or what was live when an allocation
    /// failed. Empty where it is about no blocks.
    pub fn terms(&self) -> Vec<String> {
        if self.kind == FindingKind::Oom {
            let event = self.events.first();
            return event.map(|event| format!("live@#{}", event.0)).into_iter().collect();
        }
        self.sites.iter().map(|site| format!("site:{site}")).collect()
    }

    /// The filters that choose its blocks in a picture. Empty where it is about a moment, as a
    /// failed allocation is: a filter for all that was live then would dim hardly anything.
    pub fn filters(&self) -> Vec<String> {
        if self.kind == FindingKind::Oom { Vec::new() } else { self.terms() }
    }

    /// The step and phase in words: `step 3, backward`, or `request 3`. Empty if neither is known.
    pub fn place(&self, word: &str) -> String {
        step_and_phase(word, self.step, self.phase.map(Phase::name))
    }

    /// The cause.
    pub fn cause(&self) -> CauseKey<'_> {
        let what = match self.kind.about() {
            About::Device => "",
            About::Id => &self.id.what,
            About::Blocks | About::Rank => self.sites.first().map_or("", String::as_str),
        };
        CauseKey { kind: self.kind, what }
    }

    /// The record without its lists of evidence, for the card of a rank: it keeps the first event.
    #[must_use]
    pub fn brief(&self) -> Self {
        Self {
            events: self.events.first().copied().into_iter().collect(),
            called_from: Vec::new(),
            children: Vec::new(),
            simulated: Vec::new(),
            fixes: Vec::new(),
            look: Vec::new(),
            holders: Vec::new(),
            proof: None,
            ..self.clone()
        }
    }

    /// What makes one finding worse than another: the least is the worst. A failed allocation ended
    /// the run, whatever else was found.
    pub fn weight(&self) -> Weight {
        weight(self.kind, self.severity, self.bytes)
    }
}

/// See [`FindingRecord::place`].
pub fn step_and_phase(word: &str, step: Option<u32>, phase: Option<&str>) -> String {
    let step = step.map(|step| format!("{word} {}", grouped(step.into())));
    step.into_iter().chain(phase.map(str::to_owned)).collect::<Vec<_>>().join(", ")
}

/// See [`FindingRecord::weight`].
pub type Weight = (bool, Severity, std::cmp::Reverse<Bytes>);

/// See [`FindingRecord::weight`].
pub fn weight(kind: FindingKind, severity: Severity, bytes: Bytes) -> Weight {
    (kind != FindingKind::Oom, severity, std::cmp::Reverse(bytes))
}

/// The cause in words, for lists of cards.
impl fmt::Display for CauseKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.name(), self.what)
    }
}

/// The maximum number of children. The rest is in the text's sum.
const MAX_CHILDREN: usize = 20;

/// The findings of one device, by severity, then bytes, with the answers of the allocator's model
/// if [`Derived::Simulated`](crate::Derived::Simulated) is computed. Rank skew needs a comparison
/// of ranks.
pub fn of_device(target: Target<'_>) -> Vec<FindingEntry> {
    entries(target, |finding| target.entry.simulated(target.index, finding))
}

/// The same without these answers, also where they are known.
pub(crate) fn without_replays(target: Target<'_>) -> Vec<FindingEntry> {
    entries(target, |_| None)
}

/// The findings of one device, each with what replays say about the finding at its index.
fn entries<'a>(
    target: Target<'a>,
    predicted: impl Fn(usize) -> Option<&'a Predicted>,
) -> Vec<FindingEntry> {
    let found = target.entry.findings(target.index).iter().enumerate();
    let proofs = target.entry.proofs(target.index);
    let nothing = Predicted::default();
    let entry = |(i, finding): (usize, &Finding)| {
        let predicted = predicted(i).unwrap_or(&nothing);
        let told = holders::of_finding(target, finding);
        let is_held = told.iter().any(|told| told.holder.kind == HolderKind::Reference);
        let scene = target.entry.scene(target.index, finding, predicted, is_held);
        let claim = finding.facts.claim();
        let Words { title, text, action } = claim.words(&scene);
        // What a leak holds is dropped. Other memory is needed, for a shorter time.
        let is_leak = matches!(finding.kind(), FindingKind::Growth | FindingKind::Cycle);
        let action = if is_leak { holders::advised(&told, action) } else { action };
        let holders = told.into_iter().map(|told| told.holder).collect();
        let mut place = claim.spot(&scene).map(|spot| place::of_spot(target, spot));
        // What replays say is a list of its own.
        let all = std::iter::once(action.clone()).filter(|action| !action.is_empty());
        let all = all.chain(levers::sentences(&predicted.fixes)).collect::<Vec<_>>().join(" ");
        let (advice, action) = match finding.facts {
            Facts::Oom(_) => (action, all),
            _ => (action.clone(), action),
        };
        let stack = finding.stack();
        let frames = owned_frames(target.snapshot(), stack.unwrap_or(StackId::EMPTY));
        let called_from = callers(&frames);
        let innermost = frames.iter().find(|frame| !frame.is_framework());
        if let (FindingKind::Growth, Some(place), Some(caller), Some(innermost)) =
            (finding.kind(), &mut place, called_from.first(), innermost)
            && place.note.is_empty()
            // Call sites that grow together share a frame, which others may call.
            && place.site == innermost.label()
        {
            place.note = format!("called from {caller}");
        }
        if let (FindingKind::Oom, Some(place)) = (finding.kind(), &mut place)
            && place.note.is_empty()
            && let Some(call) = stack.and_then(|stack| call_of(target, stack))
        {
            place.note = format!("which calls {call}");
        }
        let (sites, children) = sites_of(children(target, finding));
        let record = FindingRecord {
            id: finding.id.clone(),
            kind: finding.kind(),
            severity: finding.severity,
            path: target.path.to_owned(),
            rank: crate::rank_of(target.path),
            device: finding.device,
            title: title.plain(),
            text,
            action,
            place,
            why: claim.why(&scene),
            bytes: Bytes(finding.bytes),
            saving_bytes: claim.saving(&scene).filter(|saving| saving.0 > 0),
            step: finding.step,
            phase: finding.phase,
            basis: finding.basis,
            events: finding.events.iter().copied().map(EventIndex).collect(),
            sites,
            called_from,
            blocks: Blocks(finding.blocks.into()),
            children,
            simulated: predicted.simulated.clone(),
            fixes: predicted.fixes.clone(),
            look: predicted.looks.clone(),
            holders,
            proof: proofs.get(i).cloned().flatten(),
        };
        let leads = finding.leads && finding.severity != Severity::Low;
        FindingEntry { leads, advice, stack, ..FindingEntry::new(record, title, frames) }
    };
    found.map(entry).collect()
}

/// The findings that a card of an index has with their texts.
pub(crate) fn of_card(findings: &[CardFinding]) -> Vec<FindingEntry> {
    let entry = |CardFinding { record, leads, .. }: &CardFinding| {
        let title = Sentence::new(&record.title);
        FindingEntry { leads: *leads, ..FindingEntry::new(record.clone(), title, Vec::new()) }
    };
    findings.iter().map(entry).collect()
}

/// The finding that a comparison of ranks made about the file at `path`. `frames` is the call stack
/// that it is about.
pub fn of_ranks(path: &str, skew: &RankSkew, frames: Vec<FrameRecord<'static>>) -> FindingEntry {
    let mut children: Vec<FindingChild> = Vec::new();
    for site in &skew.sites {
        match children.iter_mut().find(|child| child.site == site.site.name) {
            Some(child) => child.bytes.0 += site.excess.0,
            None => children.push(FindingChild {
                site: site.site.name.clone(),
                bytes: site.excess,
                blocks: Blocks(0),
            }),
        }
    }
    children.sort_by_key(|child| std::cmp::Reverse(child.bytes));
    children.truncate(MAX_CHILDREN);
    let (sites, children) = sites_of(children);
    let Words { title, text, action } = rank_words(skew);
    let place = place::of_ranks(&frames);
    let record = FindingRecord {
        id: skew.id.clone(),
        kind: FindingKind::RankSkew,
        severity: skew.severity,
        path: path.to_owned(),
        rank: crate::rank_of(path),
        device: skew.id.device,
        title: title.plain(),
        text,
        action,
        place: place.filter(|_| !sites.is_empty()),
        why: rank_why(skew),
        bytes: skew.excess(),
        saving_bytes: None,
        step: None,
        phase: None,
        basis: skew.basis,
        events: Vec::new(),
        sites,
        called_from: callers(&frames),
        blocks: Blocks(0),
        children,
        simulated: Vec::new(),
        fixes: Vec::new(),
        look: Vec::new(),
        holders: Vec::new(),
        proof: Some(proof::ranks(skew)),
    };
    let leads = skew.severity != Severity::Low;
    FindingEntry { leads, ..FindingEntry::new(record, title, frames) }
}

/// The first of the call sites of a record.
fn main_site<'a>(skew: &'a RankSkew, sites: &[String]) -> Option<&'a CallSite> {
    skew.sites.iter().map(|of| &of.site).find(|site| Some(&site.name) == sites.first())
}

/// The call sites of a record, and its children. A single call site has no children.
fn sites_of(mut children: Vec<FindingChild>) -> (Vec<String>, Vec<FindingChild>) {
    let sites = children.iter().map(|child| child.site.clone()).collect();
    if children.len() == 1 {
        children.clear();
    }
    (sites, children)
}

/// The maximum number of callers of a finding's call site.
const MAX_CALLERS: usize = 8;

/// The callers of the first call site of a stack.
fn callers(frames: &[FrameRecord<'_>]) -> Vec<String> {
    let own = frames.iter().filter(|f| !f.is_framework()).map(FrameRecord::label);
    own.skip(1).take(MAX_CALLERS).collect()
}

/// The shares of call sites, most bytes first. Call stacks with one label are one site. The call
/// sites of a failed allocation keep their order: the requests by time, then what holds memory.
fn children(target: Target<'_>, finding: &Finding) -> Vec<FindingChild> {
    let mut children: Vec<FindingChild> = Vec::new();
    for part in &finding.parts {
        let site = site(target.entry, part.stack);
        let blocks = u64::from(part.blocks);
        match children.iter_mut().find(|child| child.site == site) {
            Some(child) => {
                child.bytes.0 += part.bytes.0;
                child.blocks.0 += blocks;
            }
            None => {
                children.push(FindingChild { site, bytes: part.bytes, blocks: Blocks(blocks) });
            }
        }
    }
    if finding.kind() != FindingKind::Oom {
        children.sort_by_key(|child| std::cmp::Reverse(child.bytes));
    }
    children.truncate(MAX_CHILDREN);
    children
}

/// Where a finding of a rank belongs: the folder of its run, its cause and its path.
pub type RunKey<'a, C> = (&'a str, C, &'a str);

/// Groups findings that are equal on several ranks. `keys` are the findings, the worst first;
/// `None` is one that no other equals. Each group has one finding of a path at most, and the groups
/// are in the order of their first findings.
pub fn groups<C: Copy + Eq + Hash>(keys: &[Option<RunKey<'_, C>>]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut known: FxHashMap<(&str, C), Vec<usize>> = FxHashMap::default();
    // A path joins equal groups in their order, so the number of its findings is the next group.
    let mut joined: FxHashMap<RunKey<'_, C>, usize> = FxHashMap::default();
    for (i, key) in keys.iter().enumerate() {
        let Some((folder, cause, path)) = *key else {
            groups.push(vec![i]);
            continue;
        };
        let same = known.entry((folder, cause)).or_default();
        let next = joined.entry((folder, cause, path)).or_default();
        *next += 1;
        match same.get(*next - 1) {
            Some(&group) => groups[group].push(i),
            None => {
                same.push(groups.len());
                groups.push(vec![i]);
            }
        }
    }
    groups
}

/// The findings of all devices and those across ranks, by severity, then bytes. A finding of a file
/// with other ranks has that rank; its words do not name it.
pub(crate) fn of_run(ranks: Vec<Card>) -> Vec<(FindingEntry, Option<u32>)> {
    let facts: Vec<RankFacts> = ranks.iter().map(|card| card.facts(&card.names)).collect();
    let skews = rank_skew(&facts).into_iter().map(|(index, skew)| {
        let rank = &ranks[index];
        let largest = skew.sites.first();
        let is_of = |stack: u32, hash: u64| rank.names.stack(stack).hash == hash;
        let stack = largest.and_then(|site| rank.stacks.iter().find(|s| is_of(s.stack, site.hash)));
        let frames = stack.map(|s| s.frames.clone()).unwrap_or_default();
        let mut entry = of_ranks(&rank.path, &skew, frames);
        // A card of an index has no frames.
        if entry.record.place.is_none() {
            let site = main_site(&skew, &entry.record.sites).filter(|site| site.has_frame);
            entry.record.place = site.map(|site| FindingPlace::of_site(site.name.clone()));
        }
        (entry, None)
    });
    let skews: Vec<(FindingEntry, Option<u32>)> = skews.collect();
    let mut all: Vec<(FindingEntry, Option<u32>)> = Vec::new();
    let has_other_rank = |of: &RankFacts| {
        facts.iter().any(|f| f.folder == of.folder && f.rank.is_some() && f.rank != of.rank)
    };
    for (summary, facts) in ranks.into_iter().zip(&facts) {
        let rank = facts.rank.filter(|_| has_other_rank(facts));
        all.extend(summary.entries.into_iter().map(|finding| (finding, rank)));
    }
    all.extend(skews);
    all.sort_by(|(a, _), (b, _)| {
        let place = |entry: &FindingEntry| (entry.record.path.clone(), entry.record.id.clone());
        a.weight().cmp(&b.weight()).then_with(|| place(a).cmp(&place(b)))
    });
    all
}

/// `Rank 3: `.
fn rank_owner(rank: u32) -> String {
    format!("Rank {rank}: ")
}

impl FindingEntry {
    /// A finding of a file without other ranks, with the record's action as advice.
    fn new(record: FindingRecord, title: Sentence, frames: Vec<FrameRecord<'static>>) -> Self {
        Self {
            owner: String::new(),
            title: title.into_phrases(),
            leads: false,
            advice: record.action.clone(),
            other_moments: 0,
            record,
            frames,
            stack: None,
        }
    }

    /// Names the rank that has the finding in its words, and the number of `others` with an equal
    /// one.
    pub(crate) fn named(mut self, rank: u32, others: usize) -> Self {
        self.owner = match others {
            0 => rank_owner(rank),
            1 => format!("Rank {rank} and 1 more rank: "),
            _ => format!("Rank {rank} and {} more ranks: ", grouped(others as u64)),
        };
        self.record.title = self.headline();
        self.record.text.insert_str(0, &rank_owner(rank));
        self
    }

    /// Names the dump that has the finding in its title, if `others` of its process have an equal
    /// one.
    pub(crate) fn of_moment(mut self, others: usize) -> Self {
        self.other_moments = others;
        let name = file_name(&self.record.path);
        let dumps = match others {
            0 => return self,
            1 => format!("{name} and 1 more moment: "),
            _ => format!("{name} and {} more moments: ", grouped(others as u64)),
        };
        self.record.title = format!("{dumps}{}", lower_first(&self.record.title));
        self
    }

    /// The title after its owner: `Rank 3: leak at train.py:31 step: +49.1 MiB per step`.
    pub fn headline(&self) -> String {
        let title = plain(&self.title);
        if self.owner.is_empty() { title } else { format!("{}{}", self.owner, lower_first(&title)) }
    }

    /// What makes one finding worse than another: the least is the worst. Those that can have the
    /// first words come first.
    pub(crate) fn weight(&self) -> (bool, Weight) {
        (!self.leads, self.record.weight())
    }
}

/// The findings of all devices and those across ranks, with the ranks in their words.
pub fn across(ranks: Vec<Card>) -> Vec<FindingEntry> {
    of_run(ranks).into_iter().map(named).collect()
}

/// Names the rank of a finding of a run.
pub(crate) fn named((entry, rank): (FindingEntry, Option<u32>)) -> FindingEntry {
    match rank {
        Some(rank) => entry.named(rank, 0),
        None => entry,
    }
}

/// The finding with an id; `None` if the device has none. Findings must be derived before.
pub fn with_id(target: Target<'_>, id: &str) -> Option<FindingEntry> {
    let id: FindingId = id.parse().ok()?;
    of_device(target).into_iter().find(|entry| entry.record.id == id)
}
