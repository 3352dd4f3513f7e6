//! Reserving vector capacity from the remaining length of a stream.
//!
//! A vector that doubles holds up to twice its content, and three times while it is copied.
//! WebAssembly memory never shrinks, so the copies stay. When the remaining length is known,
//! vectors get their final capacity while they are still small.

/// Reserve the full projected size once the remaining input is at most 16x the current length. The
/// start of a stream predicts the rest badly, so a smaller factor would copy more for nothing.
const RESERVE_ALL_BELOW_FACTOR: usize = 16;
/// Below that, reserve 3x the current length.
const RESERVE_STEP_FACTOR: usize = 3;

/// Reserves capacity for the rest of the stream. `recent` entries were added since the last call,
/// and the rest of the stream is `remaining` times the bytes read since then.
// Out of line, so that columns of one width share the code.
#[inline(never)]
pub fn reserve_for<T>(vec: &mut Vec<T>, recent: usize, remaining: f64) {
    // On failure the vector grows as entries come.
    vec.try_reserve_exact(additional(vec.len(), vec.capacity(), recent, remaining))
        .unwrap_or_default();
}

/// The number of entries to reserve in a vector of `len` entries; 0 if `capacity` lasts until the
/// next call.
#[inline(never)]
fn additional(len: usize, capacity: usize, recent: usize, remaining: f64) -> usize {
    let to_come = recent as f64 * remaining;
    // Enough until the next call. Near the end of the stream, enough for the rest is less.
    let enough = to_come + to_come / 32.0 + recent as f64 / 8.0;
    if (capacity - len) as f64 >= enough.min(recent as f64 * 1.5) {
        return 0;
    }
    // A margin on top of the projection: half of `recent`. A capacity slightly too small costs
    // another copy.
    let all = (to_come + to_come / 32.0 + recent as f64 / 2.0) as usize;
    if all <= len * RESERVE_ALL_BELOW_FACTOR { all } else { len * RESERVE_STEP_FACTOR }
}

#[cfg(test)]
mod tests {
    use super::additional;

    /// The capacity after each of 100 parts of a stream. `rate` gives the number of entries of a
    /// part.
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
    fn steady_stream_gets_final_capacity_early() {
        let mut steady = capacities(|_| 1000);
        assert!((100_000..104_000).contains(&steady[25]), "{steady:?}");
        steady.dedup();
        assert!(steady.len() <= 4, "{steady:?}");
    }

    #[test]
    fn misleading_start_reserves_no_excess() {
        let dense = capacities(|part| if part <= 2 { 5000 } else { 1000 });
        assert!((108_000..112_000).contains(&dense[99]), "{dense:?}");
        let recent = capacities(|part| if part <= 5 { 10 } else { 1000 });
        assert!((95_000..99_000).contains(&recent[99]), "{recent:?}");
        assert_eq!(additional(0, 0, 0, 50.0), 0);
    }

    #[test]
    fn sufficient_capacity_is_not_grown_near_the_end() {
        assert_eq!(additional(32_881, 40_326, 5919, 0.66), 0);
        assert!(
            additional(134_936, 140_000, 13_819, 1.10) > 15_200,
            "the rest of the stream does not fit"
        );
        assert_eq!(additional(5, 5, 5, f64::INFINITY), 15);
    }
}
