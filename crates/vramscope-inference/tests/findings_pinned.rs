//! Findings about pinned host memory, on hand-made traces. Sizes are in MiB.

use crate::memory::{MIB, mib};
use crate::{Device, load, parse};
use serde_json::{Value, json};
use vramscope_inference::{Basis, Facts, Finding, FindingKind, Pinned, PinnedCause, Severity};
use vramscope_units::Bytes;

/// The trace and the segments of pinned memory: each segment is one block.
#[derive(Default)]
struct Host {
    events: Vec<Value>,
    /// Address, size, requested size, line, whether it is live.
    blocks: Vec<(u64, u64, u64, u32, bool)>,
}

impl Host {
    fn event(&mut self, action: &str, block: usize) {
        let (addr, size, _, line, _) = self.blocks[block];
        let frames = json!([{"name": "load", "filename": "train.py", "line": line}]);
        self.events.push(
            json!({"action": action, "addr": addr, "size": size, "stream": 0, "frames": frames}),
        );
    }

    /// Pins a new block of `size` MiB for a request of `requested` MiB at a line.
    fn pin(&mut self, size: u64, requested: u64, line: u32) -> usize {
        let block = self.blocks.len();
        let address = (block as u64 + 1) << 36;
        self.blocks.push((address, size * MIB, requested * MIB, line, true));
        self.event("segment_alloc", block);
        self.event("alloc", block);
        block
    }

    fn free(&mut self, block: usize) {
        self.event("free_requested", block);
        self.event("free_completed", block);
        self.blocks[block].4 = false;
    }

    /// Uses a cached block again, and frees it.
    fn reuse(&mut self, block: usize) {
        self.event("alloc", block);
        self.free(block);
    }

    fn pinned(&self) -> Vec<(Finding, Pinned)> {
        let segment = |&(address, size, requested, line, is_live): &(u64, u64, u64, u32, bool)| {
            let state = if is_live { "active_allocated" } else { "inactive" };
            let frames = json!([{"name": "load", "filename": "train.py", "line": line}]);
            json!({"device": -1, "address": address, "total_size": size, "stream": 0,
                "segment_type": "small", "is_expandable": false, "segment_pool_id": [0, 0],
                "blocks": [{"address": address, "size": size, "requested_size": requested,
                    "state": state, "frames": frames}]})
        };
        let segments: Vec<Value> = self.blocks.iter().map(segment).collect();
        let snapshot = json!({"segments": [], "device_traces": [], "host_segments": segments,
            "host_traces": self.events});
        of(&Device::new(parse(snapshot.to_string().as_bytes())))
    }
}

fn of(device: &Device) -> Vec<(Finding, Pinned)> {
    let facts = |finding: Finding| {
        let Facts::Pinned(pinned) = finding.facts.clone() else { panic!("{finding:?}") };
        (finding, pinned)
    };
    device.of_kind(FindingKind::Pinned).into_iter().map(facts).collect()
}

/// sglang#39021: a buffer of 20.4 GiB took 32 GiB.
#[test]
fn rounding_is_what_live_blocks_take_beyond_their_requests() {
    let mut host = Host::default();
    host.pin(64, 40, 1);
    host.pin(32, 30, 2);
    host.pin(16, 16, 3);
    let [(finding, pinned)] = &host.pinned()[..] else { panic!("one finding") };
    let cause = PinnedCause::Rounding { requested: mib(40), size: mib(64), all_requested: mib(70) };
    assert_eq!((pinned.cause, pinned.reserved), (cause, mib(112)));
    assert_eq!((finding.bytes, finding.blocks), (26 * MIB, 2));
    assert_eq!((finding.severity, finding.basis), (Severity::Medium, Basis::Exact));
    assert_eq!(finding.parts.iter().map(|part| part.bytes).collect::<Vec<_>>(), [mib(24), mib(2)]);
}

/// Most files have block sizes for requests: what rounding took is not in them.
#[test]
fn rounding_is_silent_where_requests_are_not_known_or_hardly_smaller() {
    let mut host = Host::default();
    host.pin(64, 64, 1);
    host.pin(256, 250, 1);
    assert_eq!(host.pinned(), [], "6 MiB");
    host.pin(64, 48, 1);
    assert_eq!(host.pinned(), [], "22 MiB of 384 are less than a tenth");
    host.pin(64, 40, 1);
    assert_eq!(host.pinned()[0].0.bytes, 46 * MIB, "46 MiB of 448 are not");
}

#[test]
fn sizes_that_change_leave_blocks_that_the_line_does_not_ask_for_again() {
    let mut host = Host::default();
    for size in [10, 11, 12, 13, 14] {
        let block = host.pin(size, size, 7);
        host.free(block);
    }
    let [(finding, pinned)] = &host.pinned()[..] else { panic!("one finding") };
    let (smallest, largest) = (mib(10), mib(14));
    let cause = PinnedCause::Sizes { sizes: 5, smallest, largest, pinned: mib(60), live: mib(14) };
    assert_eq!(pinned.cause, cause);
    assert_eq!((finding.bytes, finding.blocks), (46 * MIB, 4), "the last could be used again");
    // Three sizes, or all at the beginning.
    let mut host = Host::default();
    for size in [30, 31, 32] {
        let block = host.pin(size, size, 7);
        host.free(block);
    }
    assert_eq!(host.pinned(), []);
    let mut host = Host::default();
    let blocks: Vec<usize> = [10, 11, 12, 13, 14].map(|size| host.pin(size, size, 7)).to_vec();
    for &block in &blocks {
        host.free(block);
    }
    for _ in 0..10 {
        for &block in &blocks {
            host.reuse(block);
        }
    }
    assert_eq!(host.pinned(), [], "each is used in each step");
}

#[test]
fn unused_blocks_are_free_for_half_of_the_window() {
    let run = |uses: usize| {
        let mut host = Host::default();
        let (large, small) = (host.pin(64, 64, 1), host.pin(8, 8, 2));
        host.free(large);
        host.free(small);
        (0..uses).for_each(|_| host.reuse(small));
        host.pinned()
    };
    let [(finding, pinned)] = &run(40)[..] else { panic!("one finding") };
    assert_eq!((finding.bytes, finding.blocks), (64 * MIB, 1));
    // After `free_completed`: the free of the other block, and 40 uses of 3 events.
    assert_eq!(pinned.cause, PinnedCause::Unused { events: 2 + 120 });
    assert_eq!(run(30), [], "the last 92 events are too few");
}

#[test]
fn recordings_of_pinned_memory() {
    let healthy = Device::host(load("recorded/t215_pinned_loader.pickle"));
    assert_eq!(of(&healthy), []);
    // Counted by hand in the pickle, with `host_memory_stats()` beside it: README.md of test_data.
    let sizes = of(&Device::host(load("recorded/pinned/threshold_0.pickle.gz")));
    let [(finding, pinned)] = &sizes[..] else { panic!("one finding: {sizes:?}") };
    assert_eq!(pinned.reserved, Bytes(263_472_483));
    assert!(matches!(pinned.cause, PinnedCause::Sizes { sizes: 27, .. }), "{finding:?}");
    assert_eq!((finding.bytes, finding.blocks), (184_100_582, 13));
}
