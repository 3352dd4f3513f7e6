//! What holds after every step of every program.

use crate::steps::{MIB, Step, cases, step};
use proptest::prelude::*;
use std::collections::BTreeSet;
use vramscope_allocator::{
    AddressOrder, Allocator, BlockId, BlockState, DIVISION_INTERVALS, Device, Release, Request,
    ReservedParts, SegmentAction, SegmentEvent, Settings, StartBlock, StartSegment,
};

fn settings() -> impl Strategy<Value = Settings> {
    let of_mib = |mib: Vec<u64>| prop::sample::select(mib).prop_map(|mib| mib.saturating_mul(MIB));
    (
        any::<bool>(),
        of_mib(vec![u64::MAX, u64::MAX, 21, 32]),
        of_mib(vec![20, 30]),
        of_mib(vec![20, 20, 12, 11, 64]),
        prop::sample::select(vec![0, 0, 1, 4, 8]),
        prop::sample::select(vec![0.0, 0.3, 0.8]),
        0..=Release::LATEST.0,
    )
        .prop_map(|(expandable, max_split, rounding, large, divisions, threshold, release)| {
            Settings {
                expandable_segments: expandable,
                max_split_size: max_split,
                max_non_split_rounding_size: rounding,
                large_segment_size: large,
                roundup_power2_divisions: [divisions; DIVISION_INTERVALS],
                garbage_collection_threshold: threshold,
                release: Release(release),
                ..Settings::default()
            }
        })
}

fn device() -> impl Strategy<Value = Device> {
    let limit = || prop::sample::select(vec![u64::MAX, 400 * MIB, 150 * MIB, 41 * MIB]);
    let order = prop::sample::select(vec![
        AddressOrder::Ascending,
        AddressOrder::Descending,
        AddressOrder::Mixed,
    ]);
    (limit(), limit(), order).prop_map(|(available, allowed, order)| Device {
        available,
        total: 1 << 30,
        allowed: (allowed != u64::MAX).then_some(allowed),
        order,
    })
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => step(2),
        1 => (1..3u32).prop_map(Step::RetirePool),
        1 => (1..3u32).prop_map(Step::ReleasePool),
        1 => Just(Step::Refuse),
    ]
}

/// A program with what it expects.
struct Run {
    allocator: Allocator,
    live: Vec<BlockId>,
    pending: Vec<BlockId>,
    events: Vec<SegmentEvent>,
    reserved: u64,
    peak: u64,
}

impl Run {
    fn step(&mut self, step: Step, can_release: bool) {
        let take = |of: &mut Vec<BlockId>, at: usize| {
            (!of.is_empty()).then(|| of.swap_remove(at % of.len()))
        };
        match step {
            Step::Malloc(bytes, stream, pool) => {
                let request = Request { bytes, stream, pool };
                if let Ok(id) = self.allocator.malloc(request, &mut self.events) {
                    assert!(self.allocator.size_of(id) >= bytes);
                    self.live.push(id);
                }
            }
            Step::Free(at) => {
                if let Some(id) = take(&mut self.live, at) {
                    assert!(self.allocator.free(id));
                    assert!(!self.allocator.free(id));
                }
            }
            Step::FreeLater(at) => {
                if let Some(id) = take(&mut self.live, at) {
                    self.allocator.free_later(id);
                    self.pending.push(id);
                }
            }
            Step::Complete(at) => {
                if let Some(id) = take(&mut self.pending, at) {
                    let was_pending = self.allocator.is_pending(id);
                    assert_eq!(self.allocator.free(id), was_pending);
                }
            }
            Step::EmptyCache => self.allocator.empty_cache(&mut self.events),
            Step::RetirePool(pool) if can_release => self.allocator.retire_pool(pool),
            Step::ReleasePool(pool) if can_release => {
                self.allocator.release_pool(pool, &mut self.events);
            }
            Step::Refuse => self.allocator.refuse_next(),
            Step::RetirePool(_) | Step::ReleasePool(_) => {}
        }
    }

    fn check(&mut self, device: &Device) {
        let stats = self.allocator.stats();
        for event in self.events.drain(..) {
            match event.action {
                SegmentAction::Alloc | SegmentAction::Map => self.reserved += event.size,
                SegmentAction::Free | SegmentAction::Unmap => self.reserved -= event.size,
            }
            self.peak = self.peak.max(self.reserved);
        }
        assert_eq!(stats.reserved_bytes, self.reserved, "events add up to the reserved bytes");
        assert_eq!(stats.reserved_peak, self.peak);
        assert!(stats.reserved_bytes <= device.available);
        assert!(stats.active_bytes <= stats.reserved_bytes);
        let mut parts = ReservedParts::default();
        self.allocator.reserved_parts().iter().for_each(|(_, part)| parts.add(part));
        assert_eq!(parts.total(), stats.reserved_bytes);

        let blocks = self.allocator.blocks();
        assert_eq!(blocks.iter().map(|block| block.size).sum::<u64>(), stats.reserved_bytes);
        let used = blocks.iter().filter(|block| block.state != BlockState::Free);
        let (mut active, mut requested, mut count) = (0, 0, 0);
        for block in used {
            active += block.size;
            requested += block.requested;
            count += 1;
        }
        assert_eq!((active, requested), (stats.active_bytes, stats.requested_bytes));
        assert_eq!(parts.in_use + parts.rounding, active);
        let pending = self.pending.iter().filter(|id| self.allocator.is_pending(**id)).count();
        assert_eq!(count, self.live.len() + pending);
        for pair in blocks.windows(2) {
            assert!(pair[0].address + pair[0].size <= pair[1].address, "no overlap: {pair:?}");
        }
    }
}

