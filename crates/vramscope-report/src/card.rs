//! The card of a device: its figures, what ranks are compared by, and its findings, in a few
//! kilobytes.
//!
//! A card outlives the tables of its file. Lines of an index, rows of a dataset and messages from a
//! file's worker to the coordinator carry it in one form, as JSON (docs/fleets.md). So a run of
//! 10,000 ranks is shown and compared without any of its snapshots.

mod make;
mod sites;
mod told;

pub(crate) use make::sites_at;
pub use told::{FailureMemory, Told};
pub(crate) use told::{MAX_BYTES, peak_words};

use crate::findings::{FindingEntry, FindingRecord};
use crate::frames::FrameRecord;
use crate::peak::BandKind;
use crate::shares::CategoryShare;
use crate::summary::{BandSummary, OomSummary};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use vramscope_inference::{BlindSpot, CallSite, Category, FindingKind, RankFacts, RankStack};
use vramscope_units::{Bytes, Events, Iteration, PeakEvent};

/// The columns of a card's curve.
pub const COLUMNS: usize = 100;

/// The value of a column of a curve at the full height: the peak of reserved bytes, or of requested
/// bytes if that is higher.
pub const FULL_HEIGHT: u32 = 1000;

/// The most findings that a card keeps with their texts once it leaves its file.
pub const MAX_FINDINGS: usize = 8;

/// The most steps of a card.
pub const MAX_STEPS: usize = 64;

/// The most call stacks of a card.
pub const MAX_STACKS: usize = 200;

/// The most call sites of a card.
pub const MAX_SITES: usize = 128;

/// One device of one file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Card {
    /// The file's path, followed by `#name` if the file contains several snapshots.
    pub path: String,
    /// Stored size of the file.
    pub bytes: Bytes,
    /// The rank in the path; null if there is none.
    pub rank: Option<u32>,
    /// The iteration in the path; null if there is none.
    pub iteration: Option<Iteration>,
    /// The device's ordinal.
    pub device: u32,
    /// The number of trace events.
    pub events: Events,
    /// The four bands, in the order of [`BandKind::ALL`].
    pub bands: [BandSummary; 4],
    /// The free memory that the allocator caches at the peak of `reserved_bytes`.
    pub free: FreeMemory,
    /// The free memory that the allocator caches after the last event.
    pub end_free: FreeMemory,
    /// The most bytes that PyTorch can reserve on the device; null if the file does not show it.
    pub capacity: Option<Bytes>,
    /// Live bytes at the peak of `requested_bytes` by category, most bytes first.
    pub categories: Vec<CategoryShare>,
    /// Live bytes at that peak by call site: the [`MAX_SITES`] largest.
    pub sites: Vec<SiteBytes>,
    /// Live bytes at that peak by call stack: the [`MAX_STACKS`] largest.
    pub stacks: Vec<StackBytes>,
    /// The event after the last whole step, or the last event where nothing shows steps; -1 is the
    /// state before the window. The memory that is live then is kept.
    pub kept_event: PeakEvent,
    /// `requested_bytes` after that event.
    pub kept: Bytes,
    /// Live bytes after that event by call site: the [`MAX_SITES`] largest.
    pub kept_sites: Vec<SiteBytes>,
    /// Out-of-memory events.
    pub ooms: Vec<OomSummary>,
    /// The device's own findings by severity, then bytes. A short card has the worst of them.
    pub findings: Vec<CardFinding>,
    /// The findings that a short card leaves out.
    pub other_findings: Vec<KindBytes>,
    /// The most `requested_bytes` in equal parts of the window, in units of the full height divided
    /// by [`FULL_HEIGHT`].
    pub curve: Vec<u32>,
    /// The number of the first step in `steps`, from 0.
    pub first_step: u32,
    /// The last whole steps.
    pub steps: Vec<StepBytes>,
    /// The call sites and stacks that no card before this one names. A card outside of an index
    /// names all of its own.
    pub names: Names,
    /// The findings with all that is known of them. They stay with the file.
    #[serde(skip)]
    pub entries: Vec<FindingEntry>,
    /// The kinds of findings that the recording cannot show; empty for a device that is not the
    /// main one of its file. They stay with the file.
    #[serde(skip)]
    pub blind_spots: Vec<BlindSpot>,
    /// The place of the peak, the blind spots and the memory of a failure, for a diagnosis. Absent
    /// on the page, and in an index of an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(skip))]
    pub told: Option<Told>,
}

