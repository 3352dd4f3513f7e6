//! The requests of several private pools in one, replayed.

use super::bursts::Gives;
use super::program::{Call, Program};
use super::replay::Run;
use super::{Capacity, WhatIf};
use vramscope_allocator::{Device, ReservedParts};
use vramscope_snapshot::PoolIndex;
use vramscope_trace::slicing::Budget;
use vramscope_units::Bytes;

/// Several private pools, and one that serves their requests in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnePool {
    /// The number of pools.
    pub pools: usize,
    /// Bytes that they reserve at the end.
    pub reserved: Bytes,
    /// Bytes that one pool reserves then.
    pub one: Bytes,
    /// The peak of `reserved_bytes`.
    pub peak: Bytes,
    /// The same with one pool.
    pub peak_with_one: Bytes,
    /// Whether addresses decide which block serves a request. Those of the replay are not the
    /// driver's, so the figures may differ a little.
    pub is_estimate: bool,
}

impl OnePool {
    /// Bytes that one pool saves at the peak.
    pub fn saved(&self) -> Bytes {
        Bytes(self.peak.0.saturating_sub(self.peak_with_one.0))
    }
}

impl WhatIf {
    /// Replays the requests of private pools in one of them.
    ///
    /// `None` with fewer than two pools, where the model does not meet the recording, or where the
    /// program gives a pool's memory back: one pool would have given back less.
    pub async fn in_one_pool(&self, pools: &[PoolIndex], budget: &mut Budget) -> Option<OnePool> {
        let numbers: Vec<u32> = pools.iter().map(|pool| u32::from(pool.0) + 1).collect();
        let (&into, others) = numbers.split_first()?;
        let is_given_back = self.program.own.all.iter().any(|burst| {
            burst.gives != Gives::ToMakeRoom && burst.pools.iter().any(|p| numbers.contains(p))
        });
        let is_unknown = self.calibration.capacity == Capacity::Changing;
        if others.is_empty() || !self.calibration.is_equal() || is_given_back || is_unknown {
            return None;
        }
        let device = Device {
            available: self.calibrated,
            allowed: self.calibration.allowed,
            ..Device::default()
        };
        // Recorded addresses belong to recorded segments. One pool has fewer of them.
        let run =
            Run { keeps_segments: true, ends_at_oom: false, ..Run::of(&self.settings, device) };
        let apart = run.replay(&self.program, budget).await;
        let program = in_one_pool(&self.program, &numbers, into);
        let together = run.replay(&program, budget).await;
        let of = |parts: &[((u32, u32), ReservedParts)]| {
            let own = parts.iter().filter(|((pool, _), _)| numbers.contains(pool));
            own.map(|(_, parts)| parts.total()).sum::<u64>()
        };
        // Without recorded addresses the replay must still meet the recording.
        let recorded = self.program.reserved_after(u32::MAX);
        let is_met = apart.reserved_peak == self.calibration.recorded_reserved_peak
            && apart.reserved_end == recorded;
        is_met.then(|| OnePool {
            pools: numbers.len(),
            reserved: Bytes(of(&apart.parts)),
            one: Bytes(of(&together.parts)),
            peak: Bytes(apart.reserved_peak),
            peak_with_one: Bytes(together.reserved_peak),
            is_estimate: together.ties > 0,
        })
    }
}

/// The program, with the requests of some pools in one.
fn in_one_pool(program: &Program, numbers: &[u32], into: u32) -> Program {
    let mut program = program.clone();
    let is_own = |pool: u32| numbers.contains(&pool);
    for asked in program.asked.iter_mut().filter(|asked| is_own(asked.pool)) {
        asked.pool = into;
    }
    for segment in program.start.iter_mut().filter(|segment| is_own(segment.pool)) {
        segment.pool = into;
    }
    program.steps.retain(|step| !matches!(step.call, Call::EmptyPool { pool } if is_own(pool)));
    program
}
