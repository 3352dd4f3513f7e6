//! What is made once of a file and kept: a slice at a time, before what needs it is drawn or
//! answered.

use crate::engine::{SLICE, device};
use crate::file::File;
use crate::protocol::DeviceRef;
use std::sync::Arc;
use vramscope_analysis::parallel;
use vramscope_analysis::slicing::{Budget, SlicedTask};

/// What an answer is made of beyond the trace.
#[derive(Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "any of them may be needed with any other")]
pub(crate) struct Needs {
    /// [`crate::Part::carving`].
    pub(crate) carving: bool,
    /// [`crate::Part::categories`].
    pub(crate) categories: bool,
    /// [`crate::Part::pools`], which needs the first.
    pub(crate) pools: bool,
    /// [`crate::Part::anomalies`], which need the first.
    pub(crate) anomalies: bool,
}

/// What is being made.
#[derive(Default)]
pub(crate) struct Making {
    devices: Vec<(DeviceRef, Device)>,
}

#[derive(Default)]
struct Device {
    carving: SlicedTask<()>,
    categories: SlicedTask<()>,
    pools: SlicedTask<()>,
    anomalies: SlicedTask<()>,
}

impl Making {
    /// Whether all that is needed of a device is there; if not, makes a slice of it. What there is
    /// no device for is there.
    pub(crate) fn is_ready(&mut self, file: &Arc<File>, target: DeviceRef, needs: Needs) -> bool {
        let (part, of) = (target.part as usize, target.device);
        let Some(known) = file.parts.get(part) else { return true };
        let Some(trace) = known.traces.iter().position(|t| t.device.device == of) else {
            return true;
        };
        let device = device(&mut self.devices, target);
        let mut carving = || {
            let file = file.clone();
            let make =
                async move { file.parts[part].make_carving(trace, &mut Budget::of(SLICE)).await };
            !needs.carving || device.carving.advance(|| make)
        };
        let mut categories = || {
            let file = file.clone();
            let make = async move {
                file.parts[part].make_categories(trace, &mut Budget::of(SLICE)).await
            };
            !needs.categories || device.categories.advance(|| make)
        };
        // Side by side where there are threads; else one after the other, so that a slice is one
        // slice.
        let both = if parallel::threads() > 1 {
            let (carving, categories) = parallel::join(carving, categories);
            carving && categories
        } else {
            carving() && categories()
        };
        let make_pools = || {
            let file = file.clone();
            async move { file.parts[part].make_pools(trace, &mut Budget::of(SLICE)).await }
        };
        let make_anomalies = || {
            let file = file.clone();
            async move { file.parts[part].make_anomalies(trace, &mut Budget::of(SLICE)).await }
        };
        both && (!needs.pools || device.pools.advance(make_pools))
            && (!needs.anomalies || device.anomalies.advance(make_anomalies))
    }
}
