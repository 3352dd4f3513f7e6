//! Replays a changed run through the allocator's model.

use super::lives::{Life, Lives, Return, Span};
use super::{Applied, Rest};
use crate::claims::changes::Recipe;
use crate::step_phases::{CategoryBytes, StepPhase};
use serde::{Deserialize, Serialize};
use vramscope_allocator::{AddressOrder, Allocator, Device, Request, Settings};
use vramscope_trace::slicing::{Budget, STRIDE};

/// A run after recipes.
#[derive(Clone, Debug)]
pub struct ChangedRun {
    lives: Vec<Life>,
    spans: Vec<Span>,
    calls: Vec<Call>,
    /// How the step that failed was completed.
    pub rest: Rest,
    /// What each recipe found.
    pub applied: Vec<Applied>,
    /// The part of the memory that must stay free for [`Outcome::Fits`], in percent.
    margin_percent: u64,
    /// The settings of the recording.
    own: Settings,
    /// Whether the program is changed.
    has_recipes: bool,
    /// How far reserved memory can lie below and above the replay, in permille.
    reserved_permille: [u64; 2],
    /// Whether blocks move in time.
    moves: bool,
}

/// Whether a changed program goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// With a margin of at least the measured error.
    Fits,
    /// Within that margin: too close to tell.
    FitsBarely,
    /// A request fails.
    Short,
    /// The rest of the failed step is not known, and what is known fits.
    Unknown,
}

/// What a changed run needs. All sizes are in bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangedAnswer {
    /// The peak of `active_bytes`.
    pub active_peak: u64,
    /// The phase and step of that peak. Step 0 is the first.
    pub peak_in: (StepPhase, u32),
    /// The peak of `reserved_bytes`: with the memory that was given if the run goes through, else
    /// without a limit.
    pub reserved_peak: u64,
    /// Where that lies, over orders of equal addresses and of moved requests.
    pub reserved_range: [u64; 2],
    /// Whether it goes through with the memory that was given; `None` without a limit.
    pub fits: Option<Outcome>,
    /// The phase and step of the request that fails.
    pub fails_in: Option<(StepPhase, u32)>,
    /// How often the allocator returned all free memory and tried again, with the memory given.
    pub flushes: u64,
    /// Active bytes in the course of the run: the highest of each of at most
    /// [`ChangedRun::CURVE_POINTS`] equal parts of its calls.
    pub curve: Vec<u64>,
}

/// A call in time order.
#[derive(Clone, Copy, Debug)]
enum What {
    Free(u32),
    Return(Return),
    Malloc(u32),
}

#[derive(Clone, Copy, Debug)]
struct Call {
    at: f64,
    what: What,
}

impl What {
    /// At equal times frees come first.
    fn order(self) -> (u8, u32) {
        match self {
            Self::Free(block) => (0, block),
            Self::Return(_) => (1, 0),
            Self::Malloc(block) => (2, block),
        }
    }
}

/// One replay.
#[derive(Default)]
struct Replayed {
    active_peak: u64,
    reserved_peak: u64,
    peak_at: f64,
    fails_at: Option<f64>,
    flushes: u64,
    curve: Vec<u64>,
}

/// Margins in percent, from the errors that were measured over twins.
const MARGIN: u64 = 3;
const MARGIN_OF_MOVES: u64 = 8;
/// What is added where no step is whole: the order of the requests that complete it is not known,
/// nor the layers that are missing.
const MARGIN_OF_REST: u64 = 4;
const MARGIN_OF_LAYERS: u64 = 2;
/// How far reserved memory can lie below and above the replay, in permille: it was measured over
/// twins. The order of the requests that a recipe moves is not known, and more gaps come than the
/// replay has.
const RESERVED_OF_SIZES: [u64; 2] = [20, 35];
const RESERVED_OF_MOVES: [u64; 2] = [50, 90];

impl ChangedRun {
    /// The most points of a curve.
    pub const CURVE_POINTS: usize = 128;

