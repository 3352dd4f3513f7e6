//! How every request of a program grows with its tokens, from a second recording of the program
//! with another batch.
//!
//! A request of the second recording that comes from the same call stack, at the same place among
//! the requests of that stack in a step, is the same request. Its bytes in both recordings give a
//! line in the tokens of the steps. Memory that does not depend on tokens, such as parameters, has
//! a level line.

use crate::SnapshotEntry;
use crate::side::inputs::by_step;
use crate::target::{Target, slot_of};
use rustc_hash::{FxHashMap, FxHasher};
use serde::Serialize;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use vramscope_inference::Category;
use vramscope_snapshot::StackId;
use vramscope_trace::slicing::now;
use vramscope_units::Bytes;

/// Two steps tell how requests grow if their tokens differ by this factor. With less, every small
/// deviation would count many times.
const LEAST_RATIO: f64 = 1.2;

/// The share of the bytes at the peak whose growth must be known.
const LEAST_MATCHED: f64 = 0.9;

/// Parameters of one model differ by less than this part in two recordings.
const MODEL_TOLERANCE: u64 = 100;

/// A stack makes the same requests in both recordings if their numbers differ by a smaller factor.
const MOST_REQUESTS: f64 = 1.1;

/// The requests of a stack and category in a step. Step 0 is the time before the first step.
type Key = (u64, Category, usize);

/// The sizes of a recording's requests, by call stack and step, in bytes.
#[derive(Clone, Debug)]
pub struct Sizes {
    path: String,
    /// Bytes of the input of each step. After the whole steps, that of the last one, which may be
    /// cut.
    inputs: Vec<u64>,
    /// Bytes of the parameters at the peak.
    parameters: u64,
    by_stack: FxHashMap<Key, Vec<u64>>,
}

/// The second recording of a prediction.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PairRecord {
    /// Its path.
    pub path: String,
    /// The part of the bytes at the file's peak whose growth the two recordings show, from 0 to 1.
    pub matched: f64,
    /// Why the second recording does not help; null if it does.
    pub declined: Option<String>,
}

/// How each block grows with tokens: 0 for a fixed size, 1 for a size in proportion to tokens, and
/// `NaN` if that is not known.
pub type Growth = Arc<[f32]>;

impl Sizes {
    /// The sizes of the requests of a device.
    pub fn of(target: Target<'_>) -> Self {
        let by_step = now(async |budget| by_step(target, budget).await);
        let mut by_stack: FxHashMap<Key, Vec<u64>> = FxHashMap::default();
        for (key, bytes) in requests(target) {
            by_stack.entry(key).or_default().push(bytes);
        }
        let (mut inputs, kept) = by_step.unwrap_or_default();
        if inputs.iter().all(|&bytes| bytes == 0) {
            inputs.fill(kept);
        }
        inputs.insert(0, 0);
        let categories = target.entry.categories(target.index);
        let peak = slot_of(target.trace().requested_band.peak_event);
        let live = (0..).zip(&target.trace().blocks).filter(|(i, block)| {
            block.is_live_at(peak) && categories.get(*i).category == Category::Parameter
        });
        let parameters = live.map(|(_, block)| block.bytes.0).sum();
        Self { path: target.path.to_owned(), inputs, parameters, by_stack }
    }

    /// The step that tells most about a step of another recording with these input bytes: that
    /// whose input differs most. The first step differs from all others, because it creates memory
    /// that stays. Also the factor of the input, if it is known.
    fn partner(&self, step: usize, input: u64) -> (usize, Option<f64>) {
        let ratio = |other: usize| {
            let bytes = self.inputs.get(other).copied().filter(|&bytes| bytes > 0)?;
            (input > 0).then(|| bytes as f64 / input as f64)
        };
        // The last one may be cut.
        let whole = self.inputs.len().saturating_sub(1);
        if step < 2 || whole <= 2 {
            return (step.min(1), ratio(1).filter(|_| step > 0));
        }
        let distance = |other: &usize| ratio(*other).map_or(0.0, |ratio| ratio.ln().abs());
        let others = (2..whole).max_by(|a, b| distance(a).total_cmp(&distance(b)));
        others.map_or((1, ratio(1)), |other| (other, ratio(other)))
    }
}

