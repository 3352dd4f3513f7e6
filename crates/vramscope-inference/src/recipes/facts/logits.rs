//! The logits of a pass: tokens x vocabulary.

use crate::category::Category;
use crate::evidence::marks::Mark;
use crate::recipes::facts::{Facts, Pass};
use crate::recipes::lives::{Life, Lives};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// The logits of a pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Logits {
    /// The first block of them.
    pub(crate) block: usize,
    pub(crate) begin: f64,
    /// Its elements.
    pub(crate) elements: u64,
}

impl Logits {
    /// Whether they are copied to 32 bits by a line whose marks are wanted.
    pub(crate) fn is_upcast_by(
        &self,
        lives: &Lives,
        pass: &Pass,
        is_wanted: impl Fn(Mark) -> bool,
    ) -> bool {
        let first = lives.all[self.block].bytes;
        let copy = lives
            .born(self.begin, pass.end)
            .map(|index| &lives.all[index])
            .find(|life| Some(life.bytes) == first.checked_mul(2));
        copy.and_then(|copy| lives.frames(copy).first())
            .is_some_and(|&frame| is_wanted(lives.stacks.mark(frame)))
    }

    /// Leaves out their copy in 32 bits, and its gradient in 16. False if there is none.
    pub(crate) fn drop_upcast(&self, lives: &mut Lives, pass: &Pass) -> bool {
        let end = pass.backward.map_or(pass.end, |backward| backward.end);
        let first = lives.all[self.block].bytes;
        let upcast: Vec<usize> = lives
            .born(self.begin, end)
            .filter(|&index| {
                let life = &lives.all[index];
                Some(life.bytes) == first.checked_mul(2)
                    && !matches!(life.category, Category::Parameter | Category::Gradient)
            })
            .collect();
        let [copy, rest @ ..] = &upcast[..] else { return false };
        lives.all[*copy].drop();
        for &index in rest {
            lives.all[index].bytes /= 2;
        }
        if let Some(backward) = pass.backward {
            let low = lives
                .born(backward.begin, end)
                .find(|&i| lives.all[i].bytes == first && upcast.binary_search(&i).is_err());
            if let Some(low) = low {
                lives.all[low].drop();
            }
        }
        true
    }
}

/// The logits among the blocks of a pass: the first of the largest blocks near its end whose size
/// comes again in the loss. A parameter's size does not count.
pub(crate) fn logits(
    lives: &Lives,
    facts: &Facts,
    blocks: Range<usize>,
    pass: &Pass,
) -> Option<Logits> {
    logits_until(lives, facts, blocks, pass.end)
}

/// The logits of a forward pass that ends at a time.
pub(crate) fn logits_until(
    lives: &Lives,
    facts: &Facts,
    blocks: Range<usize>,
    end: f64,
) -> Option<Logits> {
    let all = &lives.all;
    let tail = blocks.start + blocks.len() * 2 / 3..blocks.end;
    let lives_on = |life: &Life| life.end > life.begin + 2.0;
    let may_be = |life: &Life| {
        matches!(life.category, Category::Activation | Category::Temporary | Category::Unknown)
            && !facts.parameters.contains_key(&life.bytes)
            && lives_on(life)
    };
    let mut counts: FxHashMap<u64, u32> = FxHashMap::default();
    for life in all[tail.clone()].iter().filter(|life| may_be(life)) {
        *counts.entry(life.bytes).or_default() += 1;
    }
    let count = |bytes: u64| counts.get(&bytes).copied().unwrap_or(0);
    let is_repeated =
        |bytes: u64| count(bytes) + count(bytes.saturating_mul(2)) + count(bytes / 2) >= 2;
    let largest = counts.keys().copied().filter(|&bytes| is_repeated(bytes)).max()?;
    let block = tail.into_iter().find(|&index| {
        let life = &all[index];
        // A linear layer makes logits of a parameter's size by chance.
        let is_narrow = life.bytes == largest / 2 && lives.is_made_by(life, Mark::LINEAR, 2);
        (life.bytes == largest || life.bytes == largest / 2)
            && (is_narrow || !facts.parameters.contains_key(&life.bytes))
            && life.category != Category::Workspace
            && lives_on(life)
    })?;
    let first = &all[block];
    if !is_of_loss(lives, facts, first, end) {
        return None;
    }
    let is_upcast = lives.born(first.begin, end).any(|index| {
        all[index].begin > first.begin && Some(all[index].bytes) == first.bytes.checked_mul(2)
    });
    let element = match first.element {
        _ if is_upcast => 2,
        0 => 4,
        certain => u64::from(certain),
    };
    Some(Logits { block, begin: first.begin, elements: first.bytes / element })
}

/// Whether cross entropy makes a block of the logits' size, and no convolution makes the logits. A
/// compiled program has no frames that say it: it has a loss if a pass of it goes backward, or if
/// it failed in its first.
fn is_of_loss(lives: &Lives, facts: &Facts, first: &Life, end: f64) -> bool {
    let has = |life: &Life, kind: Mark| {
        lives.frames(life).iter().any(|&frame| lives.stacks.mark(frame).has(kind))
    };
    if has(first, Mark::CONVOLUTION) {
        return false;
    }
    let later = &lives.all[lives.born(first.begin, end + 1.0)];
    let alike =
        |bytes: u64| bytes == first.bytes || bytes == first.bytes / 2 || bytes / 2 == first.bytes;
    let is_eager = later.iter().any(|life| has(life, Mark::MODULE_CALL));
    let is_of_loss = |life: &Life| alike(life.bytes) && has(life, Mark::CROSS_ENTROPY);
    let may_train =
        facts.training().next().is_some() || lives.failure.is_some() && facts.passes.len() <= 1;
    !is_eager && may_train || later.iter().any(is_of_loss)
}
