//! The ledger of graphs and pools, against what PyTorch itself said after each phase.

use crate::memory::{MIB, Memory};
use crate::{Device, bytes_of, load};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use vramscope_inference::{Ledger, LedgerSum, OnePool, ToldBy, WhatIf};
use vramscope_snapshot::PoolId;
use vramscope_trace::slicing::now;

fn ledger(device: &Device) -> Ledger {
    now(async |budget| {
        let model = WhatIf::new(device.evidence(), budget).await;
        let ledger = Ledger::of(device.evidence(), budget).await;
        let mut ledger = ledger.expect("captures or a cache");
        ledger.replay_in_one_pool(&model, budget).await;
        ledger
    })
}

/// What PyTorch said in a run of `engine.py`.
fn told(name: &str) -> Value {
    serde_json::from_slice(&bytes_of(format!("serving/{name}.stats.json"))).expect("JSON")
}

fn phases(told: &Value) -> &Vec<Value> {
    told["phases"].as_array().expect("a list")
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("a number, not {value}"))
}

/// Reserved and active bytes of a pool in a phase.
fn of_pool(phase: &Value, pool: PoolId) -> (u64, u64) {
    let of = &phase["pools"][format!("({}, {})", pool.0, pool.1)];
    (number(&of["reserved"]), number(&of["active"]))
}

fn total(sum: &LedgerSum) -> u64 {
    let LedgerSum { weights, caches, graphs, workspaces, activations, other, free, .. } = *sum;
    [weights, caches, graphs, workspaces, activations, other, free].iter().map(|part| part.0).sum()
}

/// `memory_snapshot()` after each capture of eight batch sizes says what its pool reserves and what
/// is active in it.
#[test]
fn pools_after_each_capture_are_those_of_pytorch() {
    for name in ["engine_one_pool", "engine_own_pools"] {
        let device = Device::new(load(format!("serving/{name}.pickle.gz")));
        let told = told(name);
        let ledger = ledger(&device);
        let after: Vec<&Value> = (phases(&told).iter())
            .filter(|phase| {
                phase["phase"].as_str().is_some_and(|name| name.starts_with("capture "))
            })
            .collect();
        assert_eq!((ledger.captures.len(), after.len()), (8, 8), "{name}");
        let mut before: BTreeMap<PoolId, (u64, u64)> = BTreeMap::new();
        for (capture, phase) in ledger.captures.iter().zip(after) {
            let pool = device.snapshot.pool(capture.pool).expect("a pool");
            let (reserved, active) = of_pool(phase, pool);
            assert_eq!((capture.reserved.0, capture.live.0), (reserved, active), "{name} {phase}");
            let (old, kept) = before.insert(pool, (reserved, active)).unwrap_or_default();
            assert_eq!((capture.added.0, capture.kept.0), (reserved - old, active - kept));
            assert!(capture.reused <= capture.used && capture.used.0 <= reserved);
            assert!(capture.added.0 > 0 || capture.reused == capture.used, "{name} {capture:?}");
            assert!(!capture.is_warm_up);
        }
        let end = phases(&told).last().expect("the end");
        for pool in &ledger.pools {
            let id = device.snapshot.pool(pool.pool).expect("a pool");
            assert_eq!((pool.reserved.0, pool.live.0), of_pool(end, id), "{name}");
        }
    }
}

#[test]
fn the_parts_of_an_engine_add_up_to_what_is_reserved() {
    for path in [
        "serving/engine_one_pool.pickle.gz",
        "serving/engine_own_pools.pickle.gz",
        "findings/graph_pools_stranded.pickle.gz",
        "findings/g15_graph_per_shape.pickle.gz",
    ] {
        let device = Device::new(load(path));
        let ledger = ledger(&device);
        assert_eq!(total(&ledger.peak), ledger.peak.reserved.0, "{path}");
        assert_eq!(ledger.peak.reserved.0 as i64, device.trace.reserved_band.peak, "{path}");
        assert_eq!(total(&ledger.end), ledger.end.reserved.0, "{path}");
        let pools: u64 = ledger.pools.iter().map(|pool| pool.reserved.0).sum();
        assert!(ledger.end.graphs.0 <= pools, "{path}: workspaces count apart");
    }
    let told = told("engine_one_pool");
    let ledger = ledger(&Device::new(load("serving/engine_one_pool.pickle.gz")));
    let stats = &told["at_dump"];
    assert_eq!(ledger.end.reserved.0, number(&stats["reserved_bytes.all.current"]));
    assert_eq!(ledger.peak.reserved.0, number(&stats["reserved_bytes.all.peak"]));
}

