//! The verdict about one device: one sentence from its worst finding, and its memory then.

use crate::findings::{FindingEntry, of_device};
use crate::lines::{HoldingLine, holding_lines};
use crate::peak::BandKind;
use crate::phases::{Place, place};
use crate::serving::{CacheShare, share};
use crate::target::{Target, event_of, slot_of};
use vramscope_inference::{
    Category, CategoryBytes, Facts, Finding, FindingId, MemoryUse, OomStory, Phrase, Sentence,
    Severity, Verdict as OomVerdict, category_label, category_noun, is_known_part, place_words,
    slot_of_reserved_peak,
};
use vramscope_trace::Exactness;
use vramscope_trace::slicing::{Boxed, Budget};
use vramscope_units::{Bytes, EventIndex, grouped};

/// What a recording says about one device.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The severity of the finding that it is about; `None` if it is about the peak.
    pub severity: Option<Severity>,
    /// The id of that finding.
    pub finding: Option<FindingId>,
    /// The sentence. It does not name the rank.
    pub headline: Vec<Phrase>,
    /// The device's memory at the moment of the finding, else at the peak.
    pub memory: MemoryBar,
    /// The lines that hold most at the peak; `None` if it is about a finding.
    pub lines: Option<Vec<HoldingLine>>,
    /// The part of the GPU that the KV cache of an engine has; `None` if it is about a finding.
    pub cache: Option<CacheShare>,
}

/// The memory of a device at one moment, in parts that follow one another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemoryBar {
    /// The event after which it holds, from 0; -1 is the state before the window.
    pub event: i64,
    /// The moment in words: `at the failed allocation, #7,396`.
    pub moment: String,
    /// Whether block sizes are estimates.
    pub is_estimate: bool,
    /// The parts with bytes: what blocks hold by category, what no block holds, and what PyTorch
    /// did not reserve.
    pub parts: Vec<MemoryPart>,
    /// `reserved_bytes`: the sum of the parts that PyTorch reserved.
    pub reserved: Bytes,
    /// What PyTorch can have; `None` where the file does not tell.
    pub capacity: Option<Bytes>,
    /// The request that failed; `None` without one. It begins where the reserved memory ends.
    pub request: Option<Bytes>,
}

/// A part of a [`MemoryBar`].
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryPart {
    /// The category's name, or `rounding`, `idle`, `stuck`, `small`, `graph_pools`, `device_free`
    /// or `outside`.
    pub name: &'static str,
    /// Its words.
    pub label: &'static str,
    /// Its bytes.
    pub bytes: Bytes,
    /// The category of what it holds; `None` if no block holds it.
    pub category: Option<Category>,
    /// What it is, in a sentence without a full stop.
    pub note: String,
}

/// The parts of a [`MemoryBar`] that no block holds, and what PyTorch did not reserve.
const OTHER_PARTS: [&str; 7] =
    ["rounding", "idle", "stuck", "small", "graph_pools", "device_free", "outside"];

/// The name of a part; `None` if no part has it.
pub(crate) fn part_name(name: &str) -> Option<&'static str> {
    let categories = Category::ALL.into_iter().map(Category::name);
    categories.chain(OTHER_PARTS).find(|known| *known == name)
}

impl MemoryBar {
    /// The bytes of the whole scale.
    pub fn scale(&self) -> Bytes {
        let parts = self.parts.iter().map(|part| part.bytes.0).sum::<u64>();
        let asked = self.reserved.0.saturating_add(self.request.unwrap_or_default().0);
        Bytes(parts.max(asked))
    }
}

/// The verdict about a device. Findings must be derived before; with
/// [`Derived::Simulated`](crate::Derived::Simulated) it also says what the model of the allocator
/// does.
#[inline(never)]
pub fn verdict<'a>(target: Target<'a>, budget: &'a mut Budget) -> Boxed<'a, Verdict> {
    Box::pin(async move {
        let entries = of_device(target);
        let (worst, memory, categories) = at_moment(target, &entries, budget).await;
        if let Some(FindingEntry { record, title, .. }) = worst {
            return Verdict {
                severity: Some(record.severity),
                finding: Some(record.id.clone()),
                headline: title.clone(),
                memory,
                lines: None,
                cache: None,
            };
        }
        let slot = slot_of(target.trace().requested_band.peak_event);
        let place = place(target, slot, budget).await;
        let lines = holding_lines(target, slot, budget).await;
        let cache = share(target, budget).await;
        let peak = PeakWords {
            place: peak_place(&place, event_of(slot)),
            is_end: target.trace().is_state_only(),
            categories: Category::ALL.into_iter().zip(categories).collect(),
            lines: &lines,
            event: slot.checked_sub(1),
            cache: cache.as_ref(),
        };
        Verdict {
            severity: None,
            finding: None,
            headline: peak.sentence().into_phrases(),
            memory,
            lines: Some(lines),
            cache,
        }
    })
}

/// The memory of a device at the moment of its verdict. Findings must be derived before.
pub async fn memory(target: Target<'_>, budget: &mut Budget) -> MemoryBar {
    at_moment(target, &of_device(target), budget).await.1
}

