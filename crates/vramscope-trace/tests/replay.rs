//! Compares replays with a model of the allocator at every event. The recording starts at the first
//! event, or later.

use crate::model::{Block, Model, Segment, Settings, Use};
use crate::parse;
use proptest::prelude::*;
use std::collections::BTreeMap;
use vramscope_snapshot::{SegmentType, Snapshot};
use vramscope_trace::slicing::now;
use vramscope_trace::{
    Carving, Content, Exactness, Fragmentation, LiveSet, SegmentState, Trace, largest_free,
};

/// Converts the analysis' segments to the model's.
fn to_model(trace: &Trace, snapshot: &Snapshot, segments: &[SegmentState]) -> Vec<Segment> {
    let block = |p: &vramscope_trace::Piece| Block {
        address: p.address.0,
        size: p.size.0,
        used: match p.content {
            Content::Free => Use::Free,
            Content::Block { block, pending } => {
                let requested = trace.blocks[block as usize].bytes.0;
                if pending { Use::Pending { requested } } else { Use::Live { requested } }
            }
        },
    };
    let segment = |s: &SegmentState| Segment {
        stream: snapshot.stream(s.stream) as u64,
        small: s.segment_type == SegmentType::Small,
        expandable: s.is_expandable,
        blocks: s.pieces.iter().map(block).collect(),
    };
    segments.iter().map(segment).collect()
}

/// Marks pending blocks at the given addresses as live. A block whose free was requested before the
/// window has no request in the trace, so the analysis cannot know that it is pending.
fn without_requests(mut state: Vec<Segment>, addresses: &[u64]) -> Vec<Segment> {
    for block in state.iter_mut().flat_map(|s| &mut s.blocks) {
        if let Use::Pending { requested } = block.used
            && addresses.contains(&block.address)
        {
            block.used = Use::Live { requested };
        }
    }
    state
}

/// Whether the file does not determine the size of a block. Such a block was live before the window
/// and is freed in it, is larger than its request, and has free memory behind it.
fn has_undetermined_size(model: &Model, from: usize) -> bool {
    let is_live = |state: &[Segment], b: &Block| {
        state
            .iter()
            .flat_map(|s| &s.blocks)
            .any(|l| l.address == b.address && l.size == b.size && l.used != Use::Free)
    };
    let is_freed = |b: &Block| !model.states[from..].iter().all(|state| is_live(state, b));
    model.states[from].iter().flat_map(|s| s.blocks.windows(2)).any(|pair| {
        let (Use::Live { requested } | Use::Pending { requested }) = pair[0].used else {
            return false;
        };
        pair[0].size > requested.div_ceil(512) * 512
            && pair[1].used == Use::Free
            && is_freed(&pair[0])
    })
}

/// Compares the analysis of a recording from event `from` on with the model's states.
fn check(model: &Model, from: usize) {
    if from > 0 && has_undetermined_size(model, from) {
        return;
    }
    let snapshot = parse(model.snapshot(from).as_bytes());
    let Some(trace) = &Trace::all(&snapshot).into_iter().next() else { return };
    let carving = now(async |budget| Carving::new(&snapshot, trace, budget).await);
    assert_eq!(carving.warnings, [], "from event {from}");
    assert_eq!(carving.exactness, Exactness::Exact);
    let states = &model.states[from..];
    let pending_before: Vec<u64> = states[0]
        .iter()
        .flat_map(|s| &s.blocks)
        .filter(|b| matches!(b.used, Use::Pending { .. }))
        .map(|b| b.address)
        .collect();

    for (slot, state) in states.iter().enumerate() {
        let blocks = || state.iter().flat_map(|s| &s.blocks);
        let sum =
            |f: fn(&Use) -> bool| blocks().filter(|b| f(&b.used)).map(|b| b.size).sum::<u64>();
        assert_eq!(
            carving.active.at(slot as u32),
            sum(|u| *u != Use::Free),
            "active at slot {slot} from {from}"
        );
        let allocated = sum(|u| matches!(u, Use::Live { .. }));
        assert_eq!(
            carving.allocated.at(slot as u32),
            allocated,
            "allocated at slot {slot} from {from}"
        );
    }
    let cached = now(async |budget| Fragmentation::new(&snapshot, trace, &carving, budget).await);
    for (slot, state) in states.iter().enumerate() {
        let free =
            || state.iter().flat_map(|s| &s.blocks).filter(|b| b.used == Use::Free).map(|b| b.size);
        assert_eq!(cached.free.at(slot as u32), free().sum::<u64>(), "free at slot {slot}");
        assert_eq!(
            cached.largest.at(slot as u32),
            free().max().unwrap_or(0),
            "largest at slot {slot}"
        );
    }
    check_kinds(&snapshot, trace, &carving, states);

    for (slot, state) in states.iter().enumerate() {
        let found = to_model(
            trace,
            &snapshot,
            &now(async |budget| LiveSet::new(trace, slot as u32, budget).await).segments(&carving),
        );
        let expected = without_requests(state.clone(), &pending_before);
        assert_eq!(without_requests(found, &pending_before), expected, "slot {slot} from {from}");
    }
}

