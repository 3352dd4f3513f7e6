//! What another configuration would have reserved: the calls of a recording, replayed through
//! [`vramscope_allocator`].
//!
//! The same replay with the recording's own settings comes first. Only where it meets the recording
//! are there predictions.

mod bursts;
mod capacity;
mod private;
mod program;
mod replay;
mod settings;

pub use capacity::Capacity;
pub use settings::{SettingError, parse_settings, recorded_settings, settings_text};

use crate::findings::Evidence;
use crate::slicing::Budget;
use program::Program;
use replay::{Replayed, Run};
use vramscope_allocator::{AddressOrder, Device, LARGE_SEGMENT, SMALL_SEGMENT, Settings};

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
}

impl WhatIf {
    /// Replays a device's window with its own settings.
    pub async fn new(cx: Evidence<'_>, budget: &mut Budget) -> Self {
        let program = Program::of(cx, budget).await;
        let settings = recorded_settings(cx.snapshot, &cx.trace.device);
        let page = settings.expandable_segments.then_some([SMALL_SEGMENT, LARGE_SEGMENT]);
        let capacity = Capacity::of(cx.trace, &program, page);
        let calibration = calibrate(&program, &settings, capacity, budget).await;
        Self { program, settings, calibration }
    }
}

/// Replays a program with its own settings.
async fn calibrate(
    program: &Program,
    settings: &Settings,
    capacity: Capacity,
    budget: &mut Budget,
) -> Calibration {
    let mut limits = vec![capacity.available()];
    if let Capacity::Bounded { at_least, below } = capacity {
        limits.extend([at_least, below - 1]);
    }
    let mut best: Option<Calibration> = None;
    for available in limits {
        let device = Device { available, order: AddressOrder::Ascending, ..Device::default() };
        let run = Run {
            keeps_segments: true,
            has_recorded_addresses: true,
            fails_as_recorded: capacity == Capacity::Changing,
            ends_at_oom: false,
            ..Run::of(settings, device)
        };
        let replayed = run.replay(program, budget).await;
        let calibration = Calibration {
            recorded_reserved_peak: program.reserved_peak(),
            simulated_reserved_peak: replayed.reserved_peak,
            first_difference: first_difference(program, &replayed),
            capacity,
        };
        let is_equal = calibration.is_equal();
        if best.is_none() || is_equal {
            best = Some(calibration);
        }
        if is_equal {
            break;
        }
    }
    best.unwrap_or(Calibration {
        recorded_reserved_peak: 0,
        simulated_reserved_peak: 0,
        first_difference: None,
        capacity,
    })
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
        if bytes != model && matches!(step.call, program::Call::Malloc { .. }) {
            return Some((step.event, model, bytes));
        }
    }
    None
}
