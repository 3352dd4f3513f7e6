//! How much longer a step takes with a change: an estimate, which was not measured on a GPU.
//!
//! A step has the work of a typical one: what its matrix products multiply and add, the bytes that
//! its kernels write, and its calls. A change adds work. Both take the time that a device of its
//! data sheet needs under each of several assumptions. The lowest and the highest answer are the
//! range.

mod multiplied;

use super::lives::{Life, Lives};
use crate::category::Category;
use crate::recipes::facts::{Facts, Pass, logits};
use crate::step_phases::StepPhase;
use multiplied::{Multiplied, is_result};
use vramscope_gpus::Speeds;
use vramscope_trace::Clock;

/// A device, for estimates of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// How fast it is.
    pub speeds: Speeds,
    /// Whether the recording was made on it, so that its clock shows how long a step takes.
    pub is_recorded: bool,
}

/// What a device reaches of its data sheet, and what is not in the file.
#[derive(Clone, Copy)]
struct Assumed {
    /// The part of the highest speed that matrix products reach.
    products: f64,
    /// The part of the memory's speed that kernels reach.
    memory: f64,
    /// Bytes that a kernel reads and writes for each byte of its result.
    moved: f64,
    /// Seconds of the host for each block that an operation makes.
    call: f64,
    /// Whether 32-bit products run in TF32.
    is_tf32: bool,
}

/// Products take most of the time, memory does, or the host does. Between these lie the usual
/// figures: large products reach 40 to 80 % of a data sheet. Python and PyTorch take 20 us a block
/// in a GPT-2 on an H100 that waits for them (24 ms and 1,211 blocks a step, without a recording).
const ASSUMED: [Assumed; 3] = [
    Assumed { products: 0.4, memory: 0.9, moved: 2.0, call: 10e-6, is_tf32: false },
    Assumed { products: 0.8, memory: 0.6, moved: 2.4, call: 10e-6, is_tf32: true },
    Assumed { products: 0.8, memory: 0.9, moved: 2.0, call: 20e-6, is_tf32: true },
];

/// The part of the link's speed that copies reach at most and at least. An H100 reached 0.6 with
/// `save_on_cpu`.
const LINK: [f64; 2] = [0.85, 0.5];

/// A recorded step takes at most this many times as long as one that is not recorded.
const RECORDED: f64 = 1.5;

/// Calls of an optimizer for one parameter alone.
pub(crate) const CALLS_OF_UPDATE: f64 = 12.0;

/// By how much the time of a change differs from what shapes of all operations give, as a part: at
/// most in 10 programs that were counted on a dry run.
const ERROR: f64 = 0.15;

/// Calls that copy a block to the host and back.
pub(crate) const CALLS_OF_COPIES: f64 = 3.0;

/// The ends of a range are at most this many times apart, beyond the ten percent that nobody
/// minds: a wider one says nothing.
const MOST_APART: f64 = 3.5;
const TEN_PERCENT: f64 = 0.1;

/// Results whose products are known, at least, of those that are products, in percent of bytes.
const MIN_KNOWN_PERCENT: f64 = 70.0;

/// What a part of a step does.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Work {
    /// Multiplications and additions of products of 16-bit numbers.
    pub(crate) half: f64,
    /// The same of 32-bit numbers.
    pub(crate) single: f64,
    /// Bytes of new blocks.
    pub(crate) written: f64,
    /// Bytes that are read and written besides.
    pub(crate) moved: f64,
    /// Calls.
    pub(crate) calls: f64,
    /// Bytes of results of layers that multiply: their share stands for products that are not
    /// known.
    pub(crate) results: f64,
}

impl Work {
    fn add(&mut self, life: &Life, products: Option<&Multiplied>) {
        self.written += life.bytes as f64;
        self.calls += 1.0;
        if let Some(of) = products {
            self.half += of.half;
            self.single += of.single;
            self.results += life.bytes as f64;
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            half: self.half + other.half,
            single: self.single + other.single,
            written: self.written + other.written,
            moved: self.moved + other.moved,
            calls: self.calls + other.calls,
            results: self.results + other.results,
        }
    }

    pub(crate) fn times(self, factor: f64) -> Self {
        Self {
            half: self.half * factor,
            single: self.single * factor,
            written: self.written * factor,
            moved: self.moved * factor,
            calls: self.calls * factor,
            results: self.results * factor,
        }
    }

    /// Seconds of the device and of the host.
    fn seconds(&self, speeds: &Speeds, assumed: &Assumed) -> [f64; 2] {
        let single = if assumed.is_tf32 { speeds.tf32 } else { speeds.single };
        let products = (self.half / speeds.half + self.single / single) / assumed.products;
        let bytes = self.written * assumed.moved + self.moved;
        [products + bytes / (speeds.memory * assumed.memory), self.calls * assumed.call]
    }
}