/// Keeps the first addresses of the ordinary segments.
fn note_starts(starts: &mut BTreeSet<u64>, events: &[SegmentEvent]) {
    for event in events {
        match event.action {
            SegmentAction::Alloc => assert!(starts.insert(event.address)),
            SegmentAction::Free => assert!(starts.remove(&event.address)),
            SegmentAction::Map | SegmentAction::Unmap => {}
        }
    }
}

/// Free neighbors of one segment are merged. Segments are known from the events.
fn check_merged(allocator: &Allocator, starts: &BTreeSet<u64>) {
    for pair in allocator.blocks().windows(2) {
        let touch = pair[0].address + pair[0].size == pair[1].address;
        let both_free = pair.iter().all(|block| block.state == BlockState::Free);
        let both_expandable = pair.iter().all(|block| block.is_expandable);
        let same_segment = both_expandable || !starts.contains(&pair[1].address);
        assert!(!(touch && both_free && same_segment), "two free neighbors: {pair:?}");
    }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn state_is_consistent_after_every_step(
        settings in settings(),
        device in device(),
        steps in prop::collection::vec(any_step(), 1..120),
    ) {
        let mut run = Run {
            allocator: Allocator::new(settings, &device),
            live: Vec::new(),
            pending: Vec::new(),
            events: Vec::new(),
            reserved: 0,
            peak: 0,
        };
        let mut starts = BTreeSet::new();
        for &step in &steps {
            run.step(step, true);
            note_starts(&mut starts, &run.events);
            run.check(&device);
            check_merged(&run.allocator, &starts);
        }
        // Without the program's blocks all memory goes back.
        while let Some(id) = run.live.pop() {
            run.allocator.free(id);
        }
        run.allocator.retire_pool(1);
        run.allocator.retire_pool(2);
        run.allocator.empty_cache(&mut run.events);
        run.check(&device);
        prop_assert_eq!(run.reserved, 0);
    }

    /// An allocator that starts with the memory of another goes on as the other does.
    #[test]
    fn started_allocator_goes_on_alike(
        expandable in any::<bool>(),
        before in prop::collection::vec(step(0), 1..60),
        after in prop::collection::vec((crate::steps::size(), 0..3u32), 1..20),
    ) {
        let settings = Settings { expandable_segments: expandable, ..Settings::default() };
        let mut first = Run {
            allocator: Allocator::new(settings.clone(), &Device::default()),
            live: Vec::new(),
            pending: Vec::new(),
            events: Vec::new(),
            reserved: 0,
            peak: 0,
        };
        let mut starts = BTreeSet::new();
        for &step in &before {
            // A snapshot does not have the unmapped start of an address range.
            if expandable && matches!(step, Step::EmptyCache) {
                continue;
            }
            first.step(step, false);
            note_starts(&mut starts, &std::mem::take(&mut first.events));
        }
        let mut second = Allocator::new(settings, &Device::default());
        for segment in segments(&first.allocator, &starts) {
            second.start_with(&segment);
        }
        prop_assert_eq!(first.allocator.blocks(), second.blocks());
        prop_assert_eq!(first.allocator.reserved_parts(), second.reserved_parts());
        for (bytes, stream) in after {
            let request = Request { bytes, stream, pool: 0 };
            let id = first.allocator.malloc(request, &mut ()).unwrap();
            let other = second.malloc(request, &mut ()).unwrap();
            prop_assert_eq!(first.allocator.size_of(id), second.size_of(other));
            let [a, b] = [first.allocator.stats(), second.stats()];
            prop_assert_eq!(
                (a.reserved_bytes, a.active_bytes, a.requested_bytes),
                (b.reserved_bytes, b.active_bytes, b.requested_bytes)
            );
        }
    }
}

/// The segments of an allocator, as a snapshot has them.
fn segments(allocator: &Allocator, starts: &BTreeSet<u64>) -> Vec<StartSegment> {
    let mut all: Vec<StartSegment> = Vec::new();
    let mut end = 0;
    for block in allocator.blocks() {
        let is_new = block.address != end || starts.contains(&block.address);
        if is_new {
            all.push(StartSegment {
                address: block.address,
                stream: block.stream,
                pool: block.pool,
                is_small: block.is_small,
                is_expandable: block.is_expandable,
                blocks: Vec::new(),
            });
        }
        all.last_mut().expect("the first block starts a segment").blocks.push(StartBlock {
            size: block.size,
            requested: block.requested,
            state: block.state,
        });
        end = block.address + block.size;
    }
    all
}
