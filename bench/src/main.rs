//! `cargo run --release -p memstrata-bench -- parse FILE`: how fast a recording becomes tables, natively and in wasm,
//! against CPython's `pickle.load` of the same file in the same run. `analyse FILE`: loading and each analysis, with what they
//! allocate. `memory FILE`: what loading takes in memory, by phase and by event. `queries FILE`: the tiles of views of the
//! timeline. `answers FILE`: what the views ask, in slices.
//!
//! Those that are compared take turns, and each one's best time counts: on a shared machine that is the time nobody else had a part in.

#![expect(clippy::print_stdout, reason = "a program that prints a table")]

mod analyse;
mod answers;
mod memory;
mod queries;

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};
use memstrata_engine::Engine;
use memstrata_engine::protocol::Response;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What is read at a time, as the program does.
const CHUNK: usize = 1 << 20;

#[derive(Parser)]
#[command(about = "Measurements of memstrata")]
struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Loading a file into tables, interning and pairing included
    Parse {
        /// A snapshot, not compressed
        file: PathBuf,
        /// How often each is measured
        #[arg(long, default_value_t = 5)]
        runs: u32,
    },
    /// Loading, and each analysis by itself
    Analyse {
        /// A snapshot, not compressed
        file: PathBuf,
        /// How often each is measured
        #[arg(long, default_value_t = 3)]
        runs: u32,
    },
    /// What loading takes in memory, by phase and by event
    Memory {
        /// A snapshot, not compressed
        file: PathBuf,
    },
    /// The tiles of views of the timeline, from the whole of it to single events
    Queries {
        /// A snapshot, not compressed
        file: PathBuf,
        /// How often each is measured
        #[arg(long, default_value_t = 3)]
        runs: u32,
        /// Only this view, by its name in the table
        #[arg(long)]
        view: Option<String>,
    },
    /// What the views ask: slices of each answer, and the longest of them
    Answers {
        /// A snapshot, not compressed
        file: PathBuf,
        /// How often each is measured
        #[arg(long, default_value_t = 3)]
        runs: u32,
        /// Only those whose name in the table holds this
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

fn parse(file: &Path, runs: u32) -> Result<()> {
    let bytes = std::fs::read(file).with_context(|| format!("reading {}", file.display()))?;
    let mut best = [Duration::MAX; 4];
    for _ in 0..runs {
        let times = [python(file)?, native(&bytes)?, wasm(file, "cold")?, wasm(file, "warm")?];
        for (best, time) in best.iter_mut().zip(times) {
            *best = time.min(*best);
        }
    }
    println!("{}, {} bytes, best of {runs}\n", file.display(), bytes.len());
    println!("{:<24} {:>9} {:>9} {:>12} {:>11}", "", "ms", "MB/s", "x CPython", "x native");
    let names = ["CPython pickle.load", "native, one core", "wasm, cold", "wasm, warmed up"];
    for (what, time) in names.into_iter().zip(best) {
        println!(
            "{what:<24} {:>9.1} {:>9.0} {:>12.2} {:>11.2}",
            time.as_secs_f64() * 1e3,
            bytes.len() as f64 / 1e6 / time.as_secs_f64(),
            ratio(best[0], time),
            ratio(best[1], time),
        );
    }
    Ok(())
}

fn ratio(of: Duration, to: Duration) -> f64 {
    of.as_secs_f64() / to.as_secs_f64()
}

/// The engine as a worker drives it.
fn native(bytes: &[u8]) -> Result<Duration> {
    let start = Instant::now();
    let mut engine = Engine::new("bench", bytes.len() as u64);
    for chunk in bytes.chunks(CHUNK) {
        if let Err(failure) = engine.feed(chunk) {
            bail!("{}", failure.message);
        }
    }
    let response = engine.finish();
    let time = start.elapsed();
    match response {
        Response::Loaded(_) => Ok(time),
        other => bail!("not loaded: {other:?}"),
    }
}

/// The unpickler in C, alone: its time is told by the script, so starting Python is not in it.
fn python(file: &Path) -> Result<Duration> {
    let script = "import pickle, sys, time\n\
                  with open(sys.argv[1], 'rb') as f:\n    \
                      t = time.perf_counter(); pickle.load(f); print(time.perf_counter() - t)";
    seconds(Command::new("python3").args(["-c", script]).arg(file))
}

/// `cold` from the first instruction on, or `warm` after what the page's worker does before there is a file.
fn wasm(file: &Path, engine: &str) -> Result<Duration> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/parse.mjs");
    seconds(Command::new("node").arg(script).arg(file).args(["1", engine]))
}

/// Runs a program that prints how many seconds it took.
fn seconds(command: &mut Command) -> Result<Duration> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot start {program}"))?;
    if !output.status.success() {
        bail!("{program} failed ({})", output.status);
    }
    let text = String::from_utf8(output.stdout)?;
    let seconds: f64 = text.trim().parse().with_context(|| format!("{program} printed {text:?}"))?;
    Ok(Duration::from_secs_f64(seconds))
}
