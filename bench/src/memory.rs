//! Measures the memory of a file from bytes to the first picture, by phase and by event.
//!
//! Memory of WebAssembly never shrinks, so the peak counts. A growing vector counts twice while it
//! is copied, although an allocator may be able to grow it in place.

use crate::CHUNK;
use allocation_counter::{AllocationInfo, measure};
use anyhow::{Context, Result, anyhow};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use vramscope_snapshot::{MemoryUse, NamedSnapshot, Reader};
use vramscope_trace::slicing::now;
use vramscope_trace::{Carving, Sites, Trace};

/// Consecutive phases, and the bytes that are live between them.
#[derive(Default)]
struct Phases {
    rows: Vec<(&'static str, AllocationInfo, i64)>,
    live: i64,
}

impl Phases {
    fn note<T>(&mut self, what: &'static str, work: impl FnOnce() -> T) -> Result<T> {
        let mut made = None;
        let info = measure(|| made = Some(work()));
        self.rows.push((what, info, self.live));
        self.live += info.bytes_current;
        made.context("not measured")
    }
}

pub(crate) fn run(path: &Path) -> Result<()> {
    let mut file = File::open(path).with_context(|| format!("opening {}", path.display()))?;
    let total = file.metadata()?.len();
    let mut chunk = vec![0; CHUNK];
    let mut phases = Phases::default();

    let mut reader = Reader::default();
    phases.note("bytes to tables", || -> Result<()> {
        let mut read = 0;
        loop {
            let n = file.read(&mut chunk)?;
            if n == 0 {
                return Ok(());
            }
            read += n as u64;
            reader.feed(&chunk[..n])?;
            reader.reserve_ahead(read, total);
        }
    })??;
    let held = reader.memory_use().context("only a plain pickle's parser tells what it holds")?;
    let with_tables = reader.memory();
    let NamedSnapshot { snapshot, .. } =
        phases.note("tables to a snapshot", || reader.finish())??.remove(0);
    let traces = phases.note("traces", || Trace::all(&snapshot))?;
    phases.note("call sites", || Sites::new(&snapshot))?;
    let trace =
        traces.iter().max_by_key(|t| t.device.events.len()).ok_or_else(|| anyhow!("no device"))?;
    phases
        .note("block sizes", || now(async |budget| Carving::new(&snapshot, trace, budget).await))?;

    let events = snapshot.events.len();
    let each = |bytes: f64| bytes / events.max(1) as f64;
    println!(
        "{}, {total} bytes, {events} events, {} blocks",
        path.display(),
        traces.iter().map(|t| t.blocks.len()).sum::<usize>()
    );
    println!(
        "\n{:<26} {:>12} {:>10} {:>10} {:>10} {:>10}",
        "", "allocations", "live MB", "an event", "peak MB", "an event"
    );
    for (what, info, before) in &phases.rows {
        let (live, peak) = ((before + info.bytes_current) as f64, before + info.bytes_max as i64);
        let peak = peak as f64;
        println!(
            "{what:<26} {:>12} {:>10.1} {:>10.1} {:>10.1} {:>10.1}",
            info.count_total,
            live / 1e6,
            each(live),
            peak / 1e6,
            each(peak)
        );
    }
    println!("\n{:<26} {:>12} {:>10} {:>10}", "", "entries", "MB", "an event");
    let row = |what: &str, entries: usize, bytes: usize| {
        println!(
            "{what:<26} {entries:>12} {:>10.1} {:>10.1}",
            bytes as f64 / 1e6,
            each(bytes as f64)
        );
    };
    let MemoryUse { memo_entries, memo, objects, strings, other } = held;
    row("memo, while parsing", memo_entries, memo);
    row("objects, while parsing", 0, objects);
    row("machine, while parsing", 0, other);
    row(
        "tables, while parsing",
        events,
        with_tables.saturating_sub(memo + objects + strings + other),
    );
    row("columns of events", events, snapshot.events.memory());
    row("strings", snapshot.strings.len(), snapshot.strings.memory());
    row("frames", snapshot.frames.len(), snapshot.frames.memory());
    row("stacks", snapshot.stacks.len(), snapshot.stacks.memory());
    let blocks = traces
        .iter()
        .map(|t| t.blocks.capacity() * size_of_val(&t.blocks[..1.min(t.blocks.len())]))
        .sum();
    row("blocks of traces", traces.iter().map(|t| t.blocks.len()).sum(), blocks);
    Ok(())
}
