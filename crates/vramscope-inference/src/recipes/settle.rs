//! Sorts a list of which most is in order, in slices.

use vramscope_trace::slicing::{Budget, STRIDE, strides};
use vramscope_trace::sort;

/// A time as a number of equal order.
pub(super) fn time_key(time: f64) -> i64 {
    let bits = time.to_bits().cast_signed();
    bits ^ ((bits >> 63).cast_unsigned() >> 1).cast_signed()
}

/// Sorts items by a key. Equal ones keep their order.
///
/// Items that are smaller than one before them are taken out, sorted and put back. `beside` has a
/// number for each item, which moves with it.
pub(super) async fn settle<T: Copy + Send, K: Ord + Copy + Send>(
    items: &mut [T],
    beside: Option<&mut [u32]>,
    key: impl Fn(&T) -> K,
    budget: &mut Budget,
) {
    let mut most: Option<K> = None;
    let mut loose: Vec<(K, u32)> = Vec::new();
    for part in strides(items.len()) {
        budget.charge(part.len() as u64).await;
        for index in part {
            let key = key(&items[index]);
            if most.is_some_and(|most| key < most) {
                loose.push((key, index as u32));
            } else {
                most = Some(key);
            }
        }
    }
    if loose.is_empty() {
        return;
    }
    let taken: Vec<u32> = loose.iter().map(|&(_, index)| index).collect();
    sort(&mut loose, budget).await;
    let mut moves: Vec<Move> = Vec::with_capacity(loose.len());
    let mut rest = loose.iter().peekable();
    let (mut gaps, mut kept) = (taken.iter().peekable(), 0);
    for part in strides(items.len()) {
        budget.charge(part.len() as u64).await;
        for index in part {
            if gaps.next_if(|&&gap| gap as usize == index).is_some() {
                continue;
            }
            let key = key(&items[index]);
            while let Some(&(_, from)) = rest.next_if(|(other, _)| *other < key) {
                moves.push(Move { from, to: kept + moves.len() as u32 });
            }
            kept += 1;
        }
    }
    for &(_, from) in rest {
        moves.push(Move { from, to: kept + moves.len() as u32 });
    }
    rearrange(items, &taken, &moves, budget).await;
    if let Some(beside) = beside {
        rearrange(beside, &taken, &moves, budget).await;
    }
}

/// Where an item stood, and where it belongs.
#[derive(Clone, Copy)]
struct Move {
    from: u32,
    to: u32,
}

/// Moves items. `taken` are their old places and `moves` lists them by their new ones, ascending
/// both. The other items close up.
async fn rearrange<T: Copy + Send>(
    items: &mut [T],
    taken: &[u32],
    moves: &[Move],
    budget: &mut Budget,
) {
    let mut moved: Vec<(u32, T)> = Vec::with_capacity(moves.len());
    for moves in moves.chunks(STRIDE) {
        budget.charge(moves.len() as u64).await;
        moved.extend(moves.iter().map(|of| (of.to, items[of.from as usize])));
    }
    let (mut gaps, mut kept) = (taken.iter().peekable(), 0);
    for part in strides(items.len()) {
        budget.charge(part.len() as u64).await;
        for index in part {
            if gaps.next_if(|&&gap| gap as usize == index).is_none() {
                items[kept] = items[index];
                kept += 1;
            }
        }
    }
    let mut free = items.len();
    while let Some(&(to, item)) = moved.last() {
        if free.is_multiple_of(STRIDE) {
            budget.charge(STRIDE as u64).await;
        }
        free -= 1;
        if to as usize == free {
            items[free] = item;
            moved.pop();
        } else {
            kept -= 1;
            items[free] = items[kept];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vramscope_trace::slicing::now;

    fn settled(mut items: Vec<(i64, u32)>) -> Vec<(i64, u32)> {
        let mut beside: Vec<u32> = items.iter().map(|item| item.1).collect();
        now(async |budget| settle(&mut items, Some(&mut beside), |item| item.0, budget).await);
        assert_eq!(beside, items.iter().map(|item| item.1).collect::<Vec<_>>());
        items
    }

    #[test]
    fn settle_is_a_stable_sort() {
        let keys: [&[i64]; 6] =
            [&[], &[1], &[2, 1], &[1, 5, 3, 3, 5, 2, 9], &[9, 1, 1, 2], &[1, 2, 3, 1, 2, 3, 0]];
        for keys in keys {
            let items: Vec<(i64, u32)> = keys.iter().copied().zip(0..).collect();
            let mut expected = items.clone();
            expected.sort_by_key(|item| item.0);
            assert_eq!(settled(items), expected);
        }
    }

    #[test]
    fn time_key_keeps_the_order_of_times() {
        let times = [f64::NEG_INFINITY, -1.0, -0.5, -0.0, 0.0, 0.25, 1e9, f64::INFINITY];
        assert!(times.map(time_key).is_sorted());
    }
}
