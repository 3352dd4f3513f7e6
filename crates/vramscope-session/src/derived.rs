//! Computes derived data of a device in slices, before a tile or an answer that needs it.

use crate::scheduler::{SLICE, entry_of};
use std::sync::Arc;
use vramscope_analysis::parallel;
use vramscope_analysis::slicing::{Budget, SlicedTask};
use vramscope_protocol::DeviceRef;
use vramscope_report::{Derived, LoadedFile};

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
        // What can be computed now: its own needs are met.
        let mut ready: Vec<Derived> = Vec::new();
        for what in needs.iter().copied().filter(|&what| !is_done(tasks, what)) {
            let missing = what.needs().iter().copied().find(|&need| !is_done(tasks, need));
            let next = missing.unwrap_or(what);
            if !ready.contains(&next) {
                ready.push(next);
            }
        }
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