/// The requests of a device in the window with their stack and step.
fn requests(target: Target<'_>) -> impl Iterator<Item = (Key, u64)> {
    let begins: &[u32] = target.entry.steps(target.index).map_or(&[], |steps| &steps.begins);
    let mut stacks = FxHashMap::default();
    let categories = target.entry.categories(target.index);
    (0..).zip(&target.trace().blocks).map(move |(i, block)| {
        let name = || stack_name(target.entry, block.stack);
        let stack = *stacks.entry(block.stack).or_insert_with(name);
        let step = begins.partition_point(|&begin| begin < block.enters);
        ((stack, categories.get(i).category, step), block.bytes.0)
    })
}

/// A number for the Python frames of a stack that is equal in other files. Other frames are in some
/// recordings only.
fn stack_name(entry: &SnapshotEntry, stack: StackId) -> u64 {
    let mut hasher = FxHasher::default();
    for frame in crate::frames::frames(&entry.snapshot, stack) {
        if frame.file.ends_with(".py") {
            frame.hash(&mut hasher);
        }
    }
    hasher.finish()
}

/// How the blocks of a device grow, from a second recording. `None` in place of the growth if the
/// two do not show it; the record says why.
pub fn growth(target: Target<'_>, second: &Sizes) -> (Option<Growth>, PairRecord) {
    let own = Sizes::of(target);
    let inputs = own.inputs.iter().enumerate();
    let partners: Vec<(usize, Option<f64>)> =
        inputs.map(|(step, &input)| second.partner(step, input)).collect();
    let trace = target.trace();
    let peak = slot_of(trace.requested_band.peak_event);
    let (mut live, mut matched) = (0, 0);
    let mut seen: FxHashMap<Key, usize> = FxHashMap::default();
    let mut growth: Vec<f32> = Vec::with_capacity(trace.blocks.len());
    for ((key, bytes), block) in requests(target).zip(&trace.blocks) {
        let at = seen.entry(key).or_insert(0);
        let (partner, ratio) = partners.get(key.2).copied().unwrap_or((0, None));
        let there = second.by_stack.get(&(key.0, key.1, partner));
        let factor = factor(own.by_stack.get(&key), there, *at);
        *at += 1;
        // The stack of a block from before the window may be that of its free.
        let slope = factor.filter(|_| block.enters > 0).and_then(|factor| slope(factor, ratio));
        growth.push(slope.map_or(f32::NAN, |slope| slope as f32));
        if block.enters > 0 && block.is_live_at(peak) {
            live += bytes;
            matched += if slope.is_some() { bytes } else { 0 };
        }
    }
    let matched = matched as f64 / (live as f64).max(1.0);
    let models = [own.parameters, second.parameters];
    let declined = why_not(models, &partners, matched);
    let growth = declined.is_none().then(|| growth.into());
    (growth, PairRecord { path: second.path.clone(), matched, declined })
}

/// Why two recordings do not show how requests grow; `None` if they do.
fn why_not(
    [here, there]: [u64; 2],
    partners: &[(usize, Option<f64>)],
    matched: f64,
) -> Option<String> {
    if here.abs_diff(there).saturating_mul(MODEL_TOLERANCE) > here {
        let (here, there) = (Bytes(here), Bytes(there));
        return Some(format!("the models differ: their parameters take {here} and {there}"));
    }
    let mut ratios = partners.iter().filter_map(|(_, ratio)| *ratio).peekable();
    if ratios.peek().is_none() {
        return Some("a recording does not show the input of its steps".to_owned());
    }
    if !ratios.any(is_different) {
        return Some("both recordings have about the same input per step".to_owned());
    }
    (matched < LEAST_MATCHED).then(|| {
        format!(
            "they tell only of {:.0} % of the memory at the peak whether it grows, as with two \
             programs",
            matched * 100.0
        )
    })
}

