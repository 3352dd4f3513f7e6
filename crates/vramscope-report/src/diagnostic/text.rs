//! An answer in lines of a terminal or a log.

use super::{Answer, Bar, Diagnostic, Fact, FactLabel, Level, LeverRow, LineRow, RankRow};
use vramscope_inference::lower_first;
use vramscope_units::printable;

/// What a part of a line is: a terminal paints it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    /// Text.
    Plain,
    /// A headline.
    Strong,
    /// Rulers and what matters less.
    Faint,
    /// A word of a level.
    Level(Level),
    /// A good outcome.
    Good,
    /// Cells of a part of a bar, by its name.
    Part(&'static str),
}

/// A part of a line. It has no character that acts on a terminal.
pub type Span = (Paint, String);

/// A narrower terminal has lines that are too long.
const MIN_WIDTH: usize = 60;

/// Bars are not wider.
const MAX_BAR: usize = 60;

/// The columns before the text of a fact.
const INDENT: usize = 5;

/// The lines of an answer, for a terminal of this many columns. Commands to paste are never broken.
pub fn text(answer: &Answer, width: usize) -> Vec<Vec<Span>> {
    let mut lines = Lines { width: width.max(MIN_WIDTH), all: Vec::new() };
    if let Some(dry) = &answer.dry {
        lines.wrapped(Paint::Strong, "", dry, 2);
    }
    if let Some(empty) = &answer.empty {
        lines.wrapped(Paint::Strong, "", empty, 2);
    }
    let (first, others) = answer.parts();
    if first.is_empty() {
        lines.peak(answer.peak.as_ref());
    }
    for one in first {
        lines.gap();
        lines.finding(one);
    }
    if !answer.processes.is_empty() {
        lines.gap();
    }
    for process in &answer.processes {
        lines.wrapped(Paint::Plain, "", process, 2);
    }
    if !answer.ranks.is_empty() {
        lines.gap();
        lines.ranks(&answer.ranks);
    }
    if !first.is_empty() {
        lines.peak(answer.peak.as_ref());
    }
    if !answer.levers.is_empty() {
        lines.rows(&answer.levers);
    }
    for (i, one) in others.iter().enumerate() {
        if i == 0 || one.level != Level::Note {
            lines.gap();
        }
        lines.finding(one);
    }
    if answer.omitted > 0 {
        let more = format!("and {} more: --all lists every finding", answer.omitted);
        lines.push(vec![(Paint::Faint, more)]);
    }
    if !answer.help.is_empty() || !answer.notes.is_empty() {
        lines.gap();
    }
    for help in &answer.help {
        lines.push(vec![(Paint::Faint, "help: ".to_owned()), (Paint::Plain, shown(help))]);
    }
    for note in &answer.notes {
        lines.wrapped(Paint::Faint, "note: ", &lower_first(note), 6);
    }
    lines.all
}

/// The same without paint.
pub fn plain_text(answer: &Answer, width: usize) -> String {
    let mut out = String::new();
    for line in text(answer, width) {
        let line: String = line.into_iter().map(|(_, text)| text).collect();
        out.push_str(&line);
        out.push('\n');
    }
    out
}

fn shown(text: &str) -> String {
    printable(text).into_owned()
}

fn columns(text: &str) -> usize {
    text.chars().count()
}

/// The text in at most `width` characters: its begin and its end, with `…` between them.
pub fn cut_middle(text: &str, width: usize) -> String {
    let count = columns(text);
    if count <= width {
        return text.to_owned();
    }
    let kept = width.saturating_sub(1);
    // The end of a path or a stack tells most.
    let (before, after) = (kept / 2, kept - kept / 2);
    let head: String = text.chars().take(before).collect();
    let tail: String = text.chars().skip(count - after).collect();
    format!("{head}…{tail}")
}

/// A word, or its parts after commas if it is longer than a line, such as a list of settings. A
/// part is glued to the one before it.
fn pieces(word: &str, width: usize) -> impl Iterator<Item = (bool, &str)> {
    let end = if columns(word) > width { ',' } else { '\0' };
    let none = word.is_empty().then_some("");
    word.split_inclusive(end).chain(none).enumerate().map(|(at, part)| (at > 0, part))
}

struct Lines {
    width: usize,
    all: Vec<Vec<Span>>,
}

impl Lines {
    /// Adds a line without spaces at its end.
    fn push(&mut self, mut line: Vec<Span>) {
        while let Some(last) = line.last_mut() {
            last.1.truncate(last.1.trim_end().len());
            if !last.1.is_empty() {
                break;
            }
            line.pop();
        }
        self.all.push(line);
    }

