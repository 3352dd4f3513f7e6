//! What another configuration would have reserved: the calls of a recording, replayed through
//! [`vramscope_allocator`].
//!
//! The same replay with the recording's own settings comes first. Only where it meets the recording
//! are there predictions.

mod bursts;
mod capacity;
mod host;
mod least;
mod private;
mod program;
mod replay;
mod scenario;
mod settings;

pub use capacity::{Capacity, MeasuredMemory};
pub use host::{HOST_SETTING_KEYS, HostChange, HostScenario, HostWhatIf, host_settings_text};
pub use scenario::{Question, Scenario, Search, SimulatedBasis};
pub use settings::{
    SETTING_KEYS, SettingError, parse_settings, recorded_settings, settings_text,
    split_outside_brackets,
};

use crate::findings::Evidence;
use program::{Call, Program};
use replay::{Replayed, Run};
use vramscope_allocator::{Device, ReservedParts, Settings};
use vramscope_snapshot::{PoolIndex, StreamId};
use vramscope_trace::slicing::Budget;

/// The comparison of the model with the recording, under the recording's own settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calibration {
    /// The recorded peak of `reserved_bytes`.
    pub recorded_reserved_peak: u64,
    /// That of the model.
    pub simulated_reserved_peak: u64,
    /// The first event after which the model and the recording differ in reserved bytes, and both
    /// numbers: those of the model and of the recording.
    pub first_difference: Option<(u32, u64, u64)>,
    /// What PyTorch can have on the device.
    pub capacity: Capacity,
    /// The bytes that `set_per_process_memory_fraction` allowed, when garbage collections show it.
    pub allowed: Option<u64>,
}

impl Calibration {
    /// Whether the model reserves what the recording shows, after every event.
    pub fn is_equal(&self) -> bool {
        self.first_difference.is_none()
            && self.recorded_reserved_peak == self.simulated_reserved_peak
    }
}

/// A device's program, its settings, and how well the model reproduces it.
#[derive(Clone, Debug)]
pub struct WhatIf {
    program: Program,
    /// The recording's settings.
    pub settings: Settings,
    /// The comparison with the recording.
    pub calibration: Calibration,
    /// The bytes that PyTorch could have in the replay that was compared.
    calibrated: u64,
}

impl WhatIf {
    /// Replays a device's window with its own settings.
    pub async fn new(cx: Evidence<'_>, budget: &mut Budget) -> Self {
        Self::with_capacity(cx, None, budget).await
    }

    /// [`Self::new`], with what PyTorch could have on the device when the snapshot was written, if
    /// that was measured. It counts where the recording does not show the limit itself.
    pub async fn with_capacity(
        cx: Evidence<'_>,
        measured: Option<MeasuredMemory>,
        budget: &mut Budget,
    ) -> Self {
        let program = Program::of(cx, budget).await;
        let settings = recorded_settings(cx.snapshot, &cx.trace.device);
        let capacity = Capacity::of(cx.trace, &program, &settings);
        let peak = program.reserved_peak();
        let measured = measured.and_then(|measured| capacity.measured(measured, peak));
        let mut limits: Vec<_> = measured.map(|limit| (limit, None)).into_iter().collect();
        limits.push((capacity, None));
        if let Capacity::Bounded { at_least, below } = capacity {
            limits.extend([at_least, below - 1].map(|bytes| (Capacity::Exact { bytes }, None)));
        }
        if settings.garbage_collection_threshold > 0.0 {
            let allowed = capacity::allowed(&program, settings.garbage_collection_threshold);
            for limit in Capacity::with_garbage_collection(cx.trace, &program, &settings) {
                limits.extend(allowed.iter().map(|&bytes| (limit, Some(bytes))));
            }
        }
        let (calibration, calibrated) =
            calibrate(&program, &settings, capacity, &limits, budget).await;
        Self { program, settings, calibration, calibrated }
    }

    /// The same on a device with the limit of another rank. `None` if the recording shows its own
    /// limit, or reserved more than that.
    pub fn with_limit_of(&self, rank: u32, bytes: u64) -> Option<Self> {
        let is_possible = self.calibration.capacity == Capacity::Unlimited
            && self.calibration.recorded_reserved_peak <= bytes;
        is_possible.then(|| {
            let capacity = Capacity::OtherRank { rank, bytes };
            let calibration = Calibration { capacity, ..self.calibration.clone() };
            Self { calibration, calibrated: bytes, ..self.clone() }
        })
    }

    /// Whether blocks were live before the window. What the allocator had cached by then is not in
    /// the file, so other settings have no exact answer.
    pub fn starts_late(&self) -> bool {
        !self.program.start.is_empty()
    }

