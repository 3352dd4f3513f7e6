//! A question to the model, and its answer.

use super::least::least_memory;
use super::replay::Run;
use super::{Capacity, WhatIf, device, fraction_of};
use serde::{Deserialize, Serialize};
use vramscope_allocator::{AddressOrder, Device, Settings};
use vramscope_trace::slicing::Budget;

/// What to change about a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The allocator's settings.
    pub settings: Settings,
    /// The bytes that PyTorch can have on the device. `None` takes what the recording shows.
    pub available: Option<u64>,
    /// The memory of the device, in bytes. `None` takes what is known of the recording's device.
    pub total: Option<u64>,
    /// Leaves out the program's calls of `empty_cache`.
    pub without_empty_cache: bool,
    /// Frees blocks at once that wait for a stream.
    pub frees_at_once: bool,
    /// Ends the run after this event. Requests that failed before it in the recording do not count.
    pub until: Option<u32>,
    /// When to search for the least memory. It takes up to a dozen replays.
    pub least: Search,
}

/// When to search for the least memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// Never.
    Never,
    /// When memory runs out.
    WhenShort,
    /// Always.
    Always,
}

impl Question {
    /// The run as it was recorded.
    pub fn as_recorded(settings: &Settings) -> Self {
        Self {
            settings: settings.clone(),
            available: None,
            total: None,
            without_empty_cache: false,
            frees_at_once: false,
            until: None,
            least: Search::Always,
        }
    }
}

/// How a simulated number was obtained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum SimulatedBasis {
    /// By the model, from a complete recording.
    Simulated,
    /// By the model, from the blocks of the run as a change of the program makes them.
    Recipe,
    /// By the model, from the blocks that were live when the recording began. What the allocator
    /// had cached is not in the file.
    Estimate,
}

/// The answer to a [`Question`]. All sizes are in bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The question.
    pub question: Question,
    /// The peak of `reserved_bytes`; when memory runs out, until then.
    pub reserved_peak: u64,
    /// The lowest and the highest peak over three orders of addresses. Both equal
    /// `reserved_peak` when addresses decide nothing.
    pub reserved_range: [u64; 2],
    /// The event after which most was reserved; `None` for the state before the window.
    pub peak_event: Option<u32>,
    /// The peak of `active_bytes`.
    pub active_peak: u64,
    /// How often the allocator returned all free memory and tried again.
    pub flushes: u64,
    /// The events of requests that fail. A run ends at the first that the recording does not have.
    pub ooms: Vec<u32>,
    /// The memory that PyTorch must have for the run to go through, if it was searched.
    pub least: Option<u64>,
    /// How the numbers were obtained.
    pub basis: SimulatedBasis,
    /// Reserved bytes after each event that changes them.
    pub curve: Vec<(u32, u64)>,
}

impl Scenario {
    /// Whether no request fails.
    pub fn fits(&self) -> bool {
        self.ooms.is_empty()
    }

    /// The bytes that are missing for the run to go through.
    pub fn short_by(&self) -> Option<u64> {
        let available = self.question.available?;
        if self.fits() { Some(0) } else { Some(self.least?.saturating_sub(available)) }
    }
}

impl WhatIf {
    /// Answers a question.
    pub async fn answer(&self, mut question: Question, budget: &mut Budget) -> Scenario {
        let (until, least) = (question.until, question.least);
        let as_recorded = Question { until, least, ..Question::as_recorded(&self.settings) };
        let total = question.total.or(self.total);
        let part = fraction_of(&question.settings, total);
        // The limit in the settings is one of the device's.
        let plain = Settings { per_process_memory_fraction: None, ..question.settings.clone() };
        let is_as_recorded = question == as_recorded;
        let known = match self.calibration.capacity {
            Capacity::Exact { .. }
            | Capacity::Bounded { .. }
            | Capacity::Measured { .. }
            | Capacity::OtherRank { .. } => Some(self.calibrated),
            Capacity::Changing | Capacity::Unlimited => self.calibration.allowed,
        };
        let is_given = question.available.is_some();
        let allowed = |available: Option<u64>| match self.calibration.allowed {
            // What a fraction of the memory allows follows the memory that was asked for.
            Some(_) if is_given => available,
            allowed => allowed,
        };
        let allowed = |available| match (allowed(available), part) {
            (Some(shown), Some(part)) => Some(shown.min(part)),
            (shown, part) => shown.or(part),
        };
        question.available = question.available.or(known);
        question.available = match (question.available, part) {
            (Some(available), Some(part)) => Some(available.min(part)),
            (available, part) => available.or(part),
        };
        let keeps_segments = self.program.start.is_empty() || question.settings == self.settings;
        let run = |available: Option<u64>, order: AddressOrder| Run {
            keeps_segments,
            without_empty_cache: question.without_empty_cache,
            frees_at_once: question.frees_at_once,
            has_recorded_addresses: is_as_recorded,
            until,
            ..Run::of(
                &plain,
                Device {
                    order,
                    ..device(available.unwrap_or(u64::MAX), allowed(available), total)
                },
            )
        };
        let replayed =
            run(question.available, AddressOrder::Ascending).replay(&self.program, budget).await;
        let mut range = [replayed.reserved_peak; 2];
        if replayed.ties > 0 && !is_as_recorded {
            for order in [AddressOrder::Descending, AddressOrder::Mixed] {
                let peak = run(question.available, order).replay(&self.program, budget).await;
                range[0] = range[0].min(peak.reserved_peak);
                range[1] = range[1].max(peak.reserved_peak);
            }
        }
        let is_wanted = match least {
            Search::Never => false,
            Search::WhenShort => !replayed.ooms.is_empty(),
            Search::Always => true,
        };
        let least = if is_wanted {
            let unlimited = run(Some(u64::MAX), AddressOrder::Ascending);
            // A limit in the settings changes what fits, not what the run needs.
            let device = match part {
                Some(_) => Device { allowed: None, ..unlimited.device },
                None => unlimited.device,
            };
            let needed = Settings { throw_on_cudamalloc_oom: false, ..plain.clone() };
            let unlimited = Run { settings: &needed, device, ..unlimited };
            let follows = is_given && self.calibration.allowed.is_some();
            Some(
                least_memory(
                    &unlimited,
                    &self.program,
                    &replayed,
                    question.available,
                    follows,
                    budget,
                )
                .await,
            )
        } else {
            None
        };
        Scenario {
            reserved_peak: replayed.reserved_peak,
            reserved_range: range,
            peak_event: replayed.peak_event,
            active_peak: replayed.active_peak,
            flushes: replayed.flushes,
            ooms: replayed.ooms,
            least,
            basis: if keeps_segments {
                SimulatedBasis::Simulated
            } else {
                SimulatedBasis::Estimate
            },
            curve: replayed.curve,
            question,
        }
    }
}

impl Capacity {
    /// The bytes that PyTorch can have, if the recording shows it.
    pub fn known(self) -> Option<u64> {
        match self {
            Self::Exact { .. }
            | Self::Bounded { .. }
            | Self::Measured { .. }
            | Self::OtherRank { .. } => Some(self.available()),
            Self::Changing | Self::Unlimited => None,
        }
    }
}
