//! The key order of event dicts.
//!
//! A recorder writes the keys of all events in one order. While a dict has the keys of the last
//! one, its fields are read by position, and its keys only need to be compared.

use crate::keys;
use vramscope_pickle::{Kind, Value};

/// Number of fields that every event has: those with the lowest key ids.
const COMMON_KEYS: usize = keys::FRAMES as usize + 1;

/// The keys of the last event, and the position of each value.
#[derive(Default)]
pub(crate) struct KeyOrder {
    /// The last event's keys, in order. Empty if it lacked a common key, or had one twice.
    keys: Vec<Value>,
    /// Position of the value of each common key.
    positions: [usize; COMMON_KEYS],
    /// Positions of the other values.
    other_positions: Vec<usize>,
}

impl KeyOrder {
    /// Whether a dict has the last event's keys, in the same order.
    pub(crate) fn matches(&self, pairs: &[Value]) -> bool {
        !self.keys.is_empty()
            && pairs.len() == 2 * self.keys.len()
            && pairs.chunks_exact(2).zip(&self.keys).all(|(pair, key)| pair[0] == *key)
    }

    /// The values of the common keys, by key id. The dict must match.
    #[inline]
    pub(crate) fn common_values(&self, pairs: &[Value]) -> [Value; COMMON_KEYS] {
        self.positions.map(|place| pairs[place])
    }

    /// The positions of the other values. Each value follows its key.
    pub(crate) fn other_positions(&self) -> &[usize] {
        &self.other_positions
    }

    /// Stores the keys of this event.
    #[cold]
    #[inline(never)]
    pub(crate) fn learn(&mut self, pairs: &[Value]) {
        self.keys.clear();
        self.other_positions.clear();
        self.positions = [0; COMMON_KEYS];
        for (i, pair) in pairs.chunks_exact(2).enumerate() {
            let place = 2 * i + 1;
            match pair[0].kind() {
                // Positions are odd, so 0 means that the key has no value yet.
                Kind::Str(key)
                    if (key.0 as usize) < COMMON_KEYS && self.positions[key.0 as usize] == 0 =>
                {
                    self.positions[key.0 as usize] = place;
                }
                Kind::Str(key) if (key.0 as usize) >= COMMON_KEYS => {
                    self.other_positions.push(place);
                }
                _ => return self.keys.clear(),
            }
            self.keys.push(pair[0]);
        }
        if self.positions.contains(&0) {
            self.keys.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vramscope_pickle::StrId;

    fn dict(keys: &[u32]) -> Vec<Value> {
        let pair = |(i, &key): (usize, &u32)| [Value::str(StrId(key)), Value::ext(0, i as u32)];
        keys.iter().enumerate().flat_map(pair).collect()
    }

    #[test]
    fn matching_keys_are_read_by_position() {
        let mut order = KeyOrder::default();
        let keys_in_order = [
            keys::FRAMES,
            keys::ACTION,
            keys::TIME_US,
            keys::POOL_ID,
            keys::ADDR,
            keys::SIZE,
            keys::STREAM,
        ];
        assert!(!order.matches(&dict(&keys_in_order)));
        order.learn(&dict(&keys_in_order));
        assert!(order.matches(&dict(&keys_in_order)));
        assert_eq!(
            order.common_values(&dict(&keys_in_order)),
            [1, 4, 5, 6, 2, 0].map(|i| Value::ext(0, i))
        );
        assert_eq!(order.other_positions(), [7]);
        let mut other = keys_in_order;
        other.swap(4, 5);
        assert!(!order.matches(&dict(&other)) && !order.matches(&dict(&keys_in_order[..6])));
    }

    #[test]
    fn missing_or_repeated_keys_do_not_match() {
        let all: Vec<u32> = (0..COMMON_KEYS as u32).collect();
        let twice: Vec<u32> = all.iter().copied().chain([keys::SIZE]).collect();
        let mut odd_key = dict(&all);
        odd_key.extend([Value::NONE, Value::NONE]);
        for pairs in [dict(&all[1..]), dict(&twice), odd_key, Vec::new()] {
            let mut order = KeyOrder::default();
            order.learn(&dict(&all));
            order.learn(&pairs);
            assert!(!order.matches(&pairs) && !order.matches(&dict(&all)), "{pairs:?}");
        }
    }
}
