//! The command line. Its help is the program's manual.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ops::Range;
use std::path::PathBuf;

/// Shows what holds GPU memory, from PyTorch memory snapshots.
///
/// A snapshot is what `torch.cuda.memory._dump_snapshot("rank0.pickle")` writes after
/// `torch.cuda.memory._record_memory_history()`. Nothing in it is ever executed.
#[derive(Parser)]
#[command(name = "vramscope", bin_name = "vramscope", version, after_long_help = MANUAL)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const MANUAL: &str = "\
Inputs
  PATH is a file (pickle, gzip of one, trace_plot HTML, JSON: told by content) or a folder, which is searched for
  .pickle .pkl .pt .gz .html and .json files. Files are read in parallel, and never held in memory.

Numbers
  Names are those of torch.cuda.memory_stats(). requested_bytes and reserved_bytes come from the trace and are exact;
  active_bytes and allocated_bytes need block sizes, which are recovered by replaying the allocator: `exactness` says
  whether the replay meets the final segments block for block. allocated_bytes' peak is max_memory_allocated().
  Events are counted from 0 in the device's raw trace; -1 is the state before the first.

Output
  Text for people; --format json for programs (docs/cli.md has the schemas). Progress and errors go to standard error.

Exit code
  0 done; 1 a --fail-on holds; 2 an input could not be read (the others are, and their results are printed);
  64 wrong usage.

Examples
  vramscope summary runs/42/
  vramscope peak oom_rank0.pickle --top 10
  vramscope anomalies runs/42/
  vramscope diff main.pickle branch.pickle --fail-on 'peak>+2%' --format markdown
  vramscope state rank0.pickle --at peak --format json | jq '.categories'
  vramscope export rank0.pickle --as speedscope -o rank0.speedscope.json";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Totals, peaks and oddities of every snapshot
    Summary(Files),
    /// Who holds memory when a band is largest, by call stack
    Peak(Peak),
    /// What is live after any event, and how segments are laid out
    State(State),
    /// Call stacks rolled up, outermost frame first
    Flame(Flame),
    /// Every block of the window, sorted
    Blocks(Blocks),
    /// What is reserved, what is free in it, and what it cost
    Segments(State),
    /// What deserves a look: growth, OOMs, pending frees, fragmentation, ranks that stand out
    Anomalies(Files),
    /// Two snapshots, or the ranks of two runs, beside each other: totals, categories, call stacks
    #[command(after_long_help = EXPRESSIONS)]
    Diff(Diff),
    /// What was recorded, and how: settings, pools, streams, steps
    Info(Files),
    /// The same data for other tools: flamegraph.pl, speedscope, Perfetto, spreadsheets
    Export(Export),
    /// The page in a browser, with these files in it
    Serve(Serve),
    /// A completion script for a shell, on standard output
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
}

#[derive(Args)]
pub(crate) struct Common {
    /// Text for people, JSON for programs
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Rules that say what blocks are, before the built-in ones: lines of `category confidence file
    /// function`
    #[arg(long, value_name = "FILE")]
    pub(crate) rules: Option<PathBuf>,
    /// Only these events of every device, B not counted, and what is live around them; the rest
    /// takes no memory
    #[arg(long, value_name = "A..B", value_parser = events)]
    pub(crate) events: Option<Range<u32>>,
}

fn events(text: &str) -> Result<Range<u32>, String> {
    let (from, to) = text.split_once("..").ok_or("expected A..B, such as 1000..2000")?;
    let number = |text: &str, none: u32| match text {
        "" => Ok(none),
        text => text.parse().map_err(|e| format!("{text}: {e}")),
    };
    let (from, to) = (number(from, 0)?, number(to, u32::MAX)?);
    if from > to { Err(format!("{from} comes after {to}")) } else { Ok(from..to) }
}

#[derive(Args)]
pub(crate) struct Files {
    /// Files and folders
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// One device of one file.
#[derive(Args)]
pub(crate) struct One {
    /// A snapshot
    #[arg(value_name = "FILE")]
    pub(crate) path: PathBuf,
    /// The device's ordinal; without it the one with most events
    #[arg(long, value_name = "D")]
    pub(crate) device: Option<u32>,
    /// The name of the snapshot in a file that holds several; without it the first
    #[arg(long, value_name = "NAME")]
    pub(crate) snapshot: Option<String>,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Band {
    #[value(name = "requested_bytes", alias = "requested")]
    Requested,
    #[value(name = "active_bytes", alias = "active")]
    Active,
    #[value(name = "allocated_bytes", alias = "allocated")]
    Allocated,
    #[value(name = "reserved_bytes", alias = "reserved")]
    Reserved,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    /// Call stacks, named by their innermost frame that is the user's own
    Stack,
    /// The user's own frames at any level, with the bytes of all stacks that they are in
    Frame,
}

#[derive(Args)]
pub(crate) struct Peak {
    #[command(flatten)]
    pub(crate) one: One,
    /// Which band's peak
    #[arg(long, value_enum, default_value_t = Band::Requested)]
    pub(crate) band: Band,
    /// What the rows of the text are; JSON has both
    #[arg(long, value_enum, default_value_t = By::Stack)]
    pub(crate) by: By,
    /// Only the largest N call stacks and frames (text: 15 unless told; JSON: all)
    #[arg(long, value_name = "N")]
    pub(crate) top: Option<usize>,
}

const EXPRESSIONS: &str = "\
Expressions
  METRIC > AMOUNT, also with >=, < and <=. In quotes: > is the shell's.