    /// A line between two parts.
    fn gap(&mut self) {
        if self.all.last().is_some_and(|line| !line.is_empty()) {
            self.push(Vec::new());
        }
    }

    /// A text in as many lines as it needs. Lines after the first are indented.
    fn wrapped(&mut self, paint: Paint, label: &str, text: &str, indent: usize) {
        let text = shown(text);
        let mut line: Vec<Span> = Vec::new();
        if !label.is_empty() {
            line.push((Paint::Faint, label.to_owned()));
        }
        let mut at = columns(label);
        let mut words = String::new();
        let width = self.width.saturating_sub(indent);
        for (is_glued, word) in text.split(' ').flat_map(|word| pieces(word, width)) {
            let has_space = !words.is_empty() && !is_glued;
            let more = columns(word) + usize::from(has_space);
            if !words.is_empty() && at + columns(&words) + more > self.width {
                line.push((paint, std::mem::take(&mut words)));
                self.push(std::mem::take(&mut line));
                line.push((Paint::Plain, " ".repeat(indent)));
                at = indent;
            }
            if has_space && !words.is_empty() {
                words.push(' ');
            }
            // A name from a file may be longer than a line.
            words.push_str(&cut_middle(word, self.width.saturating_sub(at.max(indent)).max(8)));
        }
        line.push((paint, words));
        self.push(line);
    }

    fn finding(&mut self, one: &Diagnostic) {
        let label = format!("{}[{}]", one.level.name(), one.kind);
        let mut headline = Lines { width: self.width, all: Vec::new() };
        let words = lower_first(&one.headline);
        headline.wrapped(Paint::Strong, &format!("{label}: "), &words, 4);
        for (i, mut line) in headline.all.into_iter().enumerate() {
            if i == 0 {
                line[0] = (Paint::Level(one.level), label.clone());
                line.insert(1, (Paint::Strong, ": ".to_owned()));
            }
            self.push(line);
        }
        let number = one.source.as_ref().map(|(number, _)| number.to_string()).unwrap_or_default();
        let gutter = columns(&number).max(2);
        self.place(one);
        if let Some((_, source)) = &one.source {
            self.source(&number, gutter, source);
        }
        let indent = " ".repeat(gutter);
        let is_cause = |fact: &&Fact| {
            matches!(fact.label, FactLabel::HeldBy | FactLabel::Holder | FactLabel::Why)
        };
        let (causes, others): (Vec<&Fact>, Vec<&Fact>) = one.facts.iter().partition(is_cause);
        for Fact { label, text } in causes {
            self.fact(&indent, label.name(), text);
        }
        if let Some(bar) = &one.bar {
            self.bar_of_failure(bar, gutter);
        }
        if !one.what.is_empty() && one.level != Level::Note {
            self.fact(&indent, "there", &one.what);
        }
        for Fact { label, text } in others {
            self.fact(&indent, label.name(), text);
        }
        if !one.detail.is_empty() {
            self.fact(&indent, "", &one.detail);
        }
        if !one.fixes.is_empty() || !one.looks.is_empty() {
            self.gap();
        }
        self.rows(&one.fixes);
        for look in &one.looks {
            let site =
                if look.site.is_empty() { String::new() } else { format!("{}  ", look.site) };
            self.wrapped(Paint::Plain, "look:  ", &format!("{site}{}", look.text), 7);
        }
    }

    /// `  --> gpt.py:44 forward, in its backward       oom.pickle #7,396`.
    fn place(&mut self, one: &Diagnostic) {
        let file = shown(&one.file);
        let place = shown(&one.place());
        if place.is_empty() && (one.level == Level::Note || file.is_empty()) {
            return;
        }
        let room = self.width.saturating_sub(6);
        let file = cut_middle(&file, room / 2);
        let place = cut_middle(&place, room.saturating_sub(columns(&file) + 2));
        let gap = if place.is_empty() {
            0
        } else {
            room.saturating_sub(columns(&place) + columns(&file))
        };
        self.push(vec![
            (Paint::Faint, "  --> ".to_owned()),
            (Paint::Plain, place),
            (Paint::Faint, format!("{}{file}", " ".repeat(gap))),
        ]);
    }

    /// The source line.
    fn source(&mut self, number: &str, gutter: usize, source: &str) {
        let room = self.width.saturating_sub(gutter + 3);
        let source = shown(source.trim());
        let line: String = if columns(&source) > room {
            source.chars().take(room - 1).chain(['…']).collect()
        } else {
            source
        };
        self.push(vec![(Paint::Faint, format!("{number:>gutter$} | ")), (Paint::Plain, line)]);
    }

