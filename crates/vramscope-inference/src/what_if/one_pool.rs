//! The requests of several private pools in one, replayed.

use super::bursts::Gives;
use super::program::{Call, Program, Step};
use super::replay::Run;
use super::{Capacity, WhatIf};
use std::ops::Range;
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
    /// Whether it depends on addresses of new segments, which only the driver knows. The figures are
    /// then the larger ones of two orders.
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
        let run = Run::as_recorded(&self.settings, device, false);
        let apart = run.replay(&self.program, budget).await;
        let of = |parts: &[((u32, u32), ReservedParts)]| {
            let own = parts.iter().filter(|((pool, _), _)| numbers.contains(pool));
            own.map(|(_, parts)| parts.total()).sum::<u64>()
        };
        let mut answers = Vec::new();
        for order in [Order::Rising, Order::Falling] {
            budget.charge(4 * self.program.steps.len() as u64).await;
            let program = in_one_pool(&self.program, &numbers, into, order);
            let together = run.replay(&program, budget).await;
            answers.push((together.reserved_peak, of(&together.parts)));
        }
        let (peak_with_one, one) = answers.iter().copied().max()?;
        Some(OnePool {
            pools: numbers.len(),
            reserved: Bytes(of(&apart.parts)),
            one: Bytes(one),
            peak: Bytes(apart.reserved_peak),
            peak_with_one: Bytes(peak_with_one),
            is_estimate: answers.windows(2).any(|pair| pair[0] != pair[1]),
        })
    }
}

/// How addresses of new segments of the one pool follow each other. The driver's are not known.
#[derive(Clone, Copy)]
enum Order {
    Rising,
    Falling,
}

/// The first address of these segments, far above those of recordings, and the space for each:
/// more than a device has.
const ADDRESSES: Range<u64> = 1 << 60..1 << 62;
const SPACE: u64 = 1 << 40;

/// The program, with the requests of some pools in one.
fn in_one_pool(program: &Program, numbers: &[u32], into: u32, order: Order) -> Program {
    let mut program = program.clone();
    let is_own = |pool: u32| numbers.contains(&pool);
    for asked in program.asked.iter_mut().filter(|asked| is_own(asked.pool)) {
        asked.pool = into;
    }
    for segment in program.start.iter_mut().filter(|segment| is_own(segment.pool)) {
        segment.pool = into;
    }
    // Other segments keep their recorded addresses. A segment serves the next request.
    let pool_of = |step: &Step| match step.call {
        Call::Malloc { block } => Some(program.asked[block as usize].pool),
        _ => None,
    };
    let serves_other = |event: u32| {
        let from = program.steps.partition_point(|step| step.event < event);
        program.steps[from..].iter().find_map(pool_of) != Some(into)
    };
    let mut addresses = program.segment_addresses.clone();
    addresses.retain(|&(event, _)| serves_other(event));
    let own = program.steps.iter().filter(|step| pool_of(step) == Some(into));
    let room = (ADDRESSES.end - ADDRESSES.start) / SPACE;
    addresses.extend((0..).zip(own).map(|(at, step)| {
        let offset = (at % room) * SPACE;
        match order {
            Order::Rising => (step.event, ADDRESSES.start + offset),
            Order::Falling => (step.event, ADDRESSES.end - SPACE - offset),
        }
    }));
    addresses.sort_by_key(|at| at.0);
    program.segment_addresses = addresses;
    program.steps.retain(|step| !matches!(step.call, Call::EmptyPool { pool } if is_own(pool)));
    program
}
