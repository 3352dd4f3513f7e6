//! The command line. The help texts are the program's manual.

mod format;
mod help;
#[cfg(test)]
mod man;
mod peak;
mod source;
mod sql;
mod values;

pub(crate) use help::{
    MANUAL, print_all as print_all_help, print_short as print_short_help, write_help,
};
pub(crate) use peak::{Dimensions, Peak};
pub(crate) use source::{Source, SourceArguments};
pub(crate) use sql::{RowFormat, Sql};
pub(crate) use values::{
    Answer, Band, DiffFormat, ExportAs, FlameWeight, Format, PeakRows, ReportData, SortBy, When,
};

use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::ops::Range;
use std::path::PathBuf;
use values::{address, device, event_or_range, event_range, moment};
use vramscope_report::what_if::parse_memory;

/// Shows what holds GPU memory, from PyTorch memory snapshots.
///
/// To write snapshots, run a program by `vramscope record PROGRAM`, which the Python package has.
/// Without the package, call `torch.cuda.memory._record_memory_history()`, run the program, then
/// call `torch.cuda.memory._dump_snapshot("rank0.pickle")`. vramscope never executes code in a
/// snapshot.
#[derive(Parser)]
#[command(name = "vramscope", bin_name = "vramscope", version, after_long_help = MANUAL)]
#[command(disable_help_subcommand = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Record a Python program, or any command after `--`, as `python -m vramscope record` does
    #[command(disable_help_flag = true)]
    Record(InPython),
    /// Run a PyTorch program without a GPU: does it fit, and what holds the memory
    #[command(disable_help_flag = true)]
    DryRun(InPython),
    /// Make the best change in a copy of a program's source, and run it without a GPU
    #[command(disable_help_flag = true)]
    Fix(InPython),
    /// Say what is wrong, why, and what to change. `vramscope PATH` does the same
    Diagnose(Diagnose),
    /// Show what holds memory at the peak, or at another moment
    Peak(Peak),
    /// Show the steps: the peak of each phase, what stays, and how fast it grows
    Steps(Steps),
    /// Explain an out-of-memory message alone, or a name in an answer
    Explain(Explain),
    /// Predict what other settings, another device or a changed program would reserve
    WhatIf(WhatIf),
    /// Show source with the memory of each line beside it
    Source(Source),
    /// Compare the ranks of a run and its iterations: which differ, which call sites drift
    Ranks(Ranks),
    /// Compare two snapshots, the ranks of two runs, or two moments of one snapshot
    #[command(after_long_help = EXPRESSIONS)]
    Diff(Diff),
    /// Show how each file was recorded: settings, pools, streams, steps
    Info(Files),
    /// Show what an id of an answer stands for: a finding, a block, a call stack, or any search
    Show(Show),
    /// Export one HTML report, Parquet tables, an index, or for speedscope, Perfetto, CSV
    Export(Export),
    /// Serve the page with these files and open it in a browser
    Serve(Serve),
    /// Answer agents as an MCP server, on standard input and output
    Mcp(Mcp),
    /// Show totals, peaks and warnings of every snapshot
    Summary(Files),
    /// Show live blocks and segments after an event, or what changed between two events
    State(State),
    /// List the blocks of the window, sorted
    Blocks(Blocks),
    /// List the raw events of the trace. With --address, list the events that touch it
    Events(Events),
    /// Show reserved memory: segments, free memory, fragmentation, driver calls
    Segments(Segments),
    /// Ask DuckDB a named question about a dataset, print its SQL, or list the questions
    Sql(Sql),
    /// Print the JSON Schema of what a command prints with --format json
    Schema {
        /// The command
        #[arg(value_enum)]
        command: Answer,
    },
    /// Print the skill for agents: SKILL.md, how to find and fix a memory problem with vramscope
    Skill,
    /// Print a shell completion script
    Completions {
        /// Shell to complete for
        shell: clap_complete::Shell,
    },
    /// Print this help: --all for every command, COMMAND for one
    Help {
        /// Show every command, with what is true of all of them
        #[arg(long)]
        all: bool,
        /// The command to show
        #[arg(value_name = "COMMAND", conflicts_with = "all")]
        command: Option<String>,
    },
}