/// The engine ran with one pool for all captures, too. The replay of a run with eight pools says
/// what that one reserved.
#[test]
fn one_pool_is_predicted_to_the_byte() {
    for (own, one) in
        [("engine_own_pools", "engine_one_pool"), ("engine_own_pools_29", "engine_one_pool_29")]
    {
        let device = Device::new(load(format!("serving/{own}.pickle.gz")));
        let predicted = ledger(&device).one_pool.expect("eight pools");
        let truth = told(one);
        let end = phases(&truth).last().expect("the end");
        let peak = number(&truth["at_dump"]["reserved_bytes.all.peak"]);
        let OnePool { pools, one, largest_first, peak_with_one, .. } = predicted;
        // The engine captures the largest batch first.
        assert_eq!(largest_first, one);
        assert_eq!((pools, one.0), (8, of_pool(end, PoolId(0, 1)).0), "{own}");
        assert_eq!(peak_with_one.0, peak, "{own}");
        let own = told(own);
        let end = phases(&own).last().expect("the end");
        let reserved: u64 = (1..=8).map(|n| of_pool(end, PoolId(n, 0)).0).sum();
        assert_eq!(predicted.reserved.0, reserved);
        assert_eq!(predicted.peak.0, number(&own["at_dump"]["reserved_bytes.all.peak"]));
    }
    let shared = ledger(&Device::new(load("serving/engine_one_pool.pickle.gz")));
    assert_eq!(shared.one_pool, None, "it has one already");
}

/// The engine also captured the smallest batch first, into one pool and into eight.
#[test]
fn the_order_of_captures_is_replayed() {
    let device = Device::new(load("serving/engine_own_ascending_29.pickle.gz"));
    let predicted = ledger(&device).one_pool.expect("eight pools");
    let (ascending, descending) = (told("engine_ascending_29"), told("engine_one_pool_29"));
    let reserved = |told: &Value| {
        let end = phases(told).last().expect("the end");
        of_pool(end, PoolId(0, 1)).0
    };
    assert_eq!(predicted.one.0, reserved(&ascending));
    assert_eq!(predicted.largest_first.0, reserved(&descending));
    assert!(predicted.largest_first < predicted.one);
    let peak = number(&ascending["at_dump"]["reserved_bytes.all.peak"]);
    assert_eq!(predicted.peak_with_one.0, peak);
}

/// Blocks of the engine's cache are 2 x 1024 x 16 x 1024 x 2 bytes each, one for each layer.
#[test]
fn the_cache_and_the_profile_run_of_an_engine_are_told() {
    let device = Device::new(load("serving/engine_one_pool.pickle.gz"));
    let ledger = ledger(&device);
    let [cache] = ledger.caches.as_slice() else { panic!("one, not {:?}", ledger.caches) };
    assert_eq!((cache.blocks, cache.bytes.0), (4, 4 * 64 * MIB));
    assert_eq!(ledger.peak.caches, cache.bytes);
    let told = told("engine_one_pool");
    let active = |name: &str| {
        let phase = phases(&told).iter().find(|phase| phase["phase"] == name);
        number(&phase.expect("a phase")["active_bytes"])
    };
    let grown = active("initialize_kv_cache") - active("empty_cache");
    assert_eq!(cache.bytes.0, grown);
    assert_eq!(ledger.end.weights.0, active("load_model"));
    // The profile run has 2,048 tokens: the logits alone are 2048 x 16000 x 2 bytes.
    let profile = ledger.profile.expect("before the cache");
    assert!(profile.bytes.0 > 2048 * 16000 * 2, "{profile:?}");
    assert!(profile.event < cache.first, "{profile:?}");
    assert!(ledger.work.event > cache.last);
}

