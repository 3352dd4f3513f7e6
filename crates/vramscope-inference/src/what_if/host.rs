//! What other settings would have pinned: the requests for pinned host memory, replayed through
//! [`HostAllocator`].
//!
//! As for devices, the replay with the recording's own settings comes first.

mod calls;
mod requests;

use super::{SettingCause, SettingError};
use crate::evidence::Evidence;
use calls::{Call, Calls};
use requests::{Asked, Size};
use rustc_hash::FxHashMap;
use vramscope_allocator::{HostAllocator, HostBlock, HostSettings};
use vramscope_snapshot::Snapshot;
use vramscope_trace::slicing::{Budget, STRIDE};

/// The keys of `PYTORCH_ALLOC_CONF` that [`HostWhatIf`] answers.
pub const HOST_SETTING_KEYS: [&str; 2] = [ROUND, CACHED];

const ROUND: &str = "pinned_max_round_threshold_mb";
const CACHED: &str = "pinned_max_cached_size_mb";

/// A change of the settings for pinned host memory. `None` leaves a setting as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostChange {
    /// `pinned_max_round_threshold_mb` in bytes.
    pub max_round_threshold: Option<u64>,
    /// `pinned_max_cached_size_mb` in bytes.
    pub max_cached_size: Option<u64>,
}

impl HostChange {
    /// The change of one key, if it is one of [`HOST_SETTING_KEYS`]. The value is a number of MiB.
    ///
    /// # Errors
    ///
    /// The value is no number of MiB.
    pub fn set(&mut self, key: &str, value: &str) -> Option<Result<(), SettingError>> {
        let field = match key {
            ROUND => &mut self.max_round_threshold,
            CACHED => &mut self.max_cached_size,
            _ => return None,
        };
        let bytes = value.parse::<u64>().ok().and_then(|mib| mib.checked_mul(1 << 20));
        Some(match bytes {
            Some(bytes) => {
                *field = Some(bytes);
                Ok(())
            }
            None => Err(SettingError {
                text: format!("{key}:{value}"),
                cause: SettingCause::Expected("a number of MiB, such as 64"),
            }),
        })
    }

    /// Whether no setting changes.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The settings with this change.
    pub fn of(&self, settings: HostSettings) -> HostSettings {
        HostSettings {
            max_round_threshold: self.max_round_threshold.unwrap_or(settings.max_round_threshold),
            max_cached_size: self.max_cached_size.unwrap_or(settings.max_cached_size),
        }
    }
}

/// The settings for pinned host memory in the form of `PYTORCH_ALLOC_CONF`; empty for the defaults.
pub fn host_settings_text(settings: &HostSettings) -> String {
    let each = [(ROUND, settings.max_round_threshold), (CACHED, settings.max_cached_size)];
    let set = each.iter().filter(|(_, bytes)| *bytes != u64::MAX);
    set.map(|(key, bytes)| format!("{key}:{}", bytes >> 20)).collect::<Vec<_>>().join(",")
}

/// The settings of a recording. Before PyTorch 2.13 there are none, and all requests are rounded.
fn recorded(snapshot: &Snapshot) -> HostSettings {
    let bytes = |key: &str| {
        let (_, value) = snapshot.settings.iter().find(|(name, _)| name == key)?;
        // -1 means no limit.
        value.parse::<i64>().ok().and_then(|value| u64::try_from(value).ok())
    };
    HostSettings {
        max_round_threshold: bytes("max_round_threshold").unwrap_or(u64::MAX),
        max_cached_size: bytes("max_cached_size").unwrap_or(u64::MAX),
    }
}

/// The requests for pinned memory of a recording, and how well the model reproduces it.
#[derive(Clone, Debug)]
pub struct HostWhatIf {
    calls: Calls,
    /// The recording's settings.
    pub settings: HostSettings,
    /// The recorded peak of pinned bytes.
    pub recorded_peak: u64,
    /// The model's.
    pub simulated_peak: u64,
    /// The first event after which they differ: the event, the model's bytes and the recorded ones.
    pub first_difference: Option<(u32, u64, u64)>,
}

/// The answer for other settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostScenario {
    /// The settings.
    pub settings: HostSettings,
    /// The lowest and the highest peak of pinned bytes that the unknown requests allow. Both are
    /// equal where they decide nothing.
    pub reserved_range: [u64; 2],
    /// The event of the higher; `None` for the state before the window.
    pub peak_event: Option<u32>,
    /// The peak of the bytes of live blocks, for the larger requests.
    pub active_peak: u64,
    /// Whether the file lacks a part of what decides: what was pinned before the window, or calls
    /// of `empty_cache` at which nothing was cached, where the other settings cache more.
    pub is_estimate: bool,
}

