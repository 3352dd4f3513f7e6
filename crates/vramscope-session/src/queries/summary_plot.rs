//! The memory of the window by category, and the lines that hold most at the summary's moment.

use super::levers::brief;
use super::phases::edges;
use super::shares::{category_label, fraction};
use crate::messages::views::{LargestLine, PLOT, PlotArea, PlotMark, PlotStep, SummaryPlot};
use vramscope_inference::Category;
use vramscope_layout::Color;
use vramscope_report::lines::{HoldingLine, LinePlace, largest_lines};
use vramscope_report::phases::step_words;
use vramscope_report::{Target, verdict};
use vramscope_trace::slicing::{Budget, strides};
use vramscope_trace::{columns_of, file_name};
use vramscope_units::svg::area;
use vramscope_units::{Bytes, EventIndex};

/// Columns of the picture.
const COLUMNS: u32 = PLOT[0] / 2;
/// The width of a letter of a label and its height, in units of the box.
const LETTER: [f64; 2] = [6.4, 15.0];
/// The most steps with an edge of their own.
const MAX_STEPS: usize = 40;
/// The most lines that are listed, and that are looked at: equal neighbors become one.
const MAX_LINES: usize = 8;
const LOOKED_AT: usize = 24;

/// The plot and the lines of a device. Findings must be derived before.
pub(crate) async fn summary_plot(at: Target<'_>, budget: &mut Budget) -> SummaryPlot {
    let memory = verdict::memory(at, budget).await;
    let slot = u32::try_from(memory.event + 1).unwrap_or(0);
    let (lines, before) = largest_lines(at, slot, LOOKED_AT, budget).await;
    let moment = match memory.request {
        Some(_) => "at this moment",
        None if at.trace().is_state_only() => "at the end",
        None => "at the peak",
    };
    let mut plot = SummaryPlot {
        areas: Vec::new(),
        top: 0.0,
        steps: Vec::new(),
        mark: None,
        limit: memory.capacity.map(|bytes| bytes.0 as f64),
        lines: rows(&lines),
        lines_title: format!("Largest lines {moment}"),
        before: before.unwrap_or_default(),
    };
    if at.trace().is_state_only() || at.trace().slots() < 3 {
        return plot;
    }
    // Of each column the state with most requested bytes, and of its own the moment.
    let trace = at.trace();
    let mut states: Vec<u32> = Vec::with_capacity(COLUMNS as usize);
    for slots in columns_of(0..u64::from(trace.slots()), COLUMNS) {
        let slots = slots.start as u32..slots.end as u32;
        let start = slots.start;
        let largest = trace.requested.largest_sliced(slots.clone(), budget).await;
        let is_moment = slots.contains(&slot);
        states.push(if is_moment { slot } else { largest.map_or(start, |of| of.0) });
    }
    let columns = by_category(at, &states, budget).await;
    let whole: Vec<u64> =
        (0..states.len()).map(|column| columns.iter().map(|of| of[column]).sum()).collect();
    let most = whole.iter().copied().max().unwrap_or(0);
    let asked = memory.request.map_or(0, |bytes| bytes.0.saturating_add(memory.reserved.0));
    // Room for the line of the limit and the mark.
    let top = most.max(asked).max(memory.capacity.map_or(0, |bytes| bytes.0));
    let top = top.saturating_add(top / 12).max(1);
    plot.top = top as f64;
    plot.areas = areas(&columns, top, states.iter().position(|&state| state == slot));
    plot.steps = steps(at);
    let slots = f64::from(trace.slots());
    let label = if memory.request.is_some() { "failed here" } else { "peak" };
    let event = u32::try_from(memory.event);
    plot.mark = Some(PlotMark {
        at: (f64::from(slot) + 0.5) / slots,
        bytes: trace.requested.largest_sliced(slot..slot + 1, budget).await.map_or(0, |of| of.1)
            as f64,
        label: match event {
            Ok(event) => format!("{label}, {}", EventIndex(event)),
            Err(_) => label.to_owned(),
        },
        event: memory.event,
    });
    plot
}

