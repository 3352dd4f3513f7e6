//! Computes derived data of a device in slices, before a tile or an answer that needs it.

use crate::messages::DeviceRef;
use crate::scheduler::{SLICE, entry_of};
use std::sync::Arc;
use vramscope_report::{Derived, LoadedFile};
use vramscope_trace::parallel;
use vramscope_trace::slicing::{Budget, SlicedTask};

/// The tasks of all devices of a file.
#[derive(Default)]
pub(crate) struct DerivedBuilder {
    /// One task for each of [`Derived::ALL`].
    devices: Vec<(DeviceRef, [SlicedTask<()>; Derived::ALL.len()])>,
}

impl DerivedBuilder {
    /// Runs one slice of missing derived data. Returns true when all needed data exists, and for
    /// an unknown device.
    pub(crate) fn is_ready(
        &mut self,
        file: &Arc<LoadedFile>,
        device: DeviceRef,
        needs: &[Derived],
    ) -> bool {
        let Some(index) = file.target(device.part, device.device).map(|target| target.index) else {
            return true;
        };
        let tasks = entry_of(&mut self.devices, device);
        let is_done = |tasks: &[SlicedTask<()>], what| tasks[what as usize].done().is_some();
        let mut ready = ready(needs, |what| is_done(tasks, what));
        if ready.is_empty() {
            return true;
        }
        // Threads share the work. One thread runs one slice, so that a slice stays a slice.
        if parallel::threads() == 1 {
            ready.truncate(1);
        }
        let mut work: Vec<(Derived, &mut SlicedTask<()>)> =
            Derived::ALL.into_iter().zip(tasks).filter(|(what, _)| ready.contains(what)).collect();
        parallel::each_mut(&mut work, |(what, task)| {
            let (file, what) = (file.clone(), *what);
            task.advance(|| async move {
                let entry = &file.entries[device.part as usize];
                entry.derive(what, index, &mut Budget::of(SLICE)).await;
            });
        });
        false
    }
}

/// The missing data that can be computed now: it is needed, directly or by other missing data, and
/// its own needs are met.
fn ready(needs: &[Derived], is_done: impl Fn(Derived) -> bool) -> Vec<Derived> {
    let mut ready: Vec<Derived> = Vec::new();
    let mut open: Vec<Derived> = needs.iter().rev().copied().collect();
    while let Some(what) = open.pop() {
        if is_done(what) {
            continue;
        }
        let missing = what.needs().iter().rev().copied().filter(|&need| !is_done(need));
        let known = open.len();
        open.extend(missing);
        if open.len() == known && !ready.contains(&what) {
            ready.push(what);
        }
    }
    ready
}

#[cfg(test)]
mod tests {
    use super::*;
    use Derived::{Carving, Categories, Findings, Passes, Pools, Simulated, Steps, Tensors, Uses};

    #[test]
    fn data_is_ready_once_the_needs_of_its_needs_exist() {
        let ready = |needs: &[Derived], done: &[Derived]| ready(needs, |what| done.contains(&what));
        assert_eq!(ready(&[Simulated], &[]), [Carving, Tensors, Uses]);
        assert_eq!(ready(&[Findings], &[Carving]), [Tensors, Uses]);
        assert_eq!(ready(&[Findings, Pools], &[Carving, Tensors, Uses]), [Categories, Pools]);
        assert_eq!(ready(&[Findings], &[Carving, Tensors, Uses, Categories]), [Steps]);
        let all = [Carving, Tensors, Uses, Categories, Steps, Passes];
        assert_eq!(ready(&[Findings], &all[..5]), [Passes]);
        assert_eq!(ready(&[Findings], &all), [Findings]);
        assert_eq!(ready(&[Findings], &[Findings]), []);
    }
}