/// The finding that has the first words, and the memory at its moment, else at the peak.
async fn at_moment<'a>(
    target: Target<'_>,
    entries: &'a [FindingEntry],
    budget: &mut Budget,
) -> (Option<&'a FindingEntry>, MemoryBar, CategoryBytes) {
    let found = target.entry.findings(target.index).iter().zip(entries);
    let leading = found.filter(|(_, entry)| entry.leads);
    let worst = leading.min_by_key(|(_, entry)| entry.record.weight());
    let slot = match worst.map(|(finding, _)| &finding.facts) {
        Some(Facts::Oom(story)) => story.event.0 + 1,
        Some(Facts::Reserved(_) | Facts::StrandedPool(_) | Facts::GraphPools(_)) => {
            slot_of_reserved_peak(target.entry.evidence(target.index), budget).await
        }
        _ => slot_of(target.trace().requested_band.peak_event),
    };
    let evidence = target.entry.evidence(target.index);
    let (used, categories) = MemoryUse::at(evidence, slot, budget).await;
    let oom = worst.and_then(|(finding, _)| story(finding));
    let memory = bar(target, slot, &used, &categories, oom);
    (worst.map(|(_, entry)| entry), memory, categories)
}

fn story(finding: &Finding) -> Option<&OomStory> {
    match &finding.facts {
        Facts::Oom(story) => Some(story),
        _ => None,
    }
}

/// The place of a peak in words: its phase and step, else its event.
pub(crate) fn peak_place(at: &Place, event: i64) -> Sentence {
    let phase = at.phase.filter(|&phase| phase != "other");
    match u32::try_from(event) {
        _ if phase.is_some() || at.step.is_some() => {
            let place = place_words(phase, at.step.filter(|_| at.repetitions.is_none()));
            let place = match (at.step, at.repetitions) {
                (Some(step), Some((of, word))) => place
                    .text(if phase.is_some() { " of " } else { " in " })
                    .filter(format_args!("{word} {step}"), format!("step:{step}"))
                    .text(format_args!(" of {of}")),
                _ => place,
            };
            place.text(at.layer_text())
        }
        Ok(event) => Sentence::new(format_args!(" at {}", EventIndex(event))),
        Err(_) => Sentence::new(" before the first event"),
    }
}

/// What is said of a device without memory.
const EMPTY: &str = "No memory was allocated";

/// The share of the peak, in percent, from which caches of a run without training have the first
/// words.
const CACHE_PERCENT: u128 = 20;

/// What is said of a peak where no finding has the first words.
pub(crate) struct PeakWords<'a> {
    /// ` in backward of step 2`.
    pub(crate) place: Sentence,
    /// Whether the file has only the state at the end.
    pub(crate) is_end: bool,
    /// Requested bytes by category.
    pub(crate) categories: Vec<(Category, u64)>,
    /// The lines that hold most.
    pub(crate) lines: &'a [HoldingLine],
    /// The event that makes the peak.
    pub(crate) event: Option<u32>,
    /// The part of the GPU that the KV cache of an engine has.
    pub(crate) cache: Option<&'a CacheShare>,
}

impl PeakWords<'_> {
    /// `Peak 42.5 GiB in backward of step 1: 52 % activations, largest line model.py:59, 15.3 GiB`.
    pub(crate) fn sentence(&self) -> Sentence {
        let whole = self.categories.iter().fold(0_u64, |sum, of| sum.saturating_add(of.1));
        let of = |category| {
            self.categories.iter().find(|of| of.0 == category).map_or(0, |(_, bytes)| *bytes)
        };
        let largest = self.categories.iter().max_by_key(|(_, bytes)| *bytes);
        let Some(&(category, most)) = largest.filter(|_| whole > 0) else {
            return Sentence::new(EMPTY);
        };
        let peak = Sentence::default().event(Bytes(whole).brief(), self.event);
        if self.is_end {
            return peak.text(" in use at the end: no history was recorded");
        }
        let share =
            |bytes: u64| (u128::from(bytes) * 100 + u128::from(whole) / 2) / u128::from(whole);
        let (cache, state) = (of(Category::Cache), [Category::Gradient, Category::OptimizerState]);
        if share(cache) >= CACHE_PERCENT && state.into_iter().all(|category| of(category) == 0) {
            let line = self.lines.iter().find(|line| line.category == Category::Cache);
            let noun = category_noun(Category::Cache, "KV cache");
            let of_gpu = self.cache.filter(|of| of.percent() >= CACHE_PERCENT);
            let sentence = match of_gpu {
                Some(of) => noun.text(of.words()),
                None => noun
                    .text(format_args!(" is {} % of the peak of ", share(cache)))
                    .and(peak)
                    .and(self.place.clone()),
            };
            let site = line.filter(|line| line.is_place());
            return sentence
                .text(site.map_or_else(String::new, |line| format!(", most at {}", line.site)));
        }
        let sentence = Sentence::new("Peak ").and(peak).and(self.place.clone());
        let noun = match category {
            Category::Unknown => "of unknown use",
            _ => category_label(category),
        };
        let part = self.known_part().filter(|(_, bytes)| *bytes > most);
        let sentence = match part {
            Some((part, bytes)) => sentence.text(format_args!(": {} % {part}", share(bytes))),
            None => sentence
                .text(format_args!(": {} % ", share(most)))
                .and(category_noun(category, noun)),
        };
        let is_of_part = |line: &&HoldingLine| match part {
            Some((part, _)) => line.does.as_deref() == Some(part) && !line.is_of_backward,
            None => true,
        };
        match self.lines.iter().filter(is_of_part).find(|line| line.is_place()) {
            Some(line) => {
                sentence.text(format_args!(", largest line {}, {}", line.site, line.bytes.brief()))
            }
            None => sentence,
        }
    }
}

