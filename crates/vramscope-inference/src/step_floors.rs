//! What stays after each step, and whether it grows.

use crate::steps::Steps;
use vramscope_trace::Trace;
use vramscope_trace::slicing::Budget;
use vramscope_units::Bytes;

/// Steps at the start whose floors do not count for a slope: the first allocates optimizer state,
/// and caches fill in the second.
const WARM_UP: usize = 2;

/// The fewest times that growth has to repeat to be a slope.
const MIN_REPEATS: usize = 3;

/// The most steps after which the floor has to be higher: batches of different sizes take turns.
const MAX_APART: usize = 4;

/// Floors from which a slope is computed. More are sampled, because all pairs are compared.
const MAX_COMPARED: usize = 200;

/// A whole step and what stays after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepFloor {
    /// The step, from 0.
    pub step: u32,
    /// The slot of the state before it.
    pub begin: u32,
    /// The slot of the state after it.
    pub end: u32,
    /// `requested_bytes` in that state.
    pub floor: Bytes,
    /// The most `requested_bytes` after an event of the step.
    pub peak: Bytes,
    /// The first slot with that many.
    pub peak_slot: u32,
}

/// A floor that grows steadily.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slope {
    /// The growth in a step: the median over all pairs of steps.
    pub per_step: Bytes,
    /// The step after which the first floor is.
    pub from: u32,
    /// The step after which the last one is.
    pub to: u32,
}

/// The whole steps of a window, in order.
pub async fn step_floors(trace: &Trace, steps: &Steps, budget: &mut Budget) -> Vec<StepFloor> {
    let mut floors = Vec::with_capacity(steps.whole());
    for (step, ends) in (0..).zip(steps.begins.windows(2)) {
        let [begin, end] = [ends[0], ends[1]];
        let largest = trace.requested.largest_sliced(begin + 1..end + 1, budget).await;
        let floor = trace.requested.at(end);
        let (peak_slot, peak) = largest.unwrap_or((end, floor));
        floors.push(StepFloor {
            step,
            begin,
            end,
            floor: Bytes(floor),
            peak: Bytes(peak),
            peak_slot,
        });
    }
    floors
}

/// The slope of the floors before an event. `None` as for [`slope`].
pub(crate) async fn slope_before(
    trace: &Trace,
    steps: &Steps,
    event: u32,
    budget: &mut Budget,
) -> Option<Slope> {
    let mut floors = step_floors(trace, steps, budget).await;
    floors.retain(|floor| floor.end <= event);
    slope(&floors)
}

/// The slope of the floors after the warm-up. `None` unless the floor is always higher after some
/// few steps, and grows by about the same in both halves of the window.
pub fn slope(floors: &[StepFloor]) -> Option<Slope> {
    let steady = floors.get(WARM_UP - 1..)?;
    let grows = |apart: usize| {
        let mut pairs = steady.iter().zip(&steady[apart..]);
        pairs.all(|(now, later)| now.floor < later.floor)
    };
    let is_enough = |&apart: &usize| steady.len() > MIN_REPEATS * apart;
    (1..=MAX_APART).take_while(is_enough).find(|&apart| grows(apart))?;
    let last = steady.len() - 1;
    let middle = last / 2;
    let halves = [median_slope(&steady[..=middle]), median_slope(&steady[middle..])];
    let (least, most) = (halves[0].min(halves[1]), halves[0].max(halves[1]));
    let per_step = median_slope(steady);
    (least > 0 && least >= most / 2 && per_step > 0).then(|| Slope {
        per_step: Bytes(per_step.unsigned_abs()),
        from: steady[0].step,
        to: steady[last].step,
    })
}

/// The median growth in a step over all pairs of floors; 0 without a pair.
fn median_slope(floors: &[StepFloor]) -> i64 {
    let sampled: Vec<&StepFloor> = floors.iter().step_by(floors.len() / MAX_COMPARED + 1).collect();
    let mut slopes: Vec<i64> = Vec::new();
    for (i, later) in sampled.iter().enumerate() {
        slopes.extend(sampled[..i].iter().map(|now| {
            let change = (later.floor.0 as i64).saturating_sub(now.floor.0 as i64);
            change / i64::from((later.step - now.step).max(1))
        }));
    }
    slopes.sort_unstable();
    slopes.get(slopes.len() / 2).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floors(bytes: &[u64]) -> Vec<StepFloor> {
        let floor = |(step, &floor): (u32, &u64)| StepFloor {
            step,
            begin: 10 * step,
            end: 10 * step + 10,
            floor: Bytes(floor),
            peak: Bytes(floor + 5),
            peak_slot: 10 * step + 3,
        };
        (0..).zip(bytes).map(floor).collect()
    }

    #[test]
    fn a_slope_needs_steady_growth_after_the_warm_up() {
        let found = slope(&floors(&[50, 100, 110, 121, 130]));
        assert_eq!(found, Some(Slope { per_step: Bytes(10), from: 1, to: 4 }));
        // Batches of two sizes take turns.
        let found = slope(&floors(&[50, 100, 95, 120, 115, 140, 135, 160]));
        assert_eq!(found, Some(Slope { per_step: Bytes(10), from: 1, to: 7 }));
        for none in [
            &[][..],
            &[1],
            &[50, 100, 110, 120],
            &[50, 100, 100, 100, 100],
            &[50, 100, 110, 120, 119, 130],
            &[50, 100, 110, 111, 112, 113],
            &[50, 100, 110, 120, 160],
        ] {
            assert_eq!(slope(&floors(none)), None, "{none:?}");
        }
    }
}
