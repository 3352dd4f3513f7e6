//! A program, replayed through the allocator under given settings.

use super::bursts::Gives;
use super::program::{ANY_SIZE, Asked, Call, Program, Step};
use vramscope_allocator::{
    Allocator, BlockId, Device, OutOfMemory, PoolKind, Request, ReservedParts, Settings,
};
use vramscope_trace::slicing::{Budget, STRIDE};

/// How to replay a program.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches, each with its own name")]
pub(crate) struct Run<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) device: Device,
    /// Starts with the segments from before the window. Otherwise only with the blocks in them.
    pub(crate) keeps_segments: bool,
    /// Whether driver calls fail where the recording shows it, instead of at a limit.
    pub(crate) fails_as_recorded: bool,
    /// Whether new segments get their recorded addresses throughout. Otherwise they do until what
    /// is reserved differs from the recording.
    pub(crate) has_recorded_addresses: bool,
    /// Whether calls of `empty_cache` are left out.
    pub(crate) without_empty_cache: bool,
    /// Whether blocks that a stream still uses are free at once.
    pub(crate) frees_at_once: bool,
    /// Ends after this event. Requests that failed before it in the recording do not count.
    pub(crate) until: Option<u32>,
    /// Ends at the first request that fails and did not fail in the recording.
    pub(crate) ends_at_oom: bool,
    /// Ends also at a request that failed in the recording and fails again.
    pub(crate) ends_at_failed: bool,
}

/// What a replay shows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Replayed {
    pub(crate) reserved_peak: u64,
    /// Reserved bytes before the window.
    pub(crate) reserved_start: u64,
    /// The event after which most was reserved; `None` before the window.
    pub(crate) peak_event: Option<u32>,
    pub(crate) active_peak: u64,
    pub(crate) reserved_end: u64,
    pub(crate) flushes: u64,
    /// The events of requests that failed.
    pub(crate) ooms: Vec<u32>,
    /// Requests for which addresses decided which block serves them.
    pub(crate) ties: u64,
    /// Reserved bytes after each event that changes them.
    pub(crate) curve: Vec<(u32, u64)>,
    /// What the reserved memory was used for when the replay ended, by pool and stream.
    pub(crate) parts: Vec<((u32, u32), ReservedParts)>,
}

impl<'a> Run<'a> {
    /// A replay under other settings, that ends when memory runs out.
    pub(crate) fn of(settings: &'a Settings, device: Device) -> Self {
        Self {
            settings,
            device,
            keeps_segments: false,
            fails_as_recorded: false,
            has_recorded_addresses: false,
            without_empty_cache: false,
            frees_at_once: false,
            until: None,
            ends_at_oom: true,
            ends_at_failed: false,
        }
    }

    /// A replay of what was recorded.
    pub(crate) fn as_recorded(
        settings: &'a Settings,
        device: Device,
        fails_as_recorded: bool,
    ) -> Self {
        Self {
            keeps_segments: true,
            has_recorded_addresses: true,
            fails_as_recorded,
            ends_at_oom: false,
            ..Self::of(settings, device)
        }
    }

    /// Replays a program.
    pub(crate) async fn replay(&self, program: &Program, budget: &mut Budget) -> Replayed {
        let mut replay = Replay::new(self, program);
        replay.run(self.until, budget).await;
        replay.finish()
    }
}

/// A replay on its way. A clone goes on from the same call.
#[derive(Clone)]
pub(super) struct Replay<'a> {
    run: &'a Run<'a>,
    program: &'a Program,
    allocator: Allocator,
    /// The block of the model for every block of the trace.
    ids: Vec<Option<BlockId>>,
    /// The next of [`Program::steps`].
    next_step: usize,
    next_burst: usize,
    next_segment: usize,
    /// Whether the segments so far are those of the recording.
    follows_recording: bool,
    /// The event of the call before.
    last_event: u32,
    result: Replayed,
}

