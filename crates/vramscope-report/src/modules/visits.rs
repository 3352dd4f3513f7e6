//! Where the visits of a module begin, in the order of its allocations.

use rustc_hash::{FxHashMap, FxHashSet};

/// The indices at which visits begin, from the symbols of the allocations: one for each call stack.
/// The first is 0. One visit where nothing shows more.
///
/// Every visit begins with the same symbol, and the symbols that all visits have, of which there
/// are several and most of each, are in the same order in each. Or one sequence of several symbols
/// repeats exactly.
pub(super) fn visits(symbols: &[u32]) -> Vec<usize> {
    let (alike, repeated) = (alike(symbols, false), repeated(symbols, false));
    // Two kinds of layers that alternate repeat as pairs.
    if alike.len() >= repeated.len() { alike } else { repeated }
}

/// Where visits of an outermost module begin. Its layers can begin with the same symbols as the
/// module itself, so the test is stricter: one sequence repeats exactly, or all visits have the
/// same symbols. With `is_cut`, the last visit may be incomplete.
pub(super) fn outermost_visits(symbols: &[u32], is_cut: bool) -> Vec<usize> {
    let repeated = repeated(symbols, is_cut);
    if repeated.len() > 1 {
        return repeated;
    }
    let whole = alike(symbols, true);
    if whole.len() > 1 || !is_cut {
        return whole;
    }
    let last = (1..symbols.len()).rev().find(|&at| begins(symbols, at, symbols[0]));
    let Some((before, tail)) = last.map(|last| symbols.split_at(last)) else { return whole };
    let mut visits = alike(before, true);
    let known: FxHashSet<u32> = before.iter().copied().collect();
    if visits.len() > 1 && tail.iter().all(|symbol| known.contains(symbol)) {
        visits.push(before.len());
        return visits;
    }
    whole
}

/// Whether a run of equal symbols begins here.
fn begins(symbols: &[u32], at: usize, first: u32) -> bool {
    symbols[at] == first && (at == 0 || symbols[at - 1] != first)
}

/// The repetitions of a sequence of several symbols.
fn repeated(symbols: &[u32], is_cut: bool) -> Vec<usize> {
    let period = period(symbols);
    let is_whole = is_cut || symbols.len().is_multiple_of(period.max(1));
    let has_several = symbols[..period].iter().any(|&symbol| symbol != symbols[0]);
    if is_whole && has_several && symbols.len() >= 2 * period {
        (0..symbols.len()).step_by(period).collect()
    } else {
        vec![0]
    }
}

/// Parts that begin alike. With `all`, they have the same symbols.
fn alike(symbols: &[u32], all: bool) -> Vec<usize> {
    let Some(&first) = symbols.first() else { return vec![0] };
    let starts: Vec<usize> = (0..symbols.len()).filter(|&at| begins(symbols, at, first)).collect();
    if are_alike(symbols, &starts, all) { starts } else { vec![0] }
}

/// Whether the symbols that all parts have are several, most of each part, and in the same order in
/// each.
fn are_alike(symbols: &[u32], starts: &[usize], all: bool) -> bool {
    if starts.len() < 2 {
        return false;
    }
    let ends = starts[1..].iter().copied().chain([symbols.len()]);
    let parts: Vec<&[u32]> = starts.iter().zip(ends).map(|(&at, end)| &symbols[at..end]).collect();
    // The number of parts with each symbol.
    let mut seen: FxHashMap<u32, (usize, usize)> = FxHashMap::default();
    for (index, part) in (1..).zip(&parts) {
        for &symbol in *part {
            let (last, count) = seen.entry(symbol).or_default();
            *count += usize::from(*last != index);
            *last = index;
        }
    }
    let is_common = |symbol: &&u32| seen.get(symbol).is_some_and(|seen| seen.1 == parts.len());
    let common = |part: &[u32]| {
        let mut common: Vec<u32> = part.iter().filter(is_common).copied().collect();
        common.dedup();
        common
    };
    let wanted = common(parts[0]);
    let shared = seen.values().filter(|seen| seen.1 == parts.len()).count();
    if all && shared < seen.len() {
        return false;
    }
    let is_most = |part: &[u32]| {
        let distinct: FxHashSet<u32> = part.iter().copied().collect();
        shared * 3 >= distinct.len() * 2
    };
    let is_alike = |part: &&[u32]| is_most(part) && common(part) == wanted;
    wanted.len() > 1 && parts.iter().all(is_alike)
}

/// The length of the shortest sequence whose repetition begins with all symbols.
fn period(symbols: &[u32]) -> usize {
    let count = symbols.len();
    // The longest proper prefix that ends at each index.
    let mut prefix = vec![0; count];
    for at in 1..count {
        let mut length = prefix[at - 1];
        while length > 0 && symbols[at] != symbols[length] {
            length = prefix[length - 1];
        }
        prefix[at] = length + usize::from(symbols[at] == symbols[length]);
    }
    count - prefix.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{outermost_visits, visits};

    #[test]
    fn visits_begin_alike_and_have_one_order() {
        let cases: [(&[u32], &[usize]); 12] = [
            (&[], &[0]),
            (&[1, 2, 1, 2, 1, 2], &[0, 2, 4]),
            // The first layer has a branch that the others have not.
            (&[1, 5, 2, 1, 2, 1, 2], &[0, 3, 5]),
            (&[1, 2, 5, 1, 2, 1, 2], &[0, 3, 5]),
            // Two norms in each layer, before two other parts: the parts have little in common.
            (&[1, 2, 3, 4, 1, 2, 5, 6, 1, 2, 3, 4, 1, 2, 5, 6], &[0, 8]),
            // What all have is in another order.
            (&[1, 2, 3, 1, 3, 2], &[0]),
            // A line that allocates twice.
            (&[1, 1, 2, 1, 1, 2], &[0, 3]),
            // Two calls of one line around another: one visit.
            (&[1, 2, 1], &[0]),
            // The first line is called again within each visit.
            (&[1, 2, 1, 3, 1, 2, 1, 3], &[0, 4]),
            // Only one line: its calls cannot be told apart.
            (&[1, 1, 1, 1], &[0]),
            (&[1, 2, 3], &[0]),
            (&[1, 2, 1, 3, 1, 2], &[0]),
        ];
        for (symbols, begins) in cases {
            assert_eq!(visits(symbols), begins, "{symbols:?}");
        }
    }

    #[test]
    fn an_outermost_call_may_begin_as_its_layers_do() {
        let call = [1, 2, 1, 2, 9];
        assert_eq!(visits(&call), [0, 2]);
        assert_eq!(outermost_visits(&call, false), [0]);
        assert_eq!(outermost_visits(&[call, call].concat(), false), [0, 5]);
        assert_eq!(outermost_visits(&[call, call, call].concat()[..13], true), [0, 5, 10]);
        assert_eq!(outermost_visits(&[8, 1, 2, 8, 1, 1, 2, 8, 1], true), [0, 3, 7]);
        assert_eq!(outermost_visits(&call, true), [0]);
        // Batches of several lengths, of which one needs a line twice.
        assert_eq!(outermost_visits(&[1, 2, 3, 1, 2, 2, 3], false), [0, 3]);
    }
}
