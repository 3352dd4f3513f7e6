//! Measures loading and each analysis: time as a ratio to CPython's `pickle.load`, allocations, and
//! peak memory.

use crate::{CHUNK, python};
use allocation_counter::{AllocationInfo, measure};
use anyhow::{Context, Result, anyhow};
use std::path::Path;
use std::time::{Duration, Instant};
use vramscope_inference::WhatIf;
use vramscope_report::LoadedFile;
use vramscope_report::card::Card;
use vramscope_report::peak::BandKind;
use vramscope_report::state::At;
use vramscope_report::what_if::{self, Options, ScenarioRecord};
use vramscope_report::{Recipe, Target, blocks, flame, peak, segments, state};
use vramscope_session::Loader;
use vramscope_trace::slicing::now;

struct Row {
    what: &'static str,
    best: Duration,
    memory: AllocationInfo,
}

pub(crate) fn run(path: &Path, runs: u32) -> Result<()> {
    let bytes = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    let mut cpython = Duration::MAX;
    let mut rows: Vec<Row> = Vec::new();
    for _ in 0..runs {
        cpython = cpython.min(python(path)?);
        once(&bytes, &mut rows)?;
    }
    println!(
        "{}, {} bytes, best of {runs}; CPython's pickle.load takes {:.0} ms\n",
        path.display(),
        bytes.len(),
        ms(cpython)
    );
    println!("{:<26} {:>9} {:>12} {:>13} {:>10}", "", "ms", "of CPython", "allocations", "peak MB");
    for row in rows {
        println!(
            "{:<26} {:>9.1} {:>12.3} {:>13} {:>10.1}",
            row.what,
            ms(row.best),
            row.best.as_secs_f64() / cpython.as_secs_f64(),
            row.memory.count_total,
            row.memory.bytes_max as f64 / 1e6,
        );
    }
    Ok(())
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn once(bytes: &[u8], rows: &mut Vec<Row>) -> Result<()> {
    let mut file: Option<Result<LoadedFile>> = None;
    note(rows, "load, paired", || file = Some(load(bytes)));
    let file = file.ok_or_else(|| anyhow!("not measured"))??;
    let part = &file.entries[0];
    let device = part.default_trace().context("a device")?.device.device;
    let index = part.traces.iter().position(|t| t.device.device == device).context("its trace")?;
    let target = Target { path: "bench", entry: part, index };
    let slot = At::Peak.slot(target.trace()).map_err(|e| anyhow!(e))?;
    // Block sizes and categories are computed once, and used by the later reports.
    note(rows, "carving (block sizes)", || {
        part.carving(index);
    });
    note(rows, "categories", || {
        part.categories(index);
    });
    note(rows, "peak, by stack", || drop(peak::peak(target, BandKind::Allocated, None)));
    note(rows, "state at the peak", || drop(state::state(target, slot, None)));
    note(rows, "segments, fragmentation", || {
        drop(now(async |budget| segments::segments(target, slot, None, budget).await));
    });
    note(rows, "flame, byte-seconds", || drop(flame::flame(target, flame::Weight::ByteSeconds)));
    note(rows, "blocks by byte-seconds", || {
        drop(blocks::blocks(target, blocks::BlockSort::ByteSeconds, Some(1000)));
    });
    note(rows, "findings, card of the rank", || {
        drop(now(async |budget| Card::new(target, budget).await));
    });
    let mut model = None;
    note(rows, "what-if, own settings", || model = Some(what_if::model(target)));
    let model = model.context("a model")?;
    note(rows, "what-if, one answer", || drop(what_if::one_answer(&model)));
    note(rows, "what-if, half the batch", || drop(half_the_batch(target, &model)));
    note(rows, "what-if, usual table", || {
        drop(now(async |budget| what_if::what_if(target, &Options::default(), None, budget).await));
    });
    Ok(())
}

/// The recipe that the bench applies, as the page does: half the batch.
fn half_the_batch(target: Target<'_>, model: &WhatIf) -> ScenarioRecord {
    let options = Options { recipes: vec![Recipe::batch(0.5)], ..Options::default() };
    now(async |budget| what_if::scenario(target, model, &options, budget).await).0
}

pub(crate) fn load(bytes: &[u8]) -> Result<LoadedFile> {
    let mut loader = Loader::new("bench", bytes.len() as u64);
    for chunk in bytes.chunks(CHUNK) {
        loader.feed(chunk).map_err(|f| anyhow!(f.message))?;
    }
    loader.finish().map_err(|f| anyhow!(f.message))
}

fn note(rows: &mut Vec<Row>, what: &'static str, work: impl FnOnce()) {
    let mut time = Duration::ZERO;
    let memory = measure(|| {
        let start = Instant::now();
        work();
        time = start.elapsed();
    });
    match rows.iter_mut().find(|r| r.what == what) {
        Some(row) => row.best = row.best.min(time),
        None => rows.push(Row { what, best: time, memory }),
    }
}
