//! Requests that are larger, smaller or left out: another batch, another optimizer.

use super::program::{Asked, Call, Program};
use crate::category::{Categories, Category, Phase};
use std::sync::Arc;
use vramscope_trace::Trace;

/// Blocks of at most this many bytes do not depend on the number of tokens: losses, counters.
const MAX_FIXED: u64 = 512;

/// Factors for the sizes of blocks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scale {
    /// The factor of tokens: for inputs, activations, caches, and temporaries outside the
    /// optimizer. `None` is 1.
    pub tokens: Option<f64>,
    /// How each block of [`Trace::blocks`] grows with tokens: 0 for a fixed size, 1 for a size in
    /// proportion to tokens. Where it is `NaN` or absent, the category decides.
    pub growth: Option<Arc<[f32]>>,
    /// The factor of a category. 0 leaves it out.
    pub categories: Vec<(Category, f64)>,
    /// Blocks of [`Trace::blocks`] that are left out, ascending.
    pub without: Vec<u32>,
}

impl Scale {
    /// Whether nothing changes.
    pub fn is_none(&self) -> bool {
        self.tokens.is_none_or(|k| k == 1.0)
            && self.categories.iter().all(|(_, k)| *k == 1.0)
            && self.without.is_empty()
    }

    /// The requests with these factors.
    pub(crate) fn apply(
        &self,
        asked: &[Asked],
        trace: &Trace,
        categories: &Categories,
    ) -> Vec<Asked> {
        let mut asked = asked.to_vec();
        if self.is_none() {
            return asked;
        }
        for (i, block) in (0..).zip(&trace.blocks) {
            let category = categories.get(i).category;
            let of_category = self.categories.iter().find(|(c, _)| *c == category);
            let mut factor = of_category.map_or(1.0, |(_, k)| *k);
            if let Some(tokens) = self.tokens
                && let Some(growth) = self.growth_of(i)
            {
                factor *= (1.0 + f64::from(growth) * (tokens - 1.0)).max(0.0);
            } else if let Some(tokens) = self.tokens
                && block.bytes.0 > MAX_FIXED
            {
                let grows = match category {
                    Category::Input | Category::Activation | Category::Cache => true,
                    Category::Temporary => !is_in_optimizer(categories, block.enters),
                    _ => false,
                };
                factor *= if grows { tokens } else { 1.0 };
            }
            if factor != 1.0 {
                let bytes = (block.bytes.0 as f64 * factor).round();
                asked[i as usize].bytes = bytes as u64;
            }
        }
        for &block in &self.without {
            asked[block as usize].bytes = 0;
        }
        asked
    }

    /// How a block grows, if a second recording shows it.
    fn growth_of(&self, block: u32) -> Option<f32> {
        let growth = self.growth.as_ref()?.get(block as usize)?;
        growth.is_finite().then_some(*growth)
    }

    /// The requests that failed, with the factor of tokens. The file names no category of them:
    /// outside the optimizer they count as temporaries.
    pub(crate) fn of_failed(&self, program: &Program, categories: &Categories) -> Vec<Asked> {
        let mut failed = program.failed.clone();
        let Some(tokens) = self.tokens else { return failed };
        for step in &program.steps {
            if let Call::Failed { index } = step.call
                && failed[index as usize].bytes > MAX_FIXED
                && !is_in_optimizer(categories, step.event)
            {
                let bytes = &mut failed[index as usize].bytes;
                *bytes = (*bytes as f64 * tokens).round() as u64;
            }
        }
        failed
    }
}

/// Whether the phase in a slot is the optimizer's.
fn is_in_optimizer(categories: &Categories, slot: u32) -> bool {
    let phases = categories.phases();
    let at = phases.partition_point(|span| span.end < slot);
    phases.get(at).is_some_and(|span| span.phase == Phase::Optimizer)
}