fn is_different(ratio: f64) -> bool {
    ratio.max(1.0 / ratio) >= LEAST_RATIO
}

/// How a request grows whose bytes have this factor when tokens have that one.
fn slope(of_bytes: f64, of_tokens: Option<f64>) -> Option<f64> {
    if of_bytes == 1.0 {
        return Some(0.0).filter(|_| of_tokens.is_none_or(is_different));
    }
    let of_tokens = of_tokens.filter(|&ratio| is_different(ratio))?;
    Some((of_bytes - 1.0) / (of_tokens - 1.0))
}

/// The factor between a request and the same request in the second recording. If there are a few
/// more or fewer there, it is not known which of them is the same: then the factor is that of their
/// mean. `None` if there are many more or fewer, as with another number of micro-batches.
fn factor(here: Option<&Vec<u64>>, there: Option<&Vec<u64>>, at: usize) -> Option<f64> {
    let (here, there) = (here?, there?);
    let ratio = |there: u64, here: u64| (here > 0).then(|| there as f64 / here as f64);
    let count = here.len() as f64 / there.len() as f64;
    if count == 1.0 {
        return ratio(*there.get(at)?, *here.get(at)?);
    }
    let is_close = count.max(1.0 / count) < MOST_REQUESTS;
    let sum = |sizes: &[u64]| sizes.iter().sum();
    ratio(sum(there), sum(here)).filter(|_| is_close).map(|ratio| ratio * count)
}

#[cfg(test)]
mod tests {
    use super::{factor, slope, why_not};

    #[test]
    fn a_request_has_the_factor_of_the_same_request_in_the_other_recording() {
        let (here, there) = (vec![512, 100, 4000], vec![512, 200, 4000]);
        let all: Vec<Option<f64>> =
            (0..3).map(|at| factor(Some(&here), Some(&there), at)).collect();
        assert_eq!(all, [Some(1.0), Some(2.0), Some(1.0)]);
        // One of many requests is missing: the mean counts.
        let many = vec![100; 20];
        let mean = factor(Some(&many), Some(&vec![200; 19]), 3).expect("a factor");
        assert!((mean - 2.0).abs() < 1e-9, "{mean}");
        // Two micro-batches in place of one.
        assert_eq!(factor(Some(&many), Some(&vec![100; 40]), 3), None);
        assert_eq!(factor(Some(&many), None, 3), None);
    }

    #[test]
    fn a_line_needs_different_tokens() {
        assert_eq!(slope(2.0, Some(2.0)), Some(1.0));
        assert_eq!(slope(1.0, Some(2.0)), Some(0.0));
        assert_eq!(slope(1.5, Some(2.0)), Some(0.5));
        assert_eq!(slope(0.5, Some(0.5)), Some(1.0));
        assert_eq!(slope(1.0, Some(1.1)), None);
        // Before the first step, equal sizes do not depend on tokens.
        assert_eq!(slope(1.0, None), Some(0.0));
        assert_eq!(slope(2.0, None), None);
    }

    #[test]
    fn two_recordings_must_be_of_one_program_with_other_tokens() {
        let tells = [(0, None), (1, Some(2.0))];
        assert_eq!(why_not([100, 100], &tells, 0.95), None);
        for (models, partners, matched, reason) in [
            ([100, 200], &tells[..], 0.95, "the models differ"),
            ([100, 100], &tells[..1], 0.95, "does not show the input"),
            ([100, 100], &[(1, Some(1.1))][..], 0.95, "about the same input"),
            ([100, 100], &tells[..], 0.5, "only of 50 %"),
        ] {
            let why = why_not(models, partners, matched).expect("a reason");
            assert!(why.contains(reason), "{why}");
        }
    }
}
