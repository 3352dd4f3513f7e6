//! How much longer a step takes with a lever, and on which GPU.

use crate::target::Target;
use crate::what_if::CONTEXT;
use vramscope_gpus::Device;
use vramscope_inference::{Arena, Cost, Editable, Machine, Recipe};
use vramscope_trace::slicing::Budget;

/// The GPU where neither the question nor the recording names one.
const ASSUMED: &str = "H100";

/// The GPU of estimates: that with the memory that was asked for, in bytes, if that is exactly a
/// known one's; else that of the recording, else an H100. `None` where its speeds are not known.
pub(crate) fn machine(target: Target<'_>, asked: Option<u64>) -> Option<Machine> {
    let dry = target.entry.sidecar().and_then(|sidecar| sidecar.dry.as_deref());
    let own = match dry {
        Some(dry) => Some(dry.gpu.as_str()),
        None => target.entry.device_memory(target.index).map(|device| device.name.as_str()),
    };
    let own = own.and_then(Device::called);
    let asked = asked.and_then(|bytes| {
        let is_asked = |device: &&Device| {
            let total = device.total_bytes();
            device.speeds().is_some() && (total == bytes || total - CONTEXT == bytes)
        };
        vramscope_gpus::devices().find(is_asked)
    });
    let is_own = |device: &'static Device| own.is_some_and(|own| own.speeds() == device.speeds());
    let device = asked.or(own).or_else(|| Device::named(ASSUMED))?;
    let is_recorded = dry.is_none() && is_own(device);
    Some(Machine { speeds: device.speeds()?, is_recorded })
}

/// How much longer a step takes with recipes, each alone, in percent: at least and at most. `None`
/// if one has no estimate.
pub(crate) async fn seconds_percent(
    target: Target<'_>,
    run: &Editable,
    arena: &mut Arena<'_>,
    recipes: &[Recipe],
    on: &Machine,
    budget: &mut Budget,
) -> Option<[u32; 2]> {
    let evidence = target.entry.evidence(target.index);
    if recipes.iter().all(|recipe| recipe.change.cost != Cost::Time) {
        return None;
    }
    let mut sum = [0; 2];
    for recipe in recipes {
        let changed = arena.apply(evidence, std::slice::from_ref(recipe), budget).await.ok()?;
        let range = run.seconds_percent(recipe, &changed, on)?;
        sum = [sum[0] + range[0], sum[1] + range[1]];
    }
    Some(sum)
}
