//! What proves a finding, in numbers: the page draws them beside its text.

mod lives;

use crate::phases::step_words;
use crate::target::Target;
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};
use vramscope_inference::{
    Exhibit, Facts, Finding, GrowthKind, OomStory, Parts, Predicted, RankSkew, SegmentChurn,
    SkewCause, Steps,
};
use vramscope_snapshot::StackId;
use vramscope_trace::Block;
use vramscope_trace::slicing::{Boxed, Budget};
use vramscope_units::{Bytes, EventIndex, grouped};

pub use lives::Ground;

/// The maximum number of values. A chart beside a text has room for no more.
const MAX_VALUES: usize = 40;

/// Values that are all named in the words of a proof.
const MAX_NAMED: usize = 16;

/// The part of the window before a failed allocation that is shown where no step is known.
const SHOWN_DIVISOR: u32 = 10;

/// The numbers that prove a finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Proof {
    /// How they belong together.
    pub form: ProofForm,
    /// What they are: `live bytes after each step`.
    pub title: String,
    /// What `values` count.
    pub unit: ProofUnit,
    /// The names of the values: `step 3`, `rank 5`, `stuck`. Of a curve, those of the first and the
    /// last value.
    pub labels: Vec<String>,
    /// The values. Of a curve, the most `requested_bytes` in equal parts of a range of events.
    pub values: Vec<u64>,
    /// The most `reserved_bytes` in the same parts; absent for other forms.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reserved: Vec<u64>,
    /// The indices of the values that show the finding.
    pub marked: Vec<u32>,
    /// The first state in which a block is live and the first state after its life, counted in
    /// events from the state before the window; absent for other forms.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spans: Vec<[u32; 2]>,
    /// What the values are compared with; absent if there is nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<ProofLine>,
    /// The request that failed, on top of the last value of `reserved`; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<u64>,
    /// The numbers in words.
    pub text: String,
    /// The phases behind the lives of blocks.
    #[serde(skip)]
    pub ground: Vec<Ground>,
    /// The state in which all of the blocks are live.
    #[serde(skip)]
    pub moment: Option<u32>,
}

/// How the values of a [`Proof`] belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProofForm {
    /// A value for each step or rank.
    Columns,
    /// The parts of one whole.
    Parts,
    /// Memory over events.
    Curve,
    /// The lives of blocks.
    Lives,
}

/// What the values of a [`Proof`] count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProofUnit {
    /// Bytes.
    Bytes,
    /// How often something happened.
    Count,
}

/// What the values of a [`Proof`] are compared with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProofLine {
    /// Its name: `usual`.
    pub label: String,
    /// Its value.
    pub value: u64,
}

impl ProofUnit {
    /// A value with its unit.
    pub fn text(self, value: u64) -> String {
        match self {
            Self::Bytes => Bytes(value).to_string(),
            Self::Count => grouped(value),
        }
    }
}

impl Proof {
    fn new(form: ProofForm, title: &str) -> Self {
        Self {
            form,
            title: title.to_owned(),
            unit: ProofUnit::Bytes,
            labels: Vec::new(),
            values: Vec::new(),
            reserved: Vec::new(),
            marked: Vec::new(),
            spans: Vec::new(),
            line: None,
            request: None,
            text: String::new(),
            ground: Vec::new(),
            moment: None,
        }
    }

    fn with_line(mut self, label: &str, value: Bytes) -> Self {
        self.line = Some(ProofLine { label: label.to_owned(), value: value.0 });
        self
    }

    /// Names the values: all of few, else the first, the highest and the last.
    fn in_words(mut self) -> Self {
        let named: Vec<usize> = if self.values.len() <= MAX_NAMED {
            (0..self.values.len()).collect()
        } else {
            let highest = (0..self.values.len()).rev().max_by_key(|&i| self.values[i]);
            let ends = [Some(0), highest, self.values.len().checked_sub(1)];
            let mut named: Vec<usize> = ends.into_iter().flatten().collect();
            named.dedup();
            named
        };
        let word = |i: usize| format!("{} {}", self.labels[i], self.unit.text(self.values[i]));
        let mut words: Vec<String> = named.into_iter().map(word).collect();
        words.extend(self.line.iter().map(|l| format!("{} {}", l.label, self.unit.text(l.value))));
        self.text = format!("{}: {}", self.title, words.join(", "));
        self
    }
}

