//! An LRU cache whose values are computed in slices, before the first answer that needs them.

use vramscope_analysis::slicing::SlicedTask;

/// The most recently used values by key, and the tasks that compute missing values.
pub(crate) struct LruCache<K, T> {
    capacity: usize,
    /// The most recently used last.
    values: Vec<(K, T)>,
    /// At most `capacity` tasks, the oldest first.
    tasks: Vec<(K, SlicedTask<Option<T>>)>,
}

impl<K: PartialEq + Clone, T> LruCache<K, T> {
    /// An empty cache of at most `capacity` values.
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity, values: Vec::new(), tasks: Vec::new() }
    }

    /// Whether the value is cached, or cannot be computed. If not, runs a slice of the task that
    /// computes it. `begin` starts that task.
    pub(crate) fn is_ready<F>(&mut self, key: &K, begin: impl FnOnce() -> F) -> bool
    where
        F: Future<Output = Option<T>> + Send + 'static,
    {
        if self.values.iter().any(|(cached, _)| cached == key) {
            return true;
        }
        let task = self.tasks.iter().position(|(cached, _)| cached == key);
        let at = task.unwrap_or_else(|| {
            if self.tasks.len() == self.capacity {
                self.tasks.remove(0);
            }
            self.tasks.push((key.clone(), SlicedTask::New));
            self.tasks.len() - 1
        });
        self.tasks[at].1.advance(begin);
        if self.tasks[at].1.done().is_none() {
            return false;
        }
        if let (key, SlicedTask::Done(Some(value))) = self.tasks.remove(at) {
            self.put(key, value);
        }
        true
    }

    /// The cached value, marked as most recently used. A missing value is computed at once.
    pub(crate) fn get(&mut self, key: &K, make: impl FnOnce() -> T) -> &mut T {
        match self.values.iter().position(|(cached, _)| cached == key) {
            Some(hit) => self.values[hit..].rotate_left(1),
            None => self.put(key.clone(), make()),
        }
        let last = self.values.len() - 1;
        &mut self.values[last].1
    }

    /// The cached value, without marking it as used.
    pub(crate) fn peek(&self, key: &K) -> Option<&T> {
        self.values.iter().find(|(cached, _)| cached == key).map(|(_, value)| value)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    fn put(&mut self, key: K, value: T) {
        if self.values.len() == self.capacity {
            self.values.remove(0);
        }
        self.values.push((key, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vramscope_analysis::slicing::Budget;

    /// The square of numbers below 9, after `n` slices.
    async fn square(n: u32) -> Option<u32> {
        let mut budget = Budget::of(1);
        for _ in 0..n {
            budget.charge(1).await;
        }
        (n < 9).then_some(n * n)
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
        // `get` computes a missing value at once and evicts the least recently used one.
        assert_eq!((*cache.get(&5, || 25), *cache.get(&4, || 0)), (25, 16));
        assert!(!cache.is_ready(&3, || square(3)));
        // A value that cannot be computed counts as ready.
        assert!((0..10).any(|_| cache.is_ready(&9, || square(9))));
    }
}
