//! The words of what could not be looked for.

use super::counted;
use vramscope_inference::{BlindSpot, Overrun};
use vramscope_units::grouped;

/// The name of a blind spot in JSON.
pub fn blind_kind(spot: BlindSpot) -> &'static str {
    match spot {
        BlindSpot::NoHistory => "no_history",
        BlindSpot::StateOnly => "state_only",
        BlindSpot::RingOverrun(_) => "ring_overrun",
        BlindSpot::LateStart => "late_start",
        BlindSpot::FewSteps { .. } => "few_steps",
        BlindSpot::NoBackward => "no_backward",
        BlindSpot::NoStacks => "no_stacks",
        BlindSpot::NoFreeStacks => "no_free_stacks",
        BlindSpot::NoClock => "no_clock",
        BlindSpot::NoCategories { .. } => "no_categories",
    }
}

/// What cannot be told, why, and how to record it.
pub fn blind_text(spot: BlindSpot) -> String {
    match spot {
        BlindSpot::NoHistory => "Anything before the end: no history was recorded, only the final \
                                 state. Call torch.cuda.memory._record_memory_history() before \
                                 the program runs."
            .to_owned(),
        BlindSpot::StateOnly => "Anything before the end: one event was recorded \
                                 (enabled=\"state\"). Record with enabled=\"all\"."
            .to_owned(),
        BlindSpot::RingOverrun(overrun) => ring(overrun),
        BlindSpot::LateStart => "What was allocated before recording began: memory was already in \
                                 use. Start to record before the model is built."
            .to_owned(),
        BlindSpot::FewSteps { whole, needed } => format!(
            "Growth from step to step: {} in the window, and {needed} are needed. Record {needed} \
             steps or more.",
            if whole == 0 {
                "no whole training step is".to_owned()
            } else {
                format!(
                    "{} {} whole",
                    counted(whole, "training step"),
                    if whole == 1 { "is" } else { "are" }
                )
            }
        ),
        BlindSpot::NoBackward => "Growth from step to step: no backward pass was seen, so a leak \
                                  cannot be told from a cache that grows. Record several training \
                                  steps, or whole requests."
            .to_owned(),
        BlindSpot::NoStacks => "The lines that allocate: no call stacks were recorded. Record \
                                with context=\"all\"."
            .to_owned(),
        BlindSpot::NoFreeStacks => "The lines that free: frees have no call stacks of their own. \
                                    Record with context=\"all\"."
            .to_owned(),
        BlindSpot::NoClock => "Durations and named ranges: events have no times. Record with \
                               PyTorch 2.2 or later."
            .to_owned(),
        BlindSpot::NoCategories { percent } => format!(
            "What memory is for: {percent} % of the peak has no known category. Record whole \
             training steps with context=\"all\"."
        ),
    }
}

fn ring(overrun: Overrun) -> String {
    let why = match overrun {
        Overrun::Ranges { percent } => format!(
            "the ring buffer overwrote the first {} of the recorded time",
            if percent == 0 { "part".to_owned() } else { format!("{percent} %") }
        ),
        Overrun::Recorded => "the file says that the ring buffer overwrote events".to_owned(),
        Overrun::Stacks { blocks } => format!(
            "the ring buffer overwrote events. Before the first event, {} with a call stack {} \
             live, and only a recording gives call stacks",
            counted(blocks as usize, "block"),
            if blocks == 1 { "was" } else { "were" },
        ),
        Overrun::RoundNumber { events } => format!(
            "the ring buffer probably overwrote events, since {} is a round number of them",
            grouped(events as u64)
        ),
    };
    format!("What happened earlier: {why}. Record with a larger max_entries, or for less time.")
}
