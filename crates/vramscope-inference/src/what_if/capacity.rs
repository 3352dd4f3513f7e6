//! The memory that PyTorch can have on the recorded device, as far as the recording shows it.

use super::bursts::Gives;
use super::program::{Call, Program};
use vramscope_allocator::{SMALL_SIZE, Settings};
use vramscope_trace::Trace;

/// How many of the smallest returns of memory may have followed a refusal by the driver.
const MOST_REFUSALS: usize = 4;

/// What is known of the memory that PyTorch can have on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capacity {
    /// An allocation failed. The limit is the sum of reserved bytes and bytes that the driver
    /// reported free.
    Exact {
        /// Bytes.
        bytes: u64,
    },
    /// The driver refused memory and the allocator made room: less than `below`, and at least what
    /// was reserved at most.
    Bounded {
        /// The reserved peak, in bytes.
        at_least: u64,
        /// Bytes of the smallest reservation that the driver refused.
        below: u64,
    },
    /// The bounds contradict each other: the limit changed during the recording, as it does when
    /// another program uses the device.
    Changing,
    /// The recording never met a limit.
    Unlimited,
    /// The recording never met a limit, or bounds it, and the bytes were measured when the snapshot
    /// was written. Or the limit of the process was, and is below what the recording shows.
    Measured {
        /// Bytes.
        bytes: u64,
    },
    /// The recording never met a limit, and another rank of its run did.
    OtherRank {
        /// The other rank.
        rank: u32,
        /// Bytes.
        bytes: u64,
    },
}

/// The most bytes that PyTorch could reserve on a device when the snapshot was written.
#[derive(Clone, Copy, Debug)]
pub struct MeasuredMemory {
    /// The memory of the device.
    pub total: u64,
    /// What PyTorch had reserved in this process.
    pub reserved: u64,
    /// Free bytes, as the driver reported them.
    pub free: u64,
    /// The limit of the process, such as by `set_per_process_memory_fraction`; `None` if no limit
    /// is known.
    pub limit: Option<u64>,
}

impl MeasuredMemory {
    /// What PyTorch could have in this process: what it had reserved, and what was free, within its
    /// limit.
    pub fn available(&self) -> u64 {
        let available = self.reserved.saturating_add(self.free);
        available.min(self.limit.unwrap_or(u64::MAX))
    }
}

impl Capacity {
    /// The bytes to replay the recording with.
    pub(crate) fn available(self) -> u64 {
        match self {
            Self::Exact { bytes } | Self::OtherRank { bytes, .. } | Self::Measured { bytes } => {
                bytes
            }
            Self::Bounded { at_least, below } => at_least + (below - at_least) / 2,
            Self::Changing | Self::Unlimited => u64::MAX,
        }
    }

    /// The measured bytes, unless the recording shows the limit itself or contradicts them. A
    /// failed allocation shows what the device has free: the limit of the process may be lower.
    pub(super) fn measured(self, measured: MeasuredMemory, reserved_peak: u64) -> Option<Self> {
        let (available, limit) = (measured.available(), measured.limit);
        let bytes = match self {
            Self::Unlimited => Some(available).filter(|&bytes| reserved_peak <= bytes),
            Self::Bounded { at_least, below } => {
                Some(available).filter(|&bytes| at_least <= bytes && bytes < below)
            }
            Self::Exact { bytes: shown } => {
                limit.filter(|&limit| reserved_peak <= limit && limit < shown)
            }
            _ => None,
        };
        bytes.map(|bytes| Self::Measured { bytes })
    }

    /// What the recording shows.
    pub(crate) fn of(trace: &Trace, program: &Program, settings: &Settings) -> Self {
        let at_least = program.reserved_peak();
        let below = refused(program, settings).min().unwrap_or(u64::MAX);
        let mut exact: Option<u64> = None;
        for oom in &trace.ooms {
            let Some(free) = oom.device_free else { continue };
            // With as much memory free as it takes, the program's own limit was in the way.
            if free.0 >= segment_for(oom.requested.0, settings) {
                continue;
            }
            let room = program.reserved_after(oom.event.0).saturating_add(free.0);
            if exact.is_some_and(|known| known != room) {
                return Self::Changing;
            }
            exact = Some(room);
        }
        match exact {
            Some(bytes) if at_least <= bytes && bytes < below => Self::Exact { bytes },
            None if below == u64::MAX => Self::Unlimited,
            None if at_least < below => Self::Bounded { at_least, below },
            Some(_) | None => Self::Changing,
        }
    }

