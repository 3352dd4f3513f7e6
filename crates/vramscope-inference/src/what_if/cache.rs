//! A run with a cache of another size.

use super::{Question, Search, WhatIf};
use vramscope_trace::slicing::Budget;
use vramscope_units::Bytes;

impl WhatIf {
    /// The least memory with which the run goes through if `blocks`, which have `now` bytes
    /// together, have `bytes` in their place, on a device where PyTorch can have `available`. Each
    /// block keeps its part.
    ///
    /// `None` where the model does not meet the recording, or a block is older than the window: its
    /// segment has the recorded size.
    pub async fn least_with_cache(
        &self,
        blocks: &[u32],
        (now, bytes): (Bytes, Bytes),
        available: Bytes,
        budget: &mut Budget,
    ) -> Option<Bytes> {
        let is_old = |block: &u32| self.program.start_blocks.contains(block);
        if !self.calibration.is_equal() || now.0 == 0 || blocks.iter().any(is_old) {
            return None;
        }
        let mut other = self.clone();
        for &block in blocks {
            let asked = &mut other.program.asked[block as usize].bytes;
            let scaled = u128::from(*asked) * u128::from(bytes.0) / u128::from(now.0);
            *asked = u64::try_from(scaled).ok()?;
        }
        budget.charge(self.program.steps.len() as u64).await;
        let question = Question {
            available: Some(available.0),
            // A device of any size: the recorded addresses are those of other segments.
            total: Some(self.total.unwrap_or(0).max(available.0)),
            least: Search::Always,
            ..Question::as_recorded(&self.settings)
        };
        other.answer(question, budget).await.least.map(Bytes)
    }
}
