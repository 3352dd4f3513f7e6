//! The answer as text for terminals, and as Markdown for issues.

use super::record::{Advice, Bar, CauseKind, CauseVerdict, Explained, FigureName, Kind, Message};
use crate::markdown::escape;
use crate::text::ranges;
use std::fmt::Write as _;
use vramscope_units::{Bytes, grouped};

/// The columns of a text.
const WIDTH: usize = 100;

/// The cells of a bar.
const CELLS: u64 = 48;

/// Further messages that have a line each.
const MAX_MORE: usize = 4;

/// The lines of text for a terminal, without line breaks at the ends.
pub fn text(explained: &Explained) -> Vec<String> {
    let Some((first, more)) = explained.messages.split_first() else {
        return vec![format!(
            "no out-of-memory message found in {} {}",
            grouped(explained.lines.0.unsigned_abs()),
            if explained.lines.0 == 1 { "line" } else { "lines" }
        )];
    };
    let mut lines = vec![format!("error[oom]: {}", first.headline)];
    lines.push(format!("  --> {}", place(first)));
    if let Some(bar) = &first.bar {
        lines.push("   |".to_owned());
        push_bar(&mut lines, bar);
    }
    for cause in shown(first) {
        wrap(&mut lines, "   = why: ", &cause);
    }
    let width = first.fixes.iter().chain(&first.no).map(|fix| fix.change.chars().count());
    let width = width.filter(|width| *width <= 56).max().unwrap_or(0);
    let row = |advice: &Advice| format!("{:width$}   {}", advice.change, advice.effect);
    if !(first.fixes.is_empty() && first.no.is_empty()) {
        lines.push(String::new());
    }
    for (index, fix) in first.fixes.iter().enumerate() {
        wrap(&mut lines, &format!("fix {}: ", index + 1), &row(fix));
    }
    for no in &first.no {
        wrap(&mut lines, "no:    ", &row(no));
    }
    if !(first.help.is_empty() && first.notes.is_empty()) {
        lines.push(String::new());
    }
    for help in &first.help {
        wrap(&mut lines, "help: ", help);
    }
    for note in &first.notes {
        wrap(&mut lines, "note: ", note);
    }
    for other in more.iter().take(MAX_MORE) {
        wrap(&mut lines, "also: ", &format!("{} ({})", other.headline, place(other)));
    }
    if more.len() > MAX_MORE {
        let more = grouped((more.len() - MAX_MORE) as u64);
        lines.push(format!("also: {more} more (--format json has all)"));
    }
    lines
}

/// The causes that the figures show or allow.
fn shown(message: &Message) -> impl Iterator<Item = String> + '_ {
    message.causes.iter().filter_map(|cause| match cause.verdict {
        CauseVerdict::Shown => Some(why(cause.cause, &cause.text, "")),
        CauseVerdict::Possible => Some(why(cause.cause, &cause.text, "perhaps ")),
        CauseVerdict::Excluded | CauseVerdict::CannotBeTold => None,
    })
}