    /// `   = why: ...`.
    fn fact(&mut self, indent: &str, label: &str, text: &str) {
        let label =
            if label.is_empty() { format!("{indent} = ") } else { format!("{indent} = {label}: ") };
        self.wrapped(Paint::Plain, &label, text, INDENT);
    }

    /// Cells of a bar in brackets.
    fn cells(bar: &Bar, width: usize) -> (Vec<Span>, usize) {
        let (cells, request) = bar.cells(width);
        let mut line = vec![(Paint::Faint, "[".to_owned())];
        line.extend(
            cells.into_iter().map(|(count, part)| {
                (Paint::Part(part.name), part.letter.to_string().repeat(count))
            }),
        );
        line.push((Paint::Faint, "]".to_owned()));
        (line, request)
    }

    fn bar_of_failure(&mut self, bar: &Bar, gutter: usize) {
        let title = format!("{} = {}  ", " ".repeat(gutter), shown(&bar.title));
        let room = self.width.saturating_sub(columns(&title) + 2);
        // The request has the scale of the rest.
        let whole = bar.whole().max(1);
        let part = bar.request.map_or(0.0, |bytes| bytes.0 as f64 / whole as f64).min(1.0);
        let fixed = if bar.request.is_some() { " [] asked".len() + 1 } else { 0 };
        let width = ((room.saturating_sub(fixed)) as f64 / (1.0 + part)) as usize;
        let (cells, request) = Self::cells(bar, width.clamp(10, MAX_BAR));
        let mut line = vec![(Paint::Plain, title)];
        line.extend(cells);
        if request > 0 {
            line.push((Paint::Plain, " ".to_owned()));
            line.push((Paint::Level(Level::Error), format!("[{}]", "R".repeat(request))));
            line.push((Paint::Plain, " asked".to_owned()));
        }
        self.push(line);
        self.legend(bar, gutter + 3);
        self.holding_lines(bar, gutter + 3);
    }

    fn peak(&mut self, peak: Option<&(String, Bar)>) {
        let Some((words, bar)) = peak else { return };
        self.gap();
        let room = self.width.saturating_sub(columns(&shown(words)) + 4);
        let mut line = Vec::new();
        if room >= 20 {
            line.push((Paint::Strong, shown(words)));
            line.push((Paint::Plain, "  ".to_owned()));
        } else {
            self.wrapped(Paint::Strong, "", words, INDENT);
            line.push((Paint::Plain, " ".repeat(INDENT)));
        }
        let width = if room >= 20 { room } else { self.width - INDENT - 2 };
        line.extend(Self::cells(bar, width.min(MAX_BAR)).0);
        self.push(line);
        self.legend(bar, INDENT);
        self.holding_lines(bar, INDENT);
    }

    /// The lines of the program that hold most.
    fn holding_lines(&mut self, bar: &Bar, indent: usize) {
        let widest = |of: fn(&LineRow) -> &str| {
            bar.lines.iter().map(|line| columns(of(line))).max().unwrap_or_default()
        };
        let (bytes, share) = (widest(|line| &line.bytes), widest(|line| &line.share));
        let begin = indent + bytes + share + 4;
        for line in &bar.lines {
            let numbers =
                format!("{}{:>bytes$}  {:>share$}  ", " ".repeat(indent), line.bytes, line.share);
            let text = shown(&format!("{}  {}", line.site, line.text));
            let text = cut_middle(&text, self.width.saturating_sub(begin));
            self.push(vec![(Paint::Faint, numbers), (Paint::Plain, text)]);
        }
    }

    /// The parts of a bar with their bytes.
    fn legend(&mut self, bar: &Bar, indent: usize) {
        let mut line: Vec<Span> = Vec::new();
        let mut at = 0;
        for part in bar.legend() {
            let text = format!(" {} {}", part.label, part.bytes);
            let wide = 1 + columns(&text) + if line.is_empty() { indent } else { 3 };
            if !line.is_empty() && at + wide > self.width {
                self.push(std::mem::take(&mut line));
                at = 0;
            }
            let gap = if line.is_empty() { indent } else { 3 };
            line.push((Paint::Plain, " ".repeat(gap)));
            line.push((Paint::Part(part.name), part.letter.to_string()));
            line.push((Paint::Plain, text.clone()));
            at += gap + 1 + columns(&text);
        }
        if !line.is_empty() {
            self.push(line);
        }
    }

