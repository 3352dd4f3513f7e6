//! The card of a rank: what the overview shows of it and compares it by.

use super::findings;
use super::minimap::{columns, full_height};
use vramscope_analysis::slicing::Budget;
use vramscope_analysis::{Category, Exactness, step_floors};
use vramscope_layout::{Axis, AxisKind, Color};
use vramscope_protocol::views::{BandRow, CategoryRow, RankCard, SPARK, StackFact};
use vramscope_report::Quantity;
use vramscope_report::Target;
use vramscope_report::index::MAX_STEPS;
use vramscope_report::peak::BandKind;
use vramscope_report::rank::{RankSummary, StackShare};
pub(super) use vramscope_report::text::category as category_label;
use vramscope_units::Bytes;
use vramscope_units::svg::area;

/// The bands with their labels, in the order of the card.
pub(super) const BANDS: [(BandKind, &str); 4] = [
    (BandKind::Requested, "requested"),
    (BandKind::Active, "active"),
    (BandKind::Allocated, "allocated"),
    (BandKind::Reserved, "reserved"),
];

/// The card of one device of one rank.
pub(crate) async fn card(at: Target<'_>, budget: &mut Budget) -> RankCard {
    let trace = at.trace();
    let summary = RankSummary::new(at, budget).await;
    let band = |(kind, label): (BandKind, &str)| {
        let (band, exactness) = kind.of(at);
        let event = Quantity::peak_event(band.peak_event).text;
        BandRow {
            name: kind,
            label: label.to_owned(),
            peak: Quantity::signed_bytes(band.peak),
            at: if band.peak_event.is_some() { format!("at {event}") } else { event },
            estimate: exactness == Exactness::Estimate,
        }
    };
    let (sites, site_bytes) = summary.sites.into_iter().map(|(site, b)| (site, b as f64)).unzip();
    let whole = summary.categories.iter().map(|c| c.bytes).sum();
    let of_category = |category: Category| {
        let share = summary.categories.iter().find(|c| c.category == category)?;
        (share.bytes > 0).then(|| category_row(category, share.bytes, whole))
    };
    let steps = match at.entry.steps(at.index) {
        Some(steps) => step_floors(trace, steps, budget).await,
        None => Vec::new(),
    };
    let steps = &steps[steps.len().saturating_sub(MAX_STEPS)..];
    RankCard {
        bands: BANDS.into_iter().map(band).collect(),
        end: Quantity::signed_bytes(trace.requested_band.end),
        categories: Category::ALL.into_iter().filter_map(of_category).collect(),
        ooms: Quantity::count(
            summary.ooms.len() as u64,
            "out-of-memory event",
            "out-of-memory events",
        ),
        findings: findings::rows(at, summary.findings, budget).await,
        spark: sparkline(at, budget).await,
        first_step: steps.first().map_or(0, |step| step.step),
        step_peaks: steps.iter().map(|step| step.peak.0 as f64).collect(),
        stacks: summary.stacks.into_iter().map(stack_fact).collect(),
        sites,
        site_bytes,
        path: summary.path,
        rank: summary.rank,
        device: summary.device,
    }
}

fn stack_fact(share: StackShare) -> StackFact {
    StackFact {
        hash: share.hash,
        site: share.site,
        bytes: share.bytes,
        category: share.category,
        is_told: share.is_told,
    }
}

/// Requested bytes over the events, as an SVG path. Its full height is the peak of reserved bytes.
async fn sparkline(at: Target<'_>, budget: &mut Budget) -> String {
    let trace = at.trace();
    let tops = match Axis::new(trace, AxisKind::Event) {
        Some(axis) => columns(axis, &trace.requested, SPARK[0] / 2, budget).await,
        None => Vec::new(),
    };
    area(&tops, SPARK, full_height(trace))
}

/// A category's row, with its fraction of `whole` bytes.
pub(super) fn category_row(category: Category, bytes: u64, whole: u64) -> CategoryRow {
    CategoryRow {
        name: category,
        label: category_label(category).to_owned(),
        bytes: Quantity::bytes(Bytes(bytes)),
        share: fraction(bytes, whole),
        color: Color::category(category as u8).word(),
    }
}

/// `bytes` as a fraction of `whole`, from 0 to 1; 0 if `whole` is 0.
pub(super) fn fraction(bytes: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { bytes as f64 / whole as f64 }
}
