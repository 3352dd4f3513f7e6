//! Groups of blocks that a search chooses: what it finds, and what they hold together.

use super::range::slot_label;
use super::shares::{category_row, fraction};
use crate::messages::DetailRow;
use crate::messages::views::{GroupCard, SearchResult, StackShareRow, StepBar};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::fmt::Write as _;
use vramscope_layout::site_color;
use vramscope_report::phases::step_words;
use vramscope_report::search::{Matcher, matching};
use vramscope_report::{Derived, Quantity, Target, by_category, row_site, slot_after, slot_of};
use vramscope_snapshot::{Frame, StackId};
use vramscope_trace::slicing::{Budget, strides};
use vramscope_trace::{NoStack, Trace, sort};
use vramscope_units::{Bytes, grouped};

/// Call sites in a list.
const MAX_SITES: usize = 12;
/// Bars of steps. More steps share bars.
const MAX_BARS: usize = 48;

/// What a search finds; `None` when the text is empty or cannot be parsed.
pub(crate) async fn search(
    at: Target<'_>,
    text: &str,
    budget: &mut Budget,
) -> Option<SearchResult> {
    let matcher = Matcher::new(at, text, budget).await?;
    let found = matching(at, &matcher, budget).await;
    let slot = slot_of(at.trace().requested_band.peak_event);
    let sites = sites(at, &found, slot, budget).await;
    let bytes = sites.iter().fold(0u64, |sum, site| sum.saturating_add(site.live));
    let blocks = Quantity::count(found.len() as u64, "block", "blocks");
    let bytes = Quantity::bytes(Bytes(bytes));
    let text = match blocks.value {
        0 => blocks.exact.clone(),
        _ => format!("{}, {} at the peak", blocks.exact, bytes.text),
    };
    let (rows, more) = site_rows(at, &sites);
    Some(SearchResult { blocks, bytes, text, terms: matcher.texts, sites: rows, more })
}

/// The blocks of one call site.
struct Site {
    /// A stack of the site.
    stack: StackId,
    no_stack: Option<NoStack>,
    blocks: u32,
    /// Bytes in the slot.
    live: u64,
    /// The index of the largest block.
    largest: u32,
}

/// Sums blocks by call site, with the bytes that are live in a slot. Most bytes come first.
async fn sites(at: Target<'_>, blocks: &[u32], slot: u32, budget: &mut Budget) -> Vec<Site> {
    let (trace, entry) = (at.trace(), at.entry);
    let mut places: FxHashMap<(Option<Frame>, Option<NoStack>), usize> = FxHashMap::default();
    let mut sites: Vec<Site> = Vec::new();
    for part in strides(blocks.len()) {
        budget.charge(4 * part.len() as u64).await;
        for &index in &blocks[part] {
            let block = &trace.blocks[index as usize];
            let no_stack = trace.no_stack(block);
            let frame = entry.sites.get(block.stack).frame.filter(|_| no_stack.is_none());
            let place = *places.entry((frame, no_stack)).or_insert_with(|| {
                let (stack, largest) = (block.stack, index);
                sites.push(Site { stack, no_stack, blocks: 0, live: 0, largest });
                sites.len() - 1
            });
            let site = &mut sites[place];
            site.blocks += 1;
            if block.is_live_at(slot) {
                site.live = site.live.saturating_add(block.bytes.0);
            }
            if block.bytes > trace.blocks[site.largest as usize].bytes {
                site.largest = index;
            }
        }
    }
    let size = |site: &Site| trace.blocks[site.largest as usize].bytes;
    sites.sort_by_key(|site| (Reverse(site.live), Reverse(size(site)), site.stack, site.no_stack));
    sites
}

/// The first sites as rows, and the number of all others in words.
fn site_rows(at: Target<'_>, sites: &[Site]) -> (Vec<StackShareRow>, String) {
    let whole = sites.iter().fold(0u64, |sum, site| sum.saturating_add(site.live));
    let row = |site: &Site| {
        let label = row_site(at.entry, site.stack, site.no_stack);
        let largest = at.trace().blocks[site.largest as usize].bytes;
        StackShareRow {
            terms: vec![format!("site:{label}")],
            site: label,
            via: String::new(),
            bytes: Quantity::bytes(Bytes(site.live)),
            blocks: Quantity::count(site.blocks.into(), "block", "blocks"),
            shape: String::new(),
            share: fraction(site.live, whole),
            color: site_color(&at.entry.sites, site.stack).word(),
            block: site.largest,
            note: format!("largest {largest}"),
        }
    };
    let more = match sites.len().saturating_sub(MAX_SITES) {
        0 => String::new(),
        1 => "and 1 more call site".to_owned(),
        more => format!("and {} more call sites", grouped(more as u64)),
    };
    (sites.iter().take(MAX_SITES).map(row).collect(), more)
}

