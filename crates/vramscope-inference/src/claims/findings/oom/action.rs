//! What to do about a failed allocation.

use super::{Context, OomStory, Verdict};
use crate::claims::findings::reserved::setting_action;
use crate::claims::predicted::Simulated;
use crate::claims::scene::Scene;
use crate::claims::words::{EXPANDABLE, pool};
use vramscope_snapshot::StackId;
use vramscope_units::Bytes;

/// The maximum number of categories, call sites or pools in a sentence.
pub(super) const MAX_NAMED: usize = 3;

pub(super) fn action(scene: &Scene<'_>, story: &OomStory) -> String {
    let mut steps = match of_program(scene, story) {
        Some(change) => vec![change],
        None => of_memory(scene, story),
    };
    if story.repeated.is_some() {
        steps.push(
            "If no backward() follows, run these passes under torch.no_grad(); else call it more \
             often."
                .to_owned(),
        );
    }
    if story.kept.is_some() {
        steps.push(
            "Leave the except block, and delete the exception, before the next step.".to_owned(),
        );
    }
    steps.join(" ")
}

/// What to change where the program shows it, whatever the allocator does.
fn of_program(scene: &Scene<'_>, story: &OomStory) -> Option<String> {
    if story.verdict == Verdict::OtherMemory {
        return None;
    }
    if story.climb.is_some() {
        return Some(format!(
            "Move each result to the CPU before {} adds it to the others, or reduce it first. No \
             setting of the allocator lasts, as the next request is larger again.",
            scene.site(story.stack)
        ));
    }
    if let Some((bytes, _)) = story.copies {
        return Some(format!(
            "Make the copies on the CPU: {} holds {bytes} on the device, and asked for {}.",
            scene.site(story.stack),
            story.requested
        ));
    }
    (story.context == Context::Capture).then(|| {
        "Let the graphs share one pool (torch.cuda.graph(graph, pool=first.pool())), and capture \
         the largest batch first."
            .to_owned()
    })
}

/// What to do about the memory that is missing.
fn of_memory(scene: &Scene<'_>, story: &OomStory) -> Vec<String> {
    let own = scene.predicted.simulated.first().and_then(Simulated::short);
    let mut steps = if scene.predicted.best().is_some() {
        Vec::new()
    } else if let Some(missing) = own {
        vec![format!("Free or avoid at least {missing} at this point{}.", less_memory(story))]
    } else {
        without_model(scene, story)
    };
    let is_elsewhere = matches!(story.verdict, Verdict::StrandedPool | Verdict::Pending);
    if is_elsewhere && own.is_some() {
        steps.splice(0..0, of_verdict(scene, story));
    }
    if story.verdict == Verdict::Limit && scene.predicted.best().is_some() {
        steps.push("Raise the limit of this process (set_per_process_memory_fraction).".to_owned());
    }
    steps.extend(scene.predicted.at_least.map(|bytes| {
        format!("The rest of the step is not in the file: the run needs at least {bytes}.")
    }));
    steps
}

/// What to do about memory that the request may not use.
fn of_verdict(scene: &Scene<'_>, story: &OomStory) -> Option<String> {
    match story.verdict {
        Verdict::StrandedPool => Some(return_stranded(scene, story)),
        Verdict::Pending => Some(
            "Wait for the other stream before the free, or catch the error and allocate again."
                .to_owned(),
        ),
        _ => None,
    }
}

/// What to do when no replay says what is missing.
fn without_model(scene: &Scene<'_>, story: &OomStory) -> Vec<String> {
    let excess = story.excess().unwrap_or_default();
    let mut steps: Vec<String> = story.settings.iter().map(setting_action).collect();
    match story.verdict {
        Verdict::Demand => {
            let less = less_memory(story);
            steps.push(format!("Free or avoid at least {excess} at this point{less}."));
        }
        Verdict::Fragmentation => {
            let amount = story.segment_lacks().map_or_else(
                || "memory".to_owned(),
                |lacks| format!("about {lacks}, what the driver lacks for a new segment,"),
            );
            steps.push(format!("Free or avoid {amount} at this point{}.", less_memory(story)));
            let free = story.room.unwrap_or_default().0.saturating_sub(story.active.0);
            let try_it =
                format!("Try {EXPANDABLE}: {} are free in all, if not in one piece.", Bytes(free));
            match scene.can_expand() {
                // The more is free, the more likely joined pieces are enough.
                _ if !scene.predicted.fixes.is_empty() => {}
                true if free / 2 >= story.requested.0 => steps.insert(steps.len() - 1, try_it),
                true => steps.push(try_it),
                false => {}
            }
        }
        Verdict::StrandedPool | Verdict::Pending => steps.extend(of_verdict(scene, story)),
        Verdict::OtherMemory => steps.push(format!(
            "Find what else took {} on this device (nvidia-smi), and stop it{}.",
            story.shrunk,
            if excess.0 > 0 { format!(", or free {excess} here") } else { String::new() }
        )),
        Verdict::Limit => steps
            .push("Raise the limit of this process (set_per_process_memory_fraction).".to_owned()),
        Verdict::Unknown => {
            steps.push(format!("Free or avoid memory at this point{}.", less_memory(story)));
        }
    }
    steps
}

fn return_stranded(scene: &Scene<'_>, story: &OomStory) -> String {
    let share = story.unusable.first();
    let id = share.and_then(|share| scene.cx.snapshot.pool(share.kind.pool));
    match share {
        Some(share) if share.kind.pool != story.kind.pool => format!(
            "Delete {0} before this point, or allocate in it only what stays: {1} of {0} are free, \
             and no setting gives them to another pool.",
            pool(id),
            share.free
        ),
        Some(share) if share.kind.stream != story.kind.stream => format!(
            "Allocate on one stream: {} are free on {}, and no other stream may use them.",
            share.free,
            scene.stream(share.kind.stream)
        ),
        _ => "Free memory of the size class of the request.".to_owned(),
    }
}

/// The batch that went through, if this step is larger; empty else.
fn less_memory(story: &OomStory) -> String {
    let step = story.larger.and_then(|larger| larger.step);
    step.map(|step| format!(": limit the batch to that of step {step}")).unwrap_or_default()
}

/// The call sites with most live bytes. The first part of a finding with a call stack is the
/// request.
pub(super) fn largest_sites(scene: &Scene<'_>, story: &OomStory) -> Vec<(String, Bytes)> {
    let skip = usize::from(story.stack != StackId::EMPTY);
    let parts = scene.finding.parts.iter().skip(skip).filter(|part| part.stack != StackId::EMPTY);
    parts.take(MAX_NAMED).map(|part| (scene.site(part.stack), part.bytes)).collect()
}
