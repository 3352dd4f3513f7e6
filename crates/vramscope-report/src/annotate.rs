//! `vramscope source`: source files with the memory of each line beside it.

mod text;

use crate::code::{Filter, PlaceKind, SourcePlace, SourceSums, Sums, steps_between};
use crate::{Target, event_of, rank_of, slot_of};
use serde::Serialize;
use std::borrow::Cow;
use std::cmp::Reverse;
use vramscope_snapshot::StrId;
use vramscope_trace::slicing::now;
use vramscope_units::Bytes;

/// `vramscope.source/1`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Annotated<'a> {
    /// The schema's name and version.
    pub schema: &'static str,
    /// The file's path.
    pub path: &'a str,
    /// The rank in the path; null if there is none.
    pub rank: Option<u32>,
    /// The device's ordinal.
    pub device: u32,
    /// The first event after which `requested_bytes` peaks; -1 is the state before the window.
    pub peak_event: i64,
    /// `requested_bytes` after it.
    pub peak_bytes: u64,
    /// The event of `event_bytes`; null unless one is asked for.
    pub event: Option<i64>,
    /// The evidence for steps; null if nothing shows two.
    pub steps_by: Option<&'static str>,
    /// The file that `lines` and `functions` are of; null if no call stack has a line.
    pub file: Option<SourceRecord<'a>>,
    /// The lines with blocks, and with `--all` the lines between, in the order of the file.
    pub lines: Vec<LineRecord<'a>>,
    /// The functions of the file, most own bytes at the peak first.
    pub functions: Vec<FunctionRecord<'a>>,
    /// The files with blocks, most own bytes at the peak first.
    pub files: Vec<FileRecord<'a>>,
    /// The number of files left out by `--limit`.
    pub omitted: usize,
    /// Bytes at the peak that no line has among its own.
    pub without_line: WithoutLine,
    /// What else is to know, in sentences.
    pub text: Vec<String>,
}

/// Where the text of a file is from.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SourceRecord<'a> {
    /// The path as recorded.
    pub file: Cow<'a, str>,
    /// The file that was read; null if none was.
    pub found: Option<String>,
    /// `snapshot` if the recording has the whole text, `folder` if `found` was read, `sidecar` if
    /// only the lines that the file beside the snapshot has are known; null without source.
    pub basis: Option<&'static str>,
    /// Whether `found` was changed after the recording; null if that is not known.
    pub changed_after: Option<bool>,
    /// The number of lines in the text; null if the whole text is not known.
    pub lines: Option<u32>,
}

/// The memory of a place in the code. What is `own` was allocated by the line itself, or by the
/// framework below it. The other numbers are those of all call stacks that go through the place.
/// A block counts once, however often the place recurs in its stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlaceNumbers {
    /// Bytes at the peak.
    pub bytes: u64,
    /// Own bytes at the peak.
    pub own_bytes: u64,
    /// Bytes at the event; absent unless one is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_bytes: Option<u64>,
    /// Own bytes at the event; absent unless one is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_event_bytes: Option<u64>,
    /// What the bytes at the ends of steps grow by, per step; null without two steps.
    pub bytes_per_step: Option<i64>,
    /// The same of own bytes.
    pub own_bytes_per_step: Option<i64>,
    /// Blocks of the window.
    pub blocks: u64,
    /// Own blocks of the window.
    pub own_blocks: u64,
}

/// A source file.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileRecord<'a> {
    /// The path as recorded.
    pub file: Cow<'a, str>,
    /// Its memory.
    #[serde(flatten)]
    pub numbers: PlaceNumbers,
}

/// A function of a file.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FunctionRecord<'a> {
    /// The function.
    pub function: Cow<'a, str>,
    /// Its first line in a call stack.
    pub line: u32,
    /// Its memory.
    #[serde(flatten)]
    pub numbers: PlaceNumbers,
}

/// A line of a file.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LineRecord<'a> {
    /// The line.
    pub line: u32,
    /// The functions of the line in call stacks.
    pub functions: Vec<Cow<'a, str>>,
    /// The text; null if it is not known.
    pub text: Option<String>,
    /// What is known of the text.
    pub state: LineState,
    /// A search for the blocks whose call stack goes through the line, for `show`; absent for a
    /// line without blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its memory; absent for a line without blocks.
    #[serde(flatten)]
    pub numbers: Option<PlaceNumbers>,
}