/// Arguments of a command that is written in Python, as it takes them.
#[derive(Args)]
pub(crate) struct InPython {
    /// Options, the script and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    pub(crate) arguments: Vec<OsString>,
}

/// Arguments of `vramscope mcp`.
#[derive(Args)]
pub(crate) struct Mcp {
    /// Folder that has all files of calls. Relative paths begin there. The client's roots within it
    /// narrow it (default: these roots, or the working folder if the client offers none)
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
}

/// How snapshots are read: options of every command that reads them.
#[derive(Args, Clone)]
pub(crate) struct Reading {
    /// Category rules that override the built-in ones. Each line is `category file function`
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
    #[arg(long = "window", value_name = "A..B", value_parser = event_range)]
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
    /// Snapshot files, folders to search, and indexes (.vramscope)
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
    /// Bytes of the JSON at most, if not all findings are listed
    #[arg(long, value_name = "N", hide = true)]
    pub(crate) max_bytes: Option<usize>,
    /// Exit with code 1 when EXPR holds for a device: 'peak>20GiB', 'findings.high>0',
    /// 'site:NAME>2GiB'. Can be repeated
    #[arg(long, value_name = "EXPR")]
    pub(crate) fail_on: Vec<String>,
    /// Output format: text for humans, JSON for scripts, Markdown for pull requests
    #[arg(long, value_enum, default_value_t = DiffFormat::Text)]
    pub(crate) format: DiffFormat,
    #[command(flatten)]
    pub(crate) source: SourceArguments,
    #[command(flatten)]
    pub(crate) window: Window,
}

/// Out-of-memory messages, and how to write what they mean.
#[derive(Args)]
pub(crate) struct Explain {
    /// The message, or the text around it (default, and with `-`: standard input, such as a log).
    /// Or the name of a finding, a blind spot, a warning or a change, such as growth or batch:0.5
    #[arg(value_name = "MESSAGE|NAME")]
    pub(crate) message: Vec<String>,
    /// List the names that have an explanation
    #[arg(long, conflicts_with_all = ["message", "format"])]
    pub(crate) list: bool,
    /// Output format: text for humans, JSON for scripts, Markdown for issues
    #[arg(long, value_enum, default_value_t = DiffFormat::Text)]
    pub(crate) format: DiffFormat,
}

#[derive(Args)]
pub(crate) struct Ranks {
    /// Snapshot files, folders to search, datasets of `export --as parquet`, and indexes
    /// (.vramscope)
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) common: Common,
    /// The files are of processes of one GPU, such as a trainer and an engine: put them on one
    /// clock, and show what they reserve together
    #[arg(long, conflicts_with = "limit")]
    pub(crate) one_gpu: bool,
    /// Show only the first N ranks and call sites (default: 20 in text, all ranks and 128 call
    /// sites in JSON)
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
    /// Snapshot file. Of a folder the only one, else a rank that ran out of memory or has the
    /// highest peak
    #[arg(value_name = "PATH")]
    pub(crate) path: PathBuf,
    #[command(flatten)]
    pub(crate) choice: DeviceChoice,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Args)]