/// The bytes of each category, in the order of the stack, after each of these states, which ascend.
async fn by_category(at: Target<'_>, states: &[u32], budget: &mut Budget) -> Vec<Vec<u64>> {
    let (trace, categories) = (at.trace(), at.entry.categories(at.index));
    let order = Category::STACKED;
    // What enters and leaves from one column to the next.
    let mut changes = vec![vec![0_i64; states.len() + 1]; order.len()];
    for part in strides(trace.blocks.len()) {
        budget.charge(2 * part.len() as u64).await;
        for (i, block) in (part.start as u32..).zip(&trace.blocks[part]) {
            let from = states.partition_point(|&state| state < block.enters);
            let to = states.partition_point(|&state| state < block.leaves);
            if from == to {
                continue;
            }
            let category = categories.get(i).category;
            let Some(of) = order.iter().position(|one| *one == category) else { continue };
            let bytes = i64::try_from(block.bytes.0).unwrap_or(i64::MAX);
            changes[of][from] = changes[of][from].saturating_add(bytes);
            changes[of][to] = changes[of][to].saturating_sub(bytes);
        }
    }
    let sums = |of: Vec<i64>| {
        let mut now = 0_i64;
        of.into_iter()
            .take(states.len())
            .map(|change| {
                now = now.saturating_add(change);
                now.max(0) as u64
            })
            .collect()
    };
    changes.into_iter().map(sums).collect()
}

/// The categories that have bytes, the top of the stack first. A line stands in the column `mark`.
fn areas(columns: &[Vec<u64>], top: u64, mark: Option<usize>) -> Vec<PlotArea> {
    let count = columns.first().map_or(0, Vec::len);
    let mut below = vec![0_u64; count];
    let mut all = Vec::new();
    for (category, of) in Category::STACKED.into_iter().zip(columns) {
        if of.iter().all(|&bytes| bytes == 0) {
            continue;
        }
        let above: Vec<u64> = below.iter().zip(of).map(|(below, own)| below + own).collect();
        let label = category_label(category);
        all.push(PlotArea {
            name: category.name().to_owned(),
            label_at: label_at([&below, &above], label, top, mark),
            label: label.to_owned(),
            color: Color::category(category as u8).word(),
            path: area(&above, PLOT, top),
        });
        below = above;
    }
    all.reverse();
    all
}

/// The middle of the place where a band has most room for its label, beside the mark.
fn label_at(
    [below, above]: [&[u64]; 2],
    label: &str,
    top: u64,
    mark: Option<usize>,
) -> Option<[f64; 2]> {
    let column = f64::from(PLOT[0]) / below.len().max(1) as f64;
    let wanted = ((label.len() as f64 * LETTER[0] + 8.0) / column).ceil() as usize;
    let room = |from: usize| {
        let floor = below[from..from + wanted].iter().max().copied().unwrap_or(0);
        let ceiling = above[from..from + wanted].iter().min().copied().unwrap_or(0);
        (ceiling.saturating_sub(floor), floor, ceiling)
    };
    let last = below.len().checked_sub(wanted.max(1))?;
    let is_free = |from: &usize| !mark.is_some_and(|mark| (*from..from + wanted).contains(&mark));
    // Of equals the first.
    let places = (0..=last).rev().filter(is_free).map(|from| (from, room(from)));
    let (from, (height, floor, ceiling)) = places.max_by_key(|(_, room)| room.0)?;
    let pixels = fraction(height, top) * f64::from(PLOT[1]);
    let middle = fraction(floor / 2 + ceiling / 2, top);
    let at = (from as f64 + wanted as f64 / 2.0) / below.len() as f64;
    (pixels >= LETTER[1]).then_some([at, 1.0 - middle])
}

