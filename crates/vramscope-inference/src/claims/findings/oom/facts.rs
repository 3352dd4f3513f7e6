//! The facts of failed allocations, and the verdict that follows from them.

use super::aftermath::{Aftermath, Climb};
use crate::backward_site::BackwardSite;
use crate::category::{Category, Phase};
use crate::claims::findings::reserved::CostlySetting;
use crate::evidence::Evidence;
use vramscope_snapshot::{Frame, StackId};
use vramscope_trace::{FreeKind, FreeShare};
use vramscope_units::{Bytes, EventIndex};

/// A smaller loss of room is not reported: the driver itself uses some memory.
pub(super) const MIN_SHRUNK: u64 = 16 << 20;

/// Free memory of the driver beyond a new segment from which the driver cannot be what refused it.
const MIN_SPARE: u64 = 64 << 20;

/// Why an allocation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Live memory and the request exceed what PyTorch can have.
    Demand,
    /// Enough was free where the request may use it, in pieces that are too small.
    Fragmentation,
    /// Enough was free, but in another pool, of another stream or size class.
    StrandedPool,
    /// A piece that fits waited for another stream.
    Pending,
    /// PyTorch could have more memory earlier: something else took it.
    OtherMemory,
    /// The driver had enough memory: a limit of the process refused the request.
    Limit,
    /// The file does not say how much memory the driver had.
    Unknown,
}

/// What the program did when an allocation failed, as far as it decides what can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// It trains: a backward pass is in the window.
    Training,
    /// It fills parameters, and no forward pass was seen.
    Loading,
    /// It captures a CUDA graph.
    Capture,
    /// No backward pass is in the window.
    Inference,
}

impl Context {
    /// The context of an event. `categories` are the requested bytes in use by category.
    pub(super) fn of(
        cx: Evidence<'_>,
        event: u32,
        categories: &[(Category, Bytes)],
        is_capture: bool,
    ) -> Self {
        let phases = cx.categories.phases();
        let has = |phase: Phase| phases.iter().any(|s| s.phase == phase && s.begin <= event);
        let whole = categories.iter().map(|held| held.1.0).sum::<u64>();
        let parameters = categories.iter().filter(|held| held.0 == Category::Parameter);
        let parameters = parameters.map(|held| held.1.0).sum::<u64>();
        match () {
            () if is_capture => Self::Capture,
            () if phases.iter().any(|span| span.phase == Phase::Backward) => Self::Training,
            () if !has(Phase::Forward)
                && !has(Phase::Evaluation)
                && parameters >= whole / 10 * 9
                && whole > 0 =>
            {
                Self::Loading
            }
            () => Self::Inference,
        }
    }
}

/// Segments returned to the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Returned {
    /// Segments, or ranges of expandable segments.
    pub segments: usize,
    /// Their bytes.
    pub bytes: Bytes,
}

/// A pass that makes more than all like passes before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LargerPass {
    /// What it allocates more of: inputs or activations.
    pub category: Category,
    /// Its bytes until the failure.
    pub bytes: Bytes,
    /// The bytes of the largest pass before it.
    pub before: Bytes,
    /// The step of that one, from 0; `None` if it is no training step.
    pub step: Option<u32>,
}

/// Results of one line that wait for a backward pass, many more than in a pass that has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeated {
    /// The line.
    pub line: Frame,
    /// The results since the last backward pass that are live at the failure.
    pub count: u32,
    /// The most that the line makes in a pass with a backward pass.
    pub before: u32,
}

/// The floor after each step before a failure grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grows {
    /// The growth in a step.
    pub per_step: Bytes,
    /// The slots of the states after the first step and after the last one.
    pub between: [u32; 2],
    /// The steps between them.
    pub steps: u32,
    /// The words for one step and for several.
    pub words: [&'static str; 2],
}

