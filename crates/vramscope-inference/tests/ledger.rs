//! The ledger of graphs and pools, against what PyTorch itself said after each phase.

use crate::{Device, bytes_of, load};
use serde_json::Value;
use std::collections::BTreeMap;
use vramscope_inference::{Ledger, LedgerSum, OnePool, WhatIf};
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