    /// The bytes of memory that the model itself takes, without what a replay takes meanwhile.
    pub fn heap_bytes(&self) -> usize {
        self.program.heap_bytes()
    }

    /// Whether the program calls `empty_cache`.
    pub fn calls_empty_cache(&self) -> bool {
        self.program.steps.iter().any(|step| matches!(step.call, Call::EmptyCache))
    }

    /// Whether frees wait for a stream.
    pub fn has_pending_frees(&self) -> bool {
        self.program.steps.iter().any(|step| matches!(step.call, Call::FreeLater { .. }))
    }

    /// The number of the private pool of a block of the trace; 0 is the default pool.
    pub(crate) fn pool_of(&self, block: u32) -> u32 {
        self.program.asked[block as usize].pool
    }

    /// The events at which the program returns cached memory: all of it, or that of a pool.
    pub(crate) fn returned(&self) -> impl Iterator<Item = (u32, Option<u32>)> {
        self.program.steps.iter().filter_map(|step| match step.call {
            Call::EmptyCache => Some((step.event, None)),
            Call::EmptyPool { pool } => Some((step.event, Some(pool))),
            _ => None,
        })
    }

    /// What the reserved memory was used for at its peak, by pool and stream. The parts add up to
    /// the peak if the calibration is equal.
    pub async fn parts_at_peak(
        &self,
        budget: &mut Budget,
    ) -> Vec<(Option<PoolIndex>, StreamId, ReservedParts)> {
        let Calibration { capacity, allowed, .. } = self.calibration;
        let at_peak = self.program.peak_slot.checked_sub(1);
        // Segment events precede the call that causes them.
        let until = at_peak.map_or(0, |event| {
            let is_reservation = self.program.reserved.binary_search_by_key(&event, |at| at.0);
            if is_reservation.is_err() {
                return event;
            }
            let next = self.program.steps.partition_point(|step| step.event < event);
            self.program.steps.get(next).map_or(event, |step| step.event)
        });
        let is_before = at_peak.is_none();
        let empty = Program { steps: Vec::new(), ..self.program.clone() };
        let program = if is_before { &empty } else { &self.program };
        let device = Device { available: self.calibrated, allowed, ..Device::default() };
        let run = Run {
            until: Some(until),
            ..Run::as_recorded(&self.settings, device, capacity == Capacity::Changing)
        };
        let parts = run.replay(program, budget).await.parts;
        let pool = |pool: u32| pool.checked_sub(1).map(|index| PoolIndex(index as u16));
        parts.into_iter().map(|((p, s), parts)| (pool(p), StreamId(s as u16), parts)).collect()
    }
}

/// Replays a program with its own settings, under each limit that the recording allows, until one
/// meets the recording.
async fn calibrate(
    program: &Program,
    settings: &Settings,
    capacity: Capacity,
    limits: &[(Capacity, Option<u64>)],
    budget: &mut Budget,
) -> (Calibration, u64) {
    let mut first = None;
    for &(limit, allowed) in limits {
        let available = limit.available();
        let device = Device { available, allowed, ..Device::default() };
        let run = Run::as_recorded(settings, device, limit == Capacity::Changing);
        let replayed = run.replay(program, budget).await;
        let calibration = Calibration {
            recorded_reserved_peak: program.reserved_peak(),
            simulated_reserved_peak: replayed.reserved_peak,
            first_difference: first_difference(program, &replayed),
            capacity: match limit {
                Capacity::Measured { .. } => limit,
                _ if allowed.is_some() => limit,
                _ => capacity,
            },
            allowed,
        };
        if calibration.is_equal() {
            return (calibration, available);
        }
        first.get_or_insert((calibration, available));
    }
    first.expect("there is at least one limit")
}

/// The first call after which reserved bytes differ.
fn first_difference(program: &Program, replayed: &Replayed) -> Option<(u32, u64, u64)> {
    let (mut recorded, mut simulated) = (program.reserved.iter(), replayed.curve.iter());
    let (mut next_recorded, mut next_simulated) = (recorded.next(), simulated.next());
    let (mut bytes, mut model) = (program.reserved_start, program.reserved_start);
    for step in &program.steps {
        while let Some(&(event, after)) = next_recorded
            && event <= step.event
        {
            (bytes, next_recorded) = (after, recorded.next());
        }
        while let Some(&(event, after)) = next_simulated
            && event <= step.event
        {
            (model, next_simulated) = (after, simulated.next());
        }
        // Events of segments precede the call that causes them, and follow no other.
        if bytes != model && matches!(step.call, Call::Malloc { .. }) {
            return Some((step.event, model, bytes));
        }
    }
    None
}