/// What is known of the text of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LineState {
    /// It was recorded.
    Recorded,
    /// It is the line of a file that was not changed after the recording.
    Found,
    /// It is the line of a file that was changed after the recording, or it is not known when.
    Unsure,
    /// It was recorded, and the file has another text in this line.
    Differs,
    /// The file has no such line, or this line is not in a function of the recorded name.
    Missing,
    /// There is no source.
    Unknown,
}

/// Bytes at the peak that no line has among its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WithoutLine {
    /// Of blocks without a call stack.
    pub no_stack_bytes: u64,
    /// Of blocks with only the call stack of their free.
    pub of_free_bytes: u64,
    /// Of blocks whose call site has no line, such as an operator of PyTorch.
    pub no_line_bytes: u64,
}

impl WithoutLine {
    fn of(sums: &SourceSums) -> Self {
        let [no_stack_bytes, of_free_bytes, no_line_bytes] =
            [0, 1, 2].map(|i| sums.without[i].peak);
        Self { no_stack_bytes, of_free_bytes, no_line_bytes }
    }

    /// The bytes in sentences.
    fn text(self) -> Vec<String> {
        sums_text([self.no_stack_bytes, self.of_free_bytes, self.no_line_bytes])
    }
}

/// What no line has of some sums, in sentences.
pub fn without_text(sums: &SourceSums) -> Vec<String> {
    WithoutLine::of(sums).text()
}

fn sums_text(bytes: [u64; 3]) -> Vec<String> {
    let why = [
        "have no call stack",
        "have only the call stack of their free",
        "have a call site without a line",
    ];
    let parts = bytes.into_iter().zip(why).filter(|&(bytes, _)| bytes > 0);
    parts
        .map(|(bytes, why)| format!("{} at the peak {why}: no line has them.", Bytes(bytes)))
        .collect()
}

/// A source file as it was found.
#[derive(Clone, Debug)]
pub struct FoundFile {
    /// Its path.
    pub path: String,
    /// Its text.
    pub text: String,
    /// When it was last changed, in microseconds since 1970; `None` if that is not known.
    pub modified_us: Option<i64>,
}

/// What to annotate.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    /// The slot of `event_bytes`.
    pub event: Option<u32>,
    /// The end of the path of the file; by default the file with most own bytes at the peak.
    pub file: Option<&'a str>,
    /// Only lines of this function.
    pub function: Option<&'a str>,
    /// True for all lines of the file.
    pub all: bool,
    /// True for PyTorch's and Python's files too.
    pub framework: bool,
    /// The most files.
    pub limit: Option<usize>,
}

/// Finds the source of a path. An error says why a file that fits is not taken.
pub type FindSource<'a> = &'a dyn Fn(&str) -> Result<Option<FoundFile>, String>;

