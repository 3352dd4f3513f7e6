//! The help: one screen with the commands for people, and the manual with all commands.

use super::Arguments;
use crate::width::{columns, visible, wrap_to};
use clap::CommandFactory as _;
use std::io::{self, Write};

/// The most columns before the words about a command.
const MAX_NAME: usize = 24;

/// The commands for people, with what each answers. Others are for scripts.
const COMMANDS: [(&str, &str); 16] = [
    ("record", "-o DIR SCRIPT ..  record a Python program, or any command after --"),
    ("diagnose", "PATH..          what is wrong, why, what to change; --all lists all"),
    ("dry-run", "SCRIPT           run a PyTorch program without a GPU: does it fit"),
    ("fix", "SCRIPT|PATH          make the best change in the source, and run it dry"),
    ("peak", "PATH                what holds memory; --by line|module, --tree, --at"),
    ("steps", "PATH               each step and its phases, what stays, growth"),
    ("what-if", "PATH             other settings, devices, batches, changed programs"),
    ("source", "PATH --source DIR source with the memory of each line"),
    ("ranks", "PATH..             ranks and iterations side by side, outliers, drift"),
    ("diff", "A B                 two snapshots or runs; A --from WHEN --to WHEN"),
    ("info", "PATH..              how each file was recorded"),
    ("explain", "MESSAGE          an out-of-memory message, or a name in an answer"),
    ("show", "ID PATH             a finding, a block, a call stack or a search"),
    ("export", "PATH.. --as KIND  html, parquet, index, perfetto, speedscope, csv"),
    ("serve", "PATH..             the page with these files, in a browser"),
    ("mcp", "                     answer agents on standard input and output"),
];

/// The manual: paths, moments, numbers, output and exit codes of all commands.
pub(crate) const MANUAL: &str = "\
Inputs
  PATH is a file or a folder. A file is a pickle, a gzip of one, a trace_plot page or JSON. The
  content decides, not the name. Folders are searched for .pickle, .pkl, .pt, .gz, .html and .json
  files. Files that are no snapshots are skipped. Files are read in parallel and in chunks.
  `diagnose` and `ranks` also read an index (.vramscope), which has a card of each rank.
  Commands about one file take a folder, too: its only snapshot, else that of a rank that ran out of
  memory, else the one with the highest peak. Standard error names it.
  `vramscope PATH` is `vramscope diagnose PATH`.

Moments
  --at takes start, peak, end, oom (the last failed allocation), step:N (the highest moment of step
  N), an event (#1200) or a time in microseconds since the Unix epoch. Events count from 0 in the
  device's raw trace. Event -1 is the state before the first event. --window A..B reads a part of
  the file. --limit N shows the first N rows.

Numbers
  Names are those of torch.cuda.memory_stats(). requested_bytes and reserved_bytes come from the
  trace and are exact. active_bytes and allocated_bytes need block sizes, which a replay of the
  allocator recovers. They are marked as estimates unless the replay reproduces the final segments
  block for block. The peak of allocated_bytes is torch.cuda.max_memory_allocated().

Output
  Text is for humans. It fits the terminal (COLUMNS, or 100 columns where there is none). Use
  --format json in scripts; `vramscope schema` has its form. Progress and errors go to standard
  error.

Exit code
  0   done
  1   a --fail-on expression holds
  2   a named file or a damaged snapshot could not be read. Results of the others are printed
  64  wrong usage
  70  a bug of vramscope

Examples
  vramscope runs/42/
  vramscope diagnose runs/42/ --all --format markdown --limit 10
  vramscope peak oom_rank0.pickle --by line
  vramscope peak oom_rank0.pickle --tree --at oom
  vramscope diff main.pickle branch.pickle --fail-on 'peak>+2%' --format markdown
  vramscope diff rank0.pickle --from 1200 --to peak
  vramscope state rank0.pickle --at peak --format json | jq '.categories'
  vramscope events rank0.pickle --address 0x7f3a5c000000
  vramscope export rank0.pickle --as speedscope -o rank0.speedscope.json
  vramscope export runs/42/ --as parquet -o dataset/
  vramscope sql peaks dataset/
  vramscope export runs/42/ --as index -o run.vramscope
  vramscope diagnose run.vramscope";

/// Writes the help of one screen.
///
/// # Errors
/// The output cannot be written.
pub(crate) fn print_short(out: &mut dyn Write) -> io::Result<()> {
    let known = Arguments::command();
    writeln!(
        out,
        "Says what holds GPU memory in PyTorch memory snapshots, why, what to change.\n"
    )?;
    writeln!(out, "Usage: vramscope PATH...           diagnose snapshots and folders of them")?;
    writeln!(out, "       vramscope COMMAND ...\n\nCommands:")?;
    for (name, words) in COMMANDS {
        if known.find_subcommand(name).is_some() {
            writeln!(out, "  {name} {words}")?;
        }
    }
    writeln!(out, "\n`vramscope COMMAND --help` has the options of a command.")?;
    writeln!(out, "`vramscope help --all` has the commands for scripts, and the manual.")
}

/// Writes a help that clap made, in the width of the terminal.
///
/// # Errors
/// The output cannot be written.
pub(crate) fn write_help(out: &mut dyn Write, help: &str) -> io::Result<()> {
    let columns = columns();
    for line in help.lines() {
        // The words about a command or an option begin after its name.
        let rest = line.trim_start_matches(' ');
        let indent = line.len() - rest.len();
        let words = rest.find("  ").map(|end| &rest[end..]);
        let words = words.map(|words| visible(line) - visible(words.trim_start_matches(' ')));
        let further = match words {
            Some(column) if indent == 2 && column <= MAX_NAME => column,
            _ if indent == 2 => 4,
            _ => indent,
        };
        writeln!(out, "{}", wrap_to(line, columns, further))?;
    }
    Ok(())
}

/// Writes every command, then the manual.
///
/// # Errors
/// The output cannot be written.
pub(crate) fn print_all(out: &mut dyn Write) -> io::Result<()> {
    write_help(out, &Arguments::command().render_long_help().ansi().to_string())
}