    /// Levers in columns. What does not help has no cost: its outcome may reach into that column.
    fn rows(&mut self, rows: &[LeverRow]) {
        let has_help = rows.iter().any(|row| row.helps);
        let of_help = || rows.iter().filter(|row| row.helps || !has_help);
        let widest = |of: fn(&LeverRow) -> &str| {
            of_help().map(|row| columns(of(row))).max().unwrap_or_default()
        };
        let label = rows.iter().map(|row| columns(&row.label)).max().unwrap_or_default() + 1;
        let needs = rows.iter().map(|row| columns(&row.needs)).max().unwrap_or_default();
        let [verdict, cost, basis] =
            [widest(|row| &row.verdict), widest(|row| &row.cost), widest(|row| &row.basis)];
        let fixed: usize =
            [needs, verdict, cost, basis].into_iter().filter(|&w| w > 0).map(|w| w + 2).sum();
        let room = self.width.saturating_sub(label + 1 + fixed);
        let texts = rows.iter().map(|row| columns(&row.text)).filter(|&text| text <= room);
        let text = texts.max().unwrap_or_default();
        for row in rows {
            if columns(&row.text) > room {
                self.stacked_row(row, label);
                continue;
            }
            let what = shown(&row.text);
            let mut line = vec![
                (
                    if row.helps { Paint::Strong } else { Paint::Faint },
                    format!("{:<label$}", format!("{}:", row.label)),
                ),
                (Paint::Plain, format!(" {}{}", what, " ".repeat(text - columns(&what)))),
            ];
            let outcome = if row.verdict == "fits" { Paint::Good } else { Paint::Plain };
            let cells = [
                (&row.needs, needs, Paint::Plain),
                (&row.verdict, verdict, outcome),
                (&row.cost, cost, Paint::Plain),
                (&row.basis, basis, Paint::Faint),
            ];
            for (of, width, paint) in cells {
                // Only what helps stands in all columns.
                let width = if row.helps || width == needs { width } else { 0 };
                if width > 0 || !of.is_empty() {
                    line.push((paint, format!("  {of:<width$}")));
                }
            }
            let end: usize = line.iter().map(|(_, text)| columns(text)).sum();
            if row.helps || end <= self.width {
                self.push(line);
            } else {
                self.stacked_row(row, label);
            }
        }
    }

    /// A change, and below it its outcome, where both have no room in one line.
    fn stacked_row(&mut self, row: &LeverRow, label: usize) {
        let head = format!("{:<label$} ", format!("{}:", row.label));
        self.wrapped(Paint::Plain, &head, &row.text, label + 1);
        let rest = [&row.needs, &row.verdict, &row.cost, &row.basis];
        let rest: Vec<&str> =
            rest.into_iter().map(String::as_str).filter(|of| !of.is_empty()).collect();
        if !rest.is_empty() {
            self.wrapped(Paint::Faint, &" ".repeat(label + 1), &rest.join("  "), label + 1);
        }
    }

    fn ranks(&mut self, rows: &[RankRow]) {
        let heads = ["peak", "reserved", "alive at the end"];
        let ranks: Vec<String> = rows.iter().map(|row| cut_middle(&row.ranks, 24)).collect();
        let first = ranks.iter().map(|name| columns(name)).max().unwrap_or_default().max(4);
        let mut widths = heads.map(columns);
        for row in rows {
            for (width, text) in widths.iter_mut().zip(&row.bytes) {
                *width = (*width).max(columns(text));
            }
        }
        let cells = |texts: &[&str; 3]| -> String {
            let cell = |(text, width): (&&str, usize)| format!("{text:<width$}");
            texts.iter().zip(widths).map(cell).collect::<Vec<String>>().join("  ")
        };
        self.push(vec![(Paint::Faint, format!("{:<first$}  {}", "rank", cells(&heads)))]);
        for (row, name) in rows.iter().zip(ranks) {
            let bytes = row.bytes.each_ref().map(String::as_str);
            let mut spans = vec![(Paint::Plain, format!("{name:<first$}  {}", cells(&bytes)))];
            if let Some(level) = row.level {
                spans.push((Paint::Level(level), format!("  <- {}", level.name())));
            }
            self.push(spans);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::cut_middle;

    #[test]
    fn long_names_keep_both_ends() {
        assert_eq!(cut_middle("abcdefghij", 5), "ab…ij");
        assert_eq!(cut_middle("abc", 5), "abc");
        assert_eq!(cut_middle("ähnlich", 4), "ä…ch");
    }
}
