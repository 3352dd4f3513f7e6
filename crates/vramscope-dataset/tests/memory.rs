//! Memory does not depend on the number of files.

#[path = "dataset/common.rs"]
#[expect(dead_code, reason = "the other tests use the rest")]
mod common;

use common::{export, fleet, folder, source};
use std::path::PathBuf;

#[test]
fn four_times_the_ranks_take_no_more_memory() {
    let peak = |test: &str, runs: usize| {
        let run = |run: usize| fleet(&folder(&format!("{test}/run{run}")));
        let paths: Vec<PathBuf> = (0..runs).flat_map(run).collect();
        let dataset = folder(&format!("{test}_dataset"));
        let sources = paths.iter().map(|path| source(path)).collect();
        let measured = allocation_counter::measure(|| drop(export(&dataset, sources, 1)));
        measured.bytes_max
    };
    let (few, many) = (peak("memory_few", 1), peak("memory_many", 4));
    assert!(few > 1 << 20, "{few} bytes");
    assert!(many < few + few / 8, "{few} bytes for 8 files, {many} for 32");
}
