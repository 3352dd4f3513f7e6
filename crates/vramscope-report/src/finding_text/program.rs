//! The words of findings about the program's use of memory.

use super::simulated::capitalized;
use super::{
    Words, category_noun, counted, interval, main_site, percent, range, site_noun, step_word,
};
use crate::loaded_file::SnapshotEntry;
use crate::phrase::Sentence;
use crate::simulated::Predicted;
use crate::text::{NO_STACK, frame_filter, label_of};
use vramscope_inference::{
    Category, Cycle, Finding, GradientsHeld, Growth, GrowthKind, HeldTooLong, NoGrad, Phase,
};
use vramscope_units::{Bytes, grouped};

pub(super) fn growth(
    entry: &SnapshotEntry,
    finding: &Finding,
    growth: &Growth,
    predicted: &Predicted,
    is_held: bool,
) -> Words {
    let mut words = of_growth(entry, finding, growth, predicted, is_held);
    if let Some(fix) = predicted.fixes.first() {
        words.text = format!("{} Without it the peak is {} lower.", words.text, fix.saving_bytes);
    }
    words
}

fn of_growth(
    entry: &SnapshotEntry,
    finding: &Finding,
    growth: &Growth,
    predicted: &Predicted,
    is_held: bool,
) -> Words {
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
    if growth.repeats {
        return requests(
            finding,
            &place,
            growth,
            &called,
            [&amount, &interval],
            predicted,
            is_held,
        );
    }
    let outlook = outlook(growth, predicted);
    let first = finding.events.first().copied();
    let stays = if growth.is_queue { "wait" } else { "stay live" };
    let stay = if growth.is_queue {
        format!(
            "More comes than goes, as in a queue without a bound: {total} are there in the end."
        )
    } else {
        format!("None of it is freed while the {word}s last: {total} in the end.")
    };
    if growth.kind == GrowthKind::Replaced {
        return Words {
            title: Sentence::new("A tensor is replaced by one that is ")
                .event(amount.clone(), first)
                .text(format_args!(" larger, {interval}: {total} in all")),
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
        let find = if is_held {
            String::new()
        } else {
            format!(
                "Find what keeps a result of {place}: a list, a running sum, an exception, a state \
                 that is carried to the next step. "
            )
        };
        let subject = match growth.sites {
            1 => format!("{place} keeps several results of each call, which grow"),
            sites => format!("{} call sites below {place} grow together", grouped(sites as u64)),
        };
        return Words {
            title: Sentence::new("Autograd graphs stay live, ")
                .event(amount.clone(), first)
                .text(format_args!(" more {interval}: {total} after {steps}")),
            text: format!(
                "{subject} by {amount} {interval} ({steps} \
                 times). {stay} {kept} of a step's {all} of \
                 activations stay ({} %), so something holds the loss or an output with its \
                 graph.{called} {outlook}",
                percent(kept, all),
            ),
            action: find + KEEP_NO_GRAPH,
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
            if is_held {
                ""
            } else {
                "Find what keeps old gradients or an old optimizer: a list of .grad tensors, a \
                 scheduler or a closure that holds the optimizer."
            },
        )
    } else {
        (
            "",
            if growth.is_queue {
                "Bound the queue (queue.Queue(maxsize=2)), so that its producer waits. Or move \
                 each item to the GPU only when it is used."
            } else if is_held {
                "Store its tensors on the CPU (.cpu()), or bound it."
            } else {
                "Find what keeps these tensors: a list, a dict, a cache, a queue, a hook. Store \
                 them on the CPU (.cpu()), or bound what stores them."
            },
        )
    };
    Words {
        title: Sentence::default()
            .event(amount.clone(), first)
            .text(format_args!(" more {stays} {interval}: {total} after {steps}")),
        text: format!(
            "{place} grows by {amount} {interval} ({steps} times). \
             {stay}{what}{sites}{called} {outlook}"
        ),
        action: action.to_owned(),
    }
}

/// What to keep in place of a graph.
const KEEP_NO_GRAPH: &str = "Keep loss.item() or output.detach() instead (hidden = \
     hidden.detach() for a carried state), or run it under torch.no_grad().";

/// When memory is full, or what many more steps add.
pub(super) fn outlook(growth: &Growth, predicted: &Predicted) -> String {
    let word = step_word(growth);
    if let Some((steps, bytes)) = predicted.full_after {
        let steps = counted(steps as usize, &format!("more {word}"));
        return format!("{bytes} are full after about {steps}.");
    }
    format!("{} more {word}s add {}.", grouped(1000), growth.per_1000_steps)
}

/// The words of growth from request to request.
fn requests(
    finding: &Finding,
    place: &str,
    growth: &Growth,
    called: &str,
    [amount, interval]: [&String; 2],
    predicted: &Predicted,
    is_held: bool,
) -> Words {
    let (steps, total) = (grouped(growth.steps as u64), growth.total);
    let (what, action) = if growth.is_cache {
        (
            " It is a KV cache that grows: the keys and values of earlier requests stay.",
            "Drop or reset the KV cache when a request ends, or bound the number of sessions that \
             keep one.",
        )
    } else if is_held {
        ("", "Remove what it keeps of a request when that ends, or bound it.")
    } else {
        (
            "",
            "Find what keeps something of each request: a list, a dict, a cache, a queue. Drop it \
             when the request ends, or bound it.",
        )
    };
    Words {
        title: Sentence::default()
            .event(amount, finding.events.first().copied())
            .text(format_args!(" more stay live {interval}: {total} after {steps}")),
        text: format!(
            "{place} grows by {amount} {interval} ({steps} times), {total} in \
             total.{what}{called} {}",
            outlook(growth, predicted)
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
            .site(label_of(snapshot, frame), Some(frame_filter(snapshot, frame)));
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
    let GradientsHeld { through_forward, passes, of_passes, at_peak, saving, is_frozen } = held;
    let passes = format!(
        "{} of {} forward passes that follow an update",
        grouped(*passes as u64),
        grouped(*of_passes as u64),
    );
    let cost = match finding.phase {
        None => "The peak is as high without them.".to_owned(),
        Some(phase) => {
            let made = match phase {
                Phase::Backward => " Backward makes gradients again, so that is the most.",
                _ => "",
            };
            let name = phase.name();
            format!(
                "{at_peak} of them are live at the peak, in {name}. Without them the peak is \
                 {saving} lower.{made}"
            )
        }
    };
    let (why, action) = if *is_frozen {
        (
            " No update replaces them, and no optimizer state has their sizes: no optimizer has \
             these parameters.",
            "Call requires_grad_(False) on the parameters that are not trained. zero_grad() of an \
             optimizer that does not have them cannot drop their gradients.",
        )
    } else {
        ("", "Call optimizer.zero_grad(set_to_none=True) after each optimizer.step().")
    };
    let name = if *is_frozen { "gradients of frozen parameters" } else { "old gradients" };
    Words {
        title: Sentence::new(format_args!("{through_forward} of "))
            .and(category_noun(Category::Gradient, name))
            .text(" stay live through ")
            .filter("forward", "phase:forward".to_owned())
            .text(format_args!(
                " in {} of {} steps",
                grouped(held.passes as u64),
                grouped(held.of_passes as u64)
            )),
        text: format!(
            "Gradients of a finished update stay live through {passes}, up to {through_forward}. \
             {cost}{why}"
        ),
        action: action.to_owned(),
    }
}

pub(super) fn no_grad(
    entry: &SnapshotEntry,
    finding: &Finding,
    facts: &NoGrad,
    predicted: &Predicted,
) -> Words {
    let label = |frame| label_of(&entry.snapshot, frame);
    let (bytes, first) = (Bytes(finding.bytes), finding.events.first().copied());
    let (dropped, called) = (facts.dropped_at.map(label), facts.called_at.map(label));
    let site = called.clone().or(dropped.clone()).unwrap_or_else(|| main_site(entry, finding));
    let until = facts.until.map(|event| format!(" (until {event})")).unwrap_or_default();
    let drops = match &dropped {
        Some(dropped) => format!(", where {dropped} drops them"),
        None => String::new(),
    };
    let earlier = match facts.of_earlier.0 {
        0 => String::new(),
        _ => format!(
            " {} of it are of the pass before, which its output keeps{drops}{until}.",
            facts.of_earlier
        ),
    };
    let graphs = match facts.graphs {
        1 => "1 forward pass keeps its autograd graph, and no backward pass uses it".to_owned(),
        count => format!(
            "{} forward passes keep their autograd graphs, and no backward pass uses them",
            grouped(count as u64)
        ),
    };
    let evaluation = if facts.trains { "evaluation" } else { "inference" };
    // A replay knows the peak without the graphs better.
    let without = match &predicted.fixes[..] {
        [] => format!(": the peak is then about {}", facts.peak_without),
        _ => String::new(),
    };
    let (graphs, run) = if facts.is_open {
        let graphs = "The forward pass keeps its autograd graph to the end of the recording";
        (graphs.to_owned(), "If no backward pass follows, run")
    } else {
        (graphs, "Run")
    };
    Words {
        title: Sentence::new(format_args!("{} keeps autograd graphs: ", capitalized(evaluation)))
            .event(bytes, first)
            .text(" at the peak that no backward pass uses"),
        text: format!(
            "{graphs}. {} hold {bytes} at the peak.{earlier} Under \
             torch.no_grad() an inner result lives no longer than its layer{without}.",
            counted(finding.blocks as usize, "inner result"),
        ),
        action: format!(
            "{run} {evaluation} ({site}) under torch.no_grad() or torch.inference_mode(). Keep \
             .detach() or .item() of its outputs."
        ),
    }
}

/// What the peak loses without the memory of a finding.
fn adds(saving: Bytes) -> String {
    match saving.0 {
        0 => "The peak is as high without them.".to_owned(),
        _ => format!("Without them the peak is {saving} lower."),
    }
}

pub(super) fn held(entry: &SnapshotEntry, finding: &Finding, held: &HeldTooLong) -> Words {
    let site = main_site(entry, finding);
    let (bytes, first) = (Bytes(finding.bytes), finding.events.first().copied());
    match held {
        HeldTooLong::LastStep { of_step, until, freed_at, saving } => {
            let until = until.map(|event| format!(" until {event}"));
            let freed = freed_at
                .map(|frame| format!(", where {} drops them", label_of(&entry.snapshot, frame)))
                .unwrap_or_default();
            let results = counted(finding.blocks as usize, "result");
            let adds = adds(*saving);
            let Some(step) = of_step else {
                return Words {
                    title: Sentence::default()
                        .event(bytes, first)
                        .text(" of the last step are live at the peak"),
                    text: format!(
                        "{results} of the last step, most of them from {site}, stay live{}{freed}. \
                         {adds}",
                        until.unwrap_or_default(),
                    ),
                    action: format!(
                        "Delete them before the next forward pass: del the variable that holds \
                         the result of {site}, or set it to None."
                    ),
                };
            };
            let until = until.unwrap_or_else(|| " to the end of the recording".to_owned());
            Words {
                title: Sentence::default()
                    .event(bytes, first)
                    .text(format_args!(" of step {} are live at the peak", grouped(*step as u64))),
                text: format!(
                    "{results} of the forward pass of step {}, most of them from {site}, stay \
                     live{until}{freed}. Other steps free such results before they end. {adds}",
                    grouped(*step as u64),
                ),
                action: format!(
                    "Find what keeps an output of that pass ({site}): a variable for debugging, an \
                     exception, a list. Keep .detach() or .item() of it, or delete it."
                ),
            }
        }
        HeldTooLong::Variable { results, until, is_direct, saving } => Words {
            title: Sentence::default()
                .event(bytes, first)
                .text(" of old results stay live until the new ones are computed"),
            text: format!(
                "{} of {site} are live at the peak. The variable keeps the old one until the \
                 line has computed the new one ({until}). {}",
                counted(*results, "result"),
                adds(*saving),
            ),
            action: if *is_direct {
                format!(
                    "Where {site} computes the new value from the old one, change the tensor in \
                     place (add_(), mul_(), copy_(), out=). Else delete the old value (del) before \
                     the line runs again."
                )
            } else {
                format!("Delete the old result (del) before {site} runs again.")
            },
        },
        HeldTooLong::Copies { each, lines } => Words {
            title: Sentence::new(counted(finding.blocks as usize, "block"))
                .text(" of ")
                .event(each, first.filter(|_| *each == bytes))
                .text(format_args!(" from {} look like copies", counted(*lines, "line"))),
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
