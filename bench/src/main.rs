//! Measurements that are run by hand: `cargo run --release -p vramscope-bench -- COMMAND FILE`.
//!
//! `parse` compares loading, native and in wasm, with CPython's `pickle.load` of the same file in
//! the same run. `analyse` measures loading and each analysis, `memory` the memory of loading by
//! phase and by event, `queries` the tiles of the timeline, and `answers` the queries of the views.
//!
//! Compared programs take turns. Of times, the best is reported: on a shared machine it is the
//! least disturbed. Of ratios, the median over all turns is reported: a machine that is slow for a
//! while slows both programs.

#![expect(clippy::print_stdout, reason = "a command-line program")]

mod analyse;
mod answers;
mod memory;
mod queries;

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use vramscope_session::FileSession;
use vramscope_session::messages::Response;

/// Bytes that are read at a time, as in the program.
const CHUNK: usize = 1 << 20;

#[derive(Parser)]
#[command(about = "Measurements of vramscope")]
struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Load a file into tables, with interning and pairing
    Parse {
        /// A snapshot, not compressed
        file: PathBuf,
        /// Number of runs
        #[arg(long, default_value_t = 5)]
        runs: u32,
    },
    /// Load a file, and run each analysis by itself
    Analyse {
        /// A snapshot, not compressed
        file: PathBuf,
        /// Number of runs
        #[arg(long, default_value_t = 3)]
        runs: u32,
    },
    /// Memory of loading, by phase and by event
    Memory {
        /// A snapshot, not compressed
        file: PathBuf,
    },
    /// Draw tiles of the timeline, from the whole trace to single events
    Queries {
        /// A snapshot, not compressed
        file: PathBuf,
        /// Number of runs
        #[arg(long, default_value_t = 3)]
        runs: u32,
        /// Run only the view with this name
        #[arg(long)]
        view: Option<String>,
    },
    /// Answer the queries of the views: number of slices, and the longest slice
    Answers {
        /// A snapshot, not compressed
        file: PathBuf,
        /// Number of runs
        #[arg(long, default_value_t = 3)]
        runs: u32,
        /// Run only queries whose name contains this text
        #[arg(long)]
        only: Option<String>,
    },
}

fn main() -> Result<()> {
    match Args::parse().what {
        What::Parse { file, runs } => parse(&file, runs),
        What::Analyse { file, runs } => analyse::run(&file, runs),
        What::Memory { file } => memory::run(&file),
        What::Queries { file, runs, view } => queries::run(&file, runs, view.as_deref()),
        What::Answers { file, runs, only } => answers::run(&file, runs, only.as_deref()),
    }
}

/// Rows of the table of `parse`.
const WHAT: [&str; 5] = [
    "CPython pickle.load",
    "native, one core",
    "wasm, one worker",
    "wasm, first of a visit",
    "wasm, cold",
];
/// Loads of one worker, which together take about as long as one of CPython.
const REPEATED: &str = "9";

fn parse(file: &Path, runs: u32) -> Result<()> {
    let bytes = std::fs::read(file).with_context(|| format!("reading {}", file.display()))?;
    let mut turns = Vec::new();
    for _ in 0..runs {
        let python = python(file)?;
        let (cold, _) = wasm(file, "1", "cold")?;
        let (first, others) = wasm(file, REPEATED, "warm")?;
        turns.push([python, native_for(&bytes, python)?, others, first, cold]);
    }
    println!(
        "{}, {} bytes, {runs} turns: best times, medians of ratios\n",
        file.display(),
        bytes.len()
    );
    println!("{:<24} {:>9} {:>9} {:>12} {:>11}", "", "ms", "MB/s", "x CPython", "x native");
    for (i, what) in WHAT.into_iter().enumerate() {
        let best = turns.iter().map(|turn| turn[i]).min().unwrap_or_default().as_secs_f64();
        println!(
            "{what:<24} {:>9.1} {:>9.0} {:>12.2} {:>11.2}",
            best * 1e3,
            bytes.len() as f64 / 1e6 / best,
            median(turns.iter().map(|turn| ratio(turn[0], turn[i]))),
            median(turns.iter().map(|turn| ratio(turn[1], turn[i]))),
        );
    }
    Ok(())
}

fn ratio(of: Duration, to: Duration) -> f64 {
    of.as_secs_f64() / to.as_secs_f64()
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Mean time of native loads, repeated until they take as long as `time`: both programs then meet
/// equally much other load of the machine.
fn native_for(bytes: &[u8], time: Duration) -> Result<Duration> {
    let (mut spent, mut loads) = (Duration::ZERO, 0);
    while loads == 0 || spent < time {
        spent += native(bytes)?;
        loads += 1;
    }
    Ok(spent / loads)
}

/// One load by a session, as in a worker.
fn native(bytes: &[u8]) -> Result<Duration> {
    let start = Instant::now();
    let mut session = FileSession::new("bench", bytes.len() as u64);
    for chunk in bytes.chunks(CHUNK) {
        if let Err(failure) = session.feed(chunk) {
            bail!("{}", failure.message);
        }
    }
    let response = session.finish();
    let time = start.elapsed();
    match response {
        Response::Loaded(_) => Ok(time),
        other => bail!("not loaded: {other:?}"),
    }
}

/// CPython's unpickler in C. The script measures, so that the start of Python does not count.
fn python(file: &Path) -> Result<Duration> {
    let script = "import pickle, sys, time\n\
                  with open(sys.argv[1], 'rb') as f:\n    \
                      t = time.perf_counter(); pickle.load(f); print(time.perf_counter() - t)";
    let times = seconds(Command::new("python3").args(["-c", script]).arg(file))?;
    times.first().copied().context("Python printed no time")
}

/// The first of several loads in one worker, and the mean of the others. `cold` starts with the
/// first instruction, `warm` after the warm-up of the page's worker.
fn wasm(file: &Path, loads: &str, engine: &str) -> Result<(Duration, Duration)> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/parse.mjs");
    let times = seconds(Command::new("node").arg(script).arg(file).args([loads, engine]))?;
    let first = times.first().copied().context("node printed no time")?;
    Ok((first, times.get(1).copied().unwrap_or(first)))
}

/// Runs a program that prints times in seconds.
fn seconds(command: &mut Command) -> Result<Vec<Duration>> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot start {program}"))?;
    if !output.status.success() {
        bail!("{program} failed ({})", output.status);
    }
    let text = String::from_utf8(output.stdout)?;
    let times = text.split_whitespace().map(|time| time.parse().map(Duration::from_secs_f64));
    times.collect::<Result<_, _>>().with_context(|| format!("{program} printed {text:?}"))
}
