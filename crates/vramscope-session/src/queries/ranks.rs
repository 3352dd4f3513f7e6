//! A rank of a run as the coordinator knows it: from a worker's card, or from a card of an index.

use super::card::{BANDS, category_row};
use crate::run_order::natural;
use std::cmp::Ordering;
use vramscope_analysis::{Category, FindingId, FindingKind, RankFacts, RankStack, Severity};
use vramscope_protocol::views::{
    BandRow, FindingRow, FindingView, RankCard, RunCard, SPARK, StackFact,
};
use vramscope_report::finding_text::label;
use vramscope_report::findings::{FindingRecord, Weight, weight};
use vramscope_report::index::{Card, CardFinding, FULL_HEIGHT, Reader};
use vramscope_report::peak::BandKind;
use vramscope_report::rank::run_facts;
use vramscope_report::{Phrase, Quantity};
use vramscope_units::Bytes;
use vramscope_units::svg::area;

/// One device of one file.
#[derive(Debug)]
pub(crate) struct Rank {
    /// The page's number for the row.
    pub(super) key: u32,
    pub(super) group: String,
    pub(super) path: String,
    pub(super) number: Option<u32>,
    pub(super) device: u32,
    pub(super) iteration: Option<u32>,
    pub(super) requested: i64,
    pub(super) reserved: i64,
    pub(super) end: i64,
    pub(super) ooms: u64,
    pub(super) capacity: Option<u64>,
    /// Bytes by category, in the order of the card.
    pub(super) categories: Vec<u64>,
    pub(super) findings: Vec<Brief>,
    pub(super) first_step: u32,
    /// The peak of each step.
    pub(super) steps: Vec<u64>,
    /// The card of an index. The page has those of workers.
    pub(super) indexed: Option<Box<Card>>,
    /// The number of findings above low that the rank has or is about.
    pub(super) notable: u32,
    /// What the rank holds more than others, in words.
    pub(super) outlier: String,
}

/// What ranks are sorted and grouped by of a finding.
#[derive(Debug)]
pub(super) struct Brief {
    pub(super) id: FindingId,
    pub(super) cause: String,
    pub(super) kind: FindingKind,
    pub(super) severity: Severity,
    pub(super) bytes: Bytes,
}

impl Brief {
    pub(super) fn is_notable(&self) -> bool {
        self.severity != Severity::Low
    }

    /// The least weight is the worst finding.
    pub(super) fn weight(&self) -> Weight {
        weight(self.kind, self.severity, self.bytes)
    }
}

impl From<&FindingRecord> for Brief {
    fn from(record: &FindingRecord) -> Self {
        Self {
            id: record.id.clone(),
            cause: record.cause().to_string(),
            kind: record.kind,
            severity: record.severity,
            bytes: record.bytes,
        }
    }
}

/// A rank with what it is compared by.
pub(crate) type Compared = (Rank, RankFacts);

/// The rank of a worker's card.
pub(super) fn of_card(RunCard { key, group, card }: &RunCard) -> Compared {
    let rank = Rank {
        key: *key,
        group: group.clone(),
        path: card.path.clone(),
        number: card.rank,
        device: card.device,
        iteration: vramscope_report::iteration_of(&card.path).map(|number| number as u32),
        requested: peak(card, BandKind::Requested),
        reserved: peak(card, BandKind::Reserved),
        end: number(&card.end),
        ooms: number(&card.ooms).max(0).cast_unsigned(),
        capacity: None,
        categories: card.categories.iter().map(|c| number(&c.bytes).max(0) as u64).collect(),
        findings: card.findings.iter().map(|finding| Brief::from(&finding.record)).collect(),
        first_step: card.first_step,
        steps: card.step_peaks.iter().map(|&bytes| bytes as u64).collect(),
        indexed: None,
        notable: 0,
        outlier: String::new(),
    };
    (rank, facts(card))
}

/// The rank of a card of an index.
pub(crate) fn of_index(key: u32, group: String, mut card: Box<Card>, reader: &Reader) -> Compared {
    let facts = reader.facts(&card);
    // The facts have these.
    for list in [&mut card.sites, &mut card.site_bytes, &mut card.stacks, &mut card.stack_bytes] {
        *list = Vec::new();
    }
    let peak = |band: BandKind| card.peaks.get(band as usize).copied().unwrap_or(0);
    let rank = Rank {
        key,
        group,
        path: card.path.clone(),
        number: card.rank,
        device: card.device.unwrap_or(0),
        iteration: card.iteration.map(|number| number as u32),
        requested: peak(BandKind::Requested),
        reserved: peak(BandKind::Reserved),
        end: card.end,
        ooms: card.oom_events.len() as u64,
        capacity: card.capacity,
        categories: categories(&card).map(|(_, bytes)| bytes).collect(),
        findings: card.findings.iter().map(|finding| Brief::from(&finding.record)).collect(),
        first_step: card.first_step as u32,
        steps: std::mem::take(&mut card.step_peaks),
        indexed: Some(card),
        notable: 0,
        outlier: String::new(),
    };
    (rank, facts)
}