/// Compares the largest free range of each stream and size class with the model's states.
fn check_kinds(snapshot: &Snapshot, trace: &Trace, carving: &Carving, states: &[Vec<Segment>]) {
    let kinds = now(async |budget| largest_free(snapshot, trace, carving, budget).await);
    for (slot, state) in (0u32..).zip(states) {
        let mut found = BTreeMap::new();
        for of in &kinds {
            let kind = (snapshot.stream(of.kind.stream) as u64, of.kind.is_small);
            let most = found.entry(kind).or_insert(0);
            *most = of.at(slot).0.max(*most);
        }
        let mut expected: BTreeMap<_, u64> = found.keys().map(|&kind| (kind, 0)).collect();
        for segment in state {
            let free = segment.blocks.iter().filter(|b| b.used == Use::Free).map(|b| b.size);
            let most = expected.entry((segment.stream, segment.small)).or_default();
            *most = free.max().unwrap_or(0).max(*most);
        }
        assert_eq!(found, expected, "largest free range by stream and class at slot {slot}");
    }
}

/// A call of the program to the allocator. `which` selects a live or pending block.
#[derive(Clone, Copy, Debug)]
enum Call {
    Alloc { size: u64, stream: u64 },
    Free { which: usize, completes_at_once: bool },
    Complete { which: usize },
    EmptyCache,
}

fn call() -> impl Strategy<Value = Call> {
    let size = prop_oneof![
        1u64..5000,
        100_000u64..2_000_000,
        1_000_000u64..30_000_000,
        20_000_000u64..200_000_000
    ];
    prop_oneof![
        10 => (size, 0u64..2).prop_map(|(size, stream)| Call::Alloc { size, stream }),
        8 => (any::<usize>(), prop::bool::weighted(0.8))
            .prop_map(|(which, completes_at_once)| Call::Free { which, completes_at_once }),
        3 => any::<usize>().prop_map(|which| Call::Complete { which }),
        1 => Just(Call::EmptyCache),
    ]
}

fn run(settings: Settings, calls: &[Call]) -> Model {
    let mut model = Model::new(settings);
    let (mut live, mut pending) = (Vec::new(), Vec::new());
    for &call in calls {
        match call {
            Call::Alloc { size, stream } => live.push(model.alloc(size, stream)),
            Call::Free { which, completes_at_once } if !live.is_empty() => {
                let address = live.swap_remove(which % live.len());
                model.request(address);
                if completes_at_once { model.complete(address) } else { pending.push(address) }
            }
            Call::Complete { which } if !pending.is_empty() => {
                let address = pending.swap_remove(which % pending.len());
                model.complete(address);
            }
            Call::EmptyCache => model.empty_cache(),
            Call::Free { .. } | Call::Complete { .. } => {}
        }
    }
    model
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn replay_matches_the_model_at_every_event(
        calls in proptest::collection::vec(call(), 1..120),
        expandable in any::<bool>(),
        max_split in prop_oneof![Just(None), Just(Some(32u64 << 20))],
        start_percent in 0usize..100,
    ) {
        let max_split_size = max_split.filter(|_| !expandable);
        let model = run(Settings { expandable, max_split_size }, &calls);
        check(&model, 0);
        let events = model.states.len() - 1;
        check(&model, start_percent * events / 100);
    }
}