/// One failure of several with one cause: the one that ended the run, else the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OomStory {
    /// The event.
    pub event: EventIndex,
    /// Bytes requested, after rounding.
    pub requested: Bytes,
    /// The event of the last failure.
    pub last: EventIndex,
    /// The number of failures.
    pub failures: usize,
    /// What followed the last failure.
    pub aftermath: Aftermath,
    /// Set if the line that asked asks for more each time.
    pub climb: Option<Climb>,
    /// Bytes and number of live copies of the model that the line that asked made.
    pub copies: Option<(Bytes, u32)>,
    /// What the program did.
    pub context: Context,
    /// Reserved bytes and number of the pools of CUDA graphs.
    pub graph_pools: (Bytes, u32),
    /// The call stack of the request.
    pub stack: StackId,
    /// The place of the request in backward; `None` if the request has Python frames.
    pub backward: Option<BackwardSite>,
    /// Call stacks in the program of live blocks with the size of the request.
    pub twins: Vec<StackId>,
    /// Why it failed.
    pub verdict: Verdict,
    /// Free bytes that the driver reported; `None` if the event has none.
    pub device_free: Option<Bytes>,
    /// `reserved_bytes`.
    pub reserved: Bytes,
    /// What PyTorch can have: `reserved` and `device_free`.
    pub room: Option<Bytes>,
    /// `active_bytes`.
    pub active: Bytes,
    /// The part of `active` that rounding adds to the requests.
    pub rounding: Bytes,
    /// Pool, stream and size class of the request.
    pub kind: FreeKind,
    /// Whether the pool is an assumption: the file has private pools, and the event names none.
    pub is_pool_assumed: bool,
    /// Free bytes of that kind.
    pub usable: Bytes,
    /// The largest piece in `usable`.
    pub largest_usable: Bytes,
    /// Free memory of other pools, streams and size classes, most first.
    pub unusable: Vec<FreeShare>,
    /// The size of a new segment for the request; `None` with expandable segments.
    pub new_segment: Option<Bytes>,
    /// Settings that cost memory at this moment, most bytes first.
    pub settings: Vec<CostlySetting>,
    /// What PyTorch could have more before, at least.
    pub shrunk: Bytes,
    /// What the allocator returned to the driver right before the failure.
    pub flush: Option<Returned>,
    /// How often the allocator made room earlier in the step.
    pub retries: usize,
    /// Requested bytes of what is in use by category, most first.
    pub categories: Vec<(Category, Bytes)>,
    /// Set if the pass is larger than like ones before it.
    pub larger: Option<LargerPass>,
    /// Set if a line has run many times since the last backward pass.
    pub repeated: Option<Repeated>,
    /// Set if the floor grew from step to step before it.
    pub grows: Option<Grows>,
    /// Blocks of the failed step that outlive it and a later step: their bytes and number.
    pub kept: Option<(Bytes, u32)>,
}

impl OomStory {
    /// Bytes by which live memory and the request exceed what PyTorch can have. No layout of blocks
    /// changes them.
    pub fn excess(&self) -> Option<Bytes> {
        let needed = self.active.0.saturating_add(self.requested.0);
        self.room.and_then(|room| needed.checked_sub(room.0)).filter(|&b| b > 0).map(Bytes)
    }

    /// What the driver lacks for a new segment.
    pub fn segment_lacks(&self) -> Option<Bytes> {
        let lacks = self.new_segment?.0.checked_sub(self.device_free?.0)?;
        Some(Bytes(lacks)).filter(|lacks| lacks.0 > 0)
    }

    /// The verdict. `was_pending` says that a piece of the request's pool and stream waited for
    /// another stream until the failure.
    pub(super) fn judge(&self, was_pending: bool) -> Verdict {
        let requested = self.requested.0;
        if was_pending && requested <= self.largest_usable.0 {
            return Verdict::Pending;
        }
        let Some(free) = self.device_free else { return Verdict::Unknown };
        if free.0 >= self.new_segment.unwrap_or(self.requested).0.saturating_add(MIN_SPARE) {
            return Verdict::Limit;
        }
        // The driver would have had enough if other memory had not grown.
        let lost = |needed: u64| needed > 0 && needed <= self.shrunk.0;
        match self.excess() {
            Some(excess) if lost(excess.0) => Verdict::OtherMemory,
            Some(_) => Verdict::Demand,
            None if lost(self.new_segment.unwrap_or(self.requested).0.saturating_sub(free.0)) => {
                Verdict::OtherMemory
            }
            None if self.usable.0.saturating_add(free.0) >= requested => Verdict::Fragmentation,
            None => Verdict::StrandedPool,
        }
    }
}
