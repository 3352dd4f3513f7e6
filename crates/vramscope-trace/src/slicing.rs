//! Cooperative slicing: long analyses pause regularly, so that their worker can handle messages.
//!
//! A long analysis is an `async fn` that charges its work to a [`Budget`], and pauses when the
//! budget of a slice is used up. The compiler keeps its state across pauses. There is no async
//! runtime and no waiting. [`SlicedTask`] runs an analysis one slice at a time. [`now`] runs it
//! without pauses. Both run the same code. Budgets count work, not time, so results do not depend
//! on slicing.

use crate::parallel;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

/// Number of items processed between two calls of [`Budget::charge`]. Small enough for short
/// slices, and large enough to make the calls free.
pub const STRIDE: usize = 1 << 12;

/// The amount of work in a slice.
///
/// A unit is the cost of a node in a walk through a sum tree, about ten nanoseconds. An event or a
/// block may cost several units.
#[derive(Debug)]
pub struct Budget {
    /// Units per slice.
    slice: u64,
    /// Units left in the current slice.
    left: u64,
}

impl Budget {
    /// A budget that pauses after every `slice` units.
    pub fn of(slice: u64) -> Self {
        Self { slice, left: slice }
    }

    /// A budget that never pauses.
    pub fn unlimited() -> Self {
        Self::of(u64::MAX)
    }

    /// A new budget with the same slice, for concurrent work.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self::of(self.slice)
    }

    /// Charges `work` units. The returned future pauses if that ends the slice.
    #[inline]
    pub fn charge(&mut self, work: u64) -> Pause {
        self.left = self.left.saturating_sub(work);
        let is_over = self.left == 0;
        if is_over {
            self.left = self.slice;
        }
        Pause(is_over)
    }
}

/// A future that is pending once if it is a pause. Otherwise it is ready at once.
#[must_use = "a pause has no effect unless awaited"]
pub struct Pause(bool);

impl Future for Pause {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if std::mem::take(&mut self.0) { Poll::Pending } else { Poll::Ready(()) }
    }
}

/// Splits `0..count` into ranges of at most [`STRIDE`] numbers.
pub fn strides(count: usize) -> impl Iterator<Item = std::ops::Range<usize>> + Send {
    (0..count).step_by(STRIDE).map(move |from| from..count.min(from + STRIDE))
}

/// `vec![value; count]` in slices. The first access to fresh memory is slow, so a large vector
/// needs several slices.
pub async fn filled<T: Copy + Send>(value: T, count: usize, budget: &mut Budget) -> Vec<T> {
    let mut all = Vec::with_capacity(count);
    for part in strides(count) {
        budget.charge((part.len() * size_of::<T>()).div_ceil(8) as u64).await;
        all.resize(part.end, value);
    }
    all
}

/// A sliced analysis behind a pointer.
///
/// The compiler generates the code of an `async fn` in every crate that polls it. A function that
/// returns this type keeps the code in its own crate, once, if it is not inlined.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A task that runs one slice at a time, and stores its result.
#[derive(Default)]
pub enum SlicedTask<T> {
    /// Not started.
    #[default]
    New,
    /// In progress.
    Working(Pin<Box<dyn Future<Output = T> + Send>>),
    /// Finished, with this result.
    Done(T),
}

impl<T> SlicedTask<T> {
    /// Runs one slice, unless the task was already finished. Starts a new task with `begin`.
    /// Returns whether the task was finished before the call.
    pub fn advance<F: Future<Output = T> + Send + 'static>(
        &mut self,
        begin: impl FnOnce() -> F,
    ) -> bool {
        if let Self::New = self {
            *self = Self::Working(Box::pin(begin()));
        }
        let Self::Working(work) = self else { return true };
        if let Poll::Ready(done) = work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            *self = Self::Done(done);
        }
        false
    }

    /// The result of a finished task.
    pub fn done(&self) -> Option<&T> {
        if let Self::Done(done) = self { Some(done) } else { None }
    }

    /// The result of a finished task.
    pub fn done_mut(&mut self) -> Option<&mut T> {
        if let Self::Done(done) = self { Some(done) } else { None }
    }
}

/// Runs two futures and returns both results. Runs them concurrently if there are several threads,
/// otherwise one after the other. A pause of either pauses both.
pub async fn join<A: Send, B: Send>(
    a: impl Future<Output = A> + Send,
    b: impl Future<Output = B> + Send,
) -> (A, B) {
    let (mut a, mut b) = (pin!(a), pin!(b));
    let (mut result_a, mut result_b) = (None, None);
    poll_fn(|_| {
        let (mut poll_a, mut poll_b) =
            (|| poll_once(a.as_mut(), &mut result_a), || poll_once(b.as_mut(), &mut result_b));
        if parallel::threads() > 1 {
            parallel::join(poll_a, poll_b);
        } else if poll_a() {
            poll_b();
        }
        if result_a.is_none() || result_b.is_none() {
            return Poll::Pending;
        }
        result_a.take().zip(result_b.take()).map_or(Poll::Pending, Poll::Ready)
    })
    .await
}

/// Runs one slice of a future, unless it is finished. Returns whether it is finished now.
fn poll_once<T>(work: Pin<&mut impl Future<Output = T>>, result: &mut Option<T>) -> bool {
    if result.is_none()
        && let Poll::Ready(done) = work.poll(&mut Context::from_waker(Waker::noop()))
    {
        *result = Some(done);
    }
    result.is_some()
}

/// Runs an analysis without pauses.
pub fn now<T>(work: impl AsyncFnOnce(&mut Budget) -> T) -> T {
    run_to_completion(work(&mut Budget::unlimited()))
}

/// Runs a future to its end, ignoring pauses.
pub fn run_to_completion<T>(work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    loop {
        if let Poll::Ready(done) = work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return done;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn count(to: u32, mut budget: Budget) -> u32 {
        let mut done = 0;
        for _ in 0..to {
            done += 1;
            budget.charge(3).await;
        }
        done
    }

    #[test]
    fn task_pauses_when_its_budget_is_used_up() {
        assert_eq!(run_to_completion(count(10, Budget::unlimited())), 10);
        assert_eq!(run_to_completion(count(10, Budget::of(6))), 10);
        let mut work = SlicedTask::default();
        let mut slices = 0;
        while !work.advance(|| count(10, Budget::of(6))) {
            slices += 1;
            assert_eq!(work.done().is_some(), slices == 6);
        }
        // Each item costs 3 of 6 units, so there is a pause after every second item.
        assert_eq!((work.done(), slices), (Some(&10), 6));
        assert!(
            work.advance(|| count(5, Budget::of(1))) && work.done() == Some(&10),
            "a finished task keeps its result"
        );
    }

    #[test]
    fn join_returns_both_results_for_any_lengths() {
        for (a, b) in [(0, 0), (1, 9), (9, 1), (9, 9)] {
            for slice in [1, 6, u64::MAX] {
                let both = join(count(a, Budget::of(slice)), count(b, Budget::of(slice)));
                assert_eq!(run_to_completion(both), (a, b));
            }
        }
    }

    #[test]
    fn strides_cover_the_range_once() {
        for count in [0, 1, STRIDE - 1, STRIDE, STRIDE + 1, 3 * STRIDE] {
            let all: Vec<usize> = strides(count).flatten().collect();
            assert_eq!(all, (0..count).collect::<Vec<_>>());
        }
    }
}
