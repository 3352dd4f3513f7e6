//! Room for what is still to come.
//!
//! A vector that doubles holds up to twice what is in it, and three times that while it is copied.
//! Where memory never shrinks, as in WebAssembly, the copies stay. So when it is known how much of
//! a stream is left, its vectors are made as large as they will be while there is little in them.

/// How many times what is there may still be to come for all of it to get its room at once. What a
/// stream begins with tells little of the remaining: a sixteenth of it does, and is copied for nothing.
const RESERVE_ALL_BELOW_FACTOR: usize = 16;
/// How many times what is there gets room before.
const RESERVE_STEP_FACTOR: usize = 3;

/// Make room in a vector for what comes: `recent` entries came since the last time, and `remaining` times
/// as much of the stream is left as was read since then.
// Columns of a width share one such function, which keeps the page's module small.
#[inline(never)]
pub fn reserve_for<T>(vec: &mut Vec<T>, recent: usize, remaining: f64) {
    // Without the memory for it, it grows as it comes.
    vec.try_reserve_exact(additional(vec.len(), vec.capacity(), recent, remaining))
        .unwrap_or_default();
}

/// How many more entries to make room for in a vector of `len` entries that has room for
/// `capacity`; 0 where it can wait.
#[inline(never)]
fn additional(len: usize, capacity: usize, recent: usize, remaining: f64) -> usize {
    let to_come = recent as f64 * remaining;
    // What is enough for now is looked at again later; towards the end what is enough for all is
    // less than that.
    let enough = to_come + to_come / 32.0 + recent as f64 / 8.0;
    if (capacity - len) as f64 >= enough.min(recent as f64 * 1.5) {
        return 0;
    }
    // A little more than that, and what half of such a part may bring: what is a little too small
    // has to be copied once more.
    let all = (to_come + to_come / 32.0 + recent as f64 / 2.0) as usize;
    if all <= len * RESERVE_ALL_BELOW_FACTOR { all } else { len * RESERVE_STEP_FACTOR }
}

#[cfg(test)]
mod tests {
    use super::additional;

    /// The capacity after each of a hundred parts of a stream, of which `rate` tells how many
    /// entries it has.
    fn capacities(rate: impl Fn(usize) -> usize) -> Vec<usize> {
        let (mut len, mut capacity) = (0, 0);
        let parts = (1..=100).map(|part| {
            len += rate(part);
            if len > capacity {
                capacity = len.max(2 * capacity);
            }
            let more = additional(len, capacity, rate(part), (100 - part) as f64);
            capacity = capacity.max(len + more);
            capacity
        });
        parts.collect()
    }

    #[test]
    fn a_steady_stream_has_its_room_early() {
        let mut steady = capacities(|_| 1000);
        assert!((100_000..104_000).contains(&steady[25]), "{steady:?}");
        steady.dedup();
        assert!(steady.len() <= 4, "{steady:?}");
    }

    #[test]
    fn a_beginning_unlike_the_rest_does_no_harm() {
        let dense = capacities(|part| if part <= 2 { 5000 } else { 1000 });
        assert!((108_000..112_000).contains(&dense[99]), "{dense:?}");
        let recent = capacities(|part| if part <= 5 { 10 } else { 1000 });
        assert!((95_000..99_000).contains(&recent[99]), "{recent:?}");
        assert_eq!(additional(0, 0, 0, 50.0), 0);
    }

    #[test]
    fn nothing_is_copied_for_an_end_that_has_its_room() {
        assert_eq!(additional(32_881, 40_326, 5919, 0.66), 0);
        assert!(
            additional(134_936, 140_000, 13_819, 1.10) > 15_200,
            "what is to come does not fit"
        );
        assert_eq!(additional(5, 5, 5, f64::INFINITY), 15);
    }
}
