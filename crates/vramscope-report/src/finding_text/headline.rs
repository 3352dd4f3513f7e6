//! A finding in one sentence: what happened where, with its numbers. The verdict about a device is
//! the sentence of its worst finding.

use super::program::growth_place;
use super::reserved::is_about_streams;
use super::simulated::{best_setting, setting_name};
use super::{interval, range, step_word};
use crate::fixes;
use crate::loaded_file::SnapshotEntry;
use crate::phrase::{Sentence, site_filter};
use crate::simulated::{Predicted, Simulated};
use vramscope_inference::{
    Aftermath, Category, Facts, Finding, Growth, GrowthKind, OomStory, Phase, RankSkew,
    ReservedPeak, SkewCause, Verdict,
};
use vramscope_units::{Bytes, grouped};

/// The sentence, with its nouns as links. `title` is the finding in a few words, without a rank.
pub(crate) fn headline(
    entry: &SnapshotEntry,
    finding: &Finding,
    title: &Sentence,
    predicted: &Predicted,
) -> Sentence {
    match &finding.facts {
        Facts::Oom(story) => oom(finding, story, predicted),
        Facts::Growth(facts) => growth(entry, finding, facts),
        Facts::GradientsHeld(held) => title.clone().text(format_args!(
            " in {} of {} steps.",
            grouped(held.passes as u64),
            grouped(held.of_passes as u64)
        )),
        Facts::Reserved(peak) => reserved(peak, &predicted.simulated),
        _ => title.clone().text("."),
    }
}

/// ` in backward of step 2`.
pub(super) fn place(finding: &Finding) -> Sentence {
    place_words(finding.phase.map(Phase::name), finding.step)
}

/// ` in backward of step 2`; empty if neither is known.
pub(crate) fn place_words(phase: Option<&str>, step: Option<u32>) -> Sentence {
    let sentence = match phase {
        Some(phase) => Sentence::new(" in ").filter(phase, format!("phase:{phase}")),
        None => Sentence::default(),
    };
    match step {
        Some(step) => sentence
            .text(if phase.is_some() { " of " } else { " in " })
            .filter(format_args!("step {step}"), format!("step:{step}")),
        None => sentence,
    }
}

/// A category as a noun.
pub(crate) fn category_noun(category: Category, words: &str) -> Sentence {
    Sentence::default().filter(words, format!("category:{}", category.name()))
}

fn oom(finding: &Finding, story: &OomStory, predicted: &Predicted) -> Sentence {
    let own = predicted.simulated.first().and_then(Simulated::short);
    let short = match (own, story.verdict) {
        (Some(own), _) => format!(", {own} short"),
        (None, Verdict::Demand) => {
            format!(", at least {} short", story.excess().unwrap_or_default())
        }
        (None, Verdict::OtherMemory) => {
            format!(", after memory outside of PyTorch grew by {}", story.shrunk)
        }
        (None, Verdict::Fragmentation) => {
            format!(", with {} free in pieces of at most {}", story.usable, story.largest_usable)
        }
        (None, Verdict::StrandedPool) => {
            let free = story.unusable.iter().map(|share| share.free.0).sum();
            format!(", with {} free where it may not be used", Bytes(free))
        }
        (None, Verdict::Pending) => {
            format!(", with {} free that waited for another stream", story.largest_usable)
        }
        (None, Verdict::Limit) => format!(
            ", with {} free on the device: a limit of the process refused it",
            story.device_free.unwrap_or_default()
        ),
        (None, Verdict::Unknown) => String::new(),
    };
    let fix = fixes::best(&predicted.fixes)
        .map_or(String::new(), |fix| format!(" It fits with {}.", fix.text));
    let began = match story.aftermath {
        Aftermath::Handled => "A request failed, and the run went on,",
        _ => "Out of memory",
    };
    Sentence::new(began)
        .and(place(finding))
        .text(": asked for ")
        .event(story.requested, Some(story.event.0))
        .text(format_args!("{short}.{fix}"))
}

fn growth(entry: &SnapshotEntry, finding: &Finding, growth: &Growth) -> Sentence {
    let (amount, interval) = (range(growth.per_step), interval(growth.every, step_word(growth)));
    let steps = grouped(growth.steps as u64);
    let total = growth.total;
    let (verb, more) = if growth.kind == GrowthKind::Replaced {
        ("replaces a tensor by one that is ", format!(" larger, {interval}"))
    } else if growth.activations.is_some() {
        ("keeps its autograd graph: ", format!(" more {interval}"))
    } else {
        ("keeps ", format!(" more {interval}"))
    };
    growth_place(entry, finding, growth)
        .text(format_args!(" {verb}"))
        .event(amount, finding.events.first().copied())
        .text(format_args!("{more}. After {steps} times it holds {total}."))
}

fn reserved(peak: &ReservedPeak, simulated: &[Simulated]) -> Sentence {
    let when = if peak.is_state_only { "when the snapshot was taken" } else { "at most" };
    let memory = &peak.memory;
    let mut unused = Vec::new();
    for (bytes, what) in [
        (memory.idle, "idle"),
        (memory.stuck, "in pieces of segments in use"),
        (memory.rounding, "lost to rounding"),
    ] {
        if bytes.0 > peak.reserved.0 / 20 {
            unused.push(format!("{bytes} {what}"));
        }
    }
    let unused = if unused.is_empty() { String::new() } else { format!(": {}", unused.join(", ")) };
    let less = best_setting(simulated)
        .filter(|best| best.reserved_peak < peak.reserved && !is_about_streams(peak, simulated));
    let less = less.map_or_else(String::new, |best| {
        format!(" With {} {}.", setting_name(best), best.reserved_peak)
    });
    Sentence::default()
        .event(peak.reserved, peak.event.map(|event| event.0))
        .text(format_args!(" reserved {when}, {} needed at once{unused}.{less}", peak.needed))
}

/// The sentence about a rank, without its name.
pub fn rank_headline(skew: &RankSkew) -> Sentence {
    let RankSkew { bytes, usual, .. } = *skew;
    let excess = skew.excess();
    let others = super::ranks::others(skew);
    match &skew.cause {
        SkewCause::Batch { percent, .. } => {
            Sentence::new(format_args!("{}.{:02} x the ", percent / 100, percent % 100))
                .and(category_noun(Category::Activation, "activations"))
                .text(format_args!(" of {others}: {bytes} instead of {usual}."))
        }
        SkewCause::Held => {
            let site = skew.sites.first().map(|site| site.site.as_str()).unwrap_or_default();
            let more = match skew.sites.len() {
                0 | 1 => String::new(),
                count => format!(" and {} more call stacks", grouped(count as u64 - 1)),
            };
            let usual =
                if usual.0 == 0 { "nothing".to_owned() } else { format!("usually {usual}") };
            Sentence::new(format_args!("{bytes} at "))
                .filter(site, site_filter(site))
                .text(format_args!("{more}, and {usual} on {others}."))
        }
        SkewCause::Sharding => Sentence::new(format_args!("{excess} more "))
            .and(category_noun(Category::Parameter, "parameters"))
            .text(" and ")
            .and(category_noun(Category::OptimizerState, "optimizer state"))
            .text(format_args!(" than usual on {others}.")),
        SkewCause::Reserved => Sentence::new(format_args!(
            "{excess} more reserved than usual on {others}, with equal use."
        )),
    }
}