/// What a step does without a change.
#[derive(Clone, Debug, Default)]
pub(crate) struct StepWork {
    pub(crate) forward: Work,
    pub(crate) backward: Work,
    optimizer: Work,
    /// From the first forward pass to the end of the last backward pass.
    span: [f64; 2],
    products: Vec<Multiplied>,
    /// Whether the products are known.
    pub(crate) is_known: bool,
    /// Whether autocast converts what layers read: their result is the last block of a call.
    pub(crate) has_casts: bool,
    /// Bytes of the parameters as products read them, and of all gradients.
    pub(crate) weights: f64,
    pub(crate) gradients: f64,
    /// Parameters with a gradient.
    pub(crate) trained: f64,
    /// The work of the logits and of the loss, in forward.
    pub(crate) loss: Option<Work>,
    /// Seconds from one step to the next in the recording.
    recorded: Option<f64>,
}

impl StepWork {
    /// The work of a typical step; `None` without a training pass.
    pub(crate) fn new(lives: &Lives, facts: &Facts, clock: Option<&Clock>) -> Option<Self> {
        let step = facts.typical()?.step;
        let passes: Vec<&Pass> = facts.training().filter(|pass| pass.step == step).collect();
        let (first, last) = (passes.first()?, passes.last()?);
        let (span, has_casts) = ([first.begin, last.over()], facts.has_autocast);
        let mut of = Self { span, has_casts, ..Self::default() };
        let gradients: Vec<u64> = lives.all[lives.born(first.begin, last.over())]
            .iter()
            .filter(|life| life.category == Category::Gradient)
            .map(|life| life.bytes)
            .collect();
        for pass in &passes {
            of.add_pass(lives, facts, pass, &gradients);
        }
        let known: f64 = of.products.iter().filter(|one| one.is_known()).map(|one| one.bytes).sum();
        of.is_known = known > 0.0 && known * 100.0 >= of.forward.results * MIN_KNOWN_PERCENT;
        of.gradients = gradients.iter().sum::<u64>() as f64;
        of.trained = gradients.len() as f64;
        let parameters = facts.parameters.iter().map(|(bytes, count)| bytes * u64::from(*count));
        let is_halved = facts.has_autocast && facts.element == 4;
        of.weights = parameters.sum::<u64>() as f64 / if is_halved { 2.0 } else { 1.0 };
        let blocks = lives.born(last.begin, last.end);
        of.loss = logits(lives, facts, blocks.clone(), last).map(|found| {
            let mut work = Work::default();
            for index in found.block..blocks.end {
                let life = &lives.all[index];
                if is_result(life) {
                    work.add(life, multiplied::of(&of.products, life));
                }
            }
            work
        });
        of.add_optimizer(lives, step);
        of.recorded = clock.and_then(|clock| step_seconds(facts, clock));
        Some(of)
    }

    fn add_pass(&mut self, lives: &Lives, facts: &Facts, pass: &Pass, gradients: &[u64]) {
        let forward = lives.born(pass.begin, pass.end);
        let products = multiplied::find(lives, facts, forward.clone(), gradients);
        let mut at = 0;
        for index in forward {
            let life = &lives.all[index];
            while products.get(at).is_some_and(|one| one.block < index) {
                at += 1;
            }
            let own = products.get(at).filter(|one| one.block == index);
            if is_result(life) {
                self.forward.add(life, own);
            }
        }
        let Some(backward) = pass.backward else { return };
        for life in &lives.all[lives.born(backward.begin, backward.end)] {
            if life.category == Category::Gradient || is_result(life) {
                self.backward.add(life, None);
            }
        }
        // The gradient of the input takes as much as forward, and so does that of the weight.
        for one in &products {
            let factor = if one.is_trained { 2.0 } else { 1.0 };
            self.backward.half += one.half * factor;
            self.backward.single += one.single * factor;
            self.backward.results += one.bytes * 2.0;
        }
        self.products.extend(products);
    }

    /// An update reads gradients, and reads and writes parameters and states.
    fn add_optimizer(&mut self, lives: &Lives, step: i32) {
        let is_state =
            |life: &&Life| life.category == Category::OptimizerState && life.end > self.span[1];
        let states: u64 = lives.all.iter().filter(is_state).map(|life| life.bytes).sum();
        let made =
            lives.span(step, StepPhase::Optimizer).map(|(begin, end)| lives.born(begin, end));
        let made = lives.all[made.unwrap_or_default()].iter().filter(|life| is_result(life));
        let (mut calls, mut written) = (self.trained.sqrt(), 0.0);
        for life in made {
            calls += 1.0;
            written += life.bytes as f64;
        }
        // Without temporaries one kernel does it. Else each operation reads and writes again: Adam
        // moves 13 times the bytes of its parameters, SGD with momentum 8 times.
        let is_fused = written * 4.0 < self.gradients;
        let per_state = if is_fused { 2.0 } else { 5.0 };
        let moved = 3.0 * self.gradients + per_state * states as f64;
        self.optimizer = Work { moved, calls, ..Work::default() };
    }