/// Free memory that the allocator caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct FreeMemory {
    /// Reserved minus active bytes.
    pub bytes: Bytes,
    /// The largest free piece.
    pub largest: Bytes,
}

/// The live bytes of a call site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct SiteBytes {
    /// Its index in [`Names::sites`].
    pub site: u32,
    /// Requested bytes.
    pub bytes: Bytes,
}

/// The live bytes of a call stack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct StackBytes {
    /// Its index in [`Names::stacks`].
    pub stack: u32,
    /// Requested bytes.
    pub bytes: Bytes,
    /// The category with most of the bytes.
    pub category: Category,
    /// Whether a finding about growth or held memory names the call site. Absent means no.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_found: bool,
    /// The call stack, innermost frame first. It stays with the file.
    #[serde(skip)]
    pub frames: Vec<FrameRecord<'static>>,
}

/// A finding that a card has without its texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct KindBytes {
    /// The kind.
    pub kind: FindingKind,
    /// Bytes that the finding is about.
    pub bytes: Bytes,
}

/// A whole step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct StepBytes {
    /// The peak of `requested_bytes` in the step.
    pub peak: Bytes,
    /// `requested_bytes` after the step.
    pub floor: Bytes,
}

/// Call sites and call stacks. Each is stored once, and cards refer to it by index.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Names {
    /// The call sites.
    #[serde(with = "sites")]
    #[cfg_attr(feature = "typescript", ts(as = "Vec<String>"))]
    pub sites: Vec<CallSite>,
    /// The call stacks.
    pub stacks: Vec<NamedStack>,
}

/// A call stack, as cards know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct NamedStack {
    /// A hash of the frames' names, files and lines, equal in all ranks.
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub hash: u64,
    /// The index of its call site in [`Names::sites`].
    pub site: u32,
}

/// A finding of a card: the record, and words that need the tables of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct CardFinding {
    /// The record, [in brief](FindingRecord::brief).
    pub record: FindingRecord,
    /// The step and phase in words; empty if neither is known.
    pub place: String,
    /// Whether it can have the first words. Absent means no.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "typescript", ts(skip))]
    pub leads: bool,
}

impl Names {
    /// The call site with an index.
    ///
    /// # Panics
    /// A card was not checked to refer to these names.
    pub fn site(&self, index: u32) -> &CallSite {
        &self.sites[index as usize]
    }

    /// The call stack with an index.
    ///
    /// # Panics
    /// A card was not checked to refer to these names.
    pub fn stack(&self, index: u32) -> NamedStack {
        self.stacks[index as usize]
    }

    /// Appends names, whose indices count on.
    pub(crate) fn append(&mut self, new: Self) {
        self.sites.extend(new.sites);
        self.stacks.extend(new.stacks);
    }
}

/// The JSON with controls and marks of direction as escapes: the page shows these in a form of its
/// own, which is no JSON.
fn escaped(json: String) -> String {
    let acts = |c: char| {
        matches!(c, '\u{7f}'..='\u{9f}' | '\u{61c}' | '\u{200e}' | '\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !json.contains(acts) {
        return json;
    }
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if acts(c) {
            write!(out, "\\u{:04x}", u32::from(c)).expect("a String takes all text");
        } else {
            out.push(c);
        }
    }
    out
}

impl Card {
    /// Reads the JSON of a card that names its own call sites and stacks.
    ///
    /// # Errors
    /// The text is no such card. The error says where, and what is expected there.
    pub fn parse(json: &[u8]) -> Result<Self, String> {
        let card: Self = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        card.check(&card.names)?;
        Ok(card)
    }

    /// The card as JSON in one line.
    pub fn to_json(&self) -> String {
        let json = serde_json::to_string(self).expect("a card has text keys and integers only");
        escaped(json)
    }