pub(crate) struct Steps {
    #[command(flatten)]
    pub(crate) input: DeviceInput,
    /// Show only the first N steps (default: 20 in text, all in JSON)
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
    /// Length of the sequences for which the KV cache of an inference engine is sized, in tokens.
    /// By default the longest that the recorded command allows
    #[arg(long, value_name = "TOKENS")]
    pub(crate) length: Option<String>,
    /// Tokens that the recorded KV cache holds, as the engine logs it
    #[arg(long, value_name = "TOKENS")]
    pub(crate) cache_tokens: Option<String>,
    /// Changes of the program, with commas between them: batch:0.5, checkpoint:all, optimizer:8bit.
    /// `vramscope explain NAME` describes one
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
    #[arg(value_name = "B", required_unless_present_any = ["from", "to"])]
    pub(crate) b: Option<PathBuf>,
    /// Compare two moments of A: show what came, went and stayed since this one (default: start)
    #[arg(long, value_name = "WHEN", value_parser = moment, allow_negative_numbers = true)]
    #[arg(conflicts_with_all = ["b", "fail_on", "band"])]
    pub(crate) from: Option<When>,
    /// Compare two moments of A: show what came, went and stayed up to this one (default: end)
    #[arg(long, value_name = "WHEN", value_parser = moment, allow_negative_numbers = true)]
    #[arg(conflicts_with_all = ["b", "fail_on", "band"])]
    pub(crate) to: Option<When>,
    /// Device ordinal in both files, or `host` (default: of each file one that ran out of memory,
    /// else the highest peak)
    #[arg(long, value_name = "D", value_parser = device)]
    pub(crate) device: Option<u32>,
    /// Band at whose peaks call stacks and categories are compared
    #[arg(long, value_enum, default_value_t = Band::Requested)]
    pub(crate) band: Band,
    /// Show only the first N call stacks, those that change most (default: 20 in text and Markdown,
    /// all in JSON)
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

/// A state of the device. Each command has its own default.
#[derive(Args)]
pub(crate) struct Moment {
    /// `start` (before the first event), `peak` (of `requested_bytes`), `end`, `oom` (the last
    /// failed allocation), `step:N` (the highest moment of step N), an event (`#1200`), or a time
    /// in microseconds since the Unix epoch
    #[arg(long, value_name = "WHEN", value_parser = moment, allow_negative_numbers = true)]
    pub(crate) at: Option<When>,
}

#[derive(Args)]
pub(crate) struct State {
    #[command(flatten)]
    pub(crate) input: DeviceInput,
    #[command(flatten)]
    pub(crate) moment: Moment,
    /// Show what came, went and stayed since this moment, as `diff` does (default: start)
    #[arg(long, value_name = "WHEN", value_parser = moment, allow_negative_numbers = true)]
    #[arg(conflicts_with = "at")]
    pub(crate) from: Option<When>,
    /// Show what came, went and stayed up to this moment, as `diff` does (default: end)
    #[arg(long, value_name = "WHEN", value_parser = moment, allow_negative_numbers = true)]
    #[arg(conflicts_with = "at")]
    pub(crate) to: Option<When>,
    /// Show only the first N blocks, segments or call sites, the largest ones (default: 20 in text,
    /// all in JSON)
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
}

#[derive(Args)]
pub(crate) struct Segments {
    #[command(flatten)]
    pub(crate) input: DeviceInput,
    #[command(flatten)]
    pub(crate) moment: Moment,
    /// Show only the first N segments, the largest ones (default: 20 in text, all in JSON)
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
    pub(crate) range: Option<Range<u32>>,
    /// Show only the first N events (default: 20 in text, all in JSON)
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
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
    /// `site:model.py:43` or `category:activation live@peak`. It may also follow the file
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) input: DeviceInput,
    /// Show only the first N blocks, the largest ones
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,
    /// Show frames of the interpreter, of PyTorch and of compiled code, too
    #[arg(long)]
    pub(crate) all_frames: bool,
}

#[derive(Args)]
pub(crate) struct Export {
    #[command(flatten)]
    pub(crate) input: DeviceInput,
    /// More files and folders, for several ranks. Only with `--as html`, `parquet` and `index`
    #[arg(value_name = "PATH")]
    pub(crate) more: Vec<PathBuf>,
    /// Export format
    #[arg(long = "as", value_enum, value_name = "FORMAT")]
    pub(crate) file_format: ExportAs,
    /// Weight of a block in folded and speedscope
    #[arg(long, value_enum, default_value_t = FlameWeight::Bytes)]
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
    /// Use exactly this port, which is an error if it is taken (default: 8317 or the next free
    /// port)
    #[arg(long, value_name = "N")]
    pub(crate) port: Option<u16>,
    /// Print the address without opening a browser. Over SSH none opens without a display
    #[arg(long)]
    pub(crate) no_open: bool,
    /// Serve files outside the folders, too, where links in them lead
    #[arg(long)]
    pub(crate) follow_links: bool,
    #[command(flatten)]
    pub(crate) source: SourceArguments,
}
