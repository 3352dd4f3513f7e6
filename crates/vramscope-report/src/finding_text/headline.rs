//! A finding in one sentence: what happened where, with its numbers. The verdict about a device is
//! the sentence of its worst finding.

use super::program::growth_place;
use super::simulated::{best_setting, setting_name};
use super::{interval, main_site, range};
use crate::loaded_file::SnapshotEntry;
use crate::phrase::{Link, Phrase, phrases, site_filter};
use crate::simulated::Simulated;
use vramscope_analysis::{
    Category, Facts, Finding, Growth, GrowthKind, OomStory, Phase, RankSkew, ReservedPeak,
    SkewCause, Verdict,
};
use vramscope_units::{Bytes, grouped};

/// The sentence, with its nouns as links. `title` is the finding in a few words, without a rank.
pub(crate) fn headline(
    entry: &SnapshotEntry,
    finding: &Finding,
    title: &str,
    simulated: &[Simulated],
) -> Vec<Phrase> {
    let mut nouns = Vec::new();
    let site = match &finding.facts {
        Facts::Growth(facts) => growth_place(entry, finding, facts),
        _ => main_site(entry, finding),
    };
    nouns.extend(site_filter(&site).map(|filter| (site.clone(), Link::Filter(filter))));
    if let Some(step) = finding.step {
        nouns.push((format!("step {step}"), Link::Filter(format!("step:{step}"))));
    }
    let phase = match &finding.facts {
        Facts::GradientsHeld(_) => Some(Phase::Forward),
        _ => finding.phase,
    };
    nouns.extend(phase.map(|phase| of_phase(phase.name())));
    let sentence = match &finding.facts {
        Facts::Oom(story) => {
            nouns.push((story.requested.to_string(), Link::Event(story.event.0)));
            oom(story, &place(finding), simulated)
        }
        Facts::Growth(facts) => {
            nouns.extend(first_event(finding, range(facts.per_step)));
            growth(&site, facts)
        }
        Facts::GradientsHeld(held) => {
            nouns.push(of_category(Category::Gradient, "gradients"));
            format!(
                "{title} in {} of {} steps.",
                grouped(held.passes as u64),
                grouped(held.of_passes as u64)
            )
        }
        Facts::Reserved(peak) => {
            let event = peak.event.map(|event| Link::Event(event.0));
            nouns.extend(event.map(|event| (peak.reserved.to_string(), event)));
            reserved(peak, simulated)
        }
        _ => {
            nouns.extend(first_event(finding, Bytes(finding.bytes).to_string()));
            format!("{title}.")
        }
    };
    phrases(&sentence, &nouns)
}

/// ` in backward of step 2`.
pub(super) fn place(finding: &Finding) -> String {
    place_words(finding.phase.map(Phase::name), finding.step)
}

/// ` in backward of step 2`; empty if neither is known.
pub(crate) fn place_words(phase: Option<&str>, step: Option<u32>) -> String {
    match (phase, step) {
        (Some(phase), Some(step)) => format!(" in {phase} of step {step}"),
        (Some(phase), None) => format!(" in {phase}"),
        (None, Some(step)) => format!(" in step {step}"),
        (None, None) => String::new(),
    }
}

/// A phase as a noun.
pub(crate) fn of_phase(phase: &str) -> (String, Link) {
    (phase.to_owned(), Link::Filter(format!("phase:{phase}")))
}

/// A category as a noun.
pub(crate) fn of_category(category: Category, words: &str) -> (String, Link) {
    (words.to_owned(), Link::Filter(format!("category:{}", category.name())))
}

fn first_event(finding: &Finding, words: String) -> Option<(String, Link)> {
    finding.events.first().map(|&event| (words, Link::Event(event)))
}

fn oom(story: &OomStory, place: &str, simulated: &[Simulated]) -> String {
    let own = simulated.first().and_then(Simulated::short);
    let short = match (own, story.verdict) {
        (Some(own), _) => format!(", {own} short"),
        (None, Verdict::Demand | Verdict::OtherMemory) => {
            format!(", at least {} short", story.excess().unwrap_or_default())
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
    let settings = match own.and_then(|own| Some((own, best_setting(simulated)?))) {
        Some((_, best)) if best.fits == Some(true) => {
            format!(" With {} it is served.", setting_name(best))
        }
        Some((own, best)) => match best.short() {
            Some(short) if short < own => {
                format!(" With {} still {short} short.", setting_name(best))
            }
            _ => format!(" {} does not help.", setting_name(best)),
        },
        None => String::new(),
    };
    format!("Out of memory{place}: asked for {}{short}.{settings}", story.requested)
}

fn growth(place: &str, growth: &Growth) -> String {
    let (amount, interval) = (range(growth.per_step), interval(growth.every));
    let steps = grouped(growth.steps as u64);
    let total = growth.total;
    let does = if growth.kind == GrowthKind::Replaced {
        format!("replaces a tensor by one that is {amount} larger, {interval}")
    } else if growth.activations.is_some() {
        format!("keeps its autograd graph: {amount} more {interval}")
    } else {
        format!("keeps {amount} more {interval}")
    };
    format!("{place} {does}. After {steps} times it holds {total}.")
}

fn reserved(peak: &ReservedPeak, simulated: &[Simulated]) -> String {
    let reserved = if peak.is_state_only {
        format!("{} reserved when the snapshot was taken", peak.reserved)
    } else {
        format!("{} reserved at most", peak.reserved)
    };
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
    let less = best_setting(simulated).filter(|best| best.reserved_peak < peak.reserved);
    let less = less.map_or_else(String::new, |best| {
        format!(" With {} {}.", setting_name(best), best.reserved_peak)
    });
    format!("{reserved}, {} needed at once{unused}.{less}", peak.needed)
}

/// The sentence about a rank, without its name.
pub fn rank_headline(skew: &RankSkew) -> Vec<Phrase> {
    let RankSkew { bytes, usual, .. } = *skew;
    let excess = Bytes(bytes.0.saturating_sub(usual.0));
    let others = super::ranks::others(skew);
    let mut nouns: Vec<(String, Link)> = Vec::new();
    let sentence = match &skew.cause {
        SkewCause::Batch { percent, .. } => {
            nouns.push(of_category(Category::Activation, "activations"));
            format!(
                "{}.{:02} x the activations of {others}: {bytes} instead of {usual}.",
                percent / 100,
                percent % 100
            )
        }
        SkewCause::Held => {
            let site = skew.sites.first().map(|site| site.site.as_str()).unwrap_or_default();
            nouns.extend(site_filter(site).map(|to| (site.to_owned(), Link::Filter(to))));
            let more = match skew.sites.len() {
                0 | 1 => String::new(),
                count => format!(" and {} more call stacks", grouped(count as u64 - 1)),
            };
            let usual =
                if usual.0 == 0 { "nothing".to_owned() } else { format!("usually {usual}") };
            format!("{bytes} at {site}{more}, and {usual} on {others}.")
        }
        SkewCause::Sharding => {
            nouns.push(of_category(Category::Parameter, "parameters"));
            nouns.push(of_category(Category::OptimizerState, "optimizer state"));
            format!("{excess} more parameters and optimizer state than usual on {others}.")
        }
        SkewCause::Reserved => {
            format!("{excess} more reserved than usual on {others}, with equal use.")
        }
    };
    phrases(&sentence, &nouns)
}