/// Bytes of a group over the window: the slot at which each value begins.
struct Course(Vec<(u32, u64)>);

impl Course {
    async fn of(trace: &Trace, blocks: &[u32], budget: &mut Budget) -> Self {
        let mut changes: Vec<(u32, i64)> = Vec::with_capacity(2 * blocks.len());
        for part in strides(blocks.len()) {
            budget.charge(2 * part.len() as u64).await;
            for &index in &blocks[part] {
                let block = &trace.blocks[index as usize];
                let bytes = i64::try_from(block.bytes.0).unwrap_or(i64::MAX);
                changes.push((block.enters, bytes));
                if block.leaves < trace.slots() {
                    changes.push((block.leaves, -bytes));
                }
            }
        }
        sort(&mut changes, budget).await;
        budget.charge(changes.len() as u64).await;
        let mut course: Vec<(u32, u64)> = Vec::new();
        let mut bytes = 0u64;
        for (slot, change) in changes {
            bytes = bytes.saturating_add_signed(change);
            match course.last_mut().filter(|last| last.0 == slot) {
                Some(last) => last.1 = bytes,
                None => course.push((slot, bytes)),
            }
        }
        Self(course)
    }

    /// Bytes in a slot.
    fn at(&self, slot: u32) -> u64 {
        let next = self.0.partition_point(|&(from, _)| from <= slot);
        next.checked_sub(1).map_or(0, |at| self.0[at].1)
    }

    /// The most bytes between two slots, both included, and the first slot with them.
    fn most(&self, first: u32, last: u32) -> (u32, u64) {
        let from = self.0.partition_point(|&(slot, _)| slot <= first);
        let until = self.0.partition_point(|&(slot, _)| slot <= last);
        let mut most = (first, self.at(first));
        for &(slot, bytes) in &self.0[from..until.max(from)] {
            if bytes > most.1 {
                most = (slot, bytes);
            }
        }
        most
    }
}

/// What the blocks of a search hold; `None` when the text is empty or cannot be parsed.
pub(crate) async fn group(
    at: Target<'_>,
    text: &str,
    cursor: Option<i64>,
    budget: &mut Budget,
) -> Option<GroupCard> {
    let matcher = Matcher::new(at, text, budget).await?;
    let blocks = matching(at, &matcher, budget).await;
    let trace = at.trace();
    let course = Course::of(trace, &blocks, budget).await;
    budget.charge(course.0.len() as u64).await;
    let last = trace.slots() - 1;
    let (peak, most) = (slot_of(trace.requested_band.peak_event), course.most(0, last));
    let share = 100.0 * fraction(course.at(peak), trace.requested.at(peak));
    let (slot, note) = match course.at(peak) {
        0 => (most.0, format!("most at once, {}", slot_label(trace, most.0))),
        _ => (peak, format!("at the peak, {share:.0} % of it")),
    };
    let title = Quantity::bytes(Bytes(course.at(slot)));
    let rows = rows(at, &blocks, &course, (slot, cursor), budget).await;
    let sites = sites(at, &blocks, slot, budget).await;
    let categories = at.entry.categories(at.index);
    budget.charge(2 * blocks.len() as u64).await;
    let shares = by_category(blocks.iter().map(|&i| {
        let block = &trace.blocks[i as usize];
        let bytes = if block.is_live_at(slot) { block.bytes.0 } else { 0 };
        (categories.get(i).category, bytes)
    }));
    let whole = course.at(slot);
    let categories: Vec<_> =
        shares.iter().map(|s| category_row(s.category, s.bytes.0, whole)).collect();
    let steps = bars(at, &course, budget).await;
    let (sites, more) = site_rows(at, &sites);
    let steps_label = step_words(at)[1].to_owned();
    let mut card = GroupCard {
        title,
        note,
        blocks: Quantity::count(blocks.len() as u64, "block", "blocks"),
        rows,
        steps_label,
        steps,
        categories,
        sites,
        more,
        copy: String::new(),
    };
    card.copy = copy(&matcher.texts, &card);
    Some(card)
}

