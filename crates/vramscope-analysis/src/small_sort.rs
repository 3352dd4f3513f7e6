//! Sorts of short lists, in little code.
//!
//! The compiler makes a copy of a standard sort for every type of item and every comparison. A copy
//! has about four kilobytes, and the copies were a sixth of the worker's module. These sorts exist
//! once, because they sort the list's indices and compare through a pointer.

use std::cmp::Ordering;

/// Stable sorts of lists whose length does not matter: rows of an answer, findings, children.
///
/// A list with an item per event or block is faster with the standard sorts.
pub trait SmallSort<T> {
    /// Sorts in ascending order.
    fn sort_small(&mut self)
    where
        T: Ord;

    /// Sorts by a comparison.
    fn sort_small_by(&mut self, compare: impl FnMut(&T, &T) -> Ordering);

    /// Sorts by a key, which is computed at every comparison.
    fn sort_small_by_key<K: Ord>(&mut self, key: impl FnMut(&T) -> K);
}

/// Groups items by key: ascending keys, and a group's items in their order. For short lists, as
/// [`SmallSort`]: a map of each type would be several times the code.
pub fn group_by_key<K: Ord, T>(mut items: Vec<(K, T)>) -> Vec<(K, Vec<T>)> {
    items.sort_small_by(|a, b| a.0.cmp(&b.0));
    let mut groups: Vec<(K, Vec<T>)> = Vec::new();
    for (key, item) in items {
        match groups.last_mut().filter(|group| group.0 == key) {
            Some(group) => group.1.push(item),
            None => groups.push((key, vec![item])),
        }
    }
    groups
}

impl<T> SmallSort<T> for [T] {
    fn sort_small(&mut self)
    where
        T: Ord,
    {
        self.sort_small_by(T::cmp);
    }

    fn sort_small_by(&mut self, mut compare: impl FnMut(&T, &T) -> Ordering) {
        if self.len() < 2 {
            return;
        }
        let order = sorted_indices(self.len(), &mut |a, b| compare(&self[a], &self[b]));
        rearrange(order, &mut |a, b| self.swap(a, b));
    }

    fn sort_small_by_key<K: Ord>(&mut self, mut key: impl FnMut(&T) -> K) {
        self.sort_small_by(|a, b| key(a).cmp(&key(b)));
    }
}

/// The indices of `count` items in their sorted order.
///
/// Merges neighboring ascending runs until one is left. So items that are nearly sorted, such as
/// the blocks of a trace, cost little more than one pass.
#[inline(never)]
fn sorted_indices(count: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    let mut ends: Vec<usize> =
        (1..=count).filter(|&end| end == count || compare(end - 1, end).is_gt()).collect();
    let mut merged = order.clone();
    while ends.len() > 1 {
        let mut left = 0;
        for pair in ends.chunks(2) {
            let (middle, end) = (pair[0], pair[pair.len() - 1]);
            let mut right = middle;
            for place in &mut merged[left..end] {
                // Of equal items the left one comes first.
                let takes_right =
                    left == middle || (right < end && compare(order[left], order[right]).is_gt());
                *place = order[if takes_right { right } else { left }];
                left += usize::from(!takes_right);
                right += usize::from(takes_right);
            }
            left = end;
        }
        std::mem::swap(&mut order, &mut merged);
        ends = ends.chunks(2).map(|pair| pair[pair.len() - 1]).collect();
    }
    order
}

/// Moves item `order[i]` to place `i`, for every `i`, by swaps along each cycle.
#[inline(never)]
fn rearrange(mut order: Vec<usize>, swap: &mut dyn FnMut(usize, usize)) {
    for start in 0..order.len() {
        let mut at = start;
        loop {
            let from = std::mem::replace(&mut order[at], at);
            if from == start {
                break;
            }
            swap(at, from);
            at = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sorts_match_the_standard_sorts(keys in prop::collection::vec(0u8..20, 0..200)) {
            // Equal keys keep their order.
            let items: Vec<(u8, usize)> = keys.into_iter().zip(0..).collect();
            let [mut expected, mut sorted] = [items.clone(), items.clone()];
            expected.sort_by_key(|item| item.0);
            sorted.sort_small_by_key(|item| item.0);
            prop_assert_eq!(&sorted, &expected);
            expected.sort_by(|a, b| b.cmp(a));
            sorted.sort_small_by(|a, b| b.cmp(a));
            prop_assert_eq!(&sorted, &expected);
            expected.sort_unstable();
            sorted.sort_small();
            prop_assert_eq!(&sorted, &expected);
            let groups = group_by_key(items.clone());
            prop_assert!(groups.is_sorted_by(|a, b| a.0 < b.0));
            let flat = groups.iter().flat_map(|(key, of)| of.iter().map(|&item| (*key, item)));
            prop_assert_eq!(flat.collect::<Vec<_>>(), expected);
        }
    }
}
