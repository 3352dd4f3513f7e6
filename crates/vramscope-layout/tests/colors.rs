//! Colors of blocks by stream, size, age and search.

use std::path::Path;
use vramscope_analysis::slicing::{Budget, run_to_completion};
use vramscope_analysis::{Sites, Trace};
use vramscope_layout::{Color, Colors};
use vramscope_snapshot::{Reader, Snapshot};

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
    let by_stream =
        run_to_completion(Colors::by_stream(trace, &snapshot, &mut Budget::unlimited()));
    let streams = |of: &dyn Fn(usize) -> u32| {
        let mut all: Vec<u32> = (0..trace.blocks.len()).map(of).collect();
        all.sort_unstable();
        all.dedup();
        all.len()
    };
    let handles = streams(&|b| u32::from(trace.blocks[b].stream.0));
    assert!(handles > 1);
    assert_eq!(streams(&|b| by_stream.of(b as u32).word()), handles, "one color per stream");
    let by_size = run_to_completion(Colors::by_size(trace, &mut Budget::unlimited()));
    let largest = (0..trace.blocks.len())
        .max_by_key(|&b| trace.blocks[b].bytes)
        .expect("the trace has blocks");
    assert_eq!(by_size.of(largest as u32), Color::ramp(15));
    let by_age = run_to_completion(Colors::by_age(trace, &mut Budget::unlimited()));
    let oldest = (0..trace.blocks.len())
        .max_by_key(|&b| vramscope_analysis::lifetime(trace, &trace.blocks[b]));
    assert_eq!(by_age.of(oldest.expect("the trace has blocks") as u32), Color::ramp(15));
    let sites = Sites::new(&snapshot);
    let dimmed = run_to_completion(
        Colors::by_site(trace, &sites).dimmed(|block| block == 3, &mut Budget::unlimited()),
    );
    assert_eq!((dimmed.of(2), dimmed.of(3)), (Color::DIMMED, Colors::by_site(trace, &sites).of(3)));
}