    pub(super) fn new(
        lives: Lives,
        rest: Rest,
        own: Settings,
        applied: Vec<Applied>,
        recipes: &[Recipe],
    ) -> Self {
        let mut calls = Vec::with_capacity(2 * lives.all.len());
        for (index, life) in (0..).zip(&lives.all) {
            if !life.is_real() {
                continue;
            }
            calls.push(Call { at: life.begin, what: What::Malloc(index) });
            if !life.stays() {
                calls.push(Call { at: life.end, what: What::Free(index) });
            }
        }
        let returns = lives.returns.iter();
        calls.extend(returns.map(|&(at, what)| Call { at, what: What::Return(what) }));
        calls.sort_by(|a, b| {
            a.at.total_cmp(&b.at).then_with(|| a.what.order().cmp(&b.what.order()))
        });
        let moves = recipes.iter().any(|recipe| recipe.change.moves_blocks);
        let is_completed = rest != Rest::Whole;
        let is_changed = !recipes.is_empty() || is_completed;
        Self {
            lives: lives.all,
            spans: lives.spans,
            calls,
            rest,
            applied,
            own,
            has_recipes: !recipes.is_empty(),
            margin_percent: match (moves, rest) {
                (true, Rest::Forward) => MARGIN_OF_MOVES + MARGIN_OF_LAYERS,
                (true, _) => MARGIN_OF_MOVES,
                (false, Rest::Backward | Rest::Forward) => MARGIN + MARGIN_OF_REST,
                (false, _) if is_changed => MARGIN,
                (false, _) => 0,
            },
            reserved_permille: match (moves, is_changed) {
                (true, _) => RESERVED_OF_MOVES,
                (false, true) => RESERVED_OF_SIZES,
                (false, false) => [0; 2],
            },
            moves,
        }
    }

    /// The peak of `active_bytes`, by the sizes of blocks alone: much faster than a replay, and at
    /// most as high.
    pub fn active_peak(&self, settings: &Settings) -> u64 {
        let (mut active, mut peak) = (0_u64, 0_u64);
        for call in &self.calls {
            match call.what {
                What::Malloc(block) => {
                    active += settings.round(self.lives[block as usize].bytes);
                    peak = peak.max(active);
                }
                What::Free(block) => active -= settings.round(self.lives[block as usize].bytes),
                What::Return(_) => {}
            }
        }
        peak
    }

    /// The peak of `active_bytes` in a replay without a limit.
    pub async fn replayed_active_peak(&self, settings: &Settings, budget: &mut Budget) -> u64 {
        self.replay(settings, None, AddressOrder::Ascending, budget).await.active_peak
    }

    /// Requested bytes by category where they are most.
    pub fn at_peak(&self) -> CategoryBytes {
        at_peak(&self.lives)
    }

    /// What the run needs under settings, and whether it goes through with `available` bytes.
    pub async fn answer(
        &self,
        settings: &Settings,
        available: Option<u64>,
        budget: &mut Budget,
    ) -> ChangedAnswer {
        let free = self.replay(settings, None, AddressOrder::Ascending, budget).await;
        let mut range = [free.reserved_peak; 2];
        if !self.moves {
            for order in [AddressOrder::Descending, AddressOrder::Mixed] {
                let peak = self.replay(settings, None, order, budget).await.reserved_peak;
                range = [range[0].min(peak), range[1].max(peak)];
            }
        }
        let [below, above] = self.reserved_permille;
        let low = (range[0] - range[0] / 1000 * below).max(free.active_peak);
        range = [low, range[1].saturating_add(range[1] / 1000 * above)];
        let mut answer = ChangedAnswer {
            active_peak: free.active_peak,
            peak_in: self.place(free.peak_at),
            reserved_peak: free.reserved_peak,
            reserved_range: range,
            fits: None,
            fails_in: None,
            flushes: 0,
            curve: free.curve,
        };
        if let Some(available) = available {
            self.judge(&mut answer, settings, available, budget).await;
        }
        answer
    }

    /// The margin in percent. With other settings each block lies elsewhere, so a changed program
    /// leaves other gaps than its replay has.
    fn margin(&self, settings: &Settings) -> u64 {
        if self.has_recipes && *settings != self.own {
            self.margin_percent.max(MARGIN_OF_MOVES)
        } else {
            self.margin_percent
        }
    }

    /// Whether the run goes through with `available` bytes, with the margin of
    /// [`Outcome::Fits`].
    pub async fn fits(&self, settings: &Settings, available: u64, budget: &mut Budget) -> bool {
        let less = available - available / 100 * self.margin(settings);
        let order = AddressOrder::Ascending;
        self.active_peak(settings) <= less
            && self.replay(settings, Some(less), order, budget).await.fails_at.is_none()
    }

