//! Replays a changed run through the allocator's model.

mod judge;

use super::lives::{Life, Return, Span};
use super::order::Order;
use super::{Applied, Editable, Rest, scaled};
use crate::claims::changes::Recipe;
use crate::step_phases::{CategoryBytes, StepPhase};
use serde::{Deserialize, Serialize};
use vramscope_allocator::{AddressOrder, Allocator, Device, Request, Settings};
use vramscope_trace::slicing::{Budget, STRIDE, filled, strides};

/// A run after recipes.
#[derive(Clone, Debug)]
pub struct ChangedRun<'a> {
    lives: &'a [Life],
    order: &'a Order,
    spans: &'a [Span],
    returns: &'a [(f64, Return)],
    /// How the step that failed was completed.
    pub rest: Rest,
    /// What each recipe found.
    pub applied: Vec<Applied>,
    /// The part of the memory that must stay free for [`Outcome::Fits`], in percent.
    margin_percent: u64,
    /// The settings of the recording.
    own: &'a Settings,
    /// Whether the program is changed.
    has_recipes: bool,
    /// How far reserved memory can lie below and above the replay, in permille.
    reserved_permille: [u64; 2],
    /// Whether blocks move in time.
    moves: bool,
    /// The measured error of the peak in percent, and whether it counts: a training pass was seen.
    error_percent: (Option<f64>, bool),
    reading: Reading,
}

/// Which sizes blocks have, where the file can be read in two ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// No block has two.
    Only,
    First,
    Other,
}

/// Whether a changed program goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// With a margin of at least the measured error.
    Fits,
    /// Within that margin, or with one of two readings of the file: too close to tell.
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
    /// Where that lies: within the measured error, and over the readings of the file.
    pub active_range: [u64; 2],
    /// The measured error of the peak, in percent. `None` if it was not measured, if no training
    /// pass was seen, and where readings of the file disagree by more.
    pub error_percent: Option<f64>,
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

/// A call of the allocator.
#[derive(Clone, Copy, Debug)]
enum What {
    Free(u32),
    Return(Return),
    Malloc(u32),
}

/// The calls of a run with their times. At equal times frees come first, then returns of cached
/// memory.
struct Calls<'a> {
    lives: &'a [Life],
    frees: &'a [u32],
    returns: &'a [(f64, Return)],
    /// The next block.
    born: u32,
}

