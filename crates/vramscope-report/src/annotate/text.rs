//! The text of the lines of a file, and whether it is the text that ran.

use super::{
    Annotated, FindSource, FoundFile, LineRecord, LineState, Options, PlaceNumbers, SourceRecord,
    id,
};
use crate::code::SourcePlace;
use crate::{Target, time_of};
use std::borrow::Cow;
use std::collections::BTreeMap;
use vramscope_snapshot::StrId;
use vramscope_trace::Trace;

/// The whole text of a file.
struct Text<'a> {
    lines: Vec<&'a str>,
    /// The state of a line whose text was not recorded on its own.
    state: LineState,
}

/// Writes the lines of a file into a report.
pub(super) fn write<'a>(
    report: &mut Annotated<'a>,
    target: Target<'a>,
    (file, places): (StrId, &[&SourcePlace]),
    options: &Options<'_>,
    find: FindSource<'_>,
    numbers: &dyn Fn(&SourcePlace) -> PlaceNumbers,
) {
    let snapshot = target.snapshot();
    let path = snapshot.text(file);
    let recorded = snapshot.source_text(&path);
    let found = if recorded.is_some() { Ok(None) } else { find(&path) };
    let found = found.unwrap_or_else(|why| {
        report.text.push(why);
        None
    });
    let changed_after = found.as_ref().and_then(|found| changed_after(target.trace(), found));
    let text = match (&recorded, &found) {
        (Some(text), _) => Some(Text { lines: text.lines().collect(), state: LineState::Recorded }),
        (None, Some(found)) => {
            let is_old = changed_after == Some(false);
            let state = if is_old { LineState::Found } else { LineState::Unsure };
            Some(Text { lines: found.text.lines().collect(), state })
        }
        (None, None) => None,
    };
    let mut lines: BTreeMap<u32, LineRecord<'a>> = BTreeMap::new();
    let mut has_recorded_lines = false;
    for place in places {
        let known = target.entry.source(&path, place.line);
        has_recorded_lines |= known.is_some();
        let names: Vec<_> = place.functions.iter().map(|&name| snapshot.text(name)).collect();
        let (state, shown) = state_of(place.line, known, &names, text.as_ref());
        let record = LineRecord {
            line: place.line,
            functions: names,
            text: shown,
            state,
            id: Some(id(target, place)),
            numbers: Some(numbers(place)),
        };
        lines.insert(place.line, record);
    }
    let file = SourceRecord {
        file: path,
        found: found.as_ref().map(|found| found.path.clone()),
        basis: match (&recorded, &found) {
            (Some(_), _) => Some("snapshot"),
            (None, Some(_)) => Some("folder"),
            (None, None) => has_recorded_lines.then_some("sidecar"),
        },
        changed_after,
        lines: text.as_ref().map(|text| text.lines.len() as u32),
    };
    report.text.extend(faults(&file, &lines));
    report.file = Some(file);
    if let Some(text) = text.as_ref().filter(|_| options.all) {
        for (line, &between) in (1..).zip(&text.lines) {
            lines.entry(line).or_insert_with(|| LineRecord {
                line,
                functions: Vec::new(),
                text: Some(between.to_owned()),
                state: text.state,
                id: None,
                numbers: None,
            });
        }
    }
    report.lines = lines.into_values().collect();
}

/// Whether a file was changed after the last event. `None` if a time is not known.
fn changed_after(trace: &Trace, found: &FoundFile) -> Option<bool> {
    let last = trace.slots().checked_sub(1)?;
    Some(found.modified_us? > time_of(trace, last)?)
}

