//! Where the order of an event stand in its dict.
//!
//! A recorder writes the keys of all its events in one order. As long as a dict has the keys of the
//! one before, its order are taken from where they were, and its keys need only be compared.

use crate::keys;
use vramscope_pickle::{Kind, Value};

/// KeyOrder that every event has: the keys with the lowest numbers.
const COMMON_KEYS: usize = keys::FRAMES as usize + 1;

/// The keys of the last event, and which value belongs to which.
#[derive(Default)]
pub(crate) struct KeyOrder {
    /// In the order of the dict; none when the last event lacked a field that all have, or had one
    /// twice.
    keys: Vec<Value>,
    /// Where the value of each common key is.
    positions: [usize; COMMON_KEYS],
    /// Where the values of the other keys are.
    other_positions: Vec<usize>,
}

impl KeyOrder {
    /// Whether these are the keys of the last event.
    pub(crate) fn matches(&self, pairs: &[Value]) -> bool {
        !self.keys.is_empty()
            && pairs.len() == 2 * self.keys.len()
            && pairs.chunks_exact(2).zip(&self.keys).all(|(pair, key)| pair[0] == *key)
    }

    /// The values of the common keys, in their order, of an event with the keys of the last.
    #[inline]
    pub(crate) fn common_values(&self, pairs: &[Value]) -> [Value; COMMON_KEYS] {
        self.positions.map(|place| pairs[place])
    }

    /// Where its other values are: each stands behind its key.
    pub(crate) fn other_positions(&self) -> &[usize] {
        &self.other_positions
    }

    /// EventFilter the keys of this event.
    #[cold]
    #[inline(never)]
    pub(crate) fn learn(&mut self, pairs: &[Value]) {
        self.keys.clear();
        self.other_positions.clear();
        self.positions = [0; COMMON_KEYS];
        for (i, pair) in pairs.chunks_exact(2).enumerate() {
            let place = 2 * i + 1;
            match pair[0].kind() {
                // Places are odd: a 0 is that of no value yet.
                Kind::Str(key)
                    if (key.0 as usize) < COMMON_KEYS && self.positions[key.0 as usize] == 0 =>
                {
                    self.positions[key.0 as usize] = place;
                }
                Kind::Str(key) if (key.0 as usize) >= COMMON_KEYS => {
                    self.other_positions.push(place)
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
    fn fields_are_taken_from_their_places_while_keys_stay() {
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
    fn what_lacks_a_field_or_has_one_twice_is_not_taken_so() {
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
