//! The words of what could not be looked for.

use super::counted;
use vramscope_inference::{BlindSpot, Overrun};
use vramscope_snapshot::DeviceKind;
use vramscope_units::grouped;

/// The name of a blind spot in JSON.
pub fn blind_kind(spot: BlindSpot) -> &'static str {
    match spot {
        BlindSpot::NoHistory { .. } => "no_history",
        BlindSpot::StateOnly => "state_only",
        BlindSpot::RingOverrun(_) => "ring_overrun",
        BlindSpot::LateStart => "late_start",
        BlindSpot::RefusedEarly => "refused_early",
        BlindSpot::FewSteps { .. } => "few_steps",
        BlindSpot::NoBackward => "no_backward",
        BlindSpot::NoStacks => "no_stacks",
        BlindSpot::NoFreeStacks => "no_free_stacks",
        BlindSpot::NoClock { .. } => "no_clock",
        BlindSpot::NoCategories { .. } => "no_categories",
    }
}

/// What cannot be told, why, and how to record it.
pub fn blind_text(spot: BlindSpot) -> String {
    match spot {
        BlindSpot::NoHistory { is_npu } => format!(
            "Only the end is known: no history was recorded. Call \
             {}.memory._record_memory_history() first",
            if is_npu { DeviceKind::Npu } else { DeviceKind::Cuda }.module()
        ),
        BlindSpot::StateOnly => {
            "Only the end is known: it was recorded with enabled=\"state\", not \
                                 enabled=\"all\""
                .to_owned()
        }
        BlindSpot::RingOverrun(overrun) => ring(overrun),
        BlindSpot::LateStart => "What was allocated before recording is not known. Record before \
                                 the model is built"
            .to_owned(),
        BlindSpot::RefusedEarly => "Memory ran out, and the history has no event of it: PyTorch \
                                    refused a request early (throw_on_cudamalloc_oom). The error \
                                    message has its size"
            .to_owned(),
        BlindSpot::FewSteps { whole, needed } => format!(
            "Growth was not looked for: {}, {needed} are needed",
            match whole {
                0 => "no whole training step".to_owned(),
                _ => counted(whole, "whole training step"),
            }
        ),
        BlindSpot::NoBackward => "Growth was not looked for: no backward pass was seen. Record \
                                  several training steps, or whole requests"
            .to_owned(),
        BlindSpot::NoStacks => "The lines that allocate are not known: no call stacks were \
                                recorded. Record with context=\"all\""
            .to_owned(),
        BlindSpot::NoFreeStacks => "The lines that free are not known: frees have no call stacks. \
                                    Record with context=\"all\""
            .to_owned(),
        BlindSpot::NoClock { is_npu } => format!(
            "Durations and named ranges are not known: {}",
            if is_npu {
                "torch_npu records no times"
            } else {
                "events have no times. Record with PyTorch 2.2 or later"
            }
        ),
        BlindSpot::NoCategories { percent } => format!(
            "What {percent} % of the peak is for is not known. Record whole training steps with \
             context=\"all\""
        ),
    }
}

fn ring(overrun: Overrun) -> String {
    let why = match overrun {
        Overrun::Ranges { percent } => format!(
            "the ring buffer overwrote the first {} of the recorded time",
            if percent == 0 { "part".to_owned() } else { format!("{percent} %") }
        ),
        Overrun::Recorded => "the ring buffer overwrote events".to_owned(),
        Overrun::Stacks { blocks } => format!(
            "the ring buffer overwrote events, as {} with a call stack {} live before the first",
            counted(blocks as usize, "block"),
            if blocks == 1 { "was" } else { "were" },
        ),
        Overrun::RoundNumber { events } => format!(
            "the ring buffer probably overwrote events, as {} is a round number",
            grouped(events as u64)
        ),
    };
    format!("What happened earlier is not known: {why}. Record with a larger max_entries")
}