    /// Keeps the texts of the worst findings only.
    #[must_use]
    pub fn short(mut self) -> Self {
        self.findings.sort_by_key(|finding| finding.record.weight());
        let rest = self.findings.split_off(MAX_FINDINGS.min(self.findings.len()));
        let rest = rest.into_iter().map(|of| of.record);
        self.other_findings.extend(rest.map(|of| KindBytes { kind: of.kind, bytes: of.bytes }));
        self
    }

    /// The card of an index as a card outside of one: it names its own call sites and stacks.
    /// `names` are those that it refers to.
    ///
    /// # Panics
    /// The card was not checked to refer to these names.
    #[must_use]
    pub fn naming_its_own(mut self, names: &Names) -> Self {
        let (mut own, mut sites, mut stacks) =
            (Names::default(), FxHashMap::default(), FxHashMap::default());
        let mut site_of = |own: &mut Names, site: u32| {
            *sites.entry(site).or_insert_with(|| {
                own.sites.push(names.site(site).clone());
                own.sites.len() as u32 - 1
            })
        };
        for of in self.sites.iter_mut().chain(&mut self.kept_sites) {
            of.site = site_of(&mut own, of.site);
        }
        for of in &mut self.stacks {
            of.stack = *stacks.entry(of.stack).or_insert_with(|| {
                let stack = names.stack(of.stack);
                let site = site_of(&mut own, stack.site);
                own.stacks.push(NamedStack { site, ..stack });
                own.stacks.len() as u32 - 1
            });
        }
        self.names = own;
        self
    }

    /// The figures of a band.
    pub fn band(&self, band: BandKind) -> &BandSummary {
        &self.bands[band as usize]
    }

    /// The peak of a band. It is negative in damaged files only, and 0 then.
    pub fn peak(&self, band: BandKind) -> u64 {
        u64::try_from(self.band(band).peak.0).unwrap_or(0)
    }

    /// Checks that each index has a name.
    pub(crate) fn check(&self, names: &Names) -> Result<(), String> {
        let (sites, stacks) = (names.sites.len() as u32, names.stacks.len() as u32);
        let of_stacks = self.names.stacks.iter().map(|stack| stack.site);
        let used = self.sites.iter().chain(&self.kept_sites).map(|of| of.site).chain(of_stacks);
        if let Some(site) = used.into_iter().find(|&site| site >= sites) {
            return Err(format!("it refers to call site {site}, and {sites} are named so far"));
        }
        match self.stacks.iter().find(|of| of.stack >= stacks) {
            Some(StackBytes { stack, .. }) => {
                Err(format!("it refers to call stack {stack}, and {stacks} are named so far"))
            }
            None => Ok(()),
        }
    }

    /// The figures by which ranks are compared. `names` are those that the card refers to: its own,
    /// or those of its index.
    pub fn facts(&self, names: &Names) -> RankFacts {
        let stack = |of: &StackBytes| {
            let named = names.stack(of.stack);
            RankStack {
                hash: named.hash,
                site: names.site(named.site).clone(),
                bytes: of.bytes.0,
                category: of.category,
                is_named: of.is_found,
            }
        };
        let findings = self.findings.iter().map(|of| (of.record.kind, of.record.bytes.0));
        RankFacts {
            device: self.device,
            requested_peak: self.peak(BandKind::Requested),
            reserved_peak: self.peak(BandKind::Reserved),
            by_stack: self.stacks.iter().map(stack).collect(),
            by_site: (self.sites.iter())
                .map(|of| (names.site(of.site).clone(), of.bytes.0))
                .collect(),
            by_category: self.categories.iter().map(|of| (of.category, of.bytes.0)).collect(),
            findings: findings
                .chain(self.other_findings.iter().map(|of| (of.kind, of.bytes.0)))
                .collect(),
            ..self.run()
        }
    }

    /// The run and the rank in the path, without figures.
    fn run(&self) -> RankFacts {
        let Some((folder, file)) = crate::rank_of::run_of(&self.path) else {
            return RankFacts::default();
        };
        RankFacts { folder: folder.to_owned(), file, rank: self.rank, ..RankFacts::default() }
    }
}
