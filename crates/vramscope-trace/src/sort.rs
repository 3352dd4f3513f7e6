//! A quicksort that can pause.

use crate::parallel;
use crate::slicing::{Budget, STRIDE, join};
use std::pin::Pin;

/// Ranges of at most this many items are sorted without a pause.
const MAX_UNPAUSED_ITEMS: usize = 1 << 13;
/// Number of items sampled for a pivot. The pivot is their median.
const PIVOT_SAMPLES: usize = 63;

/// Sorts items in slices. Several threads sort disjoint ranges concurrently.
///
/// The sort is unstable, so items that compare equal must be indistinguishable. Then the result is
/// the same as that of any other sort.
pub async fn sort<T: Ord + Clone + Send>(items: &mut [T], budget: &mut Budget) {
    match parallel::threads() {
        1 => sort_sequential(items, budget).await,
        // At least twice as many ranges as threads, because ranges differ in length.
        threads => sort_parallel(items, threads.ilog2() + 2, budget).await,
    }
}

/// Partitions `items` recursively to the given depth, and sorts the ranges concurrently.
fn sort_parallel<'a, T: Ord + Clone + Send>(
    items: &'a mut [T],
    depth: u32,
    budget: &'a mut Budget,
) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
    Box::pin(async move {
        if depth == 0 || items.len() <= MAX_UNPAUSED_ITEMS {
            return sort_sequential(items, budget).await;
        }
        let pivot = partition(items, budget).await;
        let (below, above) = items.split_at_mut(pivot);
        let (mut budget_below, mut budget_above) = (budget.fork(), budget.fork());
        join(
            sort_parallel(below, depth - 1, &mut budget_below),
            sort_parallel(&mut above[1..], depth - 1, &mut budget_above),
        )
        .await;
    })
}

/// Sorts with one thread.
async fn sort_sequential<T: Ord + Clone>(items: &mut [T], budget: &mut Budget) {
    // Beyond this depth the pivots are bad. The standard sort handles that case well.
    let max_depth = 3 * items.len().max(1).ilog2();
    // Unsorted ranges with their depth.
    let mut open = vec![(0..items.len(), 0)];
    while let Some((range, depth)) = open.pop() {
        let unsorted = &mut items[range.clone()];
        if unsorted.len() <= MAX_UNPAUSED_ITEMS || depth == max_depth {
            unsorted.sort_unstable();
            budget.charge(4 * range.len() as u64).await;
            continue;
        }
        let pivot = range.start + partition(unsorted, budget).await;
        open.extend([(pivot + 1..range.end, depth + 1), (range.start..pivot, depth + 1)]);
    }
}

/// Moves items below a pivot to the front, and the others behind it. Returns the pivot's index.
async fn partition<T: Ord + Clone>(items: &mut [T], budget: &mut Budget) -> usize {
    let last = items.len() - 1;
    let mut sample: Vec<usize> =
        (0..PIVOT_SAMPLES).map(|i| i * last / (PIVOT_SAMPLES - 1)).collect();
    sample.sort_unstable_by(|&a, &b| items[a].cmp(&items[b]));
    items.swap(sample[PIVOT_SAMPLES / 2], last);
    let pivot = items[last].clone();
    // Items in `..below` are less than the pivot, and items in `below..at` are not.
    let mut below = 0;
    for from in (0..last).step_by(STRIDE) {
        let to = last.min(from + STRIDE);
        for at in from..to {
            items.swap(below, at);
            below += usize::from(items[below] < pivot);
        }
        budget.charge((to - from) as u64 / 2).await;
    }
    items.swap(below, last);
    below
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slicing::run_to_completion;
    use proptest::prelude::*;

    /// Compares with the standard sort. `slice` is the budget of a slice in units.
    fn assert_sorted<T: Ord + Clone + Send + std::fmt::Debug>(mut items: Vec<T>, slice: u64) {
        let mut expected = items.clone();
        expected.sort();
        run_to_completion(sort(&mut items, &mut Budget::of(slice)));
        assert!(items == expected, "slices of {slice}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn sort_matches_the_standard_sort(
            keys in prop::collection::vec(0u8..40, 0..100_000),
            slice in prop::sample::select(vec![1, 1 << 12, u64::MAX]),
        ) {
            // The index behind each key makes items unique.
            assert_sorted((0u32..).zip(keys).map(|(i, key)| (key, i)).collect(), slice);
        }
    }

    #[test]
    fn sort_handles_presorted_and_repetitive_inputs() {
        let count = 10 * MAX_UNPAUSED_ITEMS as u32;
        let generators: [fn(u32, u32) -> u32; 6] = [
            |i, _| i,
            |i, count| count - i,
            |_, _| 7,
            |i, count| i.min(count - i),
            |i, _| i % 2,
            |i, _| i.wrapping_mul(0x9e37_79b9),
        ];
        for key in generators {
            assert_sorted((0..count).map(|i| (key(i, count), i)).collect(), 1 << 10);
            // Equal items are indistinguishable.
            assert_sorted((0..count).map(|i| key(i, count)).collect(), 1 << 10);
        }
        assert_sorted::<u32>(Vec::new(), 1);
    }

    #[test]
    fn sort_pauses_in_proportion_to_its_work() {
        let mut work = crate::slicing::SlicedTask::default();
        let mut slices = 0;
        let begin = || async {
            let mut items: Vec<u32> =
                (0..1 << 18).map(|i: u32| i.wrapping_mul(0x9e37_79b9)).collect();
            sort(&mut items, &mut Budget::of(1 << 14)).await;
            items
        };
        while !work.advance(begin) {
            slices += 1;
        }
        assert!(work.done().is_some_and(|items| items.is_sorted()));
        // At least five partition passes over all items, and the final sorts. Threads share them.
        assert!(slices * parallel::threads() > (5 << 17) / (1 << 15), "{slices}");
    }
}
