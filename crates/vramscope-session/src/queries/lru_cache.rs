//! An LRU cache whose values are computed in slices, before the first answer that needs them.

use vramscope_trace::slicing::SlicedTask;

/// The most recently used values by key, and the tasks that compute missing values.
pub(crate) struct LruCache<K, T> {
    capacity: usize,
    /// The most recently used last.
    values: Vec<(K, T)>,
    /// At most `capacity` tasks, the oldest first.
    tasks: Vec<(K, SlicedTask<T>)>,
}

impl<K: PartialEq + Clone, T> LruCache<K, T> {
    /// An empty cache of at most `capacity` values.
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity, values: Vec::new(), tasks: Vec::new() }
    }

    /// The cached value, marked as most recently used. If it is missing, runs a slice of the task
    /// that computes it, which `begin` starts.
    pub(crate) fn poll<F>(&mut self, key: K, begin: impl FnOnce(K) -> F) -> Option<&mut T>
    where
        F: Future<Output = T> + Send + 'static,
    {
        if let Some(hit) = self.values.iter().position(|(cached, _)| *cached == key) {
            self.values[hit..].rotate_left(1);
        } else {
            let task = self.tasks.iter().position(|(cached, _)| *cached == key);
            let at = task.unwrap_or_else(|| {
                if self.tasks.len() == self.capacity {
                    self.tasks.remove(0);
                }
                self.tasks.push((key.clone(), SlicedTask::New));
                self.tasks.len() - 1
            });
            self.tasks[at].1.advance(|| begin(key));
            self.tasks[at].1.done()?;
            if let (key, SlicedTask::Done(value)) = self.tasks.remove(at) {
                self.put(key, value);
            }
        }
        self.values.last_mut().map(|(_, value)| value)
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
    use vramscope_trace::slicing::Budget;

    /// The square of a number, after as many slices.
    async fn square(n: u32) -> u32 {
        let mut budget = Budget::of(1);
        for _ in 0..n {
            budget.charge(1).await;
        }
        n * n
    }

    #[test]
    fn evicts_the_least_recently_used_and_fills_in_turns() {
        let mut cache = LruCache::new(2);
        for slice in 0..3 {
            assert!(cache.poll(3, square).is_none(), "{slice}");
            assert!(cache.poll(4, square).is_none(), "{slice}");
        }
        assert_eq!(cache.poll(3, square), Some(&mut 9));
        assert_eq!(cache.poll(4, square), None);
        assert_eq!(cache.poll(4, square), Some(&mut 16));
        assert_eq!(cache.poll(3, square), Some(&mut 9));
        // 4 is least recently used, so 0 takes its place.
        assert_eq!(cache.poll(0, square), Some(&mut 0));
        assert_eq!(cache.poll(3, square), Some(&mut 9));
        assert_eq!(cache.poll(4, square), None);
    }
}