/// The properties of a group, whose title has the bytes in `shown`.
async fn rows(
    at: Target<'_>,
    blocks: &[u32],
    course: &Course,
    (shown, cursor): (u32, Option<i64>),
    budget: &mut Budget,
) -> Vec<DetailRow> {
    let trace = at.trace();
    let (end, title) = (trace.slots() - 1, course.at(shown));
    let cursor = cursor.map(|event| slot_after(trace, event));
    let (mut of_cursor, mut of_end) = (0u64, 0u64);
    let (mut all, mut largest, mut last) = (0u64, 0u64, None);
    for part in strides(blocks.len()) {
        budget.charge(4 * part.len() as u64).await;
        for &index in &blocks[part] {
            let block = &trace.blocks[index as usize];
            all = all.saturating_add(block.bytes.0);
            largest = largest.max(block.bytes.0);
            last = last.max(Some(block.enters));
            of_end += u64::from(block.is_live_at(end));
            of_cursor += u64::from(cursor.is_some_and(|slot| block.is_live_at(slot)));
        }
    }
    let count = |blocks: u64| Quantity::count(blocks, "block", "blocks").exact;
    let mut rows = Vec::new();
    let mut row = |key: &str, label: &str, text: String, raw: u64| {
        rows.push(DetailRow::new(key, label, text, Some(raw.to_string())));
    };
    let held = |slot: u32, blocks: u64| match blocks {
        0 => "none".to_owned(),
        _ if course.at(slot) == title => format!("the same, {}", count(blocks)),
        _ => format!("{}, {}", Bytes(course.at(slot)), count(blocks)),
    };
    if let Some(slot) = cursor {
        row("cursor", "at the cursor", held(slot, of_cursor), course.at(slot));
    }
    let (slot, most) = course.most(0, end);
    if most > title {
        row("most", "most at once", format!("{}, {}", Bytes(most), slot_label(trace, slot)), most);
    }
    row("end", "not freed", held(end, of_end), course.at(end));
    if all > title {
        row("allocated", "allocated in all", Bytes(all).to_string(), all);
    }
    if largest != title {
        row("largest", "largest block", Bytes(largest).to_string(), largest);
    }
    // Blocks are sorted by the slot at which they enter.
    let first = blocks.first().map(|&index| trace.blocks[index as usize].enters);
    for (key, label, slot) in
        [("first", "first allocated", first), ("last", "last allocated", last)]
    {
        if let Some(slot) = slot {
            row(key, label, slot_label(trace, slot), slot.saturating_sub(1).into());
        }
    }
    rows
}

/// The most bytes of a group in each step.
async fn bars(at: Target<'_>, course: &Course, budget: &mut Budget) -> Vec<StepBar> {
    at.entry.derive(Derived::Passes, at.index, budget).await;
    let parts = &at.entry.passes(at.index).parts;
    // The step with its first event and the event after its last.
    let mut ranges: Vec<(u32, u32, u32)> = Vec::new();
    for part in parts {
        let Some(step) = part.step else { continue };
        match ranges.last_mut().filter(|last| last.0 == step) {
            Some(last) => last.2 = part.end,
            None => ranges.push((step, part.begin, part.end)),
        }
    }
    budget.charge(16 * ranges.len() as u64 + course.0.len() as u64).await;
    let per_bar = ranges.len().div_ceil(MAX_BARS).max(1);
    let of_steps = |some: &[(u32, u32, u32)]| {
        let [first, last] = [some[0], some[some.len() - 1]];
        (first.0, last.0, course.most(first.1 + 1, last.2).1)
    };
    let bars: Vec<_> = ranges.chunks(per_bar).map(of_steps).collect();
    let most = bars.iter().map(|bar| bar.2).max().unwrap_or(0);
    let bar = |(first, last, bytes): (u32, u32, u64)| {
        let label = if first == last { first.to_string() } else { format!("{first}-{last}") };
        StepBar {
            term: format!("step:{label}"),
            label,
            bytes: Quantity::bytes(Bytes(bytes)),
            share: fraction(bytes, most),
        }
    };
    bars.into_iter().map(bar).collect()
}

/// A card as text for the clipboard.
fn copy(terms: &[String], card: &GroupCard) -> String {
    let mut out = format!("{}\n", terms.join(" · "));
    let mut line = |text: std::fmt::Arguments<'_>| {
        out.write_fmt(text).expect("writing to a String cannot fail");
        out.push('\n');
    };
    line(format_args!("{} {}, {}", card.title.text, card.note, card.blocks.exact));
    for row in &card.rows {
        line(format_args!("{}: {}", row.label, row.text));
    }
    for StepBar { label, bytes, .. } in &card.steps {
        line(format_args!("  {} {label}: {}", card.steps_label, bytes.text));
    }
    for StackShareRow { bytes, site, blocks, note, .. } in &card.sites {
        line(format_args!("  {}  {site}  {}, {note}", bytes.text, blocks.exact));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_course_has_the_first_slot_with_the_most_bytes() {
        let course = Course(vec![(2, 10), (4, 30), (5, 30), (7, 0)]);
        assert_eq!([0, 2, 3, 4, 6, 7, 9].map(|slot| course.at(slot)), [0, 10, 10, 30, 30, 0, 0]);
        assert_eq!(course.most(0, 9), (4, 30));
        assert_eq!(course.most(5, 9), (5, 30));
        assert_eq!(course.most(0, 3), (2, 10));
        assert_eq!(course.most(3, 3), (3, 10));
        assert_eq!(course.most(8, 9), (8, 0));
    }
}