    fn step(&self) -> Work {
        self.forward.plus(self.backward).plus(self.optimizer)
    }

    /// The new blocks of a changed run in the step, by birth.
    pub(crate) fn new_blocks<'l>(&self, changed: &'l [Life]) -> Vec<&'l Life> {
        let [begin, end] = self.span;
        let is_new = |life: &&Life| life.is_new && (begin..end).contains(&life.begin);
        changed.iter().filter(is_new).filter(|life| is_result(life)).collect()
    }

    /// What making blocks again takes that forward makes.
    pub(crate) fn again(&self, blocks: &[&Life]) -> Work {
        let mut work = Work::default();
        for (at, life) in blocks.iter().enumerate() {
            let next = blocks.get(at + 1).map(|next| next.stack);
            let is_cast = self.has_casts && next == Some(life.stack);
            let product = multiplied::of(&self.products, life).filter(|_| !is_cast);
            work.add(life, product);
        }
        work
    }

    /// Bytes of weights that layers save beside what they read. Autocast's copies of weights are
    /// new blocks.
    pub(crate) fn saved_weights(&self) -> f64 {
        if self.has_casts { 0.0 } else { self.products.iter().map(|one| one.weight).sum() }
    }

    /// How much longer a step takes, in percent, at least and at most.
    pub(crate) fn range(&self, more: Work, crossing: f64, on: &Machine) -> Option<[f64; 2]> {
        let step = self.step();
        let recorded = self.recorded.filter(|_| on.is_recorded);
        let device = ASSUMED.map(|one| step.seconds(&on.speeds, &one)[0]);
        let least = device.into_iter().fold(f64::INFINITY, f64::min);
        let longest = device.into_iter().fold(0.0, f64::max);
        // A step that is shorter than the device can be was not on this device.
        let recorded = recorded.filter(|&seconds| seconds * RECORDED > least);
        if !self.is_known && recorded.is_none() && crossing > 0.0 {
            return None;
        }
        let mut all: Vec<f64> = Vec::new();
        for assumed in &ASSUMED {
            let [device, host] = step.seconds(&on.speeds, assumed);
            let [more_device, more_host] = more.seconds(&on.speeds, assumed);
            let busy = device.max(host);
            let longer = (device + more_device).max(host + more_host) - busy;
            // What the recording has beyond that is waiting.
            let whole = recorded
                .map_or([busy; 2], |seconds| [busy.max(seconds / RECORDED), busy.max(seconds)]);
            let copies = LINK.map(|part| crossing / (on.speeds.link * part));
            all.push((longer * (1.0 - ERROR) + copies[0]) / whole[1]);
            all.push((longer * (1.0 + ERROR) + copies[1]) / whole[0]);
        }
        if recorded.is_some_and(|seconds| seconds > RECORDED * longest) {
            // Or all of it is the host's.
            all.push(more.calls / step.calls.max(1.0));
        }
        if !self.is_known {
            // Products alone: three times those of forward.
            let step = self.forward.results * 3.0;
            all.extend((step > 0.0 && more.results > 0.0).then(|| more.results / step));
        }
        let low = all.iter().copied().reduce(f64::min)?;
        let high = all.into_iter().reduce(f64::max)?;
        let is_narrow = high + TEN_PERCENT <= MOST_APART * (low + TEN_PERCENT);
        is_narrow.then_some([low * 100.0, high * 100.0])
    }
}

