//! The command line. The help texts are the program's manual.

mod format;
mod model;
mod run;
mod source;
mod values;

pub(crate) use model::{Dimensions, Modules, Shapes};
pub(crate) use run::{Index, Series};
pub(crate) use source::{Annotate, SourceArguments};
pub(crate) use values::{
    Answer, Band, DiffFormat, ExportAs, FlameWeight, Format, PeakRows, ReportData, SortBy,
};

use clap::{Args, Parser, Subcommand};
use std::ops::Range;
use std::path::PathBuf;
use values::{address, device, event_or_range, event_range, moment};
use vramscope_report::state::At;
use vramscope_report::what_if::parse_memory;

/// Shows what holds GPU memory, from PyTorch memory snapshots.
///
/// To write a snapshot, call `torch.cuda.memory._record_memory_history()`, run the program, then
/// call `torch.cuda.memory._dump_snapshot("rank0.pickle")`. vramscope never executes code in a
/// snapshot.
#[derive(Parser)]
#[command(name = "vramscope", bin_name = "vramscope", version, after_long_help = MANUAL)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const MANUAL: &str = "\
Inputs
  PATH is a file or a folder. A file is a pickle, a gzip of one, a trace_plot page or JSON. The
  content decides, not the name. Folders are searched for .pickle, .pkl, .pt, .gz, .html and .json
  files. Files that are no snapshots are skipped. Files are read in parallel and in chunks.

Numbers
  Names are those of torch.cuda.memory_stats(). requested_bytes and reserved_bytes come from the
  trace and are exact. active_bytes and allocated_bytes need block sizes, which a replay of the
  allocator recovers. They are marked as estimates unless the replay reproduces the final segments
  block for block. The peak of allocated_bytes is torch.cuda.max_memory_allocated().
  Events count from 0 in the device's raw trace. Event -1 is the state before the first event.

Output
  Text is for humans. Use --format json in scripts; docs/cli.md has the schemas. Progress and errors
  go to standard error.

Exit code
  0   done
  1   a --fail-on expression holds
  2   a named file or a damaged snapshot could not be read. Results of the others are printed
  64  wrong usage
  70  a bug of vramscope

Examples
  vramscope summary runs/42/
  vramscope peak oom_rank0.pickle --limit 10
  vramscope diagnose runs/42/
  vramscope diagnose runs/42/ --all --format markdown --limit 10
  vramscope diff main.pickle branch.pickle --fail-on 'peak>+2%' --format markdown
  vramscope state rank0.pickle --at peak --format json | jq '.categories'
  vramscope state rank0.pickle --from 1200 --to peak
  vramscope events rank0.pickle --address 0x7f3a5c000000
  vramscope export rank0.pickle --as speedscope -o rank0.speedscope.json
  vramscope export runs/42/ --as parquet -o dataset/
  vramscope index runs/42/ -o run.vramscope";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Show totals, peaks and warnings of every snapshot
    Summary(Files),
    /// Show the call stacks that hold memory when a band is largest
    Peak(Peak),
    /// Show the peak of each phase of each step, and which phase limits
    Phases(Phases),
    /// Show what stays after each step, and how fast it grows
    Steps(Phases),
    /// Show the shapes of tensors at the peak, as far as sizes tell
    Shapes(Shapes),
    /// Show memory by module, as names or call stacks tell
    Modules(Modules),
    /// Show source with the memory of each line beside it
    Annotate(Annotate),
    /// Show live blocks and segments after an event, or what changed between two events
    State(State),
    /// Show call stacks as a tree, outermost frame first
    Flame(Flame),
    /// List the blocks of the window, sorted
    Blocks(Blocks),
    /// Show reserved memory: segments, free memory, fragmentation, driver calls
    Segments(Segments),
    /// List the raw events of the trace. With --address, list the events that touch it
    Events(Events),
    /// Say in a few sentences what is wrong: verdict, main findings, what to do
    Diagnose(Diagnose),
    /// Explain an out-of-memory message alone: what its figures show, and what they leave open
    Explain(Explain),
    /// Compare the ranks of a run: bytes by call site and rank, clusters of like ranks
    Matrix(Matrix),
    /// Write the index of a run: one small file with a card of every rank, for the page
    Index(Index),
    /// Compare the iterations of a run: growth of each rank, call sites that drift
    Series(Series),
    /// Predict what other settings, another device or a changed program would reserve
    WhatIf(WhatIf),
    /// Compare two snapshots or the ranks of two runs: totals, categories, call stacks
    #[command(after_long_help = EXPRESSIONS)]
    Diff(Diff),
    /// Show how each file was recorded: settings, pools, streams, steps
    Info(Files),
    /// Show what an id of an answer stands for: a finding, a block, a call stack, or any search
    Show(Show),
    /// Export one HTML report, Parquet tables, or for flamegraph.pl, speedscope, Perfetto, CSV
    Export(Export),
    /// Serve the page with these files and open it in a browser
    Serve(Serve),
    /// Print the JSON Schema of what a command prints with --format json
    Schema {
        /// The command
        #[arg(value_enum)]
        command: Answer,
    },
    /// Answer agents as an MCP server, on standard input and output
    Mcp(Mcp),
    /// Print a shell completion script
    Completions {
        /// Shell to complete for
        shell: clap_complete::Shell,
    },
}

