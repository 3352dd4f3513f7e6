//! The summary of a device: what `vramscope diagnose` says, laid out for the page.

use super::findings;
use super::levers::brief;
use super::shares::fraction;
use crate::messages::views::{BarMark, BarPart, MemoryBar, Summary, SummaryView};
use vramscope_inference::{Category, LeverPlace, capitalized};
use vramscope_layout::Color;
use vramscope_report::diagnose::{
    Diagnosis, Listing, MAX_FINDINGS, diagnose, diagnosed, diagnosed_with_levers,
};
use vramscope_report::diagnostic::{self, Answer, Diagnostic, Fact, FactLabel};
use vramscope_report::findings::FindingEntry;
use vramscope_report::phases::step_words;
use vramscope_report::verdict::{self, MemoryPart};
use vramscope_report::what_if::calibration_text;
use vramscope_report::{Quantity, Target};
use vramscope_trace::Coverage;
use vramscope_trace::slicing::Budget;
use vramscope_units::{Bytes, Micros, byte_ticks, grouped};

/// The most labels below a bar.
const TICKS: usize = 10;

/// The summary of one device. With `is_simulated` findings have what replays say.
pub(crate) async fn summary(at: Target<'_>, is_simulated: bool, budget: &mut Budget) -> Summary {
    let device = diagnosed(at, budget).await;
    let diagnosis = diagnose(vec![device], Listing::Main(MAX_FINDINGS), 0);
    let answer = Answer::new(&diagnosis, &[at.path.to_owned()], false);
    let memory = verdict::memory(at, budget).await;
    // A failed request tells of the free memory that it could not use.
    let is_said = |entry: &FindingEntry| {
        answer.findings.iter().any(|one| one.id.as_ref() == Some(&entry.record.id))
    };
    let said = diagnosis.findings.iter().filter(|entry| is_said(entry)).cloned().collect();
    let rows = findings::rows(at, said, budget).await;
    let view = SummaryView {
        bar: bar(&memory, at.trace().device.kind.noun()),
        findings: rows,
        facts: facts(at, &diagnosis, is_simulated),
        is_simulated,
        ..words(&diagnosis, &answer)
    };
    Summary { record: diagnosis.fitted(), view }
}

/// The recording in a few words each.
fn facts(at: Target<'_>, diagnosis: &Diagnosis, is_simulated: bool) -> Vec<String> {
    let trace = at.trace();
    let mut facts = Vec::new();
    if !trace.is_state_only() {
        let whole = if trace.coverage == Coverage::Whole { "Whole run" } else { "Part of a run" };
        let events = Quantity::count(trace.device.events.len() as u64, "event", "events").exact;
        let span = trace.clock.as_ref().map(|clock| format!(" in {}", Micros(clock.span() as i64)));
        let steps = at.entry.steps(at.index).map(|steps| {
            let [one, many] = step_words(at);
            format!(", {}", Quantity::count(steps.whole() as u64, one, many).exact)
        });
        let [span, steps] = [span, steps].map(Option::unwrap_or_default);
        facts.push(format!("{whole}: {events}{span}{steps}"));
    }
    let model = at.entry.what_if(at.index).filter(|_| is_simulated);
    facts.extend(model.map(|model| {
        if model.calibration.is_equal() {
            "Simulation matches this file exactly".to_owned()
        } else {
            calibration_text(model)
        }
    }));
    facts.extend(diagnosis.blind_spots.iter().map(|spot| spot.text.clone()));
    facts
}

/// The answer of `diagnose` in Markdown.
pub(crate) async fn markdown(at: Target<'_>, budget: &mut Budget) -> String {
    let device = diagnosed_with_levers(at, budget).await;
    let diagnosis = diagnose(vec![device], Listing::Main(MAX_FINDINGS), 0);
    diagnostic::markdown(&Answer::new(&diagnosis, &[at.path.to_owned()], false))
}

/// The words of an answer of `diagnose`.
fn words(diagnosis: &Diagnosis, answer: &Answer) -> SummaryView {
    let main = answer.main();
    let dry = answer.dry.as_deref().map(sentence);
    let (headline, place, lines) = match (main, &answer.peak) {
        (Some(main), peak) => {
            let record = diagnosis.findings.first().map(|entry| &entry.record);
            let place = record.and_then(|record| record.place.as_ref());
            let place = place.map(|place| LeverPlace {
                site: place.site.clone(),
                file: place.file.clone(),
                line: place.line,
            });
            let peak = peak.iter().map(|(words, _)| sentence(words));
            let lines = main_lines(main).into_iter().chain(peak).chain(dry);
            (main.headline.clone(), place, lines.collect())
        }
        (None, Some((words, _))) => {
            let lines = diagnosis.peak.iter().flat_map(|peak| &peak.lines);
            let mut named = lines.filter(|line| words.contains(&line.site));
            let line = named.next();
            let place = line.and_then(|line| {
                let of = line.place.as_ref()?;
                Some(LeverPlace { site: line.site.clone(), file: of.file.clone(), line: of.line })
            });
            // The list of lines has the bytes.
            let bytes = line.map(|line| format!(", {}", line.bytes.brief()));
            let words = bytes.and_then(|bytes| words.strip_suffix(&bytes)).unwrap_or(words);
            (words.to_owned(), place, dry.into_iter().collect())
        }
        (None, None) => {
            let empty = answer.empty.as_deref().or(answer.dry.as_deref());
            (empty.map(capitalized).unwrap_or_default(), None, Vec::new())
        }
    };
    SummaryView {
        headline,
        place,
        lines,
        remedy: remedy(main),
        bar: None,
        findings: Vec::new(),
        omitted: match answer.omitted {
            0 => String::new(),
            count => format!("and {} more", grouped(count as u64)),
        },
        facts: Vec::new(),
        is_simulated: false,
    }
}

/// A line of `diagnose` as a sentence of its own.
fn sentence(text: &str) -> String {
    let text = capitalized(text);
    if text.ends_with(['.', '!', '?']) { text } else { format!("{text}.") }
}

/// A line of `diagnose` that needs no label.
fn fact(Fact { label, text }: &Fact) -> String {
    match label {
        FactLabel::HeldBy => sentence(&format!("memory is held by {text}")),
        _ => sentence(text),
    }
}

/// Why the main finding is one. What to do has a row among the levers.
fn main_lines(main: &Diagnostic) -> Vec<String> {
    let is_text = |of: &&Fact| !matches!(of.label, FactLabel::Bars(_) | FactLabel::Help);
    main.facts.iter().filter(is_text).map(fact).collect()
}

/// What to do in a few words, beside levers.
fn remedy(main: Option<&Diagnostic>) -> String {
    let advice = main.and_then(|main| main.facts.iter().find(|of| of.label == FactLabel::Help));
    advice.map(|of| capitalized(&of.text)).unwrap_or_default()
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
            bytes: brief(part.bytes),
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
        label: format!("{noun} limit for PyTorch"),
    });
    let request = memory.request.map(|bytes| BarPart {
        name: "request".to_owned(),
        label: "request".to_owned(),
        bytes: brief(bytes),
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
        whole: whole as f64,
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
        format!(", {share} % of {} reserved", memory.reserved.brief())
    } else {
        String::new()
    };
    let note = match category {
        Some(Category::Unknown) => ": no evidence for a category",
        _ if note.is_empty() => "",
        _ => return format!("{label}: {}{share}; {note}", bytes.brief()),
    };
    format!("{label}: {}{share}{note}", bytes.brief())
}
