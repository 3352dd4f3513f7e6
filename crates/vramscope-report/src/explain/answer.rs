//! What is said about messages, laid out by [`diagnostic`](crate::diagnostic) for every door.

use super::record::{Advice, Bar, CauseKind, CauseVerdict, Explained, FigureName, Kind, Message};
use crate::diagnostic::{self, Answer, Diagnostic, Fact, FactLabel, FigureRow, Level, LeverRow};
use crate::text::ranges;
use std::fmt::Write as _;
use vramscope_inference::capitalized;
use vramscope_units::grouped;

/// Messages after the first that are shown.
const MAX_MORE: usize = 4;

impl Explained {
    /// The answer: the first message with all that it shows, then the others with their headlines.
    pub fn answer(&self) -> Answer {
        let Some(first) = self.messages.first() else {
            let empty = format!(
                "no out-of-memory message found in {} {}",
                grouped(self.lines.0.unsigned_abs()),
                if self.lines.0 == 1 { "line" } else { "lines" }
            );
            return Answer { empty: Some(empty), ..Answer::default() };
        };
        let mut findings = vec![whole(first)];
        findings.extend(self.messages[1..].iter().take(MAX_MORE).map(headline));
        let mut notes = first.notes.clone();
        let more = self.messages.len() - findings.len();
        if more > 0 {
            notes.push(format!("{} more messages: --format json has all", grouped(more as u64)));
        }
        Answer { findings, help: first.help.clone(), notes, ..Answer::default() }
    }
}

/// A message with its causes, changes and figures.
fn whole(message: &Message) -> Diagnostic {
    let row = |label: String, advice: &Advice, helps: bool| LeverRow {
        label,
        text: advice.change.clone(),
        needs: String::new(),
        verdict: advice.effect.clone(),
        cost: String::new(),
        covers: None,
        basis: String::new(),
        helps,
    };
    let fixes = message.fixes.iter().enumerate();
    let fixes = fixes.map(|(index, fix)| row(format!("fix {}", index + 1), fix, true));
    let figures = message.figures.iter().map(|figure| FigureRow {
        name: name(figure.name),
        bytes: format!("{}{}", if figure.derived { "about " } else { "" }, figure.bytes),
        meaning: figure.meaning.clone(),
    });
    Diagnostic {
        bar: message.bar.as_ref().map(bar),
        facts: message
            .causes
            .iter()
            .filter_map(|cause| {
                let perhaps = match cause.verdict {
                    CauseVerdict::Shown => "",
                    CauseVerdict::Possible => "perhaps ",
                    CauseVerdict::Excluded | CauseVerdict::CannotBeTold => return None,
                };
                let name = cause_name(cause.cause);
                let text = format!("{perhaps}{name}: {}", cause.text);
                Some(Fact { label: FactLabel::Why, text })
            })
            .collect(),
        fixes: fixes.chain(message.no.iter().map(|no| row("no".to_owned(), no, false))).collect(),
        figures: figures.collect(),
        ..headline(message)
    }
}

/// A message with its headline and place.
fn headline(message: &Message) -> Diagnostic {
    Diagnostic {
        id: None,
        level: Level::Error,
        kind: "oom",
        headline: capitalized(&message.headline),
        leads: true,
        site: place(message),
        note: String::new(),
        file: String::new(),
        source: None,
        what: String::new(),
        bar: None,
        facts: Vec::new(),
        fixes: Vec::new(),
        looks: Vec::new(),
        figures: Vec::new(),
        detail: String::new(),
    }
}

fn cause_name(cause: CauseKind) -> &'static str {
    match cause {
        CauseKind::Demand => "demand",
        CauseKind::Fragmentation => "fragmentation",
        CauseKind::OtherProcesses => "other processes",
        CauseKind::Limit => "limit",
    }
}

/// Where a message is, and whose it is.
fn place(message: &Message) -> String {
    let mut place = format!("line {}", grouped(message.line.into()));
    if !message.ranks.is_empty() {
        let word = if message.ranks.len() == 1 { "rank" } else { "ranks" };
        write!(place, ", {word} {}", ranges(&message.ranks)).expect("a string takes all");
    }
    let source = match message.kind {
        Kind::Allocator => match message.backend {
            Some(backend) => format!("PyTorch on {}", backend.name()),
            None => "PyTorch".to_owned(),
        },
        Kind::MallocAsync => "PyTorch with cudaMallocAsync".to_owned(),
        Kind::Mps => "PyTorch on MPS".to_owned(),
        Kind::Invalid => "PyTorch".to_owned(),
        Kind::Driver => "the driver".to_owned(),
        Kind::Library => "a library".to_owned(),
        Kind::Nccl => "NCCL".to_owned(),
        Kind::Host => "the host".to_owned(),
        Kind::Bare => "an unknown source".to_owned(),
        _ => "a serving engine".to_owned(),
    };
    write!(place, ", of {source}").expect("a string takes all");
    if message.count.0 > 1 {
        let count = grouped(message.count.0.unsigned_abs());
        write!(place, ", {count} alike").expect("a string takes all");
    }
    place
}

/// The device's memory to scale.
fn bar(bar: &Bar) -> diagnostic::Bar {
    let parts = bar.parts.iter().map(|part| {
        let (letter, name) = match part.part {
            FigureName::Allocated => ('A', "allocated"),
            FigureName::Unallocated => ('#', "holes"),
            FigureName::OutsidePytorch => ('w', "outside"),
            FigureName::OtherProcesses => ('o', "others"),
            FigureName::NotPytorch | FigureName::Untold => ('?', "outside"),
            FigureName::ThisProcess => ('t', "outside"),
            _ => ('.', "free"),
        };
        let label = format!("{}{}", part.label, if part.about { " about" } else { "" });
        diagnostic::BarPart { letter, name, label, bytes: part.bytes }
    });
    diagnostic::Bar {
        title: bar.bytes.to_string(),
        parts: parts.filter(|part| part.bytes.0 > 0).collect(),
        request: bar.asked,
        lines: Vec::new(),
    }
}

/// A figure's name in words.
pub(super) fn name(figure: FigureName) -> &'static str {
    match figure {
        FigureName::Asked => "asked",
        FigureName::Capacity => "device",
        FigureName::Free => "free",
        FigureName::Allocated => "allocated",
        FigureName::Unallocated => "reserved but unallocated",
        FigureName::Reserved => "reserved",
        FigureName::PrivatePools => "in private pools",
        FigureName::Limit => "limit",
        FigureName::ThisProcess => "this process",
        FigureName::OutsidePytorch => "this process outside of PyTorch",
        FigureName::OtherProcesses => "other processes",
        FigureName::NotPytorch => "not PyTorch's",
        FigureName::Untold => "not told",
        FigureName::CacheNeeded => "KV cache needs",
        FigureName::CacheAvailable => "left for the KV cache",
        FigureName::Desired => "engine was told to take",
    }
}