/// The bytes of the card's categories, in their fixed order.
fn categories(card: &Card) -> impl Iterator<Item = (Category, u64)> {
    Category::ALL.into_iter().filter_map(|category| {
        let at = card.categories.iter().position(|&of| of == category)?;
        let bytes = card.category_bytes.get(at).copied().unwrap_or(0);
        (bytes > 0).then_some((category, bytes))
    })
}

/// The card of an index as the page shows it, without call sites and stacks.
pub(super) fn shown(card: &Card) -> RankCard {
    let band = |(kind, label): (BandKind, &str)| {
        let at = kind as usize;
        let event = card.peak_events.get(at).and_then(|&event| u32::try_from(event).ok());
        let text = Quantity::peak_event(event).text;
        BandRow {
            name: kind,
            label: label.to_owned(),
            peak: Quantity::signed_bytes(card.peaks.get(at).copied().unwrap_or(0)),
            at: if event.is_some() { format!("at {text}") } else { text },
            estimate: card.estimates.get(at) == Some(&1),
        }
    };
    let whole = card.category_bytes.iter().sum();
    let ooms = card.oom_events.len() as u64;
    RankCard {
        path: card.path.clone(),
        rank: card.rank,
        device: card.device.unwrap_or(0),
        bands: BANDS.into_iter().map(band).collect(),
        end: Quantity::signed_bytes(card.end),
        categories: categories(card)
            .map(|(category, bytes)| category_row(category, bytes, whole))
            .collect(),
        ooms: Quantity::count(ooms, "out-of-memory event", "out-of-memory events"),
        findings: card.findings.iter().map(row).collect(),
        spark: area(&card.curve, SPARK, FULL_HEIGHT),
        stacks: Vec::new(),
        sites: Vec::new(),
        site_bytes: Vec::new(),
        first_step: card.first_step as u32,
        step_peaks: Vec::new(),
    }
}

/// A finding of a card as the page shows it, without parts that need the file's tables.
pub(super) fn row(finding: &CardFinding) -> FindingRow {
    let CardFinding { record, headline, place } = finding;
    let view = FindingView {
        label: label(record.kind).to_owned(),
        headline: vec![Phrase { text: headline.clone(), ..Phrase::default() }],
        place: place.clone(),
        terms: record.terms(),
        ..FindingView::default()
    };
    FindingRow { record: record.clone(), view }
}

/// Compares by folder, then rank. Files without a rank come last, by path.
pub(super) fn by_rank(a: &Rank, b: &Rank) -> Ordering {
    let rank = |r: &Rank| r.number.unwrap_or(u32::MAX);
    natural(&a.group, &b.group)
        .then_with(|| rank(a).cmp(&rank(b)))
        .then_with(|| natural(&a.path, &b.path))
        .then_with(|| (a.device, a.key).cmp(&(b.device, b.key)))
}

fn number(quantity: &Quantity) -> i64 {
    quantity.value.try_into().unwrap_or(i64::MAX)
}

fn peak(card: &RankCard, band: BandKind) -> i64 {
    card.bands.iter().find(|b| b.name == band).map_or(0, |b| number(&b.peak))
}

/// The facts of a card that ranks are compared by.
fn facts(card: &RankCard) -> RankFacts {
    let bytes = |quantity: &Quantity| u64::try_from(quantity.value).unwrap_or(0);
    let of_band = |band: BandKind| u64::try_from(peak(card, band)).unwrap_or(0);
    let stack = |s: &StackFact| RankStack {
        hash: s.hash,
        site: s.site.clone(),
        bytes: s.bytes,
        category: s.category,
        is_told: s.is_told,
    };
    RankFacts {
        device: card.device,
        requested_peak: of_band(BandKind::Requested),
        reserved_peak: of_band(BandKind::Reserved),
        by_stack: card.stacks.iter().map(stack).collect(),
        by_site: card
            .sites
            .iter()
            .cloned()
            .zip(card.site_bytes.iter().map(|&b| b as u64))
            .collect(),
        by_category: card.categories.iter().map(|c| (c.name, bytes(&c.bytes))).collect(),
        findings: card.findings.iter().map(|f| (f.record.kind, f.record.bytes.0)).collect(),
        ..run_facts(&card.path)
    }
}