/// The memory of each line of a file.
///
/// # Errors
/// A message when no call stack has the file or function that is asked for, or several have.
pub fn annotate<'a>(
    target: Target<'a>,
    options: Options<'_>,
    find: FindSource<'_>,
) -> Result<Annotated<'a>, String> {
    let filter = Filter { text: "", cursor: options.event };
    let sums =
        now(async |budget| SourceSums::new(target, &filter, !options.framework, budget).await);
    let numbers = |place: &SourcePlace| numbers_of(target, &options, place);
    let snapshot = target.snapshot();
    let mut files: Vec<&SourcePlace> = sums.of_kind(PlaceKind::File, None).collect();
    sort(&mut files);
    let chosen = choose(target, &sums, &files, &options)?;
    let shown = files.len().min(options.limit.unwrap_or(usize::MAX));
    let mut report = Annotated {
        schema: "vramscope.source/1",
        path: target.path,
        rank: rank_of(target.path),
        device: target.device(),
        peak_event: event_of(slot_of(target.trace().requested_band.peak_event)),
        peak_bytes: sums.whole,
        event: options.event.map(event_of),
        steps_by: steps_between(target)
            .and(target.entry.steps(target.index))
            .map(|steps| steps.source.name()),
        file: None,
        lines: Vec::new(),
        functions: Vec::new(),
        omitted: files.len() - shown,
        files: files[..shown]
            .iter()
            .map(|place| FileRecord { file: snapshot.text(place.file), numbers: numbers(place) })
            .collect(),
        without_line: WithoutLine::of(&sums),
        text: Vec::new(),
    };
    if let Some(file) = chosen {
        let mut functions: Vec<&SourcePlace> =
            sums.of_kind(PlaceKind::Function, Some(file)).collect();
        sort(&mut functions);
        let function = |place: &&SourcePlace| FunctionRecord {
            function: snapshot.text(place.functions[0]),
            line: place.line,
            numbers: numbers(place),
        };
        report.functions = functions.iter().map(function).collect();
        let mut lines: Vec<&SourcePlace> = sums.of_kind(PlaceKind::Line, Some(file)).collect();
        if let Some(wanted) = options.function {
            let is_of = |place: &&SourcePlace| {
                place.functions.iter().any(|&name| snapshot.text(name) == wanted)
            };
            lines.retain(is_of);
        }
        lines.sort_by_key(|place| place.line);
        text::write(&mut report, target, (file, &lines), &options, find, &numbers);
    }
    report.text.extend(report.without_line.text());
    Ok(report)
}

/// Most own bytes at the peak first.
fn sort(places: &mut [&SourcePlace]) {
    places.sort_by_key(|place| {
        (Reverse((place.own.peak, place.total.peak, place.own.blocks)), place.file.0, place.line)
    });
}

fn numbers_of(target: Target<'_>, options: &Options<'_>, place: &SourcePlace) -> PlaceNumbers {
    let growth = |sums: &Sums| steps_between(target).map(|steps| sums.growth(steps));
    PlaceNumbers {
        bytes: place.total.peak,
        own_bytes: place.own.peak,
        event_bytes: options.event.map(|_| place.total.cursor),
        own_event_bytes: options.event.map(|_| place.own.cursor),
        bytes_per_step: growth(&place.total),
        own_bytes_per_step: growth(&place.own),
        blocks: place.total.blocks,
        own_blocks: place.own.blocks,
    }
}

/// The file that is asked for: by the end of its path, or the one with most own bytes in the
/// function; by default the one with most own bytes.
fn choose(
    target: Target<'_>,
    sums: &SourceSums,
    files: &[&SourcePlace],
    options: &Options<'_>,
) -> Result<Option<StrId>, String> {
    let path = |place: &SourcePlace| target.snapshot().text(place.file);
    let fits = |path: &str, end: &str| {
        path.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with(['/', '\\']))
    };
    let of_file = |place: &&SourcePlace| options.file.is_none_or(|end| fits(&path(place), end));
    let mut found: Vec<&SourcePlace> = files.iter().copied().filter(of_file).collect();
    if let Some(end) = options.file {
        let exact = found.iter().position(|place| path(place) == end);
        match (exact, &found[..]) {
            (Some(at), _) => found = vec![found[at]],
            (None, []) => {
                return Err(format!(
                    "no call stack has a line of {end} (without --file, the files are listed; \
                     --framework adds those of PyTorch and Python)"
                ));
            }
            (None, [_]) => {}
            (None, several) => {
                let several: Vec<_> = several.iter().map(|place| path(place)).collect();
                return Err(format!(
                    "{end} is the end of {}: give more of the path",
                    several.join(", ")
                ));
            }
        }
    }
    let Some(function) = options.function else { return Ok(found.first().map(|place| place.file)) };
    let mut functions: Vec<&SourcePlace> = sums
        .of_kind(PlaceKind::Function, None)
        .filter(|place| found.iter().any(|file| file.file == place.file))
        .filter(|place| target.snapshot().text(place.functions[0]) == function)
        .collect();
    sort(&mut functions);
    let first = functions.first().map(|place| place.file);
    first.map(Some).ok_or_else(|| format!("no call stack has a function {function} with a line"))
}

/// The search for the blocks whose call stack goes through a line.
fn id(target: Target<'_>, place: &SourcePlace) -> String {
    crate::search::quoted(&format!("via:{}:{}", target.snapshot().text(place.file), place.line))
}
