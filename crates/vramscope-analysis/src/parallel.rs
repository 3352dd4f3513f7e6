//! Independent work side by side where the build has threads (feature `parallel`), and one after
//! the other where it has none. Either way the results are the same, bit for bit: nothing here may
//! depend on who finishes first, and what is sorted has no two equal keys.
//!
//! A thread that waits for its other half takes whatever else waits. So work that is handed in here
//! never waits for a lock that other such work holds: what is made once and kept is made before the
//! fork.

#[cfg(feature = "parallel")]
use rayon::prelude::*;

/// Both results.
#[cfg(feature = "parallel")]
pub fn join<A: Send, B: Send>(
    a: impl FnOnce() -> A + Send,
    b: impl FnOnce() -> B + Send,
) -> (A, B) {
    rayon::join(a, b)
}

/// Both results.
#[cfg(not(feature = "parallel"))]
pub fn join<A, B>(a: impl FnOnce() -> A, b: impl FnOnce() -> B) -> (A, B) {
    (a(), b())
}

/// Every item's result, in the order of the items.
#[cfg(feature = "parallel")]
pub fn map<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Send + Sync) -> Vec<R> {
    items.par_iter().map(work).collect()
}

/// Every item's result, in the order of the items.
#[cfg(not(feature = "parallel"))]
pub fn map<T, R>(items: &[T], work: impl Fn(&T) -> R) -> Vec<R> {
    items.iter().map(work).collect()
}

/// What `keep` makes of the numbers below `count`, in their order; those of which it makes nothing
/// are left out.
#[cfg(feature = "parallel")]
pub fn filter_map<R: Send>(count: u32, keep: impl Fn(u32) -> Option<R> + Send + Sync) -> Vec<R> {
    (0..count).into_par_iter().filter_map(keep).collect()
}

/// What `keep` makes of the numbers below `count`, in their order; those of which it makes nothing
/// are left out.
#[cfg(not(feature = "parallel"))]
pub fn filter_map<R>(count: u32, keep: impl Fn(u32) -> Option<R>) -> Vec<R> {
    (0..count).filter_map(keep).collect()
}

/// Sorts what has no two equals.
#[cfg(feature = "parallel")]
pub fn sort<T: Ord + Send>(items: &mut [T]) {
    items.par_sort_unstable();
}

/// Sorts what has no two equals.
#[cfg(not(feature = "parallel"))]
pub fn sort<T: Ord>(items: &mut [T]) {
    items.sort_unstable();
}

/// Work on every item.
#[cfg(feature = "parallel")]
pub fn each_mut<T: Send>(items: &mut [T], work: impl Fn(&mut T) + Send + Sync) {
    items.par_iter_mut().for_each(work);
}

/// Work on every item.
#[cfg(not(feature = "parallel"))]
pub fn each_mut<T>(items: &mut [T], work: impl Fn(&mut T)) {
    items.iter_mut().for_each(work);
}

/// Into how many parts work is worth dividing.
#[cfg(feature = "parallel")]
pub fn threads() -> usize {
    rayon::current_num_threads()
}

/// Into how many parts work is worth dividing.
#[cfg(not(feature = "parallel"))]
pub fn threads() -> usize {
    1
}