/// Arguments of `vramscope mcp`.
#[derive(Args)]
pub(crate) struct Mcp {
    /// Folder that has all files of calls. Relative paths begin there
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) root: PathBuf,
}

/// How snapshots are read: options of every command that reads them.
#[derive(Args, Clone)]
pub(crate) struct Reading {
    /// Category rules that override the built-in ones. Each line is `category confidence file
    /// function`
    #[arg(long, value_name = "FILE")]
    pub(crate) rules: Option<PathBuf>,
    /// Memory that reading files may take, such as 12GiB (default: 80 % of the machine's memory). A
    /// file that would take more is an error
    #[arg(long, value_name = "SIZE", value_parser = parse_memory)]
    pub(crate) max_memory: Option<u64>,
}

/// How snapshots are read, and which of their events.
#[derive(Args)]
pub(crate) struct Window {
    /// Read only events A to B (exclusive) of each device, and the events of blocks live in that
    /// range. Other events take no memory
    #[arg(long, value_name = "A..B", value_parser = event_range)]
    pub(crate) events: Option<Range<u32>>,
    #[command(flatten)]
    pub(crate) reading: Reading,
}

impl Window {
    /// All events.
    pub(crate) fn whole(reading: &Reading) -> Self {
        Self { events: None, reading: reading.clone() }
    }
}

/// Options of every command that prints text or JSON about snapshots.
#[derive(Args)]
pub(crate) struct Common {
    /// Output format: text for humans, JSON for scripts
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) window: Window,
}

/// Any number of files and folders.
#[derive(Args)]
pub(crate) struct Files {
    /// Snapshot files, and folders to search
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Any number of files and folders, and how to write their findings.
#[derive(Args)]
pub(crate) struct Diagnose {
    /// Snapshot files, and folders to search
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// List every finding of each rank: OOMs, growth, held memory, unneeded reserved memory, ranks
    /// that hold more
    #[arg(long)]
    pub(crate) all: bool,
    /// Show only the first N findings (default and maximum: 5; with --all the default is 20 in text
    /// and Markdown, and all in JSON)
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// Output format: text for humans, JSON for scripts, Markdown for pull requests
    #[arg(long, value_enum, default_value_t = DiffFormat::Text)]
    pub(crate) format: DiffFormat,
    #[command(flatten)]
    pub(crate) window: Window,
}

/// Out-of-memory messages, and how to write what they mean.
#[derive(Args)]
pub(crate) struct Explain {
    /// The message, or the text around it (default: standard input, such as a log)
    #[arg(value_name = "MESSAGE")]
    pub(crate) message: Vec<String>,
    /// Output format: text for humans, JSON for scripts, Markdown for issues
    #[arg(long, value_enum, default_value_t = DiffFormat::Text)]
    pub(crate) format: DiffFormat,
}

#[derive(Args)]
pub(crate) struct Matrix {
    #[command(flatten)]
    pub(crate) files: Files,
    /// Show only the N call sites with the most bytes on any rank (default: 20 in text, 128 in
    /// JSON)
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
}

/// Which device of a file.
#[derive(Args)]
pub(crate) struct DeviceChoice {
    /// Device ordinal, or `host` for pinned host memory (default: one that ran out of memory, else
    /// the highest peak)
    #[arg(long, value_name = "D", value_parser = device)]
    pub(crate) device: Option<u32>,
    /// Snapshot name, in a page that holds several (default: the first)
    #[arg(long, value_name = "NAME")]
    pub(crate) snapshot: Option<String>,
}

impl DeviceChoice {
    /// Whether the user chose.
    pub(crate) fn is_some(&self) -> bool {
        self.device.is_some() || self.snapshot.is_some()
    }
}

/// One device of one file.
#[derive(Args)]
pub(crate) struct DeviceInput {
    /// Snapshot file
    #[arg(value_name = "FILE")]
    pub(crate) path: PathBuf,
    #[command(flatten)]
    pub(crate) choice: DeviceChoice,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Args)]
