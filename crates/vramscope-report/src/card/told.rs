//! Facts about a device that a diagnosis needs beside its findings.

use super::Card;
use crate::diagnose::MemorySummary;
use crate::lines::{HoldingLine, holding_lines};
use crate::peak::BandKind;
use crate::phases::{self, Place};
use crate::serving::{CacheShare, share};
use crate::target::{Target, slot_of};
use crate::verdict::{MemoryBar, PeakWords, memory, part_name, peak_place};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use vramscope_inference::{BlindSpot, FindingKind, Sentence, StepPhase};
use vramscope_trace::slicing::Budget;
use vramscope_units::Bytes;

/// More bytes than any device has. A card may come from anywhere.
pub(crate) const MAX_BYTES: u64 = 1 << 56;

/// Facts about a device that a diagnosis needs beside its findings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Told {
    /// The training step of the peak of `requested_bytes`, from 0; null if nothing shows it.
    pub step: Option<u32>,
    /// The phase of that peak; null if nothing shows it.
    pub phase: Option<StepPhase>,
    /// Both in words, with a space before them: ` in backward of step 2`.
    pub place: String,
    /// The lines that hold most at that peak.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<HoldingLine>,
    /// The part of the GPU that the KV cache of an engine has; absent for other runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheShare>,
    /// The kinds of findings that the recording cannot show; empty for a device that is not the
    /// main one of its file.
    pub blind_spots: Vec<BlindSpot>,
    /// The memory when the worst finding's allocation failed. Absent for other findings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureMemory>,
}

/// The memory of a device when an allocation failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailureMemory {
    /// The event.
    pub event: i64,
    /// `reserved_bytes`.
    pub reserved: Bytes,
    /// The most bytes that PyTorch can reserve; null if the file does not tell.
    pub capacity: Option<Bytes>,
    /// The request that failed.
    pub request: Option<Bytes>,
    /// Bytes by use. The names are those of [`MemorySummary::parts`].
    pub parts: BTreeMap<String, Bytes>,
    /// The lines that held most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<HoldingLine>,
}

impl Told {
    /// The facts about a device. `card` is its card.
    pub(super) async fn new(target: Target<'_>, card: &Card, budget: &mut Budget) -> Self {
        let slot = slot_of(target.trace().requested_band.peak_event);
        let at = phases::place(target, slot, budget).await;
        let leading = card.findings.iter().filter(|of| of.leads).map(|of| &of.record);
        let worst = leading.min_by_key(|of| of.weight());
        let failure = match worst {
            Some(record) if record.kind == FindingKind::Oom => {
                let memory = memory(target, budget).await;
                let slot = (memory.event + 1).max(0) as u32;
                Some(FailureMemory::of(&memory, holding_lines(target, slot, budget).await))
            }
            _ => None,
        };
        Self {
            step: at.step,
            phase: at.phase.and_then(phase_of),
            place: peak_words(&at, card),
            lines: holding_lines(target, slot, budget).await,
            cache: share(target, budget).await,
            blind_spots: card.blind_spots.clone(),
            failure,
        }
    }
}

/// The place of a card's peak in words.
pub(crate) fn peak_words(at: &Place, card: &Card) -> String {
    peak_place(at, card.band(BandKind::Requested).peak_event.0).plain()
}

impl Card {
    /// The sentence about its peak. `place` is the step and phase of the peak in words.
    pub(crate) fn peak_words<'a>(
        &self,
        place: &str,
        lines: &'a [HoldingLine],
        cache: Option<&'a CacheShare>,
    ) -> PeakWords<'a> {
        let is_end =
            |spot: &BlindSpot| matches!(spot, BlindSpot::NoHistory { .. } | BlindSpot::StateOnly);
        PeakWords {
            place: Sentence::new(place),
            is_end: self.blind_spots.iter().any(is_end),
            categories: self.categories.iter().map(|of| (of.category, of.bytes.0)).collect(),
            lines,
            event: u32::try_from(self.band(BandKind::Requested).peak_event.0).ok(),
            cache,
        }
    }
}

/// The phase with a name.
fn phase_of(name: &str) -> Option<StepPhase> {
    StepPhase::ALL.into_iter().find(|phase| phase.name() == name)
}

impl FailureMemory {
    fn of(bar: &MemoryBar, lines: Vec<HoldingLine>) -> Self {
        Self {
            event: bar.event,
            reserved: bar.reserved,
            capacity: bar.capacity,
            request: bar.request,
            parts: bar.parts.iter().map(|part| (part.name.to_owned(), part.bytes)).collect(),
            lines,
        }
    }

    /// Converts it for a diagnosis. Parts with names that this version does not know are left out.
    pub(crate) fn summary(&self) -> MemorySummary {
        let known = |(name, bytes): (&String, &Bytes)| {
            Some((part_name(name)?, Bytes(bytes.0.min(MAX_BYTES))))
        };
        MemorySummary {
            event: self.event,
            reserved: self.reserved,
            capacity: self.capacity,
            request: self.request,
            parts: self.parts.iter().filter_map(known).collect(),
            lines: self.lines.clone(),
        }
    }
}
