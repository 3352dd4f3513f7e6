//! The simulated program: trains a sharded model with `AdamW`, step by step, until the trace has
//! its number of events.
//!
//! Parameters and the optimizer's moments stay; activations rise through the forward pass and fall
//! through the backward pass; workspaces live for one operation. Layers are gathered on a stream of
//! their own, and freed there when their computation ends.

use crate::allocator::{Allocator, Event, Settings};
use crate::fleet::STEPS_PER_ITERATION;
use crate::random::Random;
use crate::sites::{Act, OPS, PARTS, Site};
use std::collections::VecDeque;
use std::io;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const HIDDEN: u64 = 2048;
const VOCABULARY: u64 = 32_000;
const DEFAULT_STREAM: u64 = 0;
/// Streams other than the default one are pointers.
const GATHER_STREAM: u64 = 94_231_182_082_768;
/// The cache is emptied once in this many steps, as after a validation.
const STEPS_PER_VALIDATION: u64 = 16;
/// Events of one layer in one step, roughly.
const EVENTS_PER_LAYER: u64 = 260;

/// One capture of a call stack: a running number and the site. A block and its event share the list
/// of frames of one capture.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Capture(u64);

impl Capture {
    fn new(number: u64, site: Site) -> Self {
        Self(number << 16 | site.stack() as u64)
    }

    /// The capture that a block or a segment has as its owner.
    pub(crate) fn of(owner: u64) -> Self {
        Self(owner)
    }

    /// The number of the site's stack.
    pub(crate) fn stack(self) -> usize {
        (self.0 & 0xffff) as usize
    }
}

/// The name of an annotated range of the program.
#[derive(Clone, Copy)]
pub(crate) enum Label {
    Step(u64),
    Named(&'static str),
}

/// Receives the events and annotations of a run.
pub(crate) trait Sink {
    fn event(&mut self, event: &Event, time: u64, capture: Capture) -> io::Result<()>;
    fn annotation(&mut self, label: Label, start: bool, time: u64);
}

/// Drops all events, for a run of which only the final state is needed.
pub(crate) struct NullSink;

impl Sink for NullSink {
    fn event(&mut self, _: &Event, _: u64, _: Capture) -> io::Result<()> {
        Ok(())
    }
    fn annotation(&mut self, _: Label, _: bool, _: u64) {}
}

/// The parameters of a run, equal on all ranks.
pub(crate) struct Plan {
    events: u64,
    seed: u64,
    layers: usize,
    /// Bytes of each parameter, and whether it is a vector.
    parameters: Vec<(u64, bool)>,
}

impl Plan {
    pub(crate) fn new(events: u64, live: u64, seed: u64) -> Self {
        // Few activations beside the parameters, and many steps.
        let steps = events.saturating_sub(live) / (EVENTS_PER_LAYER * 16);
        let layers = (live / 64).min(steps).clamp(1, 96);
        let count = live.saturating_sub(layers * 10).div_ceil(3).max(1);
        let mean = (8 * GIB / count).min(64 * MIB);
        let mut random = Random::new(seed);
        let parameters = (0..count).map(|_| {
            let vector = random.below(5) < 2;
            let bytes = if vector {
                2 * HIDDEN * (1 + random.below(4))
            } else {
                mean * (1 + random.below(8)) / 4
            };
            // Sizes of shards are no round numbers.
            (bytes.max(KIB) - 2 * random.below(3) * u64::from(random.below(8) == 0), vector)
        });
        let parameters = parameters.collect();
        Self { events, seed, layers: layers as usize, parameters }
    }
}

/// What a rank of a fleet does differently. The default is a rank with the whole model.
#[derive(Default)]
pub(crate) struct Role {
    /// The stage of the pipeline, and the number of stages; `None` without a pipeline.
    pub(crate) stage: Option<(usize, usize)>,
    /// Bytes that stay from the first event on.
    pub(crate) kept: u64,
    /// Bytes that stay of each step.
    pub(crate) leak: u64,
    /// Iterations before the window, whose leaks stay.
    pub(crate) iterations: u64,
}

/// Microseconds of an iteration.
const ITERATION_US: u64 = 60_000_000;

/// The final state of a run.
pub(crate) struct Run {
    pub(crate) allocator: Allocator,
    pub(crate) events: u64,
    pub(crate) steps: u64,
}

/// Why a run ends.
enum Stop {
    /// The trace has its number of events.
    Complete,
    Failed(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

/// Trains on one rank until the sink has received the plan's number of events.
pub(crate) fn run(
    plan: &Plan,
    (rank, role): (u64, &Role),
    sink: &mut impl Sink,
) -> io::Result<Run> {
    let random = Random::new(plan.seed ^ (rank + 1).wrapping_mul(0xd1b5_4a32_d192_ed03));
    let mut program = Program {
        plan,
        role,
        sink,
        random,
        allocator: Allocator::new(Settings { expandable: false, max_split_size: None }),
        pending: Vec::new(),
        time: 1_795_231_001_672_750 + rank * 1117 + role.iterations * ITERATION_US,
        events: 0,
        captures: 0,
        allocations: 0,
        steps: 0,
        deferred: VecDeque::new(),
        activations: vec![Vec::new(); plan.layers],
        gradients: Vec::new(),
    };
    match program.train() {
        Err(Stop::Failed(error)) => Err(error),
        Ok(()) | Err(Stop::Complete) => {
            Ok(Run { allocator: program.allocator, events: program.events, steps: program.steps })
        }
    }
}

struct Program<'a, S> {
    plan: &'a Plan,
    role: &'a Role,
    sink: &'a mut S,
    random: Random,
    allocator: Allocator,
    /// Events of the operation in progress.
    pending: Vec<Event>,
    time: u64,
    events: u64,
    captures: u64,
    allocations: u64,
    steps: u64,
    /// Blocks that another stream still uses, and the number of the allocation that completes them.
    deferred: VecDeque<(u64, u64)>,
    /// Saved results of each layer, with their operation.
    activations: Vec<Vec<(u64, usize)>>,
    gradients: Vec<u64>,
}

impl<S: Sink> Program<'_, S> {
    fn capture(&mut self, site: Site) -> Result<Capture, Stop> {
        if self.events >= self.plan.events {
            return Err(Stop::Complete);
        }
        self.captures += 1;
        self.time += 2 + self.random.below(30);
        Ok(Capture::new(self.captures, site))
    }