pub(crate) struct Peak {
    #[command(flatten)]
    pub(crate) input: DeviceInput,
    #[command(flatten)]
    pub(crate) model: Dimensions,
    /// Band whose peak is shown
    #[arg(long, value_enum, default_value_t = Band::Requested)]
    pub(crate) band: Band,
    /// Show the Nth of the separate peaks: 2 is the next lower one
    #[arg(long = "peak", value_name = "N", default_value_t = 1)]
    pub(crate) number: usize,
    /// Rows of the text table. JSON has both
    #[arg(long, value_enum, default_value_t = PeakRows::Stack)]
    pub(crate) by: PeakRows,
    /// Show only the largest N call stacks and frames (default: 20 in text, all in JSON)
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
}

#[derive(Args)]
pub(crate) struct Phases {
    #[command(flatten)]
    pub(crate) input: DeviceInput,
    /// Show only N steps: the first ones of phases, the last ones of steps (default: all in JSON, 5
    /// and 20 in text)
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
}

#[derive(Args)]
pub(crate) struct WhatIf {
    /// Snapshot file. Of several files, or a folder, each is answered: a rank whose recording shows
    /// no limit takes that of a rank of its run that ran out of memory
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) choice: DeviceChoice,
    #[command(flatten)]
    pub(crate) common: Common,
    /// A whole configuration, as in `PYTORCH_CUDA_ALLOC_CONF`. What it leaves out has PyTorch's
    /// default. May be repeated
    #[arg(long, value_name = "KEY:VALUE[,KEY:VALUE]")]
    pub(crate) set: Vec<String>,
    /// A change of the recording's settings, in the same form. May be repeated
    #[arg(long, value_name = "KEY:VALUE[,KEY:VALUE]")]
    pub(crate) change: Vec<String>,
    /// Memory of the device: 80GiB, or a name such as H100 or A100-40GB. 512 MiB of it are left to
    /// the CUDA context
    #[arg(long, value_name = "SIZE")]
    pub(crate) device_memory: Option<String>,
    /// Memory that PyTorch can have on the device
    #[arg(long, value_name = "SIZE")]
    pub(crate) pytorch_memory: Option<String>,
    /// Changes of the program, with commas between them: batch:0.5, checkpoint:all, optimizer:8bit.
    /// docs/what-if.md lists them
    #[arg(long, value_name = "RECIPE[,RECIPE]")]
    pub(crate) apply: Option<String>,
    /// Find the cheapest changes that make the run fit a device: 40GiB, or a name such as
    /// A100-40GB
    #[arg(long, value_name = "DEVICE", conflicts_with_all = ["apply", "set", "change"])]
    pub(crate) plan: Option<String>,
}