/// A replay.
#[derive(Default)]
struct Replayed {
    peak: u64,
    peak_event: Option<u32>,
    active_peak: u64,
    /// Pinned bytes after each call.
    after: Vec<u64>,
}

impl HostWhatIf {
    /// Reads the requests of the device `host`, and replays them with its own settings.
    pub async fn new(cx: Evidence<'_>, budget: &mut Budget) -> Self {
        let settings = recorded(cx.snapshot);
        let calls = Calls::of(cx, &settings, budget).await;
        let recorded_peak = u64::try_from(cx.trace.reserved_band.peak).unwrap_or(0);
        let mut model =
            Self { calls, settings, recorded_peak, simulated_peak: 0, first_difference: None };
        let replayed = model.replay(&settings, true, |asked| asked.high, budget).await;
        model.simulated_peak = replayed.peak;
        let differs = |(call, &bytes): (&(u32, Call, u64), &u64)| {
            (call.2 != bytes).then_some((call.0, bytes, call.2))
        };
        let first = model.calls.all.iter().zip(&replayed.after).find_map(differs);
        model.first_difference = model.calls.contradiction.or(first);
        model
    }

    /// Whether the model pins what the recording shows, after every call.
    pub fn is_equal(&self) -> bool {
        self.first_difference.is_none() && self.recorded_peak == self.simulated_peak
    }

    /// The answer for other settings; `None` if it depends on requests that the file does not have.
    pub async fn answer(
        &self,
        settings: HostSettings,
        budget: &mut Budget,
    ) -> Option<HostScenario> {
        budget.charge(self.calls.asked.len() as u64).await;
        let is_own = settings == self.settings;
        let size = |asked: &Asked| {
            if is_own { Size::One } else { asked.size(&self.settings, &settings) }
        };
        if self.calls.asked.iter().any(|asked| size(asked) == Size::Unknown) {
            return None;
        }
        let bound = |asked: &Asked, is_high: bool| match size(asked) {
            Size::Bounded { high, .. } if is_high => high,
            Size::Bounded { low, .. } => low,
            _ => asked.high,
        };
        let low = self.replay(&settings, is_own, |asked| bound(asked, false), budget).await;
        let high = self.replay(&settings, is_own, |asked| bound(asked, true), budget).await;
        Some(HostScenario {
            settings,
            reserved_range: [low.peak, high.peak],
            peak_event: high.peak_event,
            active_peak: high.active_peak,
            // Where nothing is cached, `empty_cache` leaves no event.
            is_estimate: !is_own
                && (self.calls.starts_late()
                    || settings.max_cached_size > self.settings.max_cached_size),
        })
    }

    /// Replays the calls. What was cached before the window stays only with `keeps_cache`.
    async fn replay(
        &self,
        settings: &HostSettings,
        keeps_cache: bool,
        request: impl Fn(&Asked) -> u64,
        budget: &mut Budget,
    ) -> Replayed {
        let mut allocator = HostAllocator::new(*settings);
        let mut held: FxHashMap<u32, HostBlock> = FxHashMap::default();
        for &(pool, size) in self.calls.cached.iter().filter(|_| keeps_cache) {
            let block = allocator.pin(pool, size);
            allocator.free(block);
        }
        for &(block, size) in &self.calls.live {
            let pool = self.calls.asked[block as usize].pool;
            held.insert(block, allocator.pin(pool, size));
        }
        let mut active = held.values().map(|block| block.size).sum::<u64>();
        let mut replayed = Replayed {
            peak: allocator.reserved_bytes(),
            active_peak: active,
            ..Replayed::default()
        };
        for calls in self.calls.all.chunks(STRIDE) {
            budget.charge(4 * calls.len() as u64).await;
            for &(event, call, _) in calls {
                match call {
                    Call::Allocate { block } | Call::Register { block } => {
                        let asked = &self.calls.asked[block as usize];
                        let got = match call {
                            Call::Allocate { .. } => allocator.allocate(asked.pool, request(asked)),
                            _ => allocator.pin(asked.pool, asked.high),
                        };
                        active += got.size;
                        held.insert(block, got);
                    }
                    Call::Free { block } | Call::Unregister { block } => {
                        let Some(got) = held.remove(&block) else { continue };
                        active -= got.size;
                        match call {
                            Call::Free { .. } => allocator.free(got),
                            _ => allocator.unpin(got),
                        }
                    }
                    Call::Empty { pool } => allocator.empty_cache(pool),
                }
                let reserved = allocator.reserved_bytes();
                replayed.active_peak = active.max(replayed.active_peak);
                if reserved > replayed.peak {
                    (replayed.peak, replayed.peak_event) = (reserved, Some(event));
                }
                replayed.after.push(reserved);
            }
        }
        replayed
    }
}