    /// The memory with which the run goes through, to about a sixty-fourth of what addresses and
    /// order can change. It takes six replays.
    pub async fn least(
        &self,
        answer: &ChangedAnswer,
        settings: &Settings,
        budget: &mut Budget,
    ) -> u64 {
        let (mut low, mut high) = (answer.active_peak, answer.reserved_peak);
        for _ in 0..6 {
            let middle = u64::midpoint(low, high);
            let replayed =
                self.replay(settings, Some(middle), AddressOrder::Ascending, budget).await;
            if replayed.fails_at.is_some() {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }

    async fn judge(
        &self,
        answer: &mut ChangedAnswer,
        settings: &Settings,
        available: u64,
        budget: &mut Budget,
    ) {
        let order = AddressOrder::Ascending;
        let exact = self.replay(settings, Some(available), order, budget).await;
        answer.flushes = exact.flushes;
        // Where memory is short, the allocator returns what it caches.
        if exact.fails_at.is_none() && answer.reserved_peak > available {
            let peak = exact.reserved_peak;
            let [low, high] = answer.reserved_range.map(|bytes| bytes.min(available));
            answer.reserved_peak = peak;
            answer.reserved_range = [low.min(peak), high.max(peak)];
        }
        answer.fails_in = exact.fails_at.map(|at| self.place(at));
        let fits = if exact.fails_at.is_some() {
            Outcome::Short
        } else {
            let less = available - available / 100 * self.margin(settings);
            let close = self.replay(settings, Some(less), order, budget).await;
            match close.fails_at {
                _ if self.rest == Rest::Unknown => Outcome::Unknown,
                Some(_) => Outcome::FitsBarely,
                None => Outcome::Fits,
            }
        };
        answer.fits = Some(fits);
    }

    /// The phase and step at a time.
    fn place(&self, time: f64) -> (StepPhase, u32) {
        let after = self.spans.partition_point(|span| span.begin <= time);
        let span = after.checked_sub(1).map(|at| &self.spans[at]);
        span.map_or((StepPhase::Other, 0), |span| (span.phase, span.step.max(0) as u32))
    }

    async fn replay(
        &self,
        settings: &Settings,
        available: Option<u64>,
        order: AddressOrder,
        budget: &mut Budget,
    ) -> Replayed {
        let available = available.unwrap_or(u64::MAX);
        let device = Device { available, order, ..Device::default() };
        let mut allocator = Allocator::new(settings.clone(), &device);
        let mut ids = vec![None; self.lives.len()];
        let per_point = self.calls.len().div_ceil(Self::CURVE_POINTS).max(1);
        let mut replayed = Replayed::default();
        for (strides, calls) in self.calls.chunks(STRIDE).enumerate() {
            budget.charge(16 * calls.len() as u64).await;
            for (at, call) in calls.iter().enumerate() {
                match call.what {
                    What::Free(block) => {
                        if let Some(id) = ids[block as usize].take() {
                            allocator.free(id);
                        }
                    }
                    What::Return(Return::Everything) => allocator.empty_cache(&mut ()),
                    What::Return(Return::Pool(pool)) => allocator.release_pool(pool, &mut ()),
                    What::Malloc(block) => {
                        let Life { bytes, stream, pool, .. } = self.lives[block as usize];
                        let request = Request { bytes, stream, pool };
                        let Ok(id) = allocator.malloc(request, &mut ()) else {
                            replayed.fails_at = Some(call.at);
                            return replayed.with(&allocator);
                        };
                        ids[block as usize] = Some(id);
                        let active = allocator.stats().active_bytes;
                        if active > replayed.active_peak {
                            (replayed.active_peak, replayed.peak_at) = (active, call.at);
                        }
                    }
                }
                let point = (strides * STRIDE + at) / per_point;
                let active = allocator.stats().active_bytes;
                match replayed.curve.get_mut(point) {
                    Some(most) => *most = active.max(*most),
                    None => replayed.curve.push(active),
                }
            }
        }
        replayed.with(&allocator)
    }
}

/// Requested bytes by category where they are most.
pub(crate) fn at_peak(lives: &[Life]) -> CategoryBytes {
    let mut changes: Vec<(f64, bool, usize)> = Vec::with_capacity(2 * lives.len());
    for (index, life) in lives.iter().enumerate().filter(|(_, life)| life.is_real()) {
        changes.push((life.begin, true, index));
        changes.push((life.end, false, index));
    }
    changes.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let (mut live, mut best): (CategoryBytes, CategoryBytes) = Default::default();
    let (mut sum, mut most) = (0, 0);
    for (_, enters, index) in changes {
        let life = &lives[index];
        let of = &mut live[life.category as usize];
        if enters {
            *of += life.bytes;
            sum += life.bytes;
        } else {
            *of -= life.bytes;
            sum -= life.bytes;
        }
        if sum > most {
            (most, best) = (sum, live);
        }
    }
    best
}

impl Replayed {
    fn with(mut self, allocator: &Allocator) -> Self {
        let stats = allocator.stats();
        self.active_peak = stats.active_peak;
        self.reserved_peak = stats.reserved_peak;
        self.flushes = stats.num_alloc_retries;
        self
    }
}
