//! The program `vramscope`: reports on PyTorch memory snapshots, for the terminal and for scripts.
//!
//! Every command reads files through vramscope-report, takes a value from one of its reports, and
//! prints it as text or JSON (`vramscope schema`). This crate computes no numbers. It is a library,
//! since the Python package has the program within its module.

#![expect(clippy::print_stderr, reason = "the program reports failures on standard error")]

mod arguments;
mod beside;
mod commands;
pub mod dataset;
pub mod input;
mod mcp;
mod memory;
mod no_memory;
mod out_file;
mod output;
mod paths;
mod printable;
mod read;
pub mod report;
mod row_per_line;
mod serve;
mod sources;
mod terminal;
mod width;

pub use commands::diagnose::Report as DiagnoseReport;
pub use commands::findings::FailedFile;
pub use serve::page::{Viewer, viewer};

use arguments::{Arguments, Command};
use clap::{CommandFactory as _, Parser as _};
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Why a command failed.
enum Failure {
    /// The command line is wrong, or names a device, snapshot or event that does not exist.
    Usage(String),
    /// A snapshot is whole and has no memory: that is the answer.
    NoMemory {
        /// The file's path.
        path: String,
    },
    /// Writing the output or listing a folder failed.
    Io(std::io::Error),
    /// An input could not be read. The command has printed the reason.
    Input,
    /// A `--fail-on` expression holds. The command has printed it.
    Check,
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::Io(error.into())
    }
}

/// Ends the process with code 70 (`EX_SOFTWARE`) when a thread panics, which is a bug. Where panics
/// abort, no code runs after this hook.
fn end_after_panics() {
    std::panic::set_hook(Box::new(move |panic| {
        let what = panic.payload_as_str().unwrap_or("a panic").replace('\n', " ");
        let place = panic.location().map(|at| format!(" at {}:{}", at.file(), at.line()));
        output::complain(format_args!(
            "a bug: {what}{}. Please report this line and the command, with the file if you can, \
             as an issue of vramscope {}",
            place.unwrap_or_default(),
            env!("CARGO_PKG_VERSION")
        ));
        std::process::exit(70);
    }));
}

/// Whether a text is meant as a path: one that exists, or has the form of one.
fn is_path(text: &OsStr) -> bool {
    let shown = text.to_string_lossy();
    !shown.starts_with('-') && (shown.contains(['/', '\\', '.']) || Path::new(text).exists())
}

/// The arguments, with the command that `vramscope PATH` means. `None` asks for the short help.
fn with_command(mut arguments: Vec<OsString>) -> Option<Vec<OsString>> {
    let first = arguments.get(1)?;
    if arguments.len() == 2 && (first == "-h" || first == "--help") {
        return None;
    }
    let is_command = first.to_str().is_some_and(|name| {
        let known = Arguments::command();
        known.find_subcommand(name).is_some()
    });
    if !is_command && is_path(first) {
        arguments.insert(1, "diagnose".into());
    }
    Some(arguments)
}

/// Runs the program. The first argument is its name. Returns the exit code:
/// 70 (`EX_SOFTWARE`) after a panic, which is a bug.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    run_within(None, arguments)
}

/// [`run`] within another program, such as Python. The command line `again`, with arguments after
/// it, runs this program in another process.
pub fn run_within(
    again: Option<Vec<OsString>>,
    arguments: impl IntoIterator<Item = OsString>,
) -> u8 {
    end_after_panics();
    if let Err(error) = mcp::call::begin() {
        output::complain(error);
        return 2;
    }
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let has_none = arguments.len() < 2;
    let Some(arguments) = with_command(arguments) else {
        // A failed write of the help cannot be reported anywhere.
        if has_none {
            drop(arguments::print_short_help(&mut std::io::stderr()));
            return 64;
        }
        drop(arguments::print_short_help(&mut std::io::stdout()));
        return 0;
    };
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            let text = error.render().ansi().to_string();
            // A failed write of the message cannot be reported anywhere.
            if error.use_stderr() {
                drop(arguments::write_help(&mut anstream::stderr(), &text));
                return 64;
            }
            drop(arguments::write_help(&mut anstream::stdout(), &text));
            return 0;
        }
    };
    let format = arguments.command.format();
    let result = match arguments.command {
        ref command if let Err(failure) = commands::cards::refuse_index(command.snapshots()) => {
            Err(failure)
        }
        Command::Record(a) => match commands::in_python::run("record", &a) {
            Ok(code) => return code,
            Err(failure) => Err(failure),
        },
        Command::DryRun(a) => match commands::in_python::run("dry-run", &a) {
            Ok(code) => return code,
            Err(failure) => Err(failure),
        },
        Command::Fix(a) => match commands::in_python::run("fix", &a) {
            Ok(code) => return code,
            Err(failure) => Err(failure),
        },
        Command::Diagnose(a) => commands::diagnose::run(&a),
        Command::Peak(a) => commands::peak::run(&a),
        Command::Steps(a) => commands::steps::run(&a),
        Command::Explain(a) => commands::explain::run(&a),
        Command::WhatIf(a) => commands::what_if::run(&a),
        Command::Source(a) => commands::source::run(&a),
        Command::Ranks(a) => commands::ranks::run(&a),
        Command::Diff(a) => commands::diff::run(&a),
        Command::Info(a) => commands::info::run(&a),
        Command::Show(a) => commands::show::run(a),
        Command::Export(a) => commands::export::run(&a),
        Command::Serve(a) => serve::run(&a),
        Command::Mcp(a) => mcp::run(again, &a),
        Command::Summary(a) => commands::summary::run(&a),
        Command::State(a) => commands::state::run(&a),
        Command::Blocks(a) => commands::blocks::run(&a),
        Command::Events(a) => commands::events::run(&a),
        Command::Segments(a) => commands::segments::run(&a),
        Command::Sql(a) => commands::sql::run(&a),
        Command::Schema { command } => commands::schema::run(command),
        Command::Skill => commands::skill::run(),
        Command::Completions { shell } => commands::completions(shell),
        Command::Help { all, command } => commands::help::run(all, command.as_deref()),
    };
    let answered = match result {
        Err(Failure::NoMemory { path }) => no_memory::print(path, format),
        other => other,
    };
    match answered {
        // The latter is answered.
        Ok(()) | Err(Failure::NoMemory { .. }) => 0,
        // The reader closed the pipe, as `head` does.
        Err(Failure::Io(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => 0,
        Err(Failure::Io(error)) => {
            output::complain(error);
            2
        }
        Err(Failure::Input) => 2,
        Err(Failure::Check) => 1,
        Err(Failure::Usage(message)) => {
            output::complain(message);
            64
        }
    }
}
