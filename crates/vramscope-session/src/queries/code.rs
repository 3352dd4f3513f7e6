//! The table of the code: memory by module, file and line. A block counts once for each place that
//! its call stack goes through.

mod places;
mod sandwich;

pub(crate) use self::sandwich::sandwich;

use self::places::Places;
use super::lru_cache::LruCache;
use super::shares::{category_label, fraction};
use super::subject::Subject;
use crate::messages::DeviceRef;
use crate::messages::views::{CodePage, CodeRow, CodeSort, CodeSpec};
use crate::scheduler::SLICE;
use std::cmp::Reverse;
use std::ops::Range;
use vramscope_layout::Color;
use vramscope_report::code::{Filter, steps_between};
use vramscope_report::{Quantity, Target, slot_after};
use vramscope_trace::slicing::Budget;
use vramscope_units::Bytes;

/// Rows of a page.
const MAX_PAGE_ROWS: u32 = 500;

/// The most recently used tables. Order and open rows are not part of their key.
pub(crate) struct Tables(LruCache<(DeviceRef, CodeSpec), Places>);

impl Default for Tables {
    fn default() -> Self {
        Self(LruCache::new(2))
    }
}

/// The fields of a spec that decide the sums.
fn sums_key(spec: &CodeSpec) -> CodeSpec {
    let CodeSpec { text, event, hide_framework, .. } = spec;
    let (text, event, hide_framework) = (text.clone(), *event, *hide_framework);
    CodeSpec { text, event, hide_framework, ..CodeSpec::default() }
}

/// The blocks and moments of a spec.
fn filter_of<'a>(at: Target<'_>, spec: &'a CodeSpec) -> Filter<'a> {
    Filter { text: &spec.text, cursor: spec.event.map(|event| slot_after(at.trace(), event)) }
}

async fn places(on: Subject, (_, spec): (DeviceRef, CodeSpec)) -> Places {
    Places::new(on.at(), &spec, &mut Budget::of(SLICE)).await
}

impl Tables {
    /// A page of at most [`MAX_PAGE_ROWS`] rows. Runs a slice of computing the table; `None` until
    /// it is complete.
    pub(crate) fn page(
        &mut self,
        on: &Subject,
        spec: &CodeSpec,
        rows: Range<u32>,
    ) -> Option<CodePage> {
        let at = on.at();
        let places = self.0.poll((on.device, sums_key(spec)), |key| places(on.clone(), key))?;
        let listed = listed(places, spec);
        let total = listed.len() as u32;
        let from = rows.start.min(total);
        let until = rows.end.min(total).min(from.saturating_add(MAX_PAGE_ROWS)).max(from);
        let whole = places.whole;
        let row = |&place: &usize| row(at, places, place, whole, spec);
        let rows = listed[from as usize..until as usize].iter().map(row).collect();
        Some(CodePage { total, from, rows })
    }
}

/// The places in the order of the table: each open place is followed by its children.
fn listed(places: &Places, spec: &CodeSpec) -> Vec<usize> {
    let mut listed = Vec::new();
    let mut open: Vec<usize> = sorted(places, None, spec);
    open.reverse();
    while let Some(place) = open.pop() {
        listed.push(place);
        if spec.open.contains(&places.all[place].key) {
            open.extend(sorted(places, Some(place), spec).into_iter().rev());
        }
    }
    listed
}

/// The children of a place, or the modules, in the order of a spec.
fn sorted(places: &Places, parent: Option<usize>, spec: &CodeSpec) -> Vec<usize> {
    let all = (0..places.all.len())
        .filter(|&i| places.all[i].parent == parent && places.all[i].sums.blocks > 0);
    let mut all: Vec<usize> = all.collect();
    let weight = |i: usize| -> i128 {
        let sums = &places.all[i].sums;
        match spec.sort {
            CodeSort::Total => sums.peak.into(),
            CodeSort::Own => places.all[i].own.into(),
            CodeSort::Cursor => sums.cursor.into(),
            CodeSort::Growth => i128::from(sums.last_step) - i128::from(sums.first_step),
            CodeSort::Blocks => sums.blocks.into(),
            CodeSort::Largest => sums.largest.into(),
            CodeSort::Name => 0,
        }
    };
    let label = |i: usize| &places.all[i].label;
    if spec.sort == CodeSort::Name && spec.descending {
        all.sort_by_key(|&i| Reverse(label(i).clone()));
    } else if spec.descending {
        all.sort_by_key(|&i| (Reverse(weight(i)), label(i).clone()));
    } else {
        all.sort_by_key(|&i| (weight(i), label(i).clone()));
    }
    all
}

fn row(at: Target<'_>, places: &Places, place: usize, whole: u64, spec: &CodeSpec) -> CodeRow {
    let found = &places.all[place];
    let sums = &found.sums;
    let bytes = |bytes: u64| Quantity::bytes(Bytes(bytes));
    let categories = vramscope_inference::Category::ALL.iter().zip(sums.categories);
    let category = categories.filter(|&(_, bytes)| bytes > 0).max_by_key(|&(_, bytes)| bytes);
    let growth = |steps: u32| {
        let change = i128::from(sums.last_step) - i128::from(sums.first_step);
        let each = change / i128::from(steps);
        Quantity::change_of_bytes(i64::try_from(each).unwrap_or(i64::MAX))
    };
    let is_line = found.frame.is_some() || found.terms.iter().any(|t| t.starts_with("site:"));
    CodeRow {
        place: place as u32,
        key: found.key.clone(),
        depth: found.depth,
        label: found.label.clone(),
        title: found.title.clone(),
        open: (!is_line).then(|| spec.open.contains(&found.key)),
        total: bytes(sums.peak),
        percent: format!("{:.1} %", 100.0 * fraction(sums.peak, whole)),
        own: bytes(found.own),
        cursor: spec.event.map(|_| bytes(sums.cursor)),
        growth: steps_between(at).map(growth),
        blocks: Quantity::count(sums.blocks, "block", "blocks"),
        largest: bytes(sums.largest),
        category: category.map_or("", |(&category, _)| category_label(category)).to_owned(),
        color: category
            .map_or(Color::NO_STACK, |(&category, _)| Color::category(category as u8))
            .word(),
        terms: found.terms.clone(),
        frame: found.frame,
    }
}
