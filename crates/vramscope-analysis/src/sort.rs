//! Sorting that can pause.

use crate::parallel;
use crate::slicing::{Budget, STRIDE, join};
use std::pin::Pin;

/// So many items are sorted in one go.
const PIECE: usize = 1 << 13;
/// The middle one of so many parts a list.
const SAMPLE: usize = 63;

/// Sorts what has no two equals that could be told apart, in slices: what comes out is what any
/// other sort gives. Several threads sort parts of it side by side.
pub async fn sort<T: Ord + Clone + Send>(items: &mut [T], budget: &mut Budget) {
    match parallel::threads() {
        1 => alone(items, budget).await,
        // Twice as many parts as threads: they are not all as long.
        threads => shared(items, threads.ilog2() + 2, budget).await,
    }
}

/// Parts it so many times, and sorts the parts side by side.
fn shared<'a, T: Ord + Clone + Send>(
    items: &'a mut [T],
    times: u32,
    budget: &'a mut Budget,
) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
    Box::pin(async move {
        if times == 0 || items.len() <= PIECE {
            return alone(items, budget).await;
        }
        let middle = partition(items, budget).await;
        let (low, high) = items.split_at_mut(middle);
        let (mut of_low, mut of_high) = (budget.beside(), budget.beside());
        join(shared(low, times - 1, &mut of_low), shared(&mut high[1..], times - 1, &mut of_high))
            .await;
    })
}

/// By one thread.
async fn alone<T: Ord + Clone>(items: &mut [T], budget: &mut Budget) {
    // Parts with how often each was parted already. Where the middle is missed again and again, the
    // standard sort knows a way out.
    let deepest = 3 * items.len().max(1).ilog2();
    let mut open = vec![(0..items.len(), 0)];
    while let Some((part, depth)) = open.pop() {
        let of_part = &mut items[part.clone()];
        if of_part.len() <= PIECE || depth == deepest {
            of_part.sort_unstable();
            budget.charge(4 * part.len() as u64).await;
            continue;
        }
        let middle = part.start + partition(of_part, budget).await;
        open.extend([(middle + 1..part.end, depth + 1), (part.start..middle, depth + 1)]);
    }
}

/// Moves what is less than some item in the middle before it, and the rest behind it; where that
/// item is then.
async fn partition<T: Ord + Clone>(items: &mut [T], budget: &mut Budget) -> usize {
    let last = items.len() - 1;
    let mut sample: Vec<usize> = (0..SAMPLE).map(|i| i * last / (SAMPLE - 1)).collect();
    sample.sort_unstable_by(|&a, &b| items[a].cmp(&items[b]));
    items.swap(sample[SAMPLE / 2], last);
    let middle = items[last].clone();
    // Before `low` all are less, from there to where it looks none is.
    let mut low = 0;
    for from in (0..last).step_by(STRIDE) {
        let to = last.min(from + STRIDE);
        for at in from..to {
            items.swap(low, at);
            low += usize::from(items[low] < middle);
        }
        budget.charge((to - from) as u64 / 2).await;
    }
    items.swap(low, last);
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slicing::run_to_completion;
    use proptest::prelude::*;

    /// Sorted as the library does it, and in slices of so many units.
    fn assert_sorted<T: Ord + Clone + Send + std::fmt::Debug>(mut items: Vec<T>, slice: u64) {
        let mut expected = items.clone();
        expected.sort();
        run_to_completion(sort(&mut items, &mut Budget::of(slice)));
        assert!(items == expected, "slices of {slice}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn any_list_is_sorted(keys in prop::collection::vec(0u8..40, 0..100_000), slice in prop::sample::select(vec![1, 1 << 12, u64::MAX])) {
            // Equal keys keep their order by the number behind them.
            assert_sorted((0u32..).zip(keys).map(|(i, key)| (key, i)).collect(), slice);
        }
    }

    #[test]
    fn orders_that_are_there_already_do_not_matter() {
        let count = 10 * PIECE as u32;
        let made: [fn(u32, u32) -> u32; 6] = [
            |i, _| i,
            |i, count| count - i,
            |_, _| 7,
            |i, count| i.min(count - i),
            |i, _| i % 2,
            |i, _| i.wrapping_mul(0x9e37_79b9),
        ];
        for of in made {
            assert_sorted((0..count).map(|i| (of(i, count), i)).collect(), 1 << 10);
            // What is equal in all is the same.
            assert_sorted((0..count).map(|i| of(i, count)).collect(), 1 << 10);
        }
        assert_sorted::<u32>(Vec::new(), 1);
    }

    #[test]
    fn it_pauses() {
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
        // Five or more times over the whole, and the pieces, by all threads at once where there are
        // some.
        assert!(slices * parallel::threads() > (5 << 17) / (1 << 15), "{slices}");
    }
}
