//! Long work in slices, so that whoever does it can look at something else in between.
//!
//! An analysis that takes long is an `async fn` which is lent a [`Budget`] and tells it how much it
//! has done. What such a function holds where it pauses is kept by the compiler. There is no
//! runtime, and nothing to wait for: [`SlicedTask`] goes on with it a slice at a time, [`run_to_completion`] to
//! its end, and both run the same code. Slices are counted in work, not by a clock, so what comes
//! out cannot depend on them. Without feature `slices` there are no pauses: what is left of all
//! this is a call.

use crate::parallel;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

/// So many items are looked at before [`Budget::charge`] is asked: often enough for slices, and too
/// seldom to cost anything.
pub const STRIDE: usize = 1 << 12;

/// How much is done before a pause. A unit is about what a node costs in a walk through a sum tree,
/// ten nanoseconds; an event or a block may cost several.
#[derive(Debug)]
pub struct Budget {
    slice: u64,
    left: u64,
}

impl Budget {
    /// A pause after each so many units.
    pub fn of(slice: u64) -> Self {
        Self { slice, left: slice }
    }

    /// No pause.
    pub fn unlimited() -> Self {
        Self::of(u64::MAX)
    }

    /// Another one like it, for work beside this.
    #[must_use]
    pub fn beside(&self) -> Self {
        Self::of(self.slice)
    }

    /// So much has been done: pauses when that ends a slice.
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

/// A pause, if it is one.
#[must_use = "nobody pauses who does not await it"]
pub struct Pause(bool);

impl Future for Pause {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if std::mem::take(&mut self.0) { Poll::Pending } else { Poll::Ready(()) }
    }
}

/// The numbers of a range, [`STRIDE`] at a time.
pub fn strides(count: usize) -> impl Iterator<Item = std::ops::Range<usize>> + Send {
    (0..count).step_by(STRIDE).map(move |from| from..count.min(from + STRIDE))
}

/// As `vec![value; count]`, in slices: memory that nobody has touched yet is slow to touch.
pub async fn filled<T: Copy + Send>(value: T, count: usize, budget: &mut Budget) -> Vec<T> {
    let mut all = Vec::with_capacity(count);
    for part in strides(count) {
        budget.charge((part.len() * size_of::<T>()).div_ceil(8) as u64).await;
        all.resize(part.end, value);
    }
    all
}

/// Work that is under way, or what came of it.
#[derive(Default)]
pub enum SlicedTask<T> {
    /// Not yet begun.
    #[default]
    New,
    /// Under way.
    Working(Pin<Box<dyn Future<Output = T> + Send>>),
    /// Done.
    Done(T),
}

impl<T> SlicedTask<T> {
    /// Whether it is done already. If not, it goes on by a slice, or begins with one of what
    /// `begin` gives.
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

    /// What came of it.
    pub fn done(&self) -> Option<&T> {
        if let Self::Done(done) = self { Some(done) } else { None }
    }

    /// What came of it.
    pub fn done_mut(&mut self) -> Option<&mut T> {
        if let Self::Done(done) = self { Some(done) } else { None }
    }
}

/// Both results: side by side where there are threads, each pausing where it would by itself; else
/// one after the other.
pub async fn join<A: Send, B: Send>(
    a: impl Future<Output = A> + Send,
    b: impl Future<Output = B> + Send,
) -> (A, B) {
    let (mut a, mut b) = (pin!(a), pin!(b));
    let (mut of_a, mut of_b) = (None, None);
    poll_fn(|_| {
        let (mut go_a, mut go_b) =
            (|| go_on(a.as_mut(), &mut of_a), || go_on(b.as_mut(), &mut of_b));
        if parallel::threads() > 1 {
            parallel::join(go_a, go_b);
        } else if go_a() {
            go_b();
        }
        if of_a.is_none() || of_b.is_none() {
            return Poll::Pending;
        }
        of_a.take().zip(of_b.take()).map_or(Poll::Pending, Poll::Ready)
    })
    .await
}

/// A slice more, unless it is done; whether it is done.
fn go_on<T>(work: Pin<&mut impl Future<Output = T>>, done: &mut Option<T>) -> bool {
    if done.is_none()
        && let Poll::Ready(made) = work.poll(&mut Context::from_waker(Waker::noop()))
    {
        *done = Some(made);
    }
    done.is_some()
}

/// To the end, in one go.
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
    fn slices_end_when_their_work_is_done() {
        assert_eq!(run_to_completion(count(10, Budget::unlimited())), 10);
        assert_eq!(run_to_completion(count(10, Budget::of(6))), 10);
        let mut work = SlicedTask::default();
        let mut slices = 0;
        while !work.advance(|| count(10, Budget::of(6))) {
            slices += 1;
            assert_eq!(work.done().is_some(), slices == 6);
        }
        // Two of three units each: a pause after the second, the fourth and so on.
        assert_eq!((work.done(), slices), (Some(&10), 6));
        assert!(
            work.advance(|| count(5, Budget::of(1))) && work.done() == Some(&10),
            "what is done stays"
        );
    }

    #[test]
    fn both_of_two_come_whatever_they_take() {
        for (a, b) in [(0, 0), (1, 9), (9, 1), (9, 9)] {
            for slice in [1, 6, u64::MAX] {
                let both = join(count(a, Budget::of(slice)), count(b, Budget::of(slice)));
                assert_eq!(run_to_completion(both), (a, b));
            }
        }
    }

    #[test]
    fn strides_cover_all_once() {
        for count in [0, 1, STRIDE - 1, STRIDE, STRIDE + 1, 3 * STRIDE] {
            let all: Vec<usize> = strides(count).flatten().collect();
            assert_eq!(all, (0..count).collect::<Vec<_>>());
        }
    }
}