    fn emit(&mut self, capture: Capture) -> Result<(), Stop> {
        for event in self.pending.drain(..) {
            self.events += 1;
            self.sink.event(&event, self.time, capture)?;
            self.time += u64::from(event.action == "segment_alloc") * 150;
        }
        Ok(())
    }

    fn alloc(&mut self, bytes: u64, stream: u64, site: Site) -> Result<u64, Stop> {
        let capture = self.capture(site)?;
        let pending = &mut self.pending;
        self.allocations += 1;
        while let Some((address, _)) =
            self.deferred.pop_front_if(|(_, due)| *due <= self.allocations)
        {
            self.allocator.complete(address, &mut |_, event| pending.push(event));
        }
        let address =
            self.allocator.alloc(bytes, stream, capture.0, &mut |_, event| pending.push(event));
        self.emit(capture)?;
        Ok(address)
    }

    fn free(&mut self, address: u64, site: Site) -> Result<(), Stop> {
        let capture = self.capture(site)?;
        let pending = &mut self.pending;
        self.allocator.request(address, &mut |_, event| pending.push(event));
        self.allocator.complete(address, &mut |_, event| pending.push(event));
        self.emit(capture)
    }

    /// Frees a block that another stream still uses.
    fn free_later(&mut self, address: u64, site: Site) -> Result<(), Stop> {
        let capture = self.capture(site)?;
        let pending = &mut self.pending;
        self.allocator.request(address, &mut |_, event| pending.push(event));
        self.deferred.push_back((address, self.allocations + 3 + self.random.below(8)));
        self.emit(capture)
    }

    fn mark(&mut self, label: Label, start: bool) {
        self.time += 3;
        self.sink.annotation(label, start, self.time);
    }

    fn within(
        &mut self,
        label: Label,
        act: impl FnOnce(&mut Self) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        self.mark(label, true);
        act(self)?;
        self.mark(label, false);
        Ok(())
    }

    fn train(&mut self) -> Result<(), Stop> {
        for &(bytes, vector) in &self.plan.parameters {
            self.alloc(bytes, DEFAULT_STREAM, if vector { Site::Vector } else { Site::Matrix })?;
        }
        if self.role.kept > 0 {
            self.alloc(self.role.kept, DEFAULT_STREAM, Site::Prefetch)?;
        }
        if self.role.leak > 0 {
            for _ in 0..self.role.iterations {
                let bytes = self.role.leak * STEPS_PER_ITERATION;
                self.alloc(bytes, DEFAULT_STREAM, Site::Append)?;
            }
        }
        loop {
            self.time += 500;
            self.within(Label::Step(self.steps), Self::step)?;
            self.steps += 1;
            if self.steps.is_multiple_of(STEPS_PER_VALIDATION) {
                let capture = self.capture(Site::EmptyCache)?;
                let pending = &mut self.pending;
                self.allocator.empty_cache(&mut |_, event| pending.push(event));
                self.emit(capture)?;
            }
        }
    }