/// Seconds from the first pass of a step to that of the next: the median of all but the first.
fn step_seconds(facts: &Facts, clock: &Clock) -> Option<f64> {
    let mut begins: Vec<(i32, f64)> =
        facts.training().map(|pass| (pass.step, pass.begin)).collect();
    begins.dedup_by_key(|of| of.0);
    let last = clock.count().checked_sub(1)?;
    let at = |time: f64| clock.offset((time.max(0.0) as u32).min(last));
    let mut all: Vec<u64> =
        begins.windows(2).skip(1).map(|two| at(two[1].1).saturating_sub(at(two[0].1))).collect();
    all.sort_unstable();
    let middle = *all.get(all.len() / 2)?;
    Some(middle as f64 * 1e-6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use vramscope_gpus::Device;

    fn on(name: &str, is_recorded: bool) -> Machine {
        let speeds = Device::named(name).and_then(Device::speeds).expect("a data sheet");
        Machine { speeds, is_recorded }
    }

    /// Forward takes 1 s of products on an H100 that reaches 40 %, and half of that with 80 %.
    fn products() -> Work {
        Work { half: 0.4 * 989e12, ..Work::default() }
    }

    fn step() -> StepWork {
        let forward = products();
        StepWork { forward, backward: forward.times(2.0), is_known: true, ..StepWork::default() }
    }

    #[track_caller]
    fn is_near(range: Option<[f64; 2]>, expected: [f64; 2]) {
        let range = range.expect("a range");
        let is_near = |(one, two): (&f64, &f64)| (one - two).abs() < 0.05;
        assert!(range.iter().zip(&expected).all(is_near), "{range:?}, expected {expected:?}");
    }

    /// 1 of 3 s, with an error of 15 %.
    #[test]
    fn all_of_forward_again_takes_a_third() {
        is_near(step().range(products(), 0.0, &on("H100", false)), [28.33, 38.33]);
    }

    /// An update that moves 3.0171 TB takes 1 s with 90 % of 3.3523 TB/s, and 1.5 s with 60 %.
    /// Then forward is 1 of 4, 0.5 of 3, or 0.5 of 2.5 s.
    #[test]
    fn an_update_makes_the_share_of_forward_smaller() {
        let moved = 0.9 * 5120.0 / 8.0 * 2.0 * 2619e6;
        let optimizer = Work { moved, ..Work::default() };
        let range = StepWork { optimizer, ..step() }.range(products(), 0.0, &on("H100", false));
        is_near(range, [16.67 * 0.85, 25.0 * 1.15]);
    }

    /// Results of 1 TB are moved 2 to 2.4 times: 0.663 to 1.193 s, each of 3 times as much.
    #[test]
    fn memory_alone_takes_a_third_too() {
        let forward = Work { written: 1e12, ..Work::default() };
        let work = StepWork { forward, backward: forward.times(2.0), ..step() };
        is_near(work.range(forward, 0.0, &on("H100", false)), [28.33, 38.33]);
    }

    /// 32 GB over 64 GB/s take 0.588 to 1 s. The step takes 1.5 to 3 s.
    #[test]
    fn copies_to_the_host_are_not_hidden() {
        is_near(step().range(Work::default(), 32e9, &on("H100", false)), [19.6, 66.67]);
        // Half the link, a sixth to a third of the products.
        is_near(step().range(Work::default(), 32e9, &on("A100", false)), [12.37, 42.1]);
    }

    /// A recorded step of 30 s takes 20 to 30 s. Most of it is waiting, or the host's.
    #[test]
    fn the_clock_of_the_recording_counts_on_its_own_device() {
        let work = StepWork { recorded: Some(30.0), ..step() };
        is_near(work.range(Work::default(), 32e9, &on("H100", true)), [0.0, 5.0]);
        is_near(work.range(Work::default(), 32e9, &on("H100", false)), [19.6, 66.67]);
        // No H100 does it in 0.1 s: the clock is that of something else.
        let work = StepWork { recorded: Some(0.1), ..step() };
        is_near(work.range(Work::default(), 32e9, &on("H100", true)), [19.6, 66.67]);
    }

    /// 1,000 calls take 10 to 20 ms of the host, where the device has nothing to do.
    #[test]
    fn a_step_that_waits_for_the_host_gets_longer_by_its_calls() {
        let calls = |calls: f64| Work { calls, ..Work::default() };
        let work = StepWork { forward: calls(400.0), backward: calls(600.0), ..step() };
        is_near(work.range(calls(200.0), 0.0, &on("H100", false)), [17.0, 23.0]);
        // The device is busy for 1.5 to 3 s meanwhile.
        is_near(step().range(calls(200.0), 0.0, &on("H100", false)), [0.0, 0.0]);
    }

    #[test]
    fn nothing_is_said_of_copies_where_products_are_not_known() {
        let work = StepWork { is_known: false, ..step() };
        assert_eq!(work.range(Work::default(), 32e9, &on("H100", false)), None);
        let work = StepWork { recorded: Some(3.0), ..work };
        assert!(work.range(Work::default(), 32e9, &on("H100", true)).is_some());
    }

    /// Of unknown products, the results are three times as many in a step as in forward.
    #[test]
    fn the_share_of_results_stands_for_products_that_are_not_known() {
        let forward = Work { written: 1e12, results: 1e9, ..Work::default() };
        let work = StepWork { forward, backward: forward.times(2.0), ..StepWork::default() };
        let again = Work { written: 1e12, results: 5e8, ..Work::default() };
        is_near(work.range(again, 0.0, &on("H100", false)), [16.67, 38.33]);
    }
}
