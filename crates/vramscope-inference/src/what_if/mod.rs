//! What another configuration would have reserved: the calls of a recording, replayed through
//! [`vramscope_allocator`].
//!
//! The same replay with the recording's own settings comes first. Only where it meets the recording
//! are there predictions.

mod bursts;
mod cache;
mod capacity;
mod host;
mod least;
mod one_pool;
mod private;
mod program;
mod replay;
mod scenario;
mod settings;

pub use capacity::{Capacity, MeasuredMemory};
pub use host::{HOST_SETTING_KEYS, HostChange, HostScenario, HostWhatIf, host_settings_text};
pub use one_pool::OnePool;
pub(crate) use private::PrivateSpans;
pub use scenario::{Question, Scenario, Search, SimulatedBasis};
use settings::releases;
pub use settings::{recorded_settings, recorded_text};
pub use vramscope_allocator::{
    Release, SETTING_KEYS, SettingCause, SettingError, parse_settings, settings_text,
    split_outside_brackets, unmodeled_settings,
};

use crate::evidence::Evidence;
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
    /// The memory of the device, in bytes, if it is known.
    total: Option<u64>,
}

/// What is known about a recording beside the file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Beside {
    /// The memory of the device when the snapshot was written.
    pub memory: Option<MeasuredMemory>,
    /// The release of PyTorch.
    pub release: Option<Release>,
}

impl WhatIf {
    /// Replays a device's window with its own settings.
    pub async fn new(cx: Evidence<'_>, budget: &mut Budget) -> Self {
        Self::with(cx, Beside::default(), budget).await
    }

    /// [`Self::new`], with what is known beside the file. Measured memory counts where the
    /// recording does not show the limit itself. Without a release, those that the file's keys
    /// allow are replayed, the newest first, and the first that meets the recording counts.
    pub async fn with(cx: Evidence<'_>, beside: Beside, budget: &mut Budget) -> Self {
        let program = Program::of(cx, budget).await;
        let settings = recorded_settings(cx.snapshot, &cx.trace.device);
        let possible = releases(cx.snapshot, &cx.trace.device);
        let possible = beside.release.map_or(possible, |release| vec![release]);
        let mut best = None;
        for release in possible {
            let settings = Settings { release, ..settings.clone() };
            let found = calibrated(cx, &program, &settings, beside.memory, budget).await;
            if found.0.is_equal() {
                best = Some((settings, found));
                break;
            }
            best.get_or_insert((settings, found));
        }
        let (settings, (calibration, calibrated)) = best.expect("there is at least one release");
        let total = beside.memory.map(|memory| memory.total);
        Self { program, settings, calibration, calibrated, total }
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

    /// The memory of the device, in bytes, if it was measured.
    pub fn total(&self) -> Option<u64> {
        self.total
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
        let device = device(self.calibrated, allowed, self.total);
        let run = Run {
            until: Some(until),
            ..Run::as_recorded(&self.settings, device, capacity == Capacity::Changing)
        };
        let parts = run.replay(program, budget).await.parts;
        let pool = |pool: u32| pool.checked_sub(1).map(|index| PoolIndex(index as u16));
        parts.into_iter().map(|((p, s), parts)| (pool(p), StreamId(s as u16), parts)).collect()
    }
}

/// Replays a program under settings, with each limit that the recording or the memory of the device
/// allows, until one meets the recording: the comparison, and the bytes that PyTorch could have.
async fn calibrated(
    cx: Evidence<'_>,
    program: &Program,
    settings: &Settings,
    measured: Option<MeasuredMemory>,
    budget: &mut Budget,
) -> (Calibration, u64) {
    let capacity = Capacity::of(cx.trace, program, settings);
    let peak = program.reserved_peak();
    let total = measured.map(|measured| measured.total);
    let measured = measured.and_then(|measured| capacity.measured(measured, peak));
    let mut limits: Vec<_> = measured.map(|limit| (limit, None)).into_iter().collect();
    // A limit in the settings, on a device whose memory is known.
    let part = fraction_of(settings, total);
    limits.extend(part.map(|bytes| (capacity, Some(bytes))));
    limits.push((capacity, None));
    if let Capacity::Bounded { at_least, below } = capacity {
        limits.extend([at_least, below - 1].map(|bytes| (Capacity::Exact { bytes }, None)));
    }
    if settings.garbage_collection_threshold > 0.0 {
        let allowed = capacity::allowed(program, settings.garbage_collection_threshold);
        for limit in Capacity::with_garbage_collection(cx.trace, program, settings) {
            limits.extend(allowed.iter().map(|&bytes| (limit, Some(bytes))));
        }
    }
    calibrate(program, settings, (capacity, total), &limits, budget).await
}

/// The device of a replay. Its size decides about address ranges and refusals only.
fn device(available: u64, allowed: Option<u64>, total: Option<u64>) -> Device {
    let usual = Device::default();
    Device { available, allowed, total: total.unwrap_or(usual.total), ..usual }
}

/// What `per_process_memory_fraction` allows, in bytes, if the memory of the device is known.
fn fraction_of(settings: &Settings, total: Option<u64>) -> Option<u64> {
    settings.allowed(total?)
}

/// Replays a program with its own settings, under each limit that the recording allows, until one
/// meets the recording.
async fn calibrate(
    program: &Program,
    settings: &Settings,
    (capacity, total): (Capacity, Option<u64>),
    limits: &[(Capacity, Option<u64>)],
    budget: &mut Budget,
) -> (Calibration, u64) {
    let mut first = None;
    // Without its limit: that is one of the limits, if the memory of the device is known.
    let settings = &Settings { per_process_memory_fraction: None, ..settings.clone() };
    for &(limit, allowed) in limits {
        let available = limit.available();
        let device = device(available, allowed, total);
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