    fn step(&mut self) -> Result<(), Stop> {
        // The length of sequences differs between steps and ranks.
        let tokens = 1024 + 64 * self.random.below(49);
        let batch = if self.is_first() {
            vec![self.alloc(tokens * 8, 0, Site::Batch)?, self.alloc(tokens * 8, 0, Site::Batch)?]
        } else {
            vec![self.alloc(tokens * HIDDEN * 2, DEFAULT_STREAM, Site::Receive)?]
        };
        let mut ends = Vec::new();
        self.within(Label::Named("## forward ##"), |program| {
            for layer in 0..program.plan.layers {
                program.forward(layer, tokens)?;
            }
            if program.is_last() {
                ends.push(program.alloc(tokens * VOCABULARY * 2, DEFAULT_STREAM, Site::Logits)?);
                ends.push(program.alloc(4, DEFAULT_STREAM, Site::Loss)?);
            }
            Ok(())
        })?;
        self.within(Label::Named("## backward ##"), |program| {
            for end in ends {
                program.free(end, Site::LossDone)?;
            }
            (0..program.plan.layers).rev().try_for_each(|layer| program.backward(layer, tokens))
        })?;
        for block in batch {
            self.free(block, Site::BatchDone)?;
        }
        self.within(Label::Named("Optimizer.step#AdamW.step"), Self::optimize)?;
        if self.role.leak > 0 {
            self.alloc(self.role.leak, DEFAULT_STREAM, Site::Append)?;
        }
        self.within(Label::Named("Optimizer.zero_grad#AdamW.zero_grad"), |program| {
            std::mem::take(&mut program.gradients)
                .into_iter()
                .try_for_each(|g| program.free(g, Site::ZeroGrad))
        })
    }

    fn is_first(&self) -> bool {
        self.role.stage.is_none_or(|(stage, _)| stage == 0)
    }

    fn is_last(&self) -> bool {
        self.role.stage.is_none_or(|(stage, stages)| stage + 1 == stages)
    }

    /// The number that tells the kind of a layer. All layers of a stage are of one kind.
    fn kind(&self, layer: usize) -> usize {
        self.role.stage.map_or(layer, |(stage, _)| stage)
    }

    /// A layer's share of the parameters, in bytes.
    fn shard(&self, layer: usize) -> u64 {
        let parameters = &self.plan.parameters;
        let each = (parameters.len() / self.plan.layers).clamp(1, 64);
        parameters
            .iter()
            .skip(layer * each)
            .take(each)
            .map(|p| p.0)
            .sum::<u64>()
            .clamp(MIB, 256 * MIB)
    }

    fn bytes(op: usize, tokens: u64) -> u64 {
        if OPS[op].width == 0 { tokens * 4 } else { tokens * HIDDEN * 2 * OPS[op].width / 64 }
    }

    fn forward(&mut self, layer: usize, tokens: u64) -> Result<(), Stop> {
        let gathered = self.alloc(self.shard(layer), GATHER_STREAM, Site::Unshard)?;
        let mut last = None;
        for (op, of) in OPS.iter().enumerate() {
            let kind = self.kind(layer);
            let at = |act| Site::Layer { act, layer: kind, op };
            let result = self.alloc(Self::bytes(op, tokens), DEFAULT_STREAM, at(Act::Result))?;
            if of.workspace {
                let bytes = 64 * KIB * (1 + self.random.below(64));
                let workspace = self.alloc(bytes, DEFAULT_STREAM, at(Act::Workspace))?;
                self.free(workspace, at(Act::WorkspaceDone))?;
            }
            if let Some(last) = last.take() {
                self.free(last, at(Act::Drop))?;
            }
            if of.saved { self.activations[layer].push((result, op)) } else { last = Some(result) }
        }
        self.free_later(gathered, Site::Reshard)
    }

    fn backward(&mut self, layer: usize, tokens: u64) -> Result<(), Stop> {
        let gathered = self.alloc(self.shard(layer), GATHER_STREAM, Site::Unshard)?;
        let mut before = None;
        while let Some((saved, op)) = self.activations[layer].pop() {
            let kind = self.kind(layer);
            let at = |act| Site::Layer { act, layer: kind, op };
            let gradient =
                self.alloc(Self::bytes(op, tokens), DEFAULT_STREAM, at(Act::Gradient))?;
            self.free(saved, at(Act::Release))?;
            if let Some(before) = before.replace(gradient) {
                self.free(before, at(Act::Consume))?;
            }
        }
        for part in 0..PARTS {
            let bytes = self.shard(layer) / PARTS as u64;
            let site = Site::Accumulate { layer: self.kind(layer), part };
            let gradient = self.alloc(bytes, DEFAULT_STREAM, site)?;
            self.gradients.push(gradient);
        }
        if let Some(before) = before {
            let site = Site::Layer { act: Act::Consume, layer: self.kind(layer), op: 0 };
            self.free(before, site)?;
        }
        self.free_later(gathered, Site::Reshard)
    }

    fn optimize(&mut self) -> Result<(), Stop> {
        if self.steps == 0 {
            for &(bytes, _) in &self.plan.parameters {
                self.alloc(bytes, DEFAULT_STREAM, Site::FirstMoment)?;
                self.alloc(bytes, DEFAULT_STREAM, Site::SecondMoment)?;
            }
        }
        let mut norms = Vec::new();
        for _ in 0..self.plan.layers {
            norms.push(self.alloc(4, DEFAULT_STREAM, Site::Norm)?);
        }
        for norm in norms {
            self.free(norm, Site::NormDone)?;
        }
        for layer in 0..self.plan.layers {
            let mut temporaries = [0; 2];
            for temporary in &mut temporaries {
                *temporary = self.alloc(self.shard(layer) / 2, DEFAULT_STREAM, Site::Foreach)?;
            }
            for temporary in temporaries {
                self.free(temporary, Site::ForeachDone)?;
            }
        }
        Ok(())
    }
}