impl<'a> Replay<'a> {
    /// A replay before its first call.
    pub(super) fn new(run: &'a Run<'a>, program: &'a Program) -> Self {
        let mut replay = Self {
            run,
            program,
            allocator: Allocator::new(run.settings.clone(), &run.device),
            ids: vec![None; program.asked.len()],
            next_step: 0,
            next_burst: 0,
            next_segment: 0,
            follows_recording: true,
            last_event: 0,
            result: Replayed::default(),
        };
        for &pool in &program.unsplit_pools {
            let kind = PoolKind { no_split: true, ..PoolKind::default() };
            replay.allocator.set_pool_kind(pool, kind);
        }
        replay.allocator.set_capturing(!program.pools_flush);
        replay.start();
        replay
    }

    /// Replays the calls that are left, up to the event `until`, or to the end of the run.
    pub(super) async fn run(&mut self, until: Option<u32>, budget: &mut Budget) {
        let steps = &self.program.steps;
        let until = until.map_or(steps.len(), |until| steps.partition_point(|s| s.event <= until));
        let fails_at_start = self.next_step == 0 && !self.fits() && self.run.ends_at_oom;
        while self.next_step < until && !fails_at_start {
            let stride = self.next_step..until.min(self.next_step + STRIDE);
            budget.charge(16 * stride.len() as u64).await;
            for at in stride {
                self.next_step = at + 1;
                if !self.step(steps[at]) {
                    return;
                }
            }
        }
    }

    /// Sets the bytes that PyTorch can have from now on.
    pub(super) fn set_available(&mut self, bytes: u64) {
        self.allocator.set_available(bytes);
    }

    /// Whether no call has been replayed.
    pub(super) fn is_before_first_call(&self) -> bool {
        self.next_step == 0
    }

    /// Whether no request has failed.
    pub(super) fn fits(&self) -> bool {
        self.result.ooms.is_empty()
    }

    /// Takes over the state before the window.
    fn start(&mut self) {
        let mut used = self.program.start_blocks.iter();
        for segment in &self.program.start {
            if self.run.keeps_segments {
                let ids = self.allocator.start_with(segment);
                let in_use =
                    segment.blocks.iter().zip(ids).filter(|(block, _)| block.requested > 0);
                for ((_, id), &block) in in_use.zip(&mut used) {
                    self.ids[block as usize] = Some(id);
                }
            } else {
                let in_use = segment.blocks.iter().filter(|block| block.requested > 0).count();
                for &block in used.by_ref().take(in_use) {
                    match self.malloc(self.program.asked[block as usize]) {
                        Ok(id) => self.ids[block as usize] = Some(id),
                        // Not even the state before the window fits.
                        Err(OutOfMemory) => self.result.ooms.push(0),
                    }
                }
            }
        }
        let available = self.run.device.available;
        if self.allocator.stats().reserved_bytes > available {
            // The allocator returns cached segments before it fails.
            self.allocator.empty_cache(&mut ());
            if self.allocator.stats().reserved_bytes > available {
                self.result.ooms.push(0);
            }
        }
        self.result.reserved_start = self.allocator.stats().reserved_bytes;
        self.result.reserved_peak = self.result.reserved_start;
    }

    fn malloc(&mut self, asked: Asked) -> Result<BlockId, OutOfMemory> {
        let Asked { bytes, stream, pool } = asked;
        self.allocator.malloc(Request { bytes, stream, pool }, &mut ())
    }