    /// What the recording may show when the allocator collects garbage: not every return of memory
    /// follows a refusal then.
    pub(super) fn with_garbage_collection(
        trace: &Trace,
        program: &Program,
        settings: &Settings,
    ) -> Vec<Self> {
        let at_least = program.reserved_peak();
        let rooms = trace.ooms.iter().filter_map(|oom| {
            let free = oom.device_free?.0;
            Some(program.reserved_after(oom.event.0).saturating_add(free))
        });
        let mut all: Vec<Self> = rooms.take(1).map(|bytes| Self::Exact { bytes }).collect();
        // A refusal is above the peak. What is below was a collection.
        if let Some(below) = refused(program, settings).filter(|&bytes| bytes > at_least).min() {
            all.push(Self::Bounded { at_least, below });
        }
        all.push(Self::Unlimited);
        all
    }
}

/// The reserved bytes that could not be had: before the allocator returned memory, and when a
/// request failed.
fn refused(program: &Program, settings: &Settings) -> impl Iterator<Item = u64> {
    let own = program.own.all.iter().filter(|burst| burst.gives == Gives::ToMakeRoom);
    let returned = own.filter_map(move |burst| {
        let reserved = program.reserved_after(burst.events.start.checked_sub(1)?);
        Some(reserved.saturating_add(wanted(program, burst.events.end, settings)?))
    });
    let failed = program.steps.iter().filter_map(move |step| {
        let Call::Failed { index } = step.call else { return None };
        let bytes = program.failed[index as usize].bytes;
        Some(program.reserved_after(step.event).saturating_add(segment_for(bytes, settings)))
    });
    returned.chain(failed)
}

/// The bytes that the driver refused before the allocator made room until `event`.
fn wanted(program: &Program, event: u32, settings: &Settings) -> Option<u64> {
    let next = program.steps.partition_point(|step| step.event < event);
    let asked = program.steps[next..].iter().find_map(|step| program.asked_by(step))?;
    Some(segment_for(asked, settings))
}

/// The most bytes that the allocator asks the driver for to serve a request.
fn segment_for(asked: u64, settings: &Settings) -> u64 {
    let size = settings.round(asked);
    if !settings.expandable_segments {
        return settings.segment_size(size);
    }
    // An expandable segment maps the pages that are missing for a block. They are at most as many
    // as the block needs, wherever it begins.
    let page = settings.page(size <= SMALL_SIZE);
    size.checked_next_multiple_of(page).unwrap_or(size).saturating_add(page)
}

/// What `set_per_process_memory_fraction` may have allowed, in bytes, most likely first: the
/// allocator collected garbage when more than `threshold` of it was reserved, and not before.
pub(super) fn allowed(program: &Program, threshold: f64) -> Vec<u64> {
    let bursts = program.own.all.iter().filter(|burst| burst.gives == Gives::ToMakeRoom);
    // What was reserved when memory was returned. Some of it made room after a refusal, below the
    // threshold.
    let mut highs: Vec<u64> = bursts
        .filter_map(|burst| Some(program.reserved_after(burst.events.start.checked_sub(1)?)))
        .collect();
    highs.sort_unstable();
    highs.dedup();
    let steps = 8;
    let between = highs.iter().take(MOST_REFUSALS).flat_map(|&high| {
        // What was reserved when the allocator last asked the driver without a collection.
        let low = program.reserved.windows(2).filter(|pair| pair[0].1 < pair[1].1);
        let low = low.map(|pair| pair[0].1).filter(|&bytes| bytes < high).max().unwrap_or(0);
        (0..=steps).map(move |i| low + (high - low) * i / steps)
    });
    between.map(|bytes| (bytes as f64 / threshold) as u64).collect()
}
