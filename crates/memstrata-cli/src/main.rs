//! The program `memstrata`: what holds GPU memory, from PyTorch memory snapshots, in a terminal and in scripts.

#![expect(clippy::print_stderr, reason = "a program says on standard error what went wrong")]

mod paths;
mod read;
mod summary;

use clap::{Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::process::ExitCode;

/// Shows what holds GPU memory, from PyTorch memory snapshots.
///
/// PATH is a file (a pickle of `torch.cuda.memory._dump_snapshot`, a gzip of one, `trace_plot` HTML, JSON; told by content)
/// or a folder that is searched for .pickle, .pkl, .pt, .gz, .html and .json files.
///
/// Exit code: 0 done; 2 an input could not be read (the others are, and their results are printed); 64 wrong usage.
#[derive(Parser)]
#[command(name = "memstrata", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Totals, peaks and oddities of every snapshot.
    Summary {
        /// Files and folders.
        #[arg(required = true)]
        paths: Vec<PathBuf>,
        /// Text for people, JSON (memstrata.summary/1) for programs.
        #[arg(long, value_enum, default_value_t = Format::Text)]
        format: Format,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let wrong = error.use_stderr();
            // Where the message itself cannot be written there is nobody left to tell.
            drop(error.print());
            return if wrong { ExitCode::from(64) } else { ExitCode::SUCCESS };
        }
    };
    let result = match arguments.command {
        Command::Summary { paths, format } => summary::run(&paths, format),
    };
    match result {
        Ok(code) => code,
        // A reader that has seen enough, as `head` has.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("memstrata: {error}");
            ExitCode::from(2)
        }
    }
}
