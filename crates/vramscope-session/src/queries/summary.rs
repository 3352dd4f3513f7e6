//! The summary of a device: what `vramscope diagnose` says, laid out for the page.

use super::findings;
use super::shares::fraction;
use crate::messages::views::{
    BarMark, BarPart, FindingView, FixView, MemoryBar, SaidFinding, Summary, SummaryView,
};
use vramscope_inference::{Category, FindingId, capitalized};
use vramscope_layout::Color;
use vramscope_report::diagnose::{
    Diagnosis, Listing, MAX_FINDINGS, diagnose, diagnosed, diagnosed_with_levers,
};
use vramscope_report::diagnostic::{self, Answer, Diagnostic, Fact, FactLabel, LeverRow, LineRow};
use vramscope_report::verdict::{self, MemoryPart};
use vramscope_report::what_if::calibration_text;
use vramscope_report::{FindingKind, Lever, Quantity, Target};
use vramscope_trace::slicing::Budget;
use vramscope_units::{Bytes, byte_ticks, grouped};

/// The most labels below a bar.
const TICKS: usize = 6;

/// The summary of one device. With `is_simulated` it has the replays of changes.
pub(crate) async fn summary(at: Target<'_>, is_simulated: bool, budget: &mut Budget) -> Summary {
    let device = if is_simulated {
        diagnosed_with_levers(at, budget).await
    } else {
        diagnosed(at, budget).await
    };
    let diagnosis = diagnose(vec![device], Listing::Main(MAX_FINDINGS), 0);
    let rows = findings::rows(at, diagnosis.findings.clone(), budget).await;
    let views: Vec<(FindingId, FindingView)> =
        rows.into_iter().map(|row| (row.record.id, row.view)).collect();
    let answer = Answer::new(&diagnosis, &[at.path.to_owned()], false);
    let memory = verdict::memory(at, budget).await;
    let model = at.entry.what_if(at.index).filter(|_| is_simulated);
    let view = SummaryView {
        bar: bar(&memory, at.trace().device.kind.noun()),
        model: model.map(calibration_text).unwrap_or_default(),
        is_simulated,
        ..words(&diagnosis, &answer, views)
    };
    Summary { record: diagnosis.fitted(), view }
}

/// The answer of `diagnose` in Markdown.
pub(crate) async fn markdown(at: Target<'_>, budget: &mut Budget) -> String {
    let device = diagnosed_with_levers(at, budget).await;
    let diagnosis = diagnose(vec![device], Listing::Main(MAX_FINDINGS), 0);
    diagnostic::markdown(&Answer::new(&diagnosis, &[at.path.to_owned()], false))
}

/// The words of an answer of `diagnose`.
fn words(
    diagnosis: &Diagnosis,
    answer: &Answer,
    mut views: Vec<(FindingId, FindingView)>,
) -> SummaryView {
    let main = answer.main();
    let failure = diagnosis.findings.first().filter(|one| one.record.kind == FindingKind::Oom);
    let (rows, levers): (&[LeverRow], &[Lever]) = match (main, failure) {
        (Some(main), Some(entry)) => (&main.fixes, &entry.record.fixes),
        _ => (&answer.levers, &diagnosis.levers),
    };
    let limit = diagnosis.memory.as_ref().and_then(|memory| memory.capacity);
    let is_failure = rows.iter().any(|row| !row.verdict.is_empty());
    let limit = limit.filter(|_| is_failure);
    let mut said = |one: &Diagnostic| {
        let id = one.id.clone()?;
        let entry = diagnosis.findings.iter().find(|entry| entry.record.id == id)?;
        let view = views.iter().position(|(of, _)| *of == id).map(|i| views.swap_remove(i).1)?;
        Some(SaidFinding {
            severity: entry.record.severity,
            id,
            headline: one.headline.clone(),
            place: one.place(),
            facts: one.facts.iter().map(|of| [of.label.name().to_owned(), fact(of)]).collect(),
            looks: one.looks.iter().map(look).collect(),
            view,
        })
    };
    let findings = answer.findings.iter().filter_map(&mut said).collect();
    let omitted = match answer.omitted {
        0 => String::new(),
        count => format!("and {} more", grouped(count as u64)),
    };
    let dry = answer.dry.as_deref().map(sentence);
    let (headline, lines) = match (main, &answer.peak) {
        (Some(main), _) => {
            (main.headline.clone(), main_lines(main).into_iter().chain(dry).collect())
        }
        (None, Some((words, bar))) => {
            (words.clone(), bar.lines.iter().take(MAX_LINES).map(holding_line).chain(dry).collect())
        }
        (None, None) => {
            let empty = answer.empty.as_deref().or(answer.dry.as_deref());
            (empty.map(capitalized).unwrap_or_default(), Vec::new())
        }
    };
    SummaryView {
        headline,
        lines,
        remedy: remedy(main, rows),
        bar: None,
        fixes_title: match main {
            Some(_) if is_failure => "What makes it fit",
            _ => "What to change",
        }
        .to_owned(),
        scale: limit.map(|limit| format!("of {limit}")).unwrap_or_default(),
        fixes: fix_views(rows, levers, limit),
        findings,
        omitted,
        model: String::new(),
        is_simulated: false,
    }
}

/// A line of `diagnose` as a sentence of its own.
fn sentence(text: &str) -> String {
    let text = capitalized(text);
    if text.ends_with(['.', '!', '?']) { text } else { format!("{text}.") }
}

/// The most lines of a peak.
const MAX_LINES: usize = 3;

