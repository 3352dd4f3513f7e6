//! Replays programs that PyTorch's own allocator ran, and requires the same segments.
//!
//! `scripts/allocator_differential.py` describes the files and writes them. The environment
//! variable `VRAMSCOPE_DIFFERENTIAL` names their folder. Without it there is nothing to compare.

#![expect(clippy::print_stderr, reason = "the counts are the result")]

use rustc_hash::FxHashMap;
use std::path::Path;
use vramscope_allocator::{
    Allocator, BlockId, Device, PoolKind, Release, Request, SegmentAction, SegmentEvent, Settings,
    parse_settings,
};

/// An event: action, bytes, stream, and the address of an ordinary segment from the first one on.
type Event = (String, u64, u32, Option<u64>);

struct Replay {
    allocator: Allocator,
    blocks: FxHashMap<u64, BlockId>,
    kinds: FxHashMap<u32, PoolKind>,
    /// The block that served the request before, and its address in the recording.
    served: Option<(BlockId, u64)>,
    /// First address of all segments in the recording, and in the model.
    bases: Option<(u64, u64)>,
    expected: Vec<Event>,
    found: Vec<SegmentEvent>,
    /// The operation whose events `expected` and `found` are.
    operation: String,
    programs: u32,
}

fn number(word: &str) -> u64 {
    word.parse().unwrap_or_else(|_| panic!("{word} is no number"))
}

fn start(line: &str) -> Replay {
    let values: FxHashMap<&str, &str> =
        line.split(' ').filter_map(|word| word.split_once('=')).collect();
    let size = |name: &str| number(values[name]);
    let release = Release::parse(values["release"]).expect("a release");
    let fraction = values["fraction"].parse().ok();
    let base = Settings { release, per_process_memory_fraction: fraction, ..Settings::default() };
    let settings = parse_settings(values["conf"], &base).expect("settings");
    let device = Device { available: size("available"), total: size("total"), ..Device::default() };
    Replay {
        allocator: Allocator::new(settings, &device),
        blocks: FxHashMap::default(),
        kinds: FxHashMap::default(),
        served: None,
        bases: None,
        expected: Vec::new(),
        found: Vec::new(),
        operation: line.to_owned(),
        programs: 0,
    }
}

impl Replay {
    /// Compares the address that served the request before, if no expandable segment did.
    fn compare_address(&mut self) -> Result<(), String> {
        let (Some((block, address)), Some((recorded, base))) = (self.served.take(), self.bases)
        else {
            return Ok(());
        };
        let found = self.allocator.address_of(block);
        let is_ordinary = !self.allocator.is_expandable(block);
        if !is_ordinary || found.wrapping_sub(base) == address.wrapping_sub(recorded) {
            return Ok(());
        }
        Err(format!(
            "after {} programs, {}: at {} from the first segment, expected {}",
            self.programs,
            self.operation,
            found.wrapping_sub(base) as i64,
            address.wrapping_sub(recorded) as i64,
        ))
    }

    /// Compares the events of the operation before.
    fn compare(&mut self) -> Result<(), String> {
        let base = self.bases.map_or(0, |(_, base)| base);
        let mut pools: Vec<u32> = self.found.iter().map(|event| event.pool).collect();
        pools.retain(|&pool| pool != 0);
        pools.sort_unstable();
        pools.dedup();
        let mut found: Vec<Event> = std::mem::take(&mut self.found)
            .into_iter()
            .map(|event| {
                let (name, is_ordinary) = match event.action {
                    SegmentAction::Alloc => ("alloc", true),
                    SegmentAction::Free => ("free", true),
                    SegmentAction::Map => ("map", false),
                    SegmentAction::Unmap => ("unmap", false),
                };
                let at = is_ordinary.then(|| event.address.wrapping_sub(base));
                (name.to_owned(), event.size, event.stream, at)
            })
            .collect();
        let mut expected = std::mem::take(&mut self.expected);
        if pools.len() > 1 {
            // PyTorch keeps private pools in a hash table, so a flush has them in any order.
            found.sort_unstable();
            expected.sort_unstable();
        }
        if found == expected {
            return self.compare_address();
        }
        Err(format!(
            "after {} programs, {}:\nPyTorch {expected:?}\nmodel   {found:?}",
            self.programs, self.operation
        ))
    }

