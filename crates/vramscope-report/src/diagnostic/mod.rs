//! The answer of `vramscope diagnose` as people read it: like a compiler's diagnostics.
//!
//! [`Answer`] chooses and words what is said. Its renderers only lay it out: [`text`] for terminals
//! and logs, [`markdown`] for pull requests, [`html`] for reports and notebooks.

mod bar;
mod html;
mod lever;
mod make;
mod markdown;
mod text;

pub use bar::{Bar, BarPart, LineRow};
pub use html::{card, html, styles};
pub use lever::{cost_text, longer, time_note};
pub use markdown::markdown;
pub use text::{Paint, Span, cut_middle, plain_text, text};

use vramscope_inference::{FindingId, Severity, capitalized};
use vramscope_units::named;

named! {
    /// How much something matters: the word before a headline.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Level {
        /// High severity.
        Error = "error",
        /// Medium severity.
        Warning = "warning",
        /// Low severity.
        Note = "note",
    }
}

impl From<Severity> for Level {
    fn from(of: Severity) -> Self {
        match of {
            Severity::High => Self::Error,
            Severity::Medium => Self::Warning,
            Severity::Low => Self::Note,
        }
    }
}

/// All that is said about files.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// The dry run in a line: the first words.
    pub dry: Option<String>,
    /// What is said of files without memory; `None` if some was allocated.
    pub empty: Option<String>,
    /// The findings, the worst first.
    pub findings: Vec<Diagnostic>,
    /// The number of findings that are not shown.
    pub omitted: usize,
    /// Dumps of one process: each in two sentences.
    pub processes: Vec<String>,
    /// The peak in words, and as a bar; `None` where a finding has the bar, and without memory.
    pub peak: Option<(String, Bar)>,
    /// The ranks in groups.
    pub ranks: Vec<RankRow>,
    /// What can be changed, best first.
    pub levers: Vec<LeverRow>,
    /// Commands to paste.
    pub help: Vec<String>,
    /// What was not looked for.
    pub notes: Vec<String>,
}

impl Answer {
    /// The findings that lead, which come before the levers, and those that come after. Without the
    /// former the peak has the first words.
    fn parts(&self) -> (&[Diagnostic], &[Diagnostic]) {
        let leads = self.findings.iter().take_while(|one| one.leads).count();
        self.findings.split_at(leads)
    }

    /// The first words: of the dry run, of the finding that leads, or of the peak.
    pub(crate) fn sentence(&self) -> String {
        let main = self.main().map(|one| &one.headline);
        let peak = self.peak.as_ref().map(|(words, _)| words);
        let first = self.dry.as_ref().or(main).or(peak).or(self.empty.as_ref());
        first.map(|words| capitalized(words)).unwrap_or_default()
    }

    /// The finding that has the first words; `None` if the peak has them.
    pub fn main(&self) -> Option<&Diagnostic> {
        self.findings.first().filter(|one| one.leads)
    }
}

/// One finding.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// The finding's id; `None` for a message without a file.
    pub id: Option<FindingId>,
    /// How much it matters.
    pub level: Level,
    /// The kind: `oom`.
    pub kind: &'static str,
    /// The cause, its place and the amount. It begins with a capital letter.
    pub headline: String,
    /// Whether it can have the first words of an answer.
    pub leads: bool,
    /// The line: `gpt.py:44 forward`. Empty without one.
    pub site: String,
    /// How it relates: `in its backward`. Empty if it is the line itself.
    pub note: String,
    /// The file and the event: `oom_except.pickle #7,396`.
    pub file: String,
    /// The number and the text of the source line; `None` if it is not known.
    pub source: Option<(u32, String)>,
    /// What the line allocates; empty if nothing more is known.
    pub what: String,
    /// The memory at that moment; `None` for all but the worst finding.
    pub bar: Option<Bar>,
    /// Further lines.
    pub facts: Vec<Fact>,
    /// The changes that were replayed: what fits first.
    pub fixes: Vec<LeverRow>,
    /// Known causes with bytes and line.
    pub looks: Vec<LookRow>,
    /// What each figure of a message means. Terminals leave it out: the bar has the figures.
    pub figures: Vec<FigureRow>,
    /// The whole text, where all is listed.
    pub detail: String,
}

impl Diagnostic {
    /// The line, and how it relates: `gpt.py:44 forward, in its backward`. Empty without one.
    pub fn place(&self) -> String {
        let gap = if self.note.is_empty() { "" } else { ", " };
        format!("{}{gap}{}", self.site, self.note)
    }
}

/// A further line of a finding.
#[derive(Clone, Debug)]
pub struct Fact {
    /// What it says.
    pub label: FactLabel,
    /// The words after the label.
    pub text: String,
}

/// What a line of a finding says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FactLabel {
    /// The cause.
    Why,
    /// A reference that holds the memory.
    HeldBy,
    /// Something else that holds it.
    Holder,
    /// What to do.
    Help,
    /// A row of bars, by its title.
    Bars(String),
}

impl FactLabel {
    /// The word before the line.
    pub fn name(&self) -> &str {
        match self {
            Self::Why => "why",
            Self::HeldBy => "held by",
            Self::Holder => "holder",
            Self::Help => "help",
            Self::Bars(title) => title,
        }
    }
}

/// A lever in words.
#[derive(Clone, Debug)]
pub struct LeverRow {
    /// `fix 1`, `no`, `lever 1`.
    pub label: String,
    /// What to change, and the line.
    pub text: String,
    /// `needs 4.15 GiB`.
    pub needs: String,
    /// `fits`, `fits, barely`, `22.00 MiB short`.
    pub verdict: String,
    /// What it costs, and what the replay covers if not the whole run.
    pub cost: String,
    /// What the replay covers if not the whole run.
    pub covers: Option<String>,
    /// The measured error, or `estimated`.
    pub basis: String,
    /// Whether it helps.
    pub helps: bool,
}

/// A column of a table of changes beside the change: its head, its class and its texts.
type LeverColumn = (&'static str, &'static str, fn(&LeverRow) -> &str);

impl LeverRow {
    /// The columns that have a text in any of the rows.
    fn columns(rows: &[Self]) -> impl Iterator<Item = LeverColumn> + '_ {
        let all: [LeverColumn; 4] = [
            ("memory", "number", |row| &row.needs),
            ("outcome", "outcome", |row| &row.verdict),
            ("cost", "cost", |row| &row.cost),
            ("basis", "basis", |row| &row.basis),
        ];
        all.into_iter().filter(|(_, _, text)| rows.iter().any(|row| !text(row).is_empty()))
    }
}

/// A figure of a message.
#[derive(Clone, Debug)]
pub struct FigureRow {
    /// Its name.
    pub name: &'static str,
    /// The bytes.
    pub bytes: String,
    /// What they are, in a sentence.
    pub meaning: String,
}

/// A known cause of memory.
#[derive(Clone, Debug)]
pub struct LookRow {
    /// The line; empty if it is not known.
    pub site: String,
    /// The bytes, the cause and its cure.
    pub text: String,
}

/// A group of like ranks.
#[derive(Clone, Debug)]
pub struct RankRow {
    /// `0-2,4-7`.
    pub ranks: String,
    /// The peak of requested memory, of reserved memory, and what stays after the last step.
    pub bytes: [String; 3],
    /// The level of its finding; `None` without one above low.
    pub level: Option<Level>,
}