    /// Replays a call. Returns whether the replay goes on.
    fn step(&mut self, step: Step) -> bool {
        self.follow_recording(step);
        let mut goes_on = true;
        match step.call {
            Call::Malloc { block } => match self.malloc(self.program.asked[block as usize]) {
                Ok(id) => self.ids[block as usize] = Some(id),
                Err(OutOfMemory) => {
                    self.result.ooms.push(step.event);
                    goes_on = !self.run.ends_at_oom;
                }
            },
            Call::FreeLater { block } => {
                if let Some(id) = self.ids[block as usize] {
                    if self.run.frees_at_once {
                        self.allocator.free(id);
                        self.ids[block as usize] = None;
                    } else {
                        self.allocator.free_later(id);
                    }
                }
            }
            Call::Free { block } => {
                // A pending block may be free already: the allocator waited for its stream. The
                // number of the block may then serve another one.
                if let Some(id) = self.ids[block as usize].take() {
                    self.allocator.free(id);
                }
            }
            Call::Failed { .. } if self.run.fails_as_recorded => {
                self.allocator.empty_cache(&mut ());
                self.result.ooms.push(step.event);
            }
            // The program went on without this request, so it needs no room.
            Call::Failed { .. } if self.run.until.is_some_and(|end| step.event < end) => {
                self.allocator.empty_cache(&mut ());
            }
            Call::Failed { index } => match self.malloc(self.program.failed[index as usize]) {
                Ok(id) => {
                    self.note(step.event);
                    self.allocator.free(id);
                }
                Err(OutOfMemory) => {
                    self.result.ooms.push(step.event);
                    goes_on = !self.run.ends_at_failed;
                }
            },
            Call::EmptyCache if !self.run.without_empty_cache => {
                self.allocator.empty_cache(&mut ());
            }
            Call::EmptyPool { pool } => self.allocator.release_pool(pool, &mut ()),
            Call::EmptyCache => {}
        }
        self.note(step.event);
        goes_on
    }

    /// Takes over what the recording shows until a call and the model cannot know.
    fn follow_recording(&mut self, step: Step) {
        let bursts = &self.program.own.all;
        while let Some(burst) = bursts.get(self.next_burst).filter(|b| b.events.start <= step.event)
        {
            self.next_burst += 1;
            for &pool in &burst.pools {
                self.allocator.retire_pool(pool);
            }
            if self.run.fails_as_recorded && burst.gives == Gives::ToMakeRoom {
                self.allocator.refuse_next();
            }
        }
        let segments = &self.program.segments;
        let is_next = segments.get(self.next_segment).is_some_and(|(at, ..)| *at <= step.event);
        if is_next && !self.run.has_recorded_addresses {
            let recorded = self.program.reserved_after(self.last_event);
            let reserved = self.allocator.stats().reserved_bytes;
            self.follows_recording &= self.next_step <= 1 || reserved == recorded;
        }
        self.last_event = step.event;
        if !self.follows_recording {
            return;
        }
        while let Some(&(_, address, bytes)) =
            segments.get(self.next_segment).filter(|(event, ..)| *event <= step.event)
        {
            self.next_segment += 1;
            self.allocator
                .place_next_segment(address, Some(bytes).filter(|&size| size != ANY_SIZE));
        }
    }

    /// Records a change of the reserved bytes.
    fn note(&mut self, event: u32) {
        let reserved = self.allocator.stats().reserved_bytes;
        let last = self.result.curve.last().map_or(u64::MAX, |(_, bytes)| *bytes);
        if reserved == last {
            return;
        }
        if reserved > self.result.reserved_peak {
            (self.result.reserved_peak, self.result.peak_event) = (reserved, Some(event));
        }
        match self.result.curve.last_mut() {
            Some(last) if last.0 == event => last.1 = reserved,
            _ => self.result.curve.push((event, reserved)),
        }
    }

    pub(super) fn finish(mut self) -> Replayed {
        let stats = self.allocator.stats();
        self.result.reserved_peak = self.result.reserved_peak.max(stats.reserved_peak);
        self.result.active_peak = stats.active_peak;
        self.result.reserved_end = stats.reserved_bytes;
        self.result.flushes = stats.num_alloc_retries;
        self.result.ties = stats.ties;
        self.result.parts = self.allocator.reserved_parts();
        self.result
    }
}
