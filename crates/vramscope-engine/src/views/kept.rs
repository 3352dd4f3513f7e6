//! What is kept between answers, and made in slices before the first that needs it.

use vramscope_analysis::slicing::SlicedTask;

/// The latest few of a kind, each with what it was made of.
pub(crate) struct Kept<K, T> {
    most: usize,
    /// The latest last.
    made: Vec<(K, T)>,
    making: Vec<(K, SlicedTask<Option<T>>)>,
}

impl<K: PartialEq + Clone, T> Kept<K, T> {
    /// So many at most.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, made: Vec::new(), making: Vec::new() }
    }

    /// Whether it is there, or cannot be made; if not, makes a slice of it.
    pub(crate) fn is_ready<F>(&mut self, key: &K, begin: impl FnOnce() -> F) -> bool
    where
        F: Future<Output = Option<T>> + Send + 'static,
    {
        if self.made.iter().any(|(of, _)| of == key) {
            return true;
        }
        let known = self.making.iter().position(|(of, _)| of == key);
        let at = known.unwrap_or_else(|| {
            if self.making.len() == self.most {
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

    /// What is kept; made in one go if it is not there.
    pub(crate) fn get(&mut self, key: &K, make: impl FnOnce() -> T) -> &mut T {
        match self.made.iter().position(|(of, _)| of == key) {
            Some(known) => self.made[known..].rotate_left(1),
            None => self.put(key.clone(), make()),
        }
        let last = self.made.len() - 1;
        &mut self.made[last].1
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.made.len()
    }

    fn put(&mut self, key: K, made: T) {
        if self.made.len() == self.most {
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
    fn the_latest_few_are_kept_and_several_are_made_in_turns() {
        let mut kept = Kept::new(2);
        for slice in 0..3 {
            assert!(!kept.is_ready(&3, || square(3)), "{slice}");
            assert!(!kept.is_ready(&4, || square(4)), "{slice}");
        }
        assert!(kept.is_ready(&3, || square(3)) && !kept.is_ready(&4, || square(4)));
        assert!(kept.is_ready(&4, || square(4)));
        assert_eq!((*kept.get(&3, || 0), *kept.get(&4, || 0)), (9, 16));
        // Who cannot wait makes it in one go; the one that was asked for longest ago goes.
        assert_eq!((*kept.get(&5, || 25), *kept.get(&4, || 0)), (25, 16));
        assert!(!kept.is_ready(&3, || square(3)));
        // What cannot be made is as ready as it will be.
        assert!((0..10).any(|_| kept.is_ready(&9, || square(9))));
    }
}