/// The proof of each finding of a device; `None` where there is nothing to draw. Findings must be
/// derived before.
#[inline(never)]
pub(crate) fn of_device<'a>(
    target: Target<'a>,
    budget: &'a mut Budget,
) -> Boxed<'a, Vec<Option<Proof>>> {
    Box::pin(async move {
        let mut all = Vec::new();
        let nothing = Predicted::default();
        for finding in target.entry.findings(target.index) {
            let scene = target.entry.scene(target.index, finding, &nothing, false);
            let proof = match (finding.facts.claim().exhibit(&scene), &finding.facts) {
                (Exhibit::Steps { from }, _) => growth(target, finding, from, budget).await,
                (Exhibit::Lives { title, slot }, _) => {
                    lives::lives(target, finding, title, slot, budget).await
                }
                (Exhibit::Parts(parts), _) => Some(of_parts(&parts)),
                (Exhibit::Failure, Facts::Oom(story)) => Some(oom(target, story, budget).await),
                (Exhibit::Returns, Facts::Churn(churn)) => Some(returns(target, churn)),
                (Exhibit::Failure | Exhibit::Returns, _) => None,
            };
            all.push(proof);
        }
        all
    })
}

/// Which of `count` values are shown: all, or as many as there is room for, evenly spaced.
fn shown(count: usize) -> Vec<usize> {
    if count <= MAX_VALUES {
        return (0..count).collect();
    }
    (0..MAX_VALUES).map(|i| i * (count - 1) / (MAX_VALUES - 1)).collect()
}

/// The call stacks that a finding is about.
fn stacks(finding: &Finding) -> FxHashSet<StackId> {
    finding.parts.iter().map(|part| part.stack).collect()
}

/// Live bytes of the call stacks that grow, after each step from `from`.
async fn growth(
    target: Target<'_>,
    finding: &Finding,
    from: usize,
    budget: &mut Budget,
) -> Option<Proof> {
    let steps = target.entry.steps(target.index)?;
    let stacks = stacks(finding);
    let trace = target.trace();
    let mut changes = vec![0i64; steps.begins.len() + 1];
    let mut afterwards = 0;
    let visit = |_, block: &Block| {
        if stacks.contains(&block.stack) {
            let first = steps.begins.partition_point(|&begin| begin < block.enters);
            let end = steps.begins.partition_point(|&begin| begin < block.leaves);
            changes[first] += block.bytes.0 as i64;
            changes[end] -= block.bytes.0 as i64;
            if first == steps.begins.len() {
                afterwards += block.bytes.0;
            }
        }
    };
    trace.each_block(1, budget, visit).await;
    let mut live = 0;
    let after = changes.iter().take(steps.begins.len()).map(|change| {
        live += change;
        live.max(0) as u64
    });
    let after: Vec<u64> = after.collect();
    let mut proof = Proof::new(ProofForm::Columns, "live bytes after each step");
    for step in shown(steps.whole()).into_iter().filter(|&step| step >= from) {
        if after[step] < after[step + 1] {
            proof.marked.push(proof.values.len() as u32);
        }
        proof.labels.push(format!("{} {}", step_words(target)[0], grouped(step as u64)));
        proof.values.push(after[step + 1]);
    }
    // Blocks that are kept after the last step belong to the growth. A replaced block does not.
    let is_kept = matches!(&finding.facts, Facts::Growth(facts) if facts.kind == GrowthKind::Kept);
    if let Some(&last) = after.last().filter(|_| afterwards > 0 && is_kept) {
        proof.marked.push(proof.values.len() as u32);
        proof.labels.push("end".to_owned());
        proof.values.push(last + afterwards);
    }
    Some(proof.in_words())
}