  METRIC   requested, active, allocated, reserved   a band's peak; with .start, .peak or .end its value there
           peak                                     allocated.peak: what torch.cuda.max_memory_allocated() says
           blocks, ooms, findings                   counts: live blocks at the --band's peak, OOMs, anomalies
  AMOUNT   +2%, -5%                                 the change from A to B, in percent of A
           +100MiB, +0                              the change, in B, KiB, MiB, GiB or TiB
           20GiB, 0                                 the value in B

  Of folders, every rank is asked; the exit code is 1 when an expression holds for any of them.

Examples
  vramscope diff main.pickle branch.pickle --fail-on 'peak>+2%' --fail-on 'ooms>0'
  vramscope diff baseline/ run/ --fail-on 'reserved>+1GiB' --format markdown > comment.md";

/// How a comparison is printed.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DiffFormat {
    Text,
    Json,
    /// For a comment on a pull request
    Markdown,
}

#[derive(Args)]
pub(crate) struct Diff {
    /// The file or folder before
    #[arg(value_name = "A")]
    pub(crate) a: PathBuf,
    /// The file or folder after; of two folders ranks are matched, by what their names tell
    #[arg(value_name = "B")]
    pub(crate) b: PathBuf,
    /// Of both; unless told, of each the device with most events
    #[arg(long, value_name = "D")]
    pub(crate) device: Option<u32>,
    /// The band at whose peaks call stacks and categories are compared
    #[arg(long, value_enum, default_value_t = Band::Requested)]
    pub(crate) band: Band,
    /// Only the N call stacks that change most (text and Markdown: 15 unless told; JSON: all)
    #[arg(long, value_name = "N")]
    pub(crate) top: Option<usize>,
    /// Exit with 1 when this holds: 'peak>+2%'; can be given several times
    #[arg(long, value_name = "EXPR")]
    pub(crate) fail_on: Vec<String>,
    /// Text for people, JSON for programs, Markdown for pull requests
    #[arg(long, value_enum, default_value_t = DiffFormat::Text)]
    pub(crate) format: DiffFormat,
    /// Rules that say what blocks are, before the built-in ones: lines of `category confidence file
    /// function`
    #[arg(long, value_name = "FILE")]
    pub(crate) rules: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Place {
    Start,
    Peak,
    End,
}

/// A moment.
#[derive(Args)]
#[group(multiple = false)]
pub(crate) struct Moment {
    /// After this event, counted from 0; -1 is before the first
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) event: Option<i64>,
    /// After the last event up to this time, in microseconds since the Unix epoch
    #[arg(long, value_name = "US", allow_negative_numbers = true)]
    pub(crate) time: Option<i64>,
    /// Before the first event, at the peak of requested bytes, or after the last
    #[arg(long, value_enum)]
    pub(crate) at: Option<Place>,
}

#[derive(Args)]
pub(crate) struct State {
    #[command(flatten)]
    pub(crate) one: One,
    #[command(flatten)]
    pub(crate) moment: Moment,
    /// Only the largest N rows of each table of the text (20 unless told); JSON has all
    #[arg(long, value_name = "N")]
    pub(crate) top: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FlameWeight {
    /// Requested bytes of what is live at the peak
    Peak,
    /// The same at --event, --time or --at
    Cursor,
    /// Requested bytes times life within the window
    ByteSeconds,
    /// Allocations
    Count,
    /// Requested bytes of all allocations, however short they lived
    Churn,
}

#[derive(Args)]
pub(crate) struct Flame {
    #[command(flatten)]
    pub(crate) one: One,
    /// What a block counts for
    #[arg(long, value_enum, default_value_t = FlameWeight::Peak)]
    pub(crate) weight: FlameWeight,
    #[command(flatten)]
    pub(crate) moment: Moment,
    /// Leave out of the text what is less than this share of the whole, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    pub(crate) min: f64,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SortBy {
    Size,
    Lifetime,
    ByteSeconds,
}

#[derive(Args)]
pub(crate) struct Blocks {
    #[command(flatten)]
    pub(crate) one: One,
    /// Largest first by this
    #[arg(long, value_enum, default_value_t = SortBy::Size)]
    pub(crate) sort: SortBy,
    /// Only the first N (text: 20 unless told; JSON: all)
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportAs {
    /// Folded stacks, one a line, for flamegraph.pl and inferno
    Folded,
    /// For speedscope.app
    Speedscope,
    /// All blocks as a table
    Csv,
    /// For ui.perfetto.dev: bands as counters, annotations as slices, OOMs as instants
    Perfetto,
}

#[derive(Args)]
pub(crate) struct Export {
    #[command(flatten)]
    pub(crate) one: One,
    /// The form
    #[arg(long = "as", value_enum, value_name = "FORM")]
    pub(crate) form: ExportAs,
    /// What a block counts for in stacks (folded, speedscope)
    #[arg(long, value_enum, default_value_t = FlameWeight::Peak)]
    pub(crate) weight: FlameWeight,
    #[command(flatten)]
    pub(crate) moment: Moment,
    /// Where to write; standard output unless told
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct Serve {
    /// Files and folders; without any the page opens empty
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Listen here and nowhere else; unless told, at 8317 or the next port that is free
    #[arg(long, value_name = "N")]
    pub(crate) port: Option<u16>,
    /// Only print the address
    #[arg(long)]
    pub(crate) no_open: bool,
}
