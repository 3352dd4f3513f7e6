//! Writes synthetic recordings of any size, and the snapshot of the page's warm-up.

use crate::repo::Repo;
use anyhow::{Context, Result};
use clap::Args;
use flate2::{Compression, write::DeflateEncoder};
use serde_json::json;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;
use vramscope_testgen::fleet::{LEAK_BYTES, LEAK_SITE, SKEW_BYTES, SKEW_SITE, STEPS_PER_ITERATION};
use vramscope_testgen::{Fleet, FleetOptions, Generator, Written};

/// The snapshot that the page's worker embeds.
const WARM_UP: &str = "crates/vramscope-session/src/warm-up.pickle.deflate";

#[derive(Args)]
pub(crate) struct Options {
    /// Events of each rank's trace
    #[arg(long, value_name = "N")]
    events: u64,
    /// Number of ranks, one file each
    #[arg(
        long, value_name = "R", default_value_t = 1,
        value_parser = clap::value_parser!(u64).range(1..=100_000)
    )]
    ranks: u64,
    /// Blocks that are live at the end, roughly: from 100 to a fourth of the events
    #[arg(long, value_name = "L", default_value_t = 10_000)]
    live: u64,
    /// Folder for `rankR_memory_snapshot.pickle` [default: `gen` in the target folder]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Seed of all random numbers
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Frames of a call stack, on average
    #[arg(
        long, value_name = "F", default_value_t = 32,
        value_parser = clap::value_parser!(u16).range(4..=500)
    )]
    frames: u16,
    /// Stages of a pipeline. With this or one of the next options the ranks are a fleet, and
    /// `truth.json` says which ranks differ and how
    #[arg(long, value_name = "N", default_value_t = 1)]
    pipeline: u64,
    /// Ranks that hold more than the others of their stage
    #[arg(long, value_name = "N", default_value_t = 0)]
    skew: u64,
    /// Ranks that keep memory in each step
    #[arg(long, value_name = "N", default_value_t = 0)]
    leak: u64,
    /// Snapshots of each rank, each in the folder of its iteration
    #[arg(
        long, value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..=10_000)
    )]
    iterations: Option<u64>,
}

impl Options {
    /// One rank, with the defaults of the command line.
    pub(crate) fn new(events: u64, live: u64, out: PathBuf) -> Self {
        Self {
            events,
            ranks: 1,
            live,
            out: Some(out),
            seed: 1,
            frames: 32,
            pipeline: 1,
            skew: 0,
            leak: 0,
            iterations: None,
        }
    }
}

/// Writes one file per rank.
pub(crate) fn run(repo: &Repo, options: &Options) -> Result<()> {
    let Options { events, ranks, live, seed, frames, .. } = *options;
    let generator = Generator::new(&vramscope_testgen::Options { events, live, seed, frames })
        .context("--events and --live")?;
    let folder = options.out.clone().unwrap_or_else(|| repo.target.join("gen"));
    std::fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    let is_fleet = options.pipeline > 1 || options.skew > 0 || options.leak > 0;
    if is_fleet || options.iterations.is_some() {
        return fleet(&generator, options, &folder);
    }
    for rank in 0..ranks {
        let path = folder.join(format!("rank{rank}_memory_snapshot.pickle"));
        let started = Instant::now();
        let written = write(&path, |file| generator.write(rank, file))?;
        let seconds = started.elapsed().as_secs_f64();
        println!(
            "{}: {} bytes, {} events, {} steps, {} live blocks in {} segments; {seconds:.1} s, \
             {:.0} MB/s",
            path.display(),
            written.bytes,
            written.events,
            written.steps,
            written.live,
            written.segments,
            written.bytes as f64 / 1e6 / seconds
        );
    }
    Ok(())
}

fn write(path: &Path, write: impl FnOnce(File) -> std::io::Result<Written>) -> Result<Written> {
    let file = File::create(path).with_context(|| format!("making {}", path.display()))?;
    write(file).with_context(|| format!("writing {}", path.display()))
}

/// Writes the ranks of a fleet, and `truth.json` with what is planted in it.
fn fleet(generator: &Generator, options: &Options, folder: &Path) -> Result<()> {
    let &Options { ranks, pipeline, skew, leak, seed, iterations, .. } = options;
    let fleet =
        Fleet::new(FleetOptions { ranks, stages: pipeline, skewed: skew, leaking: leak, seed })
            .context("--ranks, --pipeline, --skew and --leak")?;
    let started = Instant::now();
    let (mut bytes, mut steps) = (0, 0);
    let count = iterations.unwrap_or(1);
    for iteration in 0..count {
        let folder = match iterations {
            Some(_) => folder.join(format!("iteration_{}", iteration * STEPS_PER_ITERATION)),
            None => folder.to_owned(),
        };
        std::fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        for rank in 0..ranks {
            let path = folder.join(format!("rank{rank}_memory_snapshot.pickle"));
            let written = write(&path, |file| generator.write_of(&fleet, rank, iteration, file))?;
            bytes += written.bytes;
            steps = written.steps;
        }
    }
    let stages: Vec<Vec<u64>> = (0..pipeline)
        .map(|stage| (0..ranks).filter(|&rank| fleet.stage(rank) == stage).collect())
        .collect();
    let skewed = fleet.skewed().iter().map(|rank| {
        json!({ "rank": rank, "stage": fleet.stage(*rank), "site": SKEW_SITE, "bytes": SKEW_BYTES })
    });
    let leaking = fleet.leaking().iter().map(|rank| {
        let stage = fleet.stage(*rank);
        json!({ "rank": rank, "stage": stage, "site": LEAK_SITE, "bytes_per_step": LEAK_BYTES,
            "bytes_per_iteration": LEAK_BYTES * STEPS_PER_ITERATION })
    });
    let truth = json!({
        "ranks": ranks,
        "stages": stages,
        "skewed": skewed.collect::<Vec<_>>(),
        "leaking": leaking.collect::<Vec<_>>(),
        "iterations": iterations.map_or(Vec::new(), |count| {
            (0..count).map(|iteration| iteration * STEPS_PER_ITERATION).collect::<Vec<_>>()
        }),
    });
    let path = folder.join("truth.json");
    std::fs::write(&path, serde_json::to_vec_pretty(&truth)?)
        .with_context(|| format!("writing {}", path.display()))?;
    println!(
        "{}: {} files, {bytes} bytes, {steps} steps each; {:.1} s",
        folder.display(),
        ranks * count,
        started.elapsed().as_secs_f64()
    );
    Ok(())
}

/// Writes the fleets that `python/tests/test_fleet.py` knows, in two folders.
pub(crate) fn two_runs(repo: &Repo, ranks: u64, folder: &Path) -> Result<()> {
    let fleet = |name, skew, leak, iterations| Options {
        ranks,
        pipeline: 4,
        skew,
        leak,
        iterations: Some(iterations),
        ..Options::new(2000, 200, folder.join(name))
    };
    run(repo, &fleet("before", 1, 1, 3))?;
    run(repo, &fleet("after", 2, 0, 1))
}

/// Writes the snapshot of the warm-up, which is committed.
pub(crate) fn warm_up(repo: &Repo, blocks: u32) -> Result<()> {
    let bytes = vramscope_testgen::warm_up(blocks);
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&bytes)?;
    let packed = encoder.finish()?;
    let path = repo.path(WARM_UP);
    std::fs::write(&path, &packed).with_context(|| format!("writing {}", path.display()))?;
    println!("{WARM_UP}: {} bytes, {} packed", bytes.len(), packed.len());
    Ok(())
}
