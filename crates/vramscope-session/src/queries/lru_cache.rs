//! An LRU cache whose values are made in slices, before the first answer that needs them.

use vramscope_analysis::slicing::SlicedTask;

/// The most recently used values, each with the key that it was made from.
pub(crate) struct LruCache<K, T> {
    capacity: usize,
    /// The most recently used last.
    made: Vec<(K, T)>,
    making: Vec<(K, SlicedTask<Option<T>>)>,
}

impl<K: PartialEq + Clone, T> LruCache<K, T> {
    /// An empty cache of at most `capacity` values.
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity, made: Vec::new(), making: Vec::new() }
    }

    /// Whether the value exists, or cannot be made. If not, runs a slice of making it.
    pub(crate) fn is_ready<F>(&mut self, key: &K, begin: impl FnOnce() -> F) -> bool
    where
        F: Future<Output = Option<T>> + Send + 'static,
    {
        if self.made.iter().any(|(of, _)| of == key) {
            return true;
        }
        let known = self.making.iter().position(|(of, _)| of == key);
        let at = known.unwrap_or_else(|| {
            if self.making.len() == self.capacity {
                self.making.remove(0);
            }
            self.making.push((key.clone(), SlicedTask::New));
            self.making.len() - 1
        });
        self.making[at].1.advance(begin);
        if self.making[at].1.done().is_none() {
            return false;
        }
        if let (key, SlicedTask::Done(Some(made))) = self.making.remove(at) {
            self.put(key, made);
        }
        true
    }

    /// The cached value; a missing one is made at once.
    pub(crate) fn get(&mut self, key: &K, make: impl FnOnce() -> T) -> &mut T {
        match self.made.iter().position(|(of, _)| of == key) {
            Some(known) => self.made[known..].rotate_left(1),
            None => self.put(key.clone(), make()),
        }
        let last = self.made.len() - 1;
        &mut self.made[last].1
    }

    /// The cached value, if it exists. Its age stays.
    pub(crate) fn peek(&self, key: &K) -> Option<&T> {
        self.made.iter().find(|(of, _)| of == key).map(|(_, value)| value)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.made.len()
    }

    fn put(&mut self, key: K, made: T) {
        if self.made.len() == self.capacity {
            self.made.remove(0);
        }
        self.made.push((key, made));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vramscope_analysis::slicing::Budget;

    async fn square(of: u32) -> Option<u32> {
        let mut budget = Budget::of(1);
        for _ in 0..of {
            budget.charge(1).await;
        }
        (of < 9).then_some(of * of)
    }

    #[test]
    fn evicts_the_least_recently_used_and_fills_in_turns() {
        let mut cache = LruCache::new(2);
        for slice in 0..3 {
            assert!(!cache.is_ready(&3, || square(3)), "{slice}");
            assert!(!cache.is_ready(&4, || square(4)), "{slice}");
        }
        assert!(cache.is_ready(&3, || square(3)) && !cache.is_ready(&4, || square(4)));
        assert!(cache.is_ready(&4, || square(4)));
        assert_eq!((*cache.get(&3, || 0), *cache.get(&4, || 0)), (9, 16));
        // A synchronous caller makes the value at once; the least recently used value goes.
        assert_eq!((*cache.get(&5, || 25), *cache.get(&4, || 0)), (25, 16));
        assert!(!cache.is_ready(&3, || square(3)));
        // A value that cannot be made counts as ready.
        assert!((0..10).any(|_| cache.is_ready(&9, || square(9))));
    }
}
