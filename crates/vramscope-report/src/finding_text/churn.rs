//! The words of findings about memory that is returned and reserved again.

use super::allocator::{EXPANDABLE, at_site, can_expand, setting};
use super::simulated::capitalized;
use super::{Words, counted, main_site, times};
use crate::frames::site;
use crate::loaded_file::SnapshotEntry;
use crate::phrase::Sentence;
use vramscope_inference::{AlgorithmSearch, Finding, SegmentChurn};
use vramscope_units::grouped;

pub(super) fn churn(entry: &SnapshotEntry, finding: &Finding, churn: &SegmentChurn) -> Words {
    if let Some(of) = &churn.search {
        return search(entry, finding, churn, of);
    }
    let at = at_site(&main_site(entry, finding));
    let calls_empty_cache = finding.stack().is_some_and(|stack| {
        let mut frames = entry.snapshot.stack(stack);
        frames.any(|frame| entry.snapshot.text(frame.name).contains("empty_cache"))
    });
    let called = format!("called {}.empty_cache()", entry.device_kind(finding.device).module());
    let (subject, verb, reason) = match (churn.by_allocator, calls_empty_cache) {
        (true, _) if threshold(entry).is_some() => (
            "The allocator",
            "made room",
            " when the driver refused more memory, or when use exceeded \
             garbage_collection_threshold",
        ),
        (true, _) => ("The allocator", "made room", " when the driver refused more memory"),
        (false, true) => ("The program", called.as_str(), ""),
        (false, false) => {
            ("The program", "returned memory", " with empty_cache or by ending a pool")
        }
    };
    let times = times(churn.bursts);
    Words {
        title: Sentence::default()
            .event(churn.reserved_again, finding.events.first().copied())
            .text(" returned and reserved again"),
        text: format!(
            "{subject} {verb} {times}{at}{reason}. That returned {} ({}), and {} were reserved \
             again. Each return waits for the device: {}.",
            churn.returned,
            counted(churn.segments, "segment"),
            churn.reserved_again,
            counted(churn.bursts, "synchronization"),
        ),
        action: action(entry, finding, churn, &at),
    }
}

fn search(
    entry: &SnapshotEntry,
    finding: &Finding,
    churn: &SegmentChurn,
    of: &AlgorithmSearch,
) -> Words {
    let AlgorithmSearch { step, steps, peak, later, largest, largest_at } = *of;
    let searched = match step {
        Some(step) if steps == 1 => format!("step {}", grouped(u64::from(step))),
        Some(_) => counted(steps, "step"),
        None => "the search".to_owned(),
    };
    let verb = if steps > 1 { "peak" } else { "peaks" };
    let title = match later {
        Some(later) if later < peak => {
            Sentence::new(format_args!("{} {verb} at ", capitalized(&searched)))
                .event(peak, finding.events.first().copied())
                .text(format_args!(" since cuDNN tries workspaces; later steps need {later}"))
        }
        _ => Sentence::default()
            .event(churn.returned, finding.events.first().copied())
            .text(" returned by cuDNN's search for algorithms"),
    };
    let after = match later {
        Some(later) if later < peak => {
            let others = if step.is_some() { "Later steps need" } else { "What follows needs" };
            format!("With it {searched} {verb} at {peak}. {others} {later}.")
        }
        Some(later) => format!("It costs no memory at the peak: what follows needs {later}."),
        None => format!(
            "Every step searches, and the peak is {peak}: each new shape of an input \
                         starts another search."
        ),
    };
    Words {
        title,
        text: format!(
            "cuDNN searches for the fastest algorithm of each convolution \
             (torch.backends.cudnn.benchmark). It tries workspaces of up to {largest}{}, and \
             empties the cache afterwards: {}, {} returned. {after}",
            at_site(&site(entry, largest_at)),
            times(churn.bursts),
            churn.returned,
        ),
        action: "Set torch.backends.cudnn.benchmark = False if the peak of the search does not \
                 fit. Keep the shapes of inputs fixed, so that each convolution is searched once."
            .to_owned(),
    }
}

/// `garbage_collection_threshold`, if it is set.
fn threshold(entry: &SnapshotEntry) -> Option<&str> {
    let value = setting(entry, "garbage_collection_threshold")?;
    value.parse().is_ok_and(|value: f64| value > 0.0).then_some(value)
}

fn action(entry: &SnapshotEntry, finding: &Finding, churn: &SegmentChurn, at: &str) -> String {
    if !churn.by_allocator {
        return format!("Remove the return{at} from the loop, or do it once after a phase.");
    }
    let mut steps = Vec::new();
    if let Some(value) = threshold(entry) {
        steps.push(format!("Raise or remove garbage_collection_threshold:{value}."));
    }
    let limit = setting(entry, "max_split_size").and_then(|value| value.parse::<i64>().ok());
    if limit.is_some_and(|limit| (0..1 << 62).contains(&limit)) {
        steps.push("Remove max_split_size_mb.".to_owned());
    }
    // Where the model has replayed other settings, another finding says what they do.
    let is_told = entry.has_simulated(finding.device);
    if can_expand(entry) && steps.is_empty() && !is_told {
        steps.push(format!("Try {EXPANDABLE}."));
    }
    if steps.is_empty() {
        steps.push("Lower the peak, with a smaller batch for example.".to_owned());
    }
    steps.join(" ")
}
