//! The words of findings about the program's use of memory.

use super::{
    Words, category_noun, counted, interval, main_site, percent, range, site_noun, step_word,
};
use crate::loaded_file::SnapshotEntry;
use crate::phrase::Sentence;
use crate::text::{NO_STACK, frame_filter, label_of};
use vramscope_inference::{
    Category, Cycle, Finding, GradientsHeld, Growth, GrowthKind, HeldTooLong, Phase,
};
use vramscope_units::{Bytes, grouped};

pub(super) fn growth(entry: &SnapshotEntry, finding: &Finding, growth: &Growth) -> Words {
    let place = growth_place(entry, finding, growth).plain();
    let amount = range(growth.per_step);
    let word = step_word(growth);
    let interval = interval(growth.every, word);
    let total = growth.total;
    let steps = grouped(growth.steps as u64);
    let called = growth
        .called_from
        .map(|frame| format!(" It is called from {}.", label_of(&entry.snapshot, frame)));
    let called = called.unwrap_or_default();
    let more = Bytes(total.0 / growth.steps.max(1) as u64 * 1000);
    if growth.repeats {
        return requests(&place, growth, &called, &amount, &interval);
    }
    let outlook = format!("{} more {word}s add {more}.", grouped(1000 * growth.every as u64));
    if growth.kind == GrowthKind::Replaced {
        return Words {
            title: Sentence::new(format_args!(
                "{place} replaces a tensor by one that is {amount} larger, {interval}"
            )),
            text: format!(
                "{place} grows by {amount} {interval} ({steps} times), {total} in total. Each \
                 {word} replaces its tensor by a larger one.{called} {outlook}"
            ),
            action: "Collect the pieces on the CPU (.cpu()), or write them to a tensor of fixed \
                     size. Do not extend a GPU tensor in each step."
                .to_owned(),
        };
    }
    if let Some((kept, all)) = growth.activations {
        return Words {
            title: Sentence::new(format_args!(
                "{place} keeps its autograd graph: {amount} {interval}"
            )),
            text: format!(
                "{} call sites below {place} grow together by {amount} {interval} ({steps} \
                 times). None of it is freed while the steps last: {total} in the end. {kept} of a \
                 step's {all} of \
                 activations stay ({} %), so something holds the loss or an output with its \
                 graph.{called} {outlook}",
                grouped(growth.sites as u64),
                percent(kept, all),
            ),
            action: format!(
                "Find what keeps a result of {place}: a list, a running sum, an exception. Keep \
                 loss.item() or output.detach() instead, or run it under torch.no_grad()."
            ),
        };
    }
    let sites = if growth.sites > 1 {
        format!(" {} grow in the same steps.", counted(growth.sites, "call site"))
    } else {
        String::new()
    };
    let (what, action) = if growth.is_model_state {
        (
            " It is more than one set of gradients or optimizer state for this model.",
            "Find what keeps old gradients or an old optimizer: a list of .grad tensors, a \
             scheduler or a closure that holds the optimizer.",
        )
    } else {
        (
            "",
            "Find what keeps these tensors: a list, a dict, a cache, a queue, a hook. Store them \
             on the CPU (.cpu()), or bound what stores them.",
        )
    };
    Words {
        title: Sentence::new(format_args!("{place} keeps {amount} more {interval}")),
        text: format!(
            "{place} grows by {amount} {interval} ({steps} times). None of it is freed while \
             the {word}s last: {total} in the end.{what}{sites}{called} {outlook}"
        ),
        action: action.to_owned(),
    }
}

/// The words of growth from request to request.
fn requests(place: &str, growth: &Growth, called: &str, amount: &str, interval: &str) -> Words {
    let (steps, total) = (grouped(growth.steps as u64), growth.total);
    let (what, action) = if growth.is_cache {
        (
            " It is a KV cache that grows: the keys and values of earlier requests stay.",
            "Drop or reset the KV cache when a request ends, or bound the number of sessions that \
             keep one.",
        )
    } else {
        (
            "",
            "Find what keeps something of each request: a list, a dict, a cache, a queue. Drop it \
             when the request ends, or bound it.",
        )
    };
    Words {
        title: Sentence::new(format_args!("{place} keeps {amount} more {interval}")),
        text: format!(
            "{place} grows by {amount} {interval} ({steps} times), {total} in total.{what}{called}"
        ),
        action: action.to_owned(),
    }
}