const EXPRESSIONS: &str = "\
Expressions
  METRIC > AMOUNT, or with >=, < or <=. Quote the expression: the shell reads > as a redirection.

  METRIC
    requested, active, allocated, reserved   a band's peak. Append .start or .end for other values
    peak                                     allocated.peak: torch.cuda.max_memory_allocated()
    blocks                                   live blocks at the peak of --band
    ooms, findings                           number of OOMs and of findings
    site:TEXT blocks, site:TEXT bytes        live at the peak in call stacks with TEXT in the call
                                             site or in a frame (file:line function)
  AMOUNT
    +2%, -5%                                 change from A to B, in percent of A
    +100MiB, +0                              change in B, KiB, MiB, GiB or TiB
    20GiB, 0                                 value in B

  For folders, every rank is checked. The exit code is 1 when an expression holds for any rank.

Examples
  vramscope diff main.pickle branch.pickle --fail-on 'peak>+2%' --fail-on 'ooms>0'
  vramscope diff main.pickle branch.pickle --fail-on 'site:reduce_scatter blocks>2'
  vramscope diff baseline/ run/ --fail-on 'reserved>+1GiB' --format markdown > comment.md";

#[derive(Args)]
pub(crate) struct Diff {
    /// File or folder before the change
    #[arg(value_name = "A")]
    pub(crate) a: PathBuf,
    /// File or folder after the change. Files of two folders are paired by name, then by rank
    #[arg(value_name = "B")]
    pub(crate) b: PathBuf,
    /// Device ordinal in both files, or `host` (default: of each file one that ran out of memory,
    /// else the highest peak)
    #[arg(long, value_name = "D", value_parser = device)]
    pub(crate) device: Option<u32>,
    /// Band at whose peaks call stacks and categories are compared
    #[arg(long, value_enum, default_value_t = Band::Requested)]
    pub(crate) band: Band,
    /// Show only the N call stacks that change most (default: 20 in text and Markdown, all in JSON)
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// Exit with code 1 when EXPR holds, such as 'peak>+2%'. Can be repeated
    #[arg(long, value_name = "EXPR")]
    pub(crate) fail_on: Vec<String>,
    /// Output format: text for humans, JSON for scripts, Markdown for pull requests
    #[arg(long, value_enum, default_value_t = DiffFormat::Text)]
    pub(crate) format: DiffFormat,
    #[command(flatten)]
    pub(crate) reading: Reading,
}

/// A state of the device: by event, by time or by name. Each command has its own default.
#[derive(Args)]
#[group(multiple = false)]
pub(crate) struct Moment {
    /// State after this event. Events count from 0; -1 is before the first
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) event: Option<i64>,
    /// State after the last event up to this time, in microseconds since the Unix epoch
    #[arg(long, value_name = "US", allow_negative_numbers = true)]
    pub(crate) time: Option<i64>,
    /// `start` (before the first event), `peak` (of `requested_bytes`), `end`, an event, or a time
    /// in microseconds since the Unix epoch
    #[arg(long, value_name = "WHEN", value_parser = moment, allow_negative_numbers = true)]
    pub(crate) at: Option<At>,
}

#[derive(Args)]
pub(crate) struct State {
    #[command(flatten)]
    pub(crate) input: DeviceInput,
    #[command(flatten)]
    pub(crate) moment: Moment,
    /// Show what came, went and stayed since this moment. Takes what --at takes (default: start)
    #[arg(long, value_name = "WHEN", value_parser = moment, allow_negative_numbers = true)]
    #[arg(conflicts_with_all = ["event", "time", "at"])]
    pub(crate) from: Option<At>,
    /// Show what came, went and stayed up to this moment. Takes what --at takes (default: end)
    #[arg(long, value_name = "WHEN", value_parser = moment, allow_negative_numbers = true)]
    #[arg(conflicts_with_all = ["event", "time", "at"])]
    pub(crate) to: Option<At>,
    /// Show only the largest N blocks, segments or call sites (default: 20 in text, all in JSON)
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
}

#[derive(Args)]
pub(crate) struct Segments {
    #[command(flatten)]
    pub(crate) input: DeviceInput,
    #[command(flatten)]
    pub(crate) moment: Moment,
    /// Show only the largest N segments (default: 20 in text, all in JSON)
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// Add the largest free piece of every pool and stream over time, in N parts of the window
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) curve: Option<u32>,
}