/// `prog.py:11 forward holds 2.20 GiB (59 %): temporaries, was 0.70 GiB in step 3.`
fn holding_line(line: &LineRow) -> String {
    let LineRow { bytes, share, site, text } = line;
    format!("{site} holds {bytes} ({share}): {text}.")
}

/// A line of `diagnose` that needs no label.
fn fact(Fact { label, text }: &Fact) -> String {
    match label {
        FactLabel::HeldBy => sentence(&format!("memory is held by {text}")),
        _ => sentence(text),
    }
}

fn look(row: &vramscope_report::diagnostic::LookRow) -> String {
    if row.site.is_empty() { row.text.clone() } else { format!("{}: {}", row.site, row.text) }
}

/// Why the main finding is one, and what to do beside the changes that were replayed.
fn main_lines(main: &Diagnostic) -> Vec<String> {
    let is_text = |of: &&Fact| !matches!(of.label, FactLabel::Bars(_));
    main.facts.iter().filter(is_text).map(fact).collect()
}

/// What to do in a few words: the first change that helps, else the advice.
fn remedy(main: Option<&Diagnostic>, rows: &[LeverRow]) -> String {
    if let Some(row) = rows.iter().find(|row| row.helps) {
        let outcome = if row.verdict.is_empty() { &row.needs } else { &row.verdict };
        return format!("{}, {outcome}", row.text);
    }
    let advice = main.and_then(|main| main.facts.iter().find(|of| of.label == FactLabel::Help));
    advice.map(|of| capitalized(&of.text)).unwrap_or_default()
}

/// The rows with their gauges. They have one scale.
fn fix_views(rows: &[LeverRow], levers: &[Lever], limit: Option<Bytes>) -> Vec<FixView> {
    let most = levers.iter().map(|lever| lever.needs_bytes.0).max().unwrap_or_default();
    let whole = most.max(limit.map_or(0, |limit| limit.0));
    let mut number = 0;
    let view = |(row, lever): (&LeverRow, &Lever)| {
        number += u32::from(row.helps);
        let setting = lever.conf.clone().into_iter();
        let recipe = Some(lever.recipe.clone()).filter(|recipe| !recipe.is_empty());
        FixView {
            number: row.helps.then_some(number),
            text: row.text.clone(),
            bytes: Quantity::bytes(lever.needs_bytes),
            needs: row.needs.clone(),
            gauge: limit
                .map(|limit| [fraction(lever.needs_bytes.0, whole), fraction(limit.0, whole)]),
            outcome: lever.outcome,
            verdict: row.verdict.clone(),
            cost: row.cost.clone(),
            basis: row.basis.clone(),
            question: setting.chain(recipe).collect::<Vec<_>>().join(","),
        }
    };
    rows.iter().zip(levers).map(view).collect()
}

/// A bar to scale; `None` if nothing was reserved. `noun` is the device.
pub(super) fn bar(memory: &verdict::MemoryBar, noun: &str) -> Option<MemoryBar> {
    let whole = memory.scale().0;
    if whole == 0 {
        return None;
    }
    let mut end = 0;
    let part = |part: &MemoryPart| {
        let from = end;
        end += part.bytes.0;
        BarPart {
            name: part.name.to_owned(),
            label: part.label.to_owned(),
            bytes: Quantity::bytes(part.bytes),
            title: title(part, memory),
            from: fraction(from, whole),
            to: fraction(end, whole),
            color: part.category.map(|category| Color::category(category as u8).word()),
            filter: part.category.map(|category| format!("category:{}", category.name())),
        }
    };
    let parts = memory.parts.iter().map(part).collect();
    let tick = |tick: vramscope_units::Tick| BarMark {
        at: tick.value / whole as f64,
        bytes: Quantity::bytes(Bytes(tick.value as u64)),
        label: tick.text,
    };
    let ticks = byte_ticks(0.0, whole as f64, TICKS).into_iter().map(tick).collect();
    let capacity = memory.capacity.map(|bytes| BarMark {
        at: fraction(bytes.0, whole),
        bytes: Quantity::bytes(bytes),
        label: format!("{noun} limit for PyTorch {bytes}"),
    });
    let request = memory.request.map(|bytes| BarPart {
        name: "request".to_owned(),
        label: "request".to_owned(),
        bytes: Quantity::bytes(bytes),
        title: format!("The request that failed: {bytes}"),
        from: fraction(memory.reserved.0, whole),
        to: fraction(memory.reserved.0 + bytes.0, whole),
        color: None,
        filter: None,
    });
    Some(MemoryBar {
        event: u32::try_from(memory.event).ok(),
        moment: if memory.is_estimate {
            format!("{} (sizes of blocks are estimates)", memory.moment)
        } else {
            memory.moment.clone()
        },
        parts,
        reserved: Quantity::bytes(memory.reserved),
        capacity,
        request,
        ticks,
    })
}

/// A part in words.
fn title(part: &MemoryPart, memory: &verdict::MemoryBar) -> String {
    let MemoryPart { name, label, bytes, category, note } = part;
    let is_reserved = !matches!(*name, "device_free" | "outside");
    let share = (u128::from(bytes.0) * 100 + u128::from(memory.reserved.0) / 2)
        / u128::from(memory.reserved.0.max(1));
    let share = if is_reserved {
        format!(", {share} % of {} reserved", Bytes(memory.reserved.0))
    } else {
        String::new()
    };
    let note = match category {
        Some(Category::Unknown) => ": no evidence for a category",
        _ if note.is_empty() => "",
        _ => return format!("{label}: {bytes}{share}; {note}"),
    };
    format!("{label}: {bytes}{share}{note}")
}
