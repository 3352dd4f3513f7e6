//! How much longer a step takes with a change.

use super::change::Slows;
use super::recipe::Recipe;
use crate::recipes::seconds::{CALLS_OF_COPIES, CALLS_OF_UPDATE, Machine, Work};
use crate::recipes::{ChangedRun, Editable};

impl Editable {
    /// How much longer a step takes with a recipe, in percent: at least and at most, outward to two
    /// digits. An estimate; `None` where the file lacks the facts for one.
    pub fn seconds_percent(
        &self,
        recipe: &Recipe,
        changed: &ChangedRun<'_>,
        on: &Machine,
    ) -> Option<[u32; 2]> {
        let of = self.work.as_ref()?;
        let new = of.new_blocks(changed.lives());
        let range = match recipe.change.slows {
            Slows::Not => Some([0.0; 2]),
            Slows::Unknown => None,
            Slows::Recomputes => of.range(of.again(&new), 0.0, on),
            Slows::Loss => of.range(of.loss?, 0.0, on),
            Slows::Crosses => {
                let bytes =
                    new.iter().map(|life| life.bytes).sum::<u64>() as f64 + of.saved_weights();
                let calls = new.len() as f64 * CALLS_OF_COPIES;
                of.range(Work { calls, ..Work::default() }, 2.0 * bytes, on)
            }
            Slows::Repeats | Slows::Updates if !of.is_known => None,
            Slows::Repeats => {
                // Each further pass reads the weights in forward and backward, and adds its
                // gradients to those that are there.
                let more = f64::from(recipe.value.parts().saturating_sub(1));
                let moved = 2.0 * of.weights + 3.0 * of.gradients;
                let calls = of.forward.calls + of.backward.calls;
                of.range(Work { moved, calls, ..Work::default() }.times(more), 0.0, on)
            }
            Slows::Updates => {
                let calls = of.trained * CALLS_OF_UPDATE;
                of.range(Work { calls, ..Work::default() }, 0.0, on)
            }
        };
        range.map(rounded)
    }
}

/// Outward to whole numbers, from 100 on to two digits.
fn rounded([low, high]: [f64; 2]) -> [u32; 2] {
    let unit = |value: f64| 10_f64.powi((value.max(1.0).log10().floor() as i32 - 1).max(0));
    let [down, up] = [unit(low), unit(high)];
    [((low / down).floor() * down) as u32, ((high / up).ceil() * up) as u32]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_rounded_outward() {
        assert_eq!(rounded([17.9, 26.1]), [17, 27]);
        assert_eq!(rounded([0.0, 0.2]), [0, 1]);
        assert_eq!(rounded([314.0, 781.0]), [310, 790]);
        assert_eq!(rounded([999.0, 1001.0]), [990, 1100]);
    }
}