fn told_by(memory: &Memory) -> Vec<(ToldBy, u64)> {
    let ledger = ledger(&memory.device());
    ledger.captures.iter().map(|capture| (capture.told_by, capture.added.0 / MIB)).collect()
}

/// Work of some sizes at lines 1, 2, .. in a segment of a graph's pool, freed at the end.
fn work(memory: &mut Memory, segment: usize, sizes: &[u64]) {
    let mut at = 0;
    let mut blocks = Vec::new();
    for (line, &size) in (1..).zip(sizes) {
        blocks.push(memory.alloc(segment, at, size, line));
        at += size;
    }
    for block in blocks {
        memory.free(block);
    }
}

#[test]
fn captures_are_told_from_layers() {
    // Other work lies between two captures.
    let mut memory = Memory::with_pools(true);
    let segment = memory.reserve_in((1, 0), 7, 40, 1);
    work(&mut memory, segment, &[20, 10]);
    memory.fill(100, 9);
    work(&mut memory, segment, &[10, 5]);
    assert_eq!(told_by(&memory), [(ToldBy::Pool, 40), (ToldBy::Others, 0)]);
    // The lines repeat with other sizes.
    let mut memory = Memory::with_pools(true);
    let segment = memory.reserve_in((1, 0), 7, 40, 1);
    work(&mut memory, segment, &[20, 10]);
    work(&mut memory, segment, &[10, 5]);
    work(&mut memory, segment, &[4, 2]);
    let by = ToldBy::Repetition;
    assert_eq!(told_by(&memory), [(ToldBy::Pool, 40), (by, 0), (by, 0)]);
    // Layers of one model repeat them with equal sizes.
    let mut memory = Memory::with_pools(true);
    let segment = memory.reserve_in((1, 0), 7, 40, 1);
    work(&mut memory, segment, &[20, 10]);
    work(&mut memory, segment, &[20, 10]);
    assert_eq!(told_by(&memory), [(ToldBy::Pool, 40)]);
}

/// `torch.cuda.graph` returns cached memory when it begins.
#[test]
fn a_capture_is_told_by_what_its_beginning_returns() {
    let mut memory = Memory::with_pools(true);
    let cached = [memory.reserve(30, 8), memory.reserve(30, 8)];
    let segment = memory.reserve_in((1, 0), 7, 40, 1);
    for (line, cached) in (1u32..).zip(cached) {
        memory.give_back(cached, 8);
        memory.frames(json!([
            {"name": "empty_cache", "filename": "/lib/torch/cuda/memory.py", "line": 1},
            {"name": "__enter__", "filename": "/lib/torch/cuda/graphs.py", "line": 2},
            {"name": "capture", "filename": "engine.py", "line": line},
        ]));
        work(&mut memory, segment, &[20, 10 + u64::from(line)]);
    }
    assert_eq!(told_by(&memory), [(ToldBy::Pool, 40), (ToldBy::Stack, 0)]);
}

/// A tree of graphs runs once in its pool before it copies inputs and records.
#[test]
fn a_warm_up_of_a_tree_of_graphs_is_no_capture() {
    let mut memory = Memory::with_pools(true);
    let segment = memory.reserve_in((1, 0), 7, 80, 1);
    let runs = ["run_eager", "_allocate_and_copy_recording_inputs", "_record", "run_eager"];
    for (at, run) in (0..).zip(runs) {
        memory.alloc(segment, at * 10, 10, 1);
        memory.frames(json!([
            {"name": "forward", "filename": "model.py", "line": at},
            {"name": run, "filename": "/lib/torch/_inductor/cudagraph_trees.py", "line": 5},
        ]));
    }
    let ledger = ledger(&memory.device());
    let found: Vec<(bool, u32)> =
        ledger.captures.iter().map(|of| (of.is_warm_up, of.allocations)).collect();
    assert_eq!(found, [(true, 1), (false, 2), (true, 1)]);
    assert_eq!(ledger.pools[0].captures, 1);
    assert_eq!(ledger.one_more, None, "one capture tells no range");
}
