//! The source view: files, and the functions and lines of one, with their memory.

use super::shares::fraction;
use crate::messages::views::{SourcePage, SourceRow, SourceSpec};
use std::borrow::Cow;
use std::cmp::Reverse;
use vramscope_report::annotate::without_text;
use vramscope_report::code::{Filter, PlaceKind, SourcePlace, SourceSums, Sums, steps_between};
use vramscope_report::{Quantity, Target, slot_after};
use vramscope_trace::slicing::Budget;
use vramscope_units::Bytes;

/// Files, and functions of a file, in a list.
const MAX_PLACES: usize = 200;
/// Lines of a file in a list. Hardly a file allocates in more.
const MAX_LINES: usize = 5000;

/// The files of a device, and the functions and lines of the file that a spec names.
pub(crate) async fn page(at: Target<'_>, spec: &SourceSpec, budget: &mut Budget) -> SourcePage {
    let (snapshot, trace) = (at.snapshot(), at.trace());
    let filter =
        Filter { text: &spec.text, cursor: spec.event.map(|event| slot_after(trace, event)) };
    let sums = SourceSums::new(at, &filter, spec.hide_framework, budget).await;
    let mut files: Vec<&SourcePlace> = sums.of_kind(PlaceKind::File, None).collect();
    let by_bytes = |places: &mut Vec<&SourcePlace>| {
        places.sort_by_key(|place| {
            let bytes = (place.own.peak, place.total.peak);
            let bytes = if spec.own { bytes } else { (bytes.1, bytes.0) };
            (Reverse(bytes), place.file.0, place.line)
        });
        places.truncate(MAX_PLACES);
    };
    by_bytes(&mut files);
    let is_named = |place: &&&SourcePlace| snapshot.text(place.file) == spec.file;
    // One file, whichever bytes are counted.
    let first = || files.iter().max_by_key(|place| (place.own.peak, Reverse(place.file.0)));
    let shown = files.iter().find(is_named).or_else(first).map(|place| place.file);
    let mut page = SourcePage { notes: without_text(&sums), ..SourcePage::default() };
    rows(at, spec, &files, &mut page.rows);
    let Some(file) = shown else { return page };
    page.file = snapshot.text(file).into_owned();
    page.text = snapshot.source_text(&page.file).map(Into::into);
    let mut functions: Vec<&SourcePlace> = sums.of_kind(PlaceKind::Function, Some(file)).collect();
    by_bytes(&mut functions);
    rows(at, spec, &functions, &mut page.rows);
    let mut lines: Vec<&SourcePlace> = sums.of_kind(PlaceKind::Line, Some(file)).collect();
    lines.sort_by_key(|place| place.line);
    lines.truncate(MAX_LINES);
    rows(at, spec, &lines, &mut page.rows);
    page
}

/// Adds the rows of places of one kind.
fn rows(at: Target<'_>, spec: &SourceSpec, places: &[&SourcePlace], rows: &mut Vec<SourceRow>) {
    let snapshot = at.snapshot();
    let steps = steps_between(at);
    let numbers = |place: &SourcePlace| -> [u64; 3] {
        let sums = sums_of(place, spec);
        let growth = steps.map_or(0, |steps| sums.growth(steps).unsigned_abs());
        [sums.peak, sums.cursor, growth]
    };
    let mut most = [0; 3];
    for place in places {
        for (most, number) in most.iter_mut().zip(numbers(place)) {
            *most = number.max(*most);
        }
    }
    for place in places {
        let sums = sums_of(place, spec);
        let file = snapshot.text(place.file);
        let names: Vec<_> = place.functions.iter().map(|&name| snapshot.text(name)).collect();
        let (depth, label, of) = match place.kind {
            PlaceKind::File => (0, file.clone().into_owned(), String::new()),
            PlaceKind::Function => (1, names.join(", "), format!(" {}", names.join(", "))),
            PlaceKind::Line => (2, names.join(", "), format!(":{}", place.line)),
        };
        let source = at.entry.source(&file, place.line).filter(|_| depth == 2);
        let key = if spec.own { "site" } else { "via" };
        rows.push(SourceRow {
            depth,
            label,
            functions: names.into_iter().map(Cow::into_owned).collect(),
            line: place.line,
            source: source.unwrap_or_default().to_owned(),
            peak: Quantity::bytes(Bytes(sums.peak)),
            cursor: spec.event.map(|_| Quantity::bytes(Bytes(sums.cursor))),
            growth: steps.map(|steps| Quantity::change_of_bytes(sums.growth(steps))),
            blocks: Quantity::count(sums.blocks, "block", "blocks"),
            shares: numbers(place)
                .into_iter()
                .zip(most)
                .map(|(n, most)| fraction(n, most))
                .collect(),
            terms: if sums.blocks == 0 { Vec::new() } else { vec![format!("{key}:{file}{of}")] },
        });
    }
}

fn sums_of<'a>(place: &'a SourcePlace, spec: &SourceSpec) -> &'a Sums {
    if spec.own { &place.own } else { &place.total }
}