#[derive(Args)]
pub(crate) struct Events {
    #[command(flatten)]
    pub(crate) input: DeviceInput,
    /// Only events about memory that contains this address: blocks, segments and mapped ranges
    #[arg(long, value_name = "A", value_parser = address)]
    pub(crate) address: Option<u64>,
    /// Only event A, or events A to B (exclusive)
    #[arg(long, value_name = "A..B", value_parser = event_or_range)]
    pub(crate) event: Option<Range<u32>>,
    /// Show only the first N events (default: 20 in text, all in JSON)
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
}

#[derive(Args)]
pub(crate) struct Flame {
    #[command(flatten)]
    pub(crate) input: DeviceInput,
    /// Weight of a block
    #[arg(long, value_enum, default_value_t = FlameWeight::Peak)]
    pub(crate) weight: FlameWeight,
    #[command(flatten)]
    pub(crate) moment: Moment,
    /// Hide nodes below this share of the total in text, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    pub(crate) min: f64,
}

#[derive(Args)]
pub(crate) struct Blocks {
    #[command(flatten)]
    pub(crate) input: DeviceInput,
    #[command(flatten)]
    pub(crate) model: Dimensions,
    /// Sort key, largest first
    #[arg(long, value_enum, default_value_t = SortBy::Size)]
    pub(crate) sort: SortBy,
    /// Show only the first N blocks (default: 20 in text, all in JSON)
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
}

#[derive(Args)]
pub(crate) struct Show {
    /// The `id` of a finding, a block or a call stack, or a search as on the page, such as
    /// `site:model.py:43` or `category:activation live@peak`
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) input: DeviceInput,
    /// Show only the largest N blocks
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,
}

#[derive(Args)]
pub(crate) struct Export {
    #[command(flatten)]
    pub(crate) input: DeviceInput,
    /// More files and folders, for several ranks. Only with `--as html` and `--as parquet`
    #[arg(value_name = "PATH")]
    pub(crate) more: Vec<PathBuf>,
    /// Export format
    #[arg(long = "as", value_enum, value_name = "FORMAT")]
    pub(crate) file_format: ExportAs,
    /// Weight of a block in folded and speedscope
    #[arg(long, value_enum, default_value_t = FlameWeight::Peak)]
    pub(crate) weight: FlameWeight,
    #[command(flatten)]
    pub(crate) moment: Moment,
    /// Trace of torch.profiler (`export_chrome_trace`, .json or .json.gz) of the same process. The
    /// output is this trace with the snapshot on its clock. Only with `--as perfetto`
    #[arg(long, value_name = "TRACE")]
    pub(crate) trace: Option<PathBuf>,
    /// What the report holds beside its text: the viewer with the snapshots, or nothing (default:
    /// the viewer, for snapshots of at most 20 MB compressed). Only with `--as html`
    #[arg(long, value_enum, value_name = "DATA")]
    pub(crate) data: Option<ReportData>,
    /// Put lines of source in the report, and the snapshots as they are. Only with `--as html`
    #[arg(long)]
    pub(crate) source: bool,
    /// Replace paths and the names of functions, tensors and ranges by hashes. Numbers stay. Only
    /// with `--as html`
    #[arg(long, conflicts_with = "source")]
    pub(crate) redact: bool,
    /// Name of the run in the dataset (default: the name of the run's folder). Only with `--as
    /// parquet`
    #[arg(long, value_name = "NAME")]
    pub(crate) run: Option<String>,
    /// Output file, compressed if its name ends in .gz (default: standard output). For `--as
    /// parquet`, the dataset's folder: files that it has already are skipped
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace a file of another kind, or write a dataset into a folder that has other files. Those
    /// files stay
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Args)]
pub(crate) struct Serve {
    /// Snapshot files and folders. Without any, the page opens empty
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Use exactly this port (default: 8317 or the next free port)
    #[arg(long, value_name = "N")]
    pub(crate) port: Option<u16>,
    /// Print the address without opening a browser
    #[arg(long)]
    pub(crate) no_open: bool,
    /// Serve files outside the folders, too, where links in them lead
    #[arg(long)]
    pub(crate) follow_links: bool,
    #[command(flatten)]
    pub(crate) source: SourceArguments,
}
