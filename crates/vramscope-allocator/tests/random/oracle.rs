//! Compares the model with the generator's allocator, which is written independently. It has no
//! limits, no private pools and another driver.

use crate::steps::{MIB, Step, cases, step};
use proptest::prelude::*;
use vramscope_allocator::{
    Allocator, BlockId, Device, Release, Request, SegmentAction, SegmentEvent, Settings,
};
use vramscope_testgen::allocator as oracle;

/// A block by its id here and its address there.
type Both = (BlockId, u64);

struct Run {
    model: Allocator,
    oracle: oracle::Allocator,
    live: Vec<Both>,
    pending: Vec<Both>,
    is_expandable: bool,
}

impl Run {
    /// Runs a step by both, and returns the events of both: action and bytes, and the addresses of
    /// ordinary segments.
    fn step(&mut self, step: Step) {
        let mut theirs: Vec<oracle::Event> = Vec::new();
        let mut ours: Vec<SegmentEvent> = Vec::new();
        let mut note = |_: &oracle::Allocator, event: oracle::Event| {
            if event.action.starts_with("segment_") {
                theirs.push(event);
            }
        };
        let take =
            |of: &mut Vec<Both>, at: usize| (!of.is_empty()).then(|| of.swap_remove(at % of.len()));
        match step {
            Step::Malloc(bytes, stream, pool) => {
                let address = self.oracle.alloc(bytes, stream as u64, 0, &mut note);
                if let Some(event) = theirs.first().filter(|e| e.action == "segment_alloc") {
                    self.model.place_next_segment(event.address, Some(event.size));
                }
                let request = Request { bytes, stream, pool };
                let id = self.model.malloc(request, &mut ours).expect("there is no limit");
                if !self.is_expandable {
                    assert_eq!(self.model.address_of(id), address);
                }
                self.live.push((id, address));
            }
            Step::Free(at) => {
                if let Some((id, address)) = take(&mut self.live, at) {
                    self.oracle.request(address, &mut note);
                    self.oracle.complete(address, &mut note);
                    self.model.free(id);
                }
            }
            Step::FreeLater(at) => {
                if let Some((id, address)) = take(&mut self.live, at) {
                    self.oracle.request(address, &mut note);
                    self.model.free_later(id);
                    self.pending.push((id, address));
                }
            }
            Step::Complete(at) => {
                if let Some((id, address)) = take(&mut self.pending, at) {
                    self.oracle.complete(address, &mut note);
                    self.model.free(id);
                }
            }
            // The oracle does not wait for streams.
            Step::EmptyCache => {
                for (id, address) in std::mem::take(&mut self.pending) {
                    self.oracle.complete(address, &mut note);
                    self.model.free(id);
                }
                self.oracle.empty_cache(&mut note);
                self.model.empty_cache(&mut ours);
            }
            _ => {}
        }
        self.compare(&ours, &theirs);
    }

    /// Whether the last block of an expandable segment could serve a request, and another too.
    /// PyTorch prefers the other, since the last one can grow. The oracle takes the smaller.
    fn is_beyond_oracle(&self, step: Step) -> bool {
        let Step::Malloc(bytes, stream, _) = step else { return false };
        let size = bytes.max(1).next_multiple_of(512);
        let list = |segment: &oracle::Segment| {
            segment.expandable && segment.stream == stream as u64 && segment.small == (size <= MIB)
        };
        self.oracle.segments().filter(|(_, segment, _)| list(segment)).any(|(_, _, blocks)| {
            let fits: Vec<bool> =
                blocks.map(|(_, b)| b.used == oracle::Use::Free && b.size >= size).collect();
            fits.last() == Some(&true) && fits.iter().filter(|fits| **fits).count() > 1
        })
    }

    fn compare(&self, ours: &[SegmentEvent], theirs: &[oracle::Event]) {
        let name = |action| match action {
            SegmentAction::Alloc => "segment_alloc",
            SegmentAction::Free => "segment_free",
            SegmentAction::Map => "segment_map",
            SegmentAction::Unmap => "segment_unmap",
        };
        let at = |address| if self.is_expandable { 0 } else { address };
        let mut ours: Vec<_> =
            ours.iter().map(|e| (name(e.action), at(e.address), e.size, e.stream as u64)).collect();
        let mut theirs: Vec<_> =
            theirs.iter().map(|e| (e.action, at(e.address), e.size, e.stream)).collect();
        // The orders within a flush differ.
        ours.sort_unstable();
        theirs.sort_unstable();
        assert_eq!(ours, theirs);
        let all = || self.oracle.segments().flat_map(|(_, _, blocks)| blocks);
        let active: u64 =
            all().filter(|(_, b)| b.used != oracle::Use::Free).map(|(_, b)| b.size).sum();
        let stats = self.model.stats();
        assert_eq!(stats.active_bytes, active);
        assert_eq!(stats.reserved_bytes, all().map(|(_, b)| b.size).sum::<u64>());
        if !self.is_expandable {
            let theirs: Vec<_> = all().map(|(address, b)| (address, b.size)).collect();
            let ours: Vec<_> = self.model.blocks().iter().map(|b| (b.address, b.size)).collect();
            assert_eq!(ours, theirs);
        }
    }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn model_and_oracle_agree(
        is_expandable in any::<bool>(),
        max_split in prop::sample::select(vec![None, Some(21 << 20), Some(32 << 20)]),
        steps in prop::collection::vec(step(0), 1..150),
    ) {
        // With expandable segments the oracle knows no unmapped memory in front of a block, so
        // nothing is unmapped there and no block is oversize.
        let max_split = max_split.filter(|_| !is_expandable);
        let settings = Settings {
            // The generator's allocator uses the lowest of several equal free blocks.
            release: Release(11),
            expandable_segments: is_expandable,
            max_split_size: max_split.unwrap_or(u64::MAX),
            ..Settings::default()
        };
        let mut run = Run {
            model: Allocator::new(settings, &Device::default()),
            oracle: oracle::Allocator::new(oracle::Settings {
                expandable: is_expandable,
                max_split_size: max_split,
            }),
            live: Vec::new(),
            pending: Vec::new(),
            is_expandable,
        };
        for step in steps {
            if run.is_beyond_oracle(step) {
                break;
            }
            if !(is_expandable && matches!(step, Step::EmptyCache)) {
                run.step(step);
            }
        }
    }
}