fn why(cause: CauseKind, text: &str, perhaps: &str) -> String {
    let name = match cause {
        CauseKind::Demand => "demand",
        CauseKind::Fragmentation => "fragmentation",
        CauseKind::OtherProcesses => "other processes",
        CauseKind::Limit => "limit",
    };
    format!("{perhaps}{name}: {text}")
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

/// The letter of a part.
fn letter(part: FigureName) -> char {
    match part {
        FigureName::Allocated => 'A',
        FigureName::Unallocated => '#',
        FigureName::OutsidePytorch => 'w',
        FigureName::OtherProcesses => 'o',
        FigureName::NotPytorch => '?',
        _ => '.',
    }
}

/// The bar to scale, the request beside it, and the legend.
fn push_bar(lines: &mut Vec<String>, bar: &Bar) {
    let cells = |bytes: Bytes| {
        let exact = u128::from(bytes.0) * u128::from(CELLS) * 2 / u128::from(bar.bytes.0.max(1));
        // A part of half a percent has a cell.
        let least = u128::from(u128::from(bytes.0) * 200 >= u128::from(bar.bytes.0));
        exact.div_ceil(2).max(least).min(u128::from(CELLS)) as usize
    };
    let mut widths: Vec<usize> = bar.parts.iter().map(|part| cells(part.bytes)).collect();
    // The largest part takes what rounding left over.
    while let Some(over) = widths.iter().sum::<usize>().checked_sub(CELLS as usize + 1) {
        let Some(largest) = widths.iter_mut().max().filter(|width| **width > 1) else { break };
        *largest -= (over + 1).min(*largest - 1);
    }
    let parts = bar.parts.iter().zip(&widths);
    let picture: String =
        parts.map(|(part, width)| String::from(letter(part.part)).repeat(*width)).collect();
    let asked = match cells(bar.asked).max(1) {
        _ if bar.asked > bar.bytes => format!("[{}>", "R".repeat(CELLS as usize / 4)),
        cells => format!("[{}]", "R".repeat(cells.min(20))) + if cells > 20 { ".." } else { "" },
    };
    lines.push(format!("   = {} [{picture}] {asked} asked", bar.bytes));
    let legend = bar.parts.iter().map(|part| {
        let about = if part.about { "about " } else { "" };
        format!("{} {} {about}{}", letter(part.part), part.label, part.bytes)
    });
    let mut line = String::new();
    for entry in legend {
        if !line.is_empty() && line.len() + entry.len() + 8 > WIDTH {
            lines.push(format!("     {line}"));
            line.clear();
        }
        if !line.is_empty() {
            line.push_str("   ");
        }
        line.push_str(&entry);
    }
    lines.push(format!("     {line}"));
}

/// Pushes a text, wrapped below its prefix.
fn wrap(lines: &mut Vec<String>, prefix: &str, text: &str) {
    let indent = " ".repeat(prefix.chars().count());
    let mut line = prefix.to_owned();
    let mut is_empty = true;
    for word in text.split_inclusive(' ') {
        let used = line.chars().count();
        if !is_empty && used + word.trim_end().chars().count() > WIDTH {
            lines.push(line.trim_end().to_owned());
            line.clone_from(&indent);
        }
        line.push_str(word);
        is_empty = false;
    }
    lines.push(line.trim_end().to_owned());
}

/// The answer for an issue or a pull request.
pub fn markdown(explained: &Explained) -> Vec<String> {
    let mut lines = Vec::new();
    if explained.messages.is_empty() {
        return text(explained);
    }
    for message in &explained.messages {
        lines.push(format!("### Out of memory: {}", escape(&message.headline)));
        lines.push(String::new());
        lines.push(format!("{}.", escape(&place(message))));
        lines.push(String::new());
        for cause in shown(message) {
            lines.push(format!("- why: {}", escape(&cause)));
        }
        for fix in &message.fixes {
            lines.push(format!("- fix: {}: {}", escape(&fix.change), escape(&fix.effect)));
        }
        for no in &message.no {
            lines.push(format!("- does not help: {}: {}", escape(&no.change), escape(&no.effect)));
        }
        for note in &message.notes {
            lines.push(format!("- {}", escape(note)));
        }
        if !message.figures.is_empty() {
            lines.extend(["", "| figure | bytes | meaning |", "|---|---:|---|"].map(String::from));
            for figure in &message.figures {
                let about = if figure.derived { "about " } else { "" };
                lines.push(format!(
                    "| {} | {about}{} | {} |",
                    name(figure.name),
                    figure.bytes,
                    escape(&figure.meaning)
                ));
            }
        }
        if !message.help.is_empty() {
            lines.extend(["", "```"].map(String::from));
            lines.extend(message.help.iter().cloned());
            lines.push("```".to_owned());
        }
        lines.push(String::new());
    }
    lines.pop();
    lines
}

/// A figure's name in words.
fn name(figure: FigureName) -> &'static str {
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
        FigureName::CacheNeeded => "KV cache needs",
        FigureName::CacheAvailable => "left for the KV cache",
        FigureName::Desired => "engine was told to take",
    }
}