/// The subject of a text about growth: the frame that its call stacks share.
pub(super) fn growth_place(entry: &SnapshotEntry, finding: &Finding, growth: &Growth) -> Sentence {
    // One call site speaks for itself, also where its frame is not the program's.
    if let Some(frame) = growth.at.filter(|_| growth.sites > 1) {
        let snapshot = &entry.snapshot;
        return Sentence::default()
            .filter(label_of(snapshot, frame), frame_filter(snapshot, frame));
    }
    let site = site_noun(entry, finding);
    if site.plain() != NO_STACK {
        return site;
    }
    match finding.phase {
        Some(Phase::Backward) => {
            Sentence::new("The ").filter("backward", "phase:backward".to_owned()).text(" pass")
        }
        _ => Sentence::new(format_args!("Memory with {NO_STACK}")),
    }
}

pub(super) fn cycle(entry: &SnapshotEntry, finding: &Finding, cycle: &Cycle) -> Words {
    let Cycle { collections, largest, freed, steps, at_peak } = cycle;
    let site = main_site(entry, finding);
    Words {
        title: Sentence::new("Reference cycles hold up to ")
            .event(freed, finding.events.first().copied())
            .text(" of past steps"),
        text: format!(
            "{freed} of {steps} past steps were freed at once at {largest}, in the middle of a \
             pass ({} in the window). Only Python's garbage collector frees memory like that. \
             Most of it is from {site}. {at_peak} of it is live at the peak.",
            counted(*collections, "such collection"),
        ),
        action: "Break the cycle: find objects that hold each other and a tensor \
                 (gc.set_debug(gc.DEBUG_SAVEALL), or weakref). Until then call gc.collect() after \
                 each step."
            .to_owned(),
    }
}

pub(super) fn gradients(finding: &Finding, held: &GradientsHeld) -> Words {
    let GradientsHeld { through_forward, passes, of_passes, at_peak } = held;
    let passes = format!(
        "{} of {} forward passes that follow an update",
        grouped(*passes as u64),
        grouped(*of_passes as u64),
    );
    let cost = match finding.phase {
        None => "The peak is elsewhere, so this costs nothing there.".to_owned(),
        Some(Phase::Backward) => format!(
            "{at_peak} of them are live at the peak, in backward. Backward makes gradients again, \
             so up to that much is saved."
        ),
        Some(_) => format!("{at_peak} of them are live at the peak, in forward."),
    };
    Words {
        title: Sentence::new(format_args!("{} of old ", Bytes(finding.bytes)))
            .and(category_noun(Category::Gradient, "gradients"))
            .text(" stay live through ")
            .filter("forward", "phase:forward".to_owned()),
        text: format!(
            "Gradients of a finished update stay live through {passes}, up to {through_forward}. \
             {cost}"
        ),
        action: "Call optimizer.zero_grad(set_to_none=True) after each optimizer.step()."
            .to_owned(),
    }
}

pub(super) fn held(entry: &SnapshotEntry, finding: &Finding, held: &HeldTooLong) -> Words {
    let site = main_site(entry, finding);
    let (bytes, first) = (Bytes(finding.bytes), finding.events.first().copied());
    match held {
        HeldTooLong::LastStep { until, freed_at } => {
            let until = until.map(|event| format!(" until {event}")).unwrap_or_default();
            let freed = freed_at
                .map(|frame| format!(", where {} drops them", label_of(&entry.snapshot, frame)))
                .unwrap_or_default();
            Words {
                title: Sentence::default()
                    .event(bytes, first)
                    .text(" of the last step are live at the peak"),
                text: format!(
                    "{} of the last step, most of them from {site}, stay live{until}{freed}. They \
                     add {bytes} to the peak of the next step.",
                    counted(finding.blocks as usize, "result"),
                ),
                action: format!(
                    "Delete them before the next forward pass: del the variable that holds the \
                     result of {site}, or set it to None."
                ),
            }
        }
        HeldTooLong::Variable { results, until } => Words {
            title: site_noun(entry, finding)
                .text(" holds ")
                .event(bytes, first)
                .text(" of old results"),
            text: format!(
                "{} of {site} are live at the peak. The variable keeps the old one until the \
                     line has computed the new one ({until}). That adds {bytes} to the peak.",
                counted(*results, "result"),
            ),
            action: format!("Delete the old result (del) before {site} runs again."),
        },
        HeldTooLong::Copies { each, lines } => Words {
            title: Sentence::new(counted(finding.blocks as usize, "block"))
                .text(" of ")
                .event(each, first.filter(|_| *each == bytes))
                .text(format_args!(" from {}", counted(*lines, "line"))),
            text: format!(
                "{} of equal size ({each}) from {} of one function are live at the peak: {}. \
                 Equal sizes suggest copies of one tensor.",
                counted(finding.blocks as usize, "block"),
                counted(*lines, "line"),
                finding
                    .parts
                    .iter()
                    .map(|part| crate::frames::site(entry, part.stack))
                    .collect::<Vec<_>>()
                    .join(", "),
            ),
            action: "Make the copy once and use it twice, or delete the first before the second \
                     is made."
                .to_owned(),
        },
    }
}