/// The steps, with a name where it fits. Empty if there are too many.
fn steps(at: Target<'_>) -> Vec<PlotStep> {
    let spans = at.entry.categories(at.index).phases();
    let slots = at.trace().slots();
    let edges = edges(at.entry.steps(at.index), spans, slots - 1);
    if edges.len() < 2 || edges.len() > MAX_STEPS + 1 {
        return Vec::new();
    }
    let word = step_words(at)[0];
    let share = |state: u32| f64::from(state) / f64::from(slots);
    let of = |form: &dyn Fn(usize) -> String| -> Vec<PlotStep> {
        let step = |(number, ends): (usize, &[u32])| {
            let [from, to] = [ends[0], ends[1]].map(share);
            PlotStep { from, to, label: form(number) }
        };
        edges.windows(2).enumerate().map(step).collect()
    };
    let room = |step: &PlotStep| (step.to - step.from) * f64::from(PLOT[0]);
    let fits = |step: &PlotStep| step.label.len() as f64 * LETTER[0] + 6.0 < room(step);
    // One form for all. The window may cut the last one off.
    let forms: [&dyn Fn(usize) -> String; 2] =
        [&|number| format!("{word} {number}"), &|number: usize| number.to_string()];
    let mut forms = forms.into_iter().map(of);
    let fitting = forms.find(|steps| steps.iter().rev().skip(1).all(fits));
    let mut steps = fitting.unwrap_or_else(|| of(&|_| String::new()));
    if let Some(last) = steps.last_mut().filter(|step| !fits(step)) {
        last.label.clear();
    }
    steps
}

/// The lines as rows; equal neighbors of one function are one.
fn rows(lines: &[HoldingLine]) -> Vec<LargestLine> {
    let mut rows: Vec<(HoldingLine, u32)> = Vec::new();
    for line in lines {
        let known = rows.iter_mut().find(|(one, last)| is_neighbor(one, *last, line));
        match (known, &line.place) {
            (Some((one, last)), Some(place)) => {
                one.bytes.0 = one.bytes.0.saturating_add(line.bytes.0);
                one.percent += line.percent;
                one.was = one.was.zip(line.was).map(|(a, b)| Bytes(a.0.saturating_add(b.0)));
                *last = place.line;
            }
            _ => rows.push((line.clone(), line.place.as_ref().map_or(0, |place| place.line))),
        }
    }
    rows.sort_by_key(|(line, _)| std::cmp::Reverse(line.bytes));
    rows.truncate(MAX_LINES);
    let most = rows.first().map_or(0, |(line, _)| line.bytes.0);
    rows.iter().map(|(line, last)| row(line, *last, most)).collect()
}

/// Whether a line follows another one of its function and holds as much.
fn is_neighbor(one: &HoldingLine, last: u32, line: &HoldingLine) -> bool {
    let (Some(of), Some(place)) = (&one.place, &line.place) else { return false };
    let each = one.bytes.0 / u64::from(last - of.line + 1);
    place.file == of.file
        && place.line == last + 1
        && place.function == of.function
        && place.is_backward == of.is_backward
        && line.category == one.category
        && line.bytes.0.abs_diff(each).saturating_mul(100) <= each
}

fn row(line: &HoldingLine, last: u32, most: u64) -> LargestLine {
    let HoldingLine { site, bytes, percent, category, place, .. } = line;
    let site = place.as_ref().map_or_else(|| site.clone(), |place| site_of(place, last));
    let what = line.does.as_deref().unwrap_or_else(|| category_label(*category));
    let title: Vec<&str> = [what].into_iter().chain(line.text.as_deref()).collect();
    LargestLine {
        site,
        file: place.as_ref().map(|place| place.file.clone()).unwrap_or_default(),
        line: place.as_ref().map_or(0, |place| place.line),
        title: title.join(", "),
        bytes: brief(*bytes),
        share: format!("{percent} %"),
        part: fraction(bytes.0, most),
        color: Color::category(*category as u8).word(),
        was: line.was.map_or_else(String::new, |was| was_words(was, *bytes)),
    }
}

/// `gpt.py:43-44 forward`, `backward of gpt.py:44 forward`.
fn site_of(place: &LinePlace, last: u32) -> String {
    let LinePlace { file, line, function, is_backward } = place;
    let of = if *is_backward { "backward of " } else { "" };
    let end = if *line < last { format!("-{last}") } else { String::new() };
    format!("{of}{}:{line}{end} {function}", file_name(file))
}

fn was_words(was: Bytes, is: Bytes) -> String {
    let difference = was.0.abs_diff(is.0);
    if difference.saturating_mul(200) <= is.0 {
        "the same".to_owned()
    } else if was.0.saturating_mul(100) < is.0 {
        "new".to_owned()
    } else {
        format!("was {}", was.brief())
    }
}
