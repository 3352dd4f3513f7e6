//! The least memory with which a run goes through.

use super::program::Program;
use super::replay::{Replay, Replayed, Run};
use std::borrow::Cow;
use vramscope_allocator::Device;
use vramscope_trace::slicing::Budget;

/// The step of the search, in bytes.
const STEP: u64 = 2 << 20;

/// The least memory with which a run goes through, in bytes: by bisection in steps of 2 MiB between
/// the most active bytes and what is reserved without a limit.
///
/// `unlimited` is the run without a limit. `known` is its replay with the limit `available`.
/// `follows` says that what a fraction of the memory allows follows the limit.
pub(super) async fn least_memory(
    unlimited: &Run<'_>,
    program: &Program,
    known: &Replayed,
    available: Option<u64>,
    follows: bool,
    budget: &mut Budget,
) -> u64 {
    let free = if available.is_none() && known.ooms.is_empty() {
        Cow::Borrowed(known)
    } else {
        Cow::Owned(unlimited.replay(program, budget).await)
    };
    let (mut low, mut high) = (free.active_peak.div_ceil(STEP), free.reserved_peak.div_ceil(STEP));
    if let Some(available) = available {
        if known.ooms.is_empty() {
            high = high.min(available / STEP);
        } else {
            low = low.max(available / STEP);
        }
    }
    let run = Run { ends_at_oom: true, ends_at_failed: true, ..unlimited.clone() };
    let mut trials = Trials { run: &run, program, follows, common: Replay::new(&run, program) };
    // `high` fits, and what lies below `low` does not.
    while low < high {
        let middle = low + (high - low) / 2;
        trials.skip_to(low * STEP, &free, budget).await;
        if trials.fits(middle * STEP, budget).await {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    high * STEP
}

/// Replays of one run with different limits. They are equal until more is reserved than the lowest
/// limit, so that part runs once.
struct Trials<'a> {
    run: &'a Run<'a>,
    program: &'a Program,
    follows: bool,
    common: Replay<'a>,
}

impl Trials<'_> {
    /// Whether the limit decides also before it is met.
    fn depends_on_limit(&self) -> bool {
        self.follows && self.run.settings.garbage_collection_threshold > 0.0
    }

    /// Replays the part that is equal for all limits of at least `low` bytes.
    async fn skip_to(&mut self, low: u64, unlimited: &Replayed, budget: &mut Budget) {
        if self.depends_on_limit() || unlimited.reserved_start > low {
            return;
        }
        match unlimited.curve.iter().find(|(_, bytes)| *bytes > low) {
            Some(&(0, _)) => {}
            Some(&(event, _)) => self.common.run(Some(event - 1), budget).await,
            None => self.common.run(self.run.until, budget).await,
        }
    }

    /// Whether the run goes through with `available` bytes.
    async fn fits(&self, available: u64, budget: &mut Budget) -> bool {
        if self.depends_on_limit() || self.common.is_before_first_call() {
            let allowed = if self.follows { Some(available) } else { self.run.device.allowed };
            let device = Device { available, allowed, ..self.run.device };
            let run = Run { device, ..self.run.clone() };
            return run.replay(self.program, budget).await.ooms.is_empty();
        }
        let mut replay = self.common.clone();
        replay.set_available(available);
        replay.run(self.run.until, budget).await;
        replay.fits()
    }
}
