//! Data parallelism. With feature `parallel`, independent work runs on several threads. Without it,
//! the work runs in sequence.
//!
//! Results are equal bit for bit in both builds. No result may depend on the order in which threads
//! finish.
//!
//! A thread that waits for another half of its work steals other pending work meanwhile. So work
//! passed to this module must never wait for a lock that other such work holds. Compute shared
//! cached values before the fork.

#[cfg(feature = "parallel")]
use rayon::prelude::*;

/// Whether work runs on several threads, if the machine has them. Crates that use this one may lack
/// the feature while it is on here.
pub const IS_ENABLED: bool = cfg!(feature = "parallel");

/// Runs two closures and returns both results.
#[cfg(feature = "parallel")]
pub fn join<A: Send, B: Send>(
    a: impl FnOnce() -> A + Send,
    b: impl FnOnce() -> B + Send,
) -> (A, B) {
    rayon::join(a, b)
}

/// Runs two closures and returns both results.
#[cfg(not(feature = "parallel"))]
pub fn join<A, B>(a: impl FnOnce() -> A, b: impl FnOnce() -> B) -> (A, B) {
    (a(), b())
}

/// Maps every item, and keeps their order.
#[cfg(feature = "parallel")]
pub fn map<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Send + Sync) -> Vec<R> {
    items.par_iter().map(work).collect()
}

/// Maps every item, and keeps their order.
#[cfg(not(feature = "parallel"))]
pub fn map<T, R>(items: &[T], work: impl Fn(&T) -> R) -> Vec<R> {
    items.iter().map(work).collect()
}

/// Applies `keep` to the numbers below `count`. Returns the `Some` results in order.
#[cfg(feature = "parallel")]
pub fn filter_map<R: Send>(count: u32, keep: impl Fn(u32) -> Option<R> + Send + Sync) -> Vec<R> {
    (0..count).into_par_iter().filter_map(keep).collect()
}

/// Applies `keep` to the numbers below `count`. Returns the `Some` results in order.
#[cfg(not(feature = "parallel"))]
pub fn filter_map<R>(count: u32, keep: impl Fn(u32) -> Option<R>) -> Vec<R> {
    (0..count).filter_map(keep).collect()
}

/// Runs `work` on every item.
#[cfg(feature = "parallel")]
pub fn each_mut<T: Send>(items: &mut [T], work: impl Fn(&mut T) + Send + Sync) {
    items.par_iter_mut().for_each(work);
}

/// Runs `work` on every item.
#[cfg(not(feature = "parallel"))]
pub fn each_mut<T>(items: &mut [T], work: impl Fn(&mut T)) {
    items.iter_mut().for_each(work);
}

/// Number of threads that share the work.
#[cfg(feature = "parallel")]
pub fn threads() -> usize {
    rayon::current_num_threads()
}

/// Number of threads that share the work.
#[cfg(not(feature = "parallel"))]
pub fn threads() -> usize {
    1
}