/// Memory until an allocation failed: its step, else the last part of the window before it.
async fn oom(target: Target<'_>, story: &OomStory, budget: &mut Budget) -> Proof {
    let trace = target.trace();
    let failed = story.event.0 + 1;
    let before = |steps: &Steps| steps.begins.iter().rev().copied().find(|&begin| begin < failed);
    let step = target.entry.steps(target.index).and_then(before);
    let from = step.unwrap_or_else(|| failed.saturating_sub(trace.slots() / SHOWN_DIVISOR));
    // In a step that has just begun, the failure is at the edge of nothing.
    let from = from.min(failed.saturating_sub(MAX_VALUES as u32));
    let reserved = trace.reserved(target.snapshot(), budget).await;
    // The last value is that of the failure itself.
    let count = (MAX_VALUES as u64 - 1).min(u64::from(failed - from));
    let edge = |i: u64| from + (u64::from(failed - from) * i / count.max(1)) as u32;
    let edges = (0..count).map(|i| edge(i)..edge(i + 1)).chain(std::iter::once(failed..failed + 1));
    let mut proof = Proof::new(ProofForm::Curve, "memory until the allocation failed");
    for slots in edges {
        let requested = trace.requested.largest_sliced(slots.clone(), budget).await;
        let reserved = reserved.largest_sliced(slots, budget).await;
        proof.values.push(requested.map_or(0, |most| most.1));
        proof.reserved.push(reserved.map_or(0, |most| most.1));
    }
    proof.labels = vec![
        from.checked_sub(1)
            .map_or_else(|| "before the window".to_owned(), |event| EventIndex(event).to_string()),
        story.event.to_string(),
    ];
    proof.request = Some(story.requested.0);
    if let Some(room) = story.room {
        proof = proof.with_line("for PyTorch", room);
    }
    let at = |values: &[u64]| Bytes(values.last().copied().unwrap_or_default());
    let room = story.room.map(|room| format!(", of {room} for PyTorch"));
    proof.text = format!(
        "{}: {} requested and {} reserved at {}, {} more asked for{}",
        proof.title,
        at(&proof.values),
        at(&proof.reserved),
        story.event,
        story.requested,
        room.unwrap_or_default()
    );
    proof
}

/// A proof of parts. Parts without bytes are left out. The marked ones show the finding.
fn of_parts(of: &Parts) -> Proof {
    let mut proof = Proof::new(ProofForm::Parts, of.title);
    for &(label, bytes, is_marked) in of.parts.iter().filter(|part| part.1.0 > 0) {
        if is_marked {
            proof.marked.push(proof.values.len() as u32);
        }
        proof.labels.push(label.to_owned());
        proof.values.push(bytes.0);
    }
    match of.line {
        Some((label, value)) => proof.with_line(label, value).in_words(),
        None => proof.in_words(),
    }
}

/// The returns of each step, or of equal parts of the window.
fn returns(target: Target<'_>, churn: &SegmentChurn) -> Proof {
    let steps = target.entry.steps(target.index).filter(|steps| steps.are_training());
    let title = match steps {
        Some(_) => "returns to the driver in each step",
        None => "returns to the driver over the window",
    };
    let mut proof = Proof::new(ProofForm::Columns, title);
    proof.unit = ProofUnit::Count;
    let count = |from: u32, to: u32| {
        let end = churn.at.partition_point(|&event| event < to);
        (end - churn.at.partition_point(|&event| event < from)) as u64
    };
    let events = target.trace().slots() - 1;
    // The last edge of a step is its end. What follows the last whole step is one more.
    let mut edges: Vec<u32> = match steps {
        Some(steps) => steps.begins.clone(),
        None => (0..MAX_VALUES as u64)
            .map(|i| (u64::from(events) * i / MAX_VALUES as u64) as u32)
            .collect(),
    };
    edges.push(events);
    edges.dedup();
    let whole = edges.len().saturating_sub(1);
    let columns = whole.min(MAX_VALUES);
    for column in 0..columns {
        let (from, to) = (column * whole / columns, (column + 1) * whole / columns);
        let returns = count(edges[from], edges[to]);
        if returns > 0 {
            proof.marked.push(proof.values.len() as u32);
        }
        proof.values.push(returns);
        proof.labels.push(match steps {
            Some(_) if to - from > 1 => {
                format!("steps {} to {}", grouped(from as u64), grouped(to as u64 - 1))
            }
            Some(_) => format!("step {}", grouped(from as u64)),
            None => EventIndex(edges[from]).to_string(),
        });
    }
    proof.in_words()
}

/// The compared bytes on each rank, with the rank that the finding is about.
pub(crate) fn ranks(skew: &RankSkew) -> Proof {
    let title = match skew.cause {
        SkewCause::Batch { .. } => "activations on each rank",
        SkewCause::Held => "bytes of these call sites on each rank",
        SkewCause::Sharding => "parameters and optimizer state on each rank",
        SkewCause::Reserved => "reserved_bytes at the peak of each rank",
    };
    let mut proof = Proof::new(ProofForm::Columns, title);
    let mut all = shown(skew.each.len());
    if let Some(own) = skew.each.iter().position(|(rank, _)| *rank == skew.rank) {
        all.push(own);
        all.sort_unstable();
        all.dedup();
    }
    for (rank, bytes) in all.into_iter().map(|i| skew.each[i]) {
        if rank == skew.rank {
            proof.marked.push(proof.values.len() as u32);
        }
        proof.labels.push(format!("rank {rank}"));
        proof.values.push(bytes.0);
    }
    proof.with_line("usual", skew.usual).in_words()
}