    fn run(&mut self, line: &str) -> Result<(), String> {
        let words: Vec<&str> = line.split(' ').collect();
        if let ["s", action, address, size, stream] = words[..] {
            let is_ordinary = matches!(action, "alloc" | "free");
            let address = number(address);
            if is_ordinary && self.bases.is_none() {
                self.bases = Some((address, self.found.first().map_or(0, |event| event.address)));
            }
            let base = self.bases.map_or(0, |(base, _)| base);
            let at = is_ordinary.then(|| address.wrapping_sub(base));
            self.expected.push((action.to_owned(), number(size), number(stream) as u32, at));
            return Ok(());
        }
        self.compare()?;
        line.clone_into(&mut self.operation);
        let block = |replay: &mut Self, id| replay.blocks[&number(id)];
        match words[..] {
            [kind @ ("a" | "o" | "j"), id, bytes, stream, pool, ref address @ ..] => {
                let request = Request {
                    bytes: number(bytes),
                    stream: number(stream) as u32,
                    pool: number(pool) as u32,
                };
                let served = self.allocator.malloc(request, &mut self.found).ok();
                if served.is_some() != (kind == "a") {
                    return Err(format!("after {} programs, {line}: {served:?}", self.programs));
                }
                self.blocks.extend(served.map(|block| (number(id), block)));
                self.served = served.zip(address.first().map(|address| number(address)));
            }
            ["f" | "c", id] => {
                let block = block(self, id);
                if !self.allocator.free(block) {
                    return Err(format!("{line}: the block is free"));
                }
            }
            ["p", id] => {
                let block = block(self, id);
                self.allocator.free_later(block);
            }
            ["e"] => self.allocator.empty_cache(&mut self.found),
            ["m", pool, kind] => {
                let pool = number(pool) as u32;
                let known = self.kinds.entry(pool).or_default();
                match kind {
                    "use_on_oom" => known.use_on_oom = true,
                    "no_split" => known.no_split = true,
                    _ => return Err(format!("unknown kind {kind}")),
                }
                self.allocator.set_pool_kind(pool, *known);
            }
            ["i"] => self.allocator.set_capturing(true),
            ["k"] => self.allocator.set_capturing(false),
            ["g", "0"] | ["x"] => {}
            ["g", pool] => self.allocator.retire_pool(number(pool) as u32),
            ["r", pool] => self.allocator.release_pool(number(pool) as u32, &mut self.found),
            ["=", ..] => {
                let s = self.allocator.stats();
                let found = [
                    s.reserved_bytes,
                    s.reserved_peak,
                    s.active_bytes,
                    s.active_peak,
                    s.requested_bytes,
                    s.num_alloc_retries,
                    s.num_ooms,
                ];
                let expected: Vec<u64> = words[1..].iter().map(|word| number(word)).collect();
                self.programs += 1;
                if found != expected[..] {
                    return Err(format!("program {}: {expected:?}, {s:?}", self.programs));
                }
            }
            _ => return Err(format!("unknown line {line}")),
        }
        Ok(())
    }
}

/// The number of programs, requests and events of a file.
fn replay(path: &Path) -> Result<(u32, usize, usize), String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let mut lines = text.lines();
    let mut replay = start(lines.next().ok_or("the file is empty")?);
    let (mut requests, mut events) = (0, 0);
    for line in lines {
        requests += usize::from(line.starts_with("a ") || line.starts_with("o "));
        events += usize::from(line.starts_with("s "));
        replay.run(line).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    replay.compare()?;
    Ok((replay.programs, requests, events))
}

#[test]
fn segments_are_those_of_pytorch() {
    let Some(folder) = std::env::var_os("VRAMSCOPE_DIFFERENTIAL") else { return };
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let (mut total, mut failures) = ([0, 0, 0], Vec::new());
    for file in &files {
        match replay(file) {
            Ok((programs, requests, events)) => {
                total = [total[0] + programs as usize, total[1] + requests, total[2] + events];
            }
            Err(error) => failures.push(error),
        }
    }
    let all = failures.join("\n");
    assert!(failures.is_empty(), "{} of {} files:\n{all}", failures.len(), files.len());
    assert!(total[0] > 0, "the folder has no programs");
    eprintln!(
        "{} programs, {} requests, {} segment events are equal",
        total[0], total[1], total[2]
    );
}