impl Iterator for Calls<'_> {
    type Item = (f64, What);

    fn next(&mut self) -> Option<Self::Item> {
        while self.lives.get(self.born as usize).is_some_and(|life| !life.is_real()) {
            self.born += 1;
        }
        let birth = self.lives.get(self.born as usize).map(|life| life.begin);
        let before = |time: f64, other: Option<f64>| other.is_none_or(|other| time <= other);
        let returned = self.returns.first().map(|&(at, _)| at);
        if let [block, rest @ ..] = self.frees {
            let death = self.lives[*block as usize].end;
            if before(death, birth) && before(death, returned) {
                self.frees = rest;
                return Some((death, What::Free(*block)));
            }
        }
        if let [(at, what), rest @ ..] = self.returns
            && before(*at, birth)
        {
            self.returns = rest;
            return Some((*at, What::Return(*what)));
        }
        self.born += 1;
        Some((birth?, What::Malloc(self.born - 1)))
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
/// How far reserved memory can lie below and above the replay, in permille: it was measured over
/// twins. The order of the requests that a recipe moves is not known, and more gaps come than the
/// replay has.
const RESERVED_OF_SIZES: [u64; 2] = [20, 35];
const RESERVED_OF_MOVES: [u64; 2] = [50, 90];

impl<'a> ChangedRun<'a> {
    /// The most points of a curve.
    pub const CURVE_POINTS: usize = 128;

    /// The blocks of the run, by birth.
    pub(crate) fn lives(&self) -> &'a [Life] {
        self.lives
    }

    /// `lives` are the blocks of `run` after `recipes`.
    pub(super) fn new(
        run: &'a Editable,
        lives: &'a [Life],
        order: &'a Order,
        applied: Vec<Applied>,
        recipes: &[Recipe],
        is_sure: bool,
    ) -> Self {
        let rest = run.rest;
        let moves = recipes.iter().any(|recipe| recipe.change.moves_blocks);
        let is_completed = rest != Rest::Whole;
        let is_changed = !recipes.is_empty() || is_completed;
        Self {
            lives,
            order,
            spans: &run.lives.spans,
            returns: &run.lives.returns,
            rest,
            applied,
            own: &run.settings,
            has_recipes: !recipes.is_empty(),
            margin_percent: match (moves, rest) {
                (true, Rest::Forward) => MARGIN_OF_MOVES + MARGIN_OF_REST,
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
            error_percent: (Recipe::error_percent(recipes), run.facts.training().next().is_some()),
            reading: if is_sure { Reading::Only } else { Reading::First },
        }
    }

    /// The run with the other reading of its blocks; `None` if all have one.
    fn other(&self) -> Option<Self> {
        let has_other = self.reading == Reading::First;
        has_other.then(|| Self { reading: Reading::Other, ..self.clone() })
    }

    fn bytes(&self, life: &Life) -> u64 {
        match self.reading {
            Reading::Other => scaled(life.bytes, life.other.into()),
            Reading::Only | Reading::First => life.bytes,
        }
    }

    fn calls(&self) -> Calls<'a> {
        Calls { lives: self.lives, frees: &self.order.frees, returns: self.returns, born: 0 }
    }

    /// The peak of `active_bytes`, by the sizes of blocks alone: much faster than a replay, and at
    /// most as high.
    pub async fn active_peak(&self, settings: &Settings, budget: &mut Budget) -> u64 {
        let (mut active, mut peak) = (0_u64, 0_u64);
        let bytes = |block: u32| settings.round(self.bytes(&self.lives[block as usize]));
        for (at, (_, what)) in self.calls().enumerate() {
            if at.is_multiple_of(STRIDE) {
                budget.charge(2 * STRIDE as u64).await;
            }
            match what {
                What::Malloc(block) => {
                    active += bytes(block);
                    peak = peak.max(active);
                }
                What::Free(block) => active -= bytes(block),
                What::Return(_) => {}
            }
        }
        peak
    }

    /// Requested bytes that are live at a time.
    pub async fn live_at(&self, time: f64, budget: &mut Budget) -> u64 {
        let mut live = 0;
        for part in strides(self.lives.len()) {
            budget.charge(part.len() as u64).await;
            let of = self.lives[part].iter().filter(|life| life.begin <= time && time < life.end);
            live += of.map(|life| life.bytes).sum::<u64>();
        }
        live
    }

    /// The peaks of `active_bytes` and `reserved_bytes` in a replay without a limit.
    pub async fn free_peaks(&self, settings: &Settings, budget: &mut Budget) -> [u64; 2] {
        let free = self.replay(settings, None, AddressOrder::Ascending, budget).await;
        [free.active_peak, free.reserved_peak]
    }

    /// Requested bytes by category where they are most.
    pub async fn at_peak(&self, budget: &mut Budget) -> CategoryBytes {
        at_peak(self.lives, self.order, budget).await
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
        let (active_range, error_percent) =
            self.active_range(free.active_peak, settings, budget).await;
        let mut answer = ChangedAnswer {
            active_peak: free.active_peak,
            active_range,
            error_percent,
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
        let mut ids = filled(None, self.lives.len(), budget).await;
        let calls = self.order.births + self.order.frees.len() + self.returns.len();
        let per_point = calls.div_ceil(Self::CURVE_POINTS).max(1);
        let mut replayed = Replayed::default();
        for (nth, (at, what)) in self.calls().enumerate() {
            if nth.is_multiple_of(STRIDE) {
                budget.charge(16 * STRIDE as u64).await;
            }
            match what {
                What::Free(block) => {
                    if let Some(id) = ids[block as usize].take() {
                        allocator.free(id);
                    }
                }
                What::Return(Return::Everything) => allocator.empty_cache(&mut ()),
                What::Return(Return::Pool(pool)) => allocator.release_pool(pool, &mut ()),
                What::Malloc(block) => {
                    let life = &self.lives[block as usize];
                    let Life { stream, pool, .. } = *life;
                    let request = Request { bytes: self.bytes(life), stream, pool };
                    let Ok(id) = allocator.malloc(request, &mut ()) else {
                        replayed.fails_at = Some(at);
                        return replayed.with(&allocator);
                    };
                    ids[block as usize] = Some(id);
                    let active = allocator.stats().active_bytes;
                    if active > replayed.active_peak {
                        (replayed.active_peak, replayed.peak_at) = (active, at);
                    }
                }
            }
            let active = allocator.stats().active_bytes;
            match replayed.curve.get_mut(nth / per_point) {
                Some(most) => *most = active.max(*most),
                None => replayed.curve.push(active),
            }
        }
        replayed.with(&allocator)
    }
}

/// Requested bytes by category where they are most.
pub(crate) async fn at_peak(lives: &[Life], order: &Order, budget: &mut Budget) -> CategoryBytes {
    let (mut live, mut best): (CategoryBytes, CategoryBytes) = Default::default();
    let (mut sum, mut most) = (0, 0);
    let calls = Calls { lives, frees: &order.frees, returns: &[], born: 0 };
    for (nth, (_, what)) in calls.enumerate() {
        if nth.is_multiple_of(STRIDE) {
            budget.charge(2 * STRIDE as u64).await;
        }
        match what {
            What::Malloc(block) => {
                let life = &lives[block as usize];
                live[life.category as usize] += life.bytes;
                sum += life.bytes;
            }
            What::Free(block) => {
                let life = &lives[block as usize];
                live[life.category as usize] -= life.bytes;
                sum -= life.bytes;
            }
            What::Return(_) => {}
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