impl<'a> PeakWords<'a> {
    /// The part of the peak with a known cure that has most of the lines' bytes, and these.
    fn known_part(&self) -> Option<(&'a str, u64)> {
        let of = |line: &'a HoldingLine| line.does.as_deref().filter(|noun| is_known_part(noun));
        let nouns = self.lines.iter().filter_map(of);
        let sums = nouns.map(|noun| {
            let lines = self.lines.iter().filter(|line| line.does.as_deref() == Some(noun));
            (noun, lines.fold(0, |sum: u64, line| sum.saturating_add(line.bytes.0)))
        });
        sums.max_by_key(|(_, bytes)| *bytes)
    }
}

/// The memory of a slot as a bar.
fn bar(
    target: Target<'_>,
    slot: u32,
    used: &MemoryUse,
    categories: &CategoryBytes,
    oom: Option<&OomStory>,
) -> MemoryBar {
    let of_category = |(category, &bytes): (Category, &u64)| MemoryPart {
        name: category.name(),
        label: category_label(category),
        bytes: Bytes(bytes),
        category: Some(category),
        note: String::new(),
    };
    let mut parts: Vec<MemoryPart> = Category::STACKED
        .into_iter()
        .map(|category| of_category((category, &categories[category as usize])))
        .collect();
    let mut push = |name, label, bytes, note: String| {
        parts.push(MemoryPart { name, label, bytes, category: None, note });
    };
    push("rounding", "rounding", used.rounding, "added to requests by rounding".to_owned());
    push(
        "stuck",
        "fragmented",
        used.stuck,
        format!(
            "free inside of {} in use, in pieces of at most {}",
            match used.stuck_segments {
                1 => "1 segment".to_owned(),
                count => format!("{} segments", grouped(count as u64)),
            },
            used.largest_stuck
        ),
    );
    push("small", "small-block pool, free", used.small, "free in the small pool".to_owned());
    push(
        "graph_pools",
        "CUDA graph pools, free",
        used.graph_pools,
        "free in pools of CUDA graphs, whose replays use it".to_owned(),
    );
    // What can be returned lies where reserved memory ends.
    push(
        "idle",
        "cached, free",
        used.idle,
        format!(
            "in {} free {}, returned when memory is short",
            grouped(used.idle_segments as u64),
            if used.idle_segments == 1 { "segment" } else { "segments" }
        ),
    );
    let reserved = used.reserved();
    let limit = target.entry.device_memory(target.index).and_then(|memory| memory.limit_bytes);
    let left = limit.map(|limit| limit.saturating_sub(reserved.0));
    let device_free = oom.and_then(|story| match (story.device_free, left) {
        // What the driver has free is of no use above a limit of the process.
        (free, Some(left)) => Some(free.map_or(Bytes(left), |free| free.min(Bytes(left)))),
        (_, None) if story.verdict == OomVerdict::Limit => None,
        (free, None) => free,
    });
    push(
        "device_free",
        "free on the device",
        device_free.unwrap_or_default(),
        "free outside of PyTorch, as the driver and the limit of the process allow".to_owned(),
    );
    push(
        "outside",
        "taken outside of PyTorch",
        oom.map(|story| story.shrunk).unwrap_or_default(),
        "PyTorch could have at least this much more earlier".to_owned(),
    );
    parts.retain(|part| part.bytes.0 > 0);
    let event = event_of(slot);
    let at = u32::try_from(event)
        .map_or_else(|_| "before the window".to_owned(), |event| EventIndex(event).to_string());
    let is_state_only = target.trace().is_state_only();
    let requested_peak = slot_of(target.trace().requested_band.peak_event);
    let moment = match oom {
        Some(_) => format!("at the failed allocation, {at}"),
        None if is_state_only => "when the snapshot was taken".to_owned(),
        None if slot == requested_peak => format!("at the peak, {at}"),
        None => format!("at the peak of reserved memory, {at}"),
    };
    MemoryBar {
        event,
        moment,
        is_estimate: BandKind::Active.of(target).1 == Exactness::Estimate,
        parts,
        reserved,
        capacity: device_free.map(|free| Bytes(reserved.0.saturating_add(free.0))),
        request: oom.map(|story| story.requested),
    }
}
