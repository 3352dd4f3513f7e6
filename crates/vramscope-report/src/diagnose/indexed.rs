//! Devices that are known from an index only, by their cards.

use super::{Diagnosed, Peak};
use crate::card::{Card, FailureMemory, MAX_BYTES, peak_words};
use crate::findings::{BlindSpotRecord, of_card};
use crate::phases::Place;
use std::fmt::Write as _;
use vramscope_inference::StepPhase;
use vramscope_units::{Bytes, grouped};

impl Diagnosed {
    /// A diagnosis of a device by its card in an index. The card names its own call sites.
    pub fn of_card(mut card: Card) -> Self {
        for of in &mut card.categories {
            of.bytes = Bytes(of.bytes.0.min(MAX_BYTES));
        }
        card.entries = of_card(&card.findings);
        let told = card.told.take();
        let peak = match &told {
            Some(told) => {
                card.blind_spots.clone_from(&told.blind_spots);
                let phase = told.phase.map(StepPhase::name);
                Peak {
                    step: told.step,
                    phase,
                    text: told.place.clone(),
                    lines: told.lines.clone(),
                    cache: told.cache.clone(),
                }
            }
            None => Peak {
                step: None,
                phase: None,
                text: peak_words(&Place::default(), &card),
                lines: Vec::new(),
                cache: None,
            },
        };
        let leading = card.findings.iter().filter(|of| of.leads);
        let worst = leading.min_by_key(|of| of.record.weight());
        let headline = match worst {
            Some(worst) => worst.record.title.clone(),
            None => {
                card.peak_words(&peak.text, &peak.lines, peak.cache.as_ref()).sentence().plain()
            }
        };
        let (severity, finding) =
            worst.map(|worst| (worst.record.severity, worst.record.id.clone())).unzip();
        let failure = told.as_ref().and_then(|told| told.failure.as_ref());
        Self {
            peak,
            severity,
            finding,
            headline,
            memory: failure.map(FailureMemory::summary),
            dump: None,
            levers: Vec::new(),
            dry: None,
            is_old: told.is_none(),
            card,
        }
    }
}

/// The blind spot of cards of an index, of which `old` are of an earlier version; `None` without
/// any card.
pub(super) fn lacks(indexed: &[&Card], old: usize) -> Option<BlindSpotRecord> {
    if indexed.is_empty() {
        return None;
    }
    let mut text = "No change was replayed: an index has no snapshots. `vramscope diagnose FILE` \
                    replays changes of that file"
        .to_owned();
    let left_out: usize = indexed.iter().map(|card| card.other_findings.len()).sum();
    if left_out > 0 {
        let word = if left_out == 1 { "finding is" } else { "findings are" };
        let count = grouped(left_out as u64);
        write!(text, ". It has the worst of each file: {count} lesser {word} left out")
            .expect("a String takes all text");
    }
    if old > 0 {
        text.push_str(
            ". It is of an earlier version, so it does not tell what could not be looked for: \
             write it again",
        );
    }
    Some(BlindSpotRecord { kind: "index", text })
}
