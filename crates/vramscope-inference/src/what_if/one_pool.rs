//! The requests of several private pools in one, replayed.

use super::bursts::{Bursts, Gives};
use super::program::{ANY_SIZE, Call, Program, Step};
use super::replay::Run;
use super::{Capacity, WhatIf};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Range;
use vramscope_allocator::{AddressOrder, Device, ReservedParts};
use vramscope_snapshot::PoolIndex;
use vramscope_trace::slicing::Budget;
use vramscope_units::{Bytes, EventIndex};

/// Several private pools, and one that serves their requests in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnePool {
    /// The number of pools.
    pub pools: usize,
    /// Bytes that they reserve at the end.
    pub reserved: Bytes,
    /// Bytes that one pool reserves then.
    pub one: Bytes,
    /// Bytes that one pool reserves if the captures that used most come first, and nothing that a
    /// capture keeps is freed before the last.
    pub largest_first: Bytes,
    /// The peak of `reserved_bytes`.
    pub peak: Bytes,
    /// The same with one pool.
    pub peak_with_one: Bytes,
    /// Whether it depends on addresses of new segments, which only the driver knows. The figures
    /// are then the larger ones of two orders.
    pub is_estimate: bool,
}

impl WhatIf {
    /// Replays the requests of private pools in one of them: in their order, and with the largest
    /// captures first. `captures` have their first and last event, and the most bytes that they
    /// used.
    ///
    /// `None` with fewer than two pools, where the model does not meet the recording, or where the
    /// program gives a pool's memory back: one pool would have given back less.
    pub(crate) async fn in_one_pool(
        &self,
        pools: &[PoolIndex],
        captures: &[(EventIndex, EventIndex, Bytes)],
        budget: &mut Budget,
    ) -> Option<OnePool> {
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
        let captured = largest_first(&self.program, &numbers, captures);
        let mut answers = Vec::new();
        for order in [Order::Rising, Order::Falling] {
            budget.charge(4 * self.program.steps.len() as u64).await;
            let program = in_one_pool(&self.program, &numbers, into, order);
            let together = run.replay(&program, budget).await;
            let device = Device { order: order.of_driver(), ..Device::default() };
            let alone = Run { ends_at_oom: false, ..Run::of(&self.settings, device) };
            let reordered = alone.replay(&only(program, captured.clone()), budget).await;
            answers.push([together.reserved_peak, of(&together.parts), of(&reordered.parts)]);
        }
        let most = |at: usize| Bytes(answers.iter().map(|answer| answer[at]).max().unwrap_or(0));
        Some(OnePool {
            pools: numbers.len(),
            reserved: Bytes(of(&apart.parts)),
            one: most(1),
            largest_first: most(2),
            peak: Bytes(apart.reserved_peak),
            peak_with_one: most(0),
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

impl Order {
    /// The same where the model places all segments.
    fn of_driver(self) -> AddressOrder {
        match self {
            Self::Rising => AddressOrder::Ascending,
            Self::Falling => AddressOrder::Descending,
        }
    }
}

/// The first address of these segments, far above those of recordings, and the space for each:
/// more than a device has.
const ADDRESSES: Range<u64> = 1 << 60..1 << 62;
const SPACE: u64 = 1 << 40;

/// The calls of captures in pools, the captures that used most first. What is freed after a capture
/// is left out. Each call has its place in the order for its event.
fn largest_first(
    program: &Program,
    numbers: &[u32],
    captures: &[(EventIndex, EventIndex, Bytes)],
) -> Vec<Step> {
    let mut order: Vec<&(EventIndex, EventIndex, Bytes)> = captures.iter().collect();
    order.sort_by_key(|capture| Reverse(capture.2));
    let mut steps: Vec<Step> = Vec::new();
    for (first, last, _) in order {
        let from = program.steps.partition_point(|step| step.event < first.0);
        let until = program.steps.partition_point(|step| step.event <= last.0);
        let mut own: BTreeSet<u32> = BTreeSet::new();
        for step in &program.steps[from..until] {
            let is_own = match step.call {
                Call::Malloc { block } => {
                    let is_own = numbers.contains(&program.asked[block as usize].pool);
                    is_own && own.insert(block)
                }
                Call::FreeLater { block } | Call::Free { block } => own.contains(&block),
                _ => false,
            };
            if is_own {
                steps.push(Step { event: steps.len() as u32, call: step.call });
            }
        }
    }
    steps
}

/// The program with nothing but these calls.
fn only(program: Program, steps: Vec<Step>) -> Program {
    Program {
        steps,
        start: Vec::new(),
        start_blocks: Vec::new(),
        own: Bursts::default(),
        segments: Vec::new(),
        ..program
    }
}

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
    let mut segments = program.segments.clone();
    segments.retain(|&(event, ..)| serves_other(event));
    let own = program.steps.iter().filter(|step| pool_of(step) == Some(into));
    let room = (ADDRESSES.end - ADDRESSES.start) / SPACE;
    segments.extend((0..).zip(own).map(|(at, step)| {
        let offset = (at % room) * SPACE;
        match order {
            Order::Rising => (step.event, ADDRESSES.start + offset, ANY_SIZE),
            Order::Falling => (step.event, ADDRESSES.end - SPACE - offset, ANY_SIZE),
        }
    }));
    segments.sort_by_key(|at| at.0);
    program.segments = segments;
    program.steps.retain(|step| !matches!(step.call, Call::EmptyPool { pool } if is_own(pool)));
    program
}