/// The state of a line with its text. `known` is its recorded text.
fn state_of(
    line: u32,
    known: Option<&str>,
    functions: &[Cow<'_, str>],
    text: Option<&Text<'_>>,
) -> (LineState, Option<String>) {
    let in_text = text.and_then(|text| text.lines.get(line as usize - 1).copied());
    match (known, text, in_text) {
        // The text with its indentation.
        (Some(known), _, Some(same)) if same.trim() == known => {
            (LineState::Recorded, Some(same.to_owned()))
        }
        (Some(known), Some(_), _) => (LineState::Differs, Some(known.to_owned())),
        (Some(known), None, _) => (LineState::Recorded, Some(known.to_owned())),
        (None, None, _) => (LineState::Unknown, None),
        (None, Some(text), Some(same))
            if text.state == LineState::Recorded
                || functions.iter().any(|name| may_be_in(&text.lines, line, name)) =>
        {
            (text.state, Some(same.to_owned()))
        }
        (None, Some(_), _) => (LineState::Missing, None),
    }
}

/// Whether a line can be in a function or class body of this name: it is defined before the line,
/// and no other definition of its level lies between.
fn may_be_in(lines: &[&str], line: u32, function: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    // `<module>`, `<lambda>`, and names of C++.
    if function.is_empty() || !function.chars().all(is_name) {
        return true;
    }
    let mut is_open = false;
    let mut level = 0;
    for text in &lines[..line as usize] {
        let bare = text.trim_start();
        let indent = text.len() - bare.len();
        let bare = bare.strip_prefix("async ").map_or(bare, str::trim_start);
        let name = bare.strip_prefix("def ").or_else(|| bare.strip_prefix("class "));
        let Some(name) = name.map(str::trim_start) else { continue };
        if name.strip_prefix(function).is_some_and(|rest| !rest.starts_with(is_name)) {
            if !is_open || indent <= level {
                level = indent;
            }
            is_open = true;
        } else if indent <= level {
            is_open = false;
        }
    }
    is_open
}

/// What is wrong with the source, in sentences.
fn faults(file: &SourceRecord<'_>, lines: &BTreeMap<u32, LineRecord<'_>>) -> Vec<String> {
    let mut faults = Vec::new();
    let Some(found) = &file.found else {
        if file.basis.is_none() {
            faults.push(format!(
                "There is no source of {}: --source DIR names the folder that has it.",
                file.file
            ));
        }
        return faults;
    };
    match file.changed_after {
        Some(true) => faults.push(format!(
            "{found} was changed after the recording: the lines that ran may have been others."
        )),
        None => {
            faults.push(format!("It is not known if {found} was changed after the recording."));
        }
        Some(false) => {}
    }
    let of_state = |state: LineState| -> Vec<String> {
        lines
            .values()
            .filter(|line| line.state == state)
            .map(|line| line.line.to_string())
            .collect()
    };
    let differ = of_state(LineState::Differs);
    if !differ.is_empty() {
        faults.push(format!(
            "The recorded text of {} differs from {found}. The recorded one is shown.",
            words(&differ)
        ));
    }
    let last = lines.keys().next_back().copied().unwrap_or(0);
    if let Some(count) = file.lines.filter(|&count| count < last) {
        faults.push(format!("{found} has {count} lines, but the recording names line {last}."));
    }
    let missing = of_state(LineState::Missing);
    if !missing.is_empty() {
        faults.push(format!(
            "{found} is not the file that ran: {} {} not in the function of the recording.",
            words(&missing),
            if missing.len() == 1 { "is" } else { "are" },
        ));
    }
    faults
}

/// `line 3`, `lines 3, 7 and 2 more`.
fn words(lines: &[String]) -> String {
    const SHOWN: usize = 5;
    match lines {
        [only] => format!("line {only}"),
        lines if lines.len() <= SHOWN => format!("lines {}", lines.join(", ")),
        lines => format!("lines {} and {} more", lines[..SHOWN].join(", "), lines.len() - SHOWN),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_in_the_function_that_is_open() {
        let text = "\
class Block:
    def __init__(self):
        self.a = 1

    async def forward(self, x):
        def inner(y):
            return y
        return inner(x)

def forward_all(x):
    return [x]
";
        let lines: Vec<&str> = text.lines().collect();
        for (line, function, is_in) in [
            (3, "__init__", true),
            (3, "forward", false),
            (7, "inner", true),
            (8, "forward", true),
            (11, "forward", false),
            (11, "forward_all", true),
            (11, "<listcomp>", true),
            (3, "Block", true),
        ] {
            assert_eq!(may_be_in(&lines, line, function), is_in, "{line} {function}");
        }
    }

    #[test]
    fn a_wrong_line_is_never_shown_as_the_one_that_ran() {
        let text = Text { lines: vec!["def f():", "    g()"], state: LineState::Unsure };
        let names = [Cow::Borrowed("f")];
        let state = |line: u32, known| state_of(line, known, &names, Some(&text));
        let owned = |text: &str| Some(text.to_owned());
        assert_eq!(state(2, None), (LineState::Unsure, owned("    g()")));
        assert_eq!(state(2, Some("g()")), (LineState::Recorded, owned("    g()")));
        assert_eq!(state(2, Some("h()")), (LineState::Differs, owned("h()")));
        assert_eq!(state(3, Some("h()")), (LineState::Differs, owned("h()")));
        assert_eq!(state(3, None), (LineState::Missing, None));
        let other = [Cow::Borrowed("g")];
        assert_eq!(state_of(2, None, &other, Some(&text)), (LineState::Missing, None));
        assert_eq!(state_of(2, None, &names, None), (LineState::Unknown, None));
    }
}
