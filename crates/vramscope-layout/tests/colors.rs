//! Colors of blocks by stream, size, age and search.

use std::path::Path;
use vramscope_layout::{Color, Colors};
use vramscope_snapshot::{Reader, Snapshot};
use vramscope_trace::slicing::now;
use vramscope_trace::{Sites, Trace};

fn test_data(name: &str) -> Snapshot {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test_data").join(name);
    let bytes = std::fs::read(path).expect("the test file is readable");
    let mut reader = Reader::default();
    reader.feed(&bytes).expect("a valid snapshot");
    reader.finish().expect("a valid snapshot").remove(0).snapshot
}

#[test]
fn colors_show_stream_size_and_age() {
    let snapshot = test_data("recorded/t26/streams.pickle.gz");
    let trace = &Trace::all(&snapshot)[0];
    let by_stream = now(async |budget| Colors::by_stream(trace, &snapshot, budget).await);
    let streams = |of: &dyn Fn(usize) -> u32| {
        let mut all: Vec<u32> = (0..trace.blocks.len()).map(of).collect();
        all.sort_unstable();
        all.dedup();
        all.len()
    };
    let handles = streams(&|b| u32::from(trace.blocks[b].stream.0));
    assert!(handles > 1);
    assert_eq!(streams(&|b| by_stream.of(b as u32).word()), handles, "one color per stream");
    let by_size = now(async |budget| Colors::by_size(trace, budget).await);
    let largest = (0..trace.blocks.len())
        .max_by_key(|&b| trace.blocks[b].bytes)
        .expect("the trace has blocks");
    assert_eq!(by_size.of(largest as u32), Color::ramp(15));
    let by_age = now(async |budget| Colors::by_age(trace, budget).await);
    let oldest =
        (0..trace.blocks.len()).max_by_key(|&b| vramscope_trace::lifetime(trace, &trace.blocks[b]));
    assert_eq!(by_age.of(oldest.expect("the trace has blocks") as u32), Color::ramp(15));
    let sites = Sites::new(&snapshot);
    let by_site = now(async |budget| Colors::by_site(trace, &sites, budget).await);
    let third = by_site.of(3);
    let dimmed = now(async |budget| by_site.dimmed(|block| block == 3, budget).await);
    assert_eq!((dimmed.of(2), dimmed.of(3)), (Color::DIMMED, third));
}

#[test]
fn the_largest_sites_have_distinct_colors() {
    let snapshot = test_data("recorded/t26/gpt_small.pickle.gz");
    let trace = &Trace::all(&snapshot)[0];
    let sites = Sites::new(&snapshot);
    let colors = now(async |budget| Colors::by_site(trace, &sites, budget).await);
    // The most bytes of each site that are live at once, state by state.
    let mut most: std::collections::BTreeMap<u64, u64> = std::collections::BTreeMap::new();
    let is_known = |b: usize| sites.get(trace.blocks[b].stack).frame.is_some();
    let hash = |b: usize| sites.get(trace.blocks[b].stack).site_hash;
    for state in 0..trace.slots() {
        let mut live: std::collections::BTreeMap<u64, u64> = std::collections::BTreeMap::new();
        for (b, block) in trace.blocks.iter().enumerate() {
            if is_known(b) && block.is_live_at(state) {
                *live.entry(hash(b)).or_default() += block.bytes.0;
            }
        }
        for (site, bytes) in live {
            let known = most.entry(site).or_default();
            *known = (*known).max(bytes);
        }
    }
    let mut order: Vec<(u64, u64)> = most.into_iter().map(|(site, bytes)| (bytes, site)).collect();
    order.sort_unstable();
    let large: Vec<u64> =
        order.iter().rev().take(Color::SITES as usize).map(|&(_, site)| site).collect();
    let color_of = |site: u64| {
        let mut all: Vec<u32> = (0..trace.blocks.len())
            .filter(|&b| is_known(b) && hash(b) == site)
            .map(|b| colors.of(b as u32).word())
            .collect();
        all.dedup();
        assert_eq!(all.len(), 1, "one color per site");
        all[0]
    };
    let mut words: Vec<u32> = large.iter().map(|&site| color_of(site)).collect();
    words.sort_unstable();
    let every: Vec<u32> = (0..Color::SITES as u8).map(|i| Color::site(i).word()).collect();
    assert_eq!(words, every);
    for &(_, site) in order.iter().rev().skip(Color::SITES as usize) {
        assert_eq!(color_of(site), Color::OTHER.word());
    }
}
