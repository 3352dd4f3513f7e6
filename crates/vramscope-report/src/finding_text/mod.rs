//! The words of each kind of finding: what, with its numbers and cause, and what to do.

mod allocator;
mod blind;
mod churn;
mod dead;
mod dominant;
mod headline;
mod oom;
pub(crate) use oom::limit_of;
mod peak_cause;
mod pending;
mod pinned;
mod place;
mod program;
mod ranks;
mod reserved;
mod simulated;
mod why;

use crate::frames::{site, stack_filter};
use crate::loaded_file::SnapshotEntry;
use crate::phrase::Sentence;
use crate::simulated::Predicted;
use crate::text::NO_STACK;
use vramscope_inference::{Facts, Finding, FindingKind, Growth};
use vramscope_snapshot::StackId;
use vramscope_units::{Bytes, grouped};

pub use blind::{blind_kind, blind_text};
pub use ranks::rank_words;

pub(crate) use allocator::can_expand;
pub(crate) use headline::{category_noun, headline, place_words};
pub(crate) use place::{place, rank_place};
pub(crate) use why::{rank_why, saving, why};

/// The words of a finding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// The finding in a few words: subject and number.
    pub title: Sentence,
    /// Subject, numbers and cause, in sentences.
    pub text: String,
    /// What to do, in sentences that begin with a verb.
    pub action: String,
}

/// The name of a kind on the page.
pub fn label(kind: FindingKind) -> &'static str {
    match kind {
        FindingKind::Oom => "Out of memory",
        FindingKind::Growth => "Growth",
        FindingKind::Cycle => "Reference cycles",
        FindingKind::GradientsHeld => "Gradients held",
        FindingKind::HeldTooLong => "Held too long",
        FindingKind::NoGrad => "Graph without backward",
        FindingKind::PeakCause => "Cause of the peak",
        FindingKind::RankSkew => "Rank skew",
        FindingKind::Reserved => "Reserved, not needed",
        FindingKind::StrandedPool => "Stranded pool",
        FindingKind::PendingFree => "Pending frees",
        FindingKind::Churn => "Churn",
        FindingKind::DeadAtPeak => "Never read again",
        FindingKind::Dominant => "Sets the peak",
        FindingKind::Pinned => "Pinned, of no use",
    }
}

/// The words of a finding on one device. `predicted` is what replays say. With `is_held`, other
/// words name what holds its memory.
pub fn words(
    entry: &SnapshotEntry,
    finding: &Finding,
    predicted: &Predicted,
    is_held: bool,
) -> Words {
    match &finding.facts {
        Facts::Growth(growth) => program::growth(entry, finding, growth, predicted, is_held),
        Facts::Cycle(cycle) => program::cycle(entry, finding, cycle),
        Facts::GradientsHeld(held) => program::gradients(finding, held),
        Facts::HeldTooLong(held) => program::held(entry, finding, held),
        Facts::NoGrad(graphs) => program::no_grad(entry, finding, graphs, predicted),
        Facts::PeakCause(cause) => peak_cause::peak_cause(entry, finding, cause),
        Facts::Oom(story) => oom::oom(entry, finding, story, predicted),
        Facts::Reserved(peak) => reserved::reserved(entry, finding, peak, &predicted.simulated),
        Facts::StrandedPool(side) => reserved::stranded(entry, finding, side),
        Facts::GraphPools(pools) => reserved::graph_pools(entry, finding, pools),
        Facts::PendingFree(waits) => pending::pending(entry, finding, waits),
        Facts::Churn(churn) => churn::churn(entry, finding, churn),
        Facts::DeadAtPeak(facts) => dead::dead(entry, finding, facts),
        Facts::Dominant(facts) => dominant::dominant(entry, finding, facts),
        Facts::Pinned(facts) => pinned::pinned(entry, finding, facts),
    }
}

/// The call site of a finding's largest part; [`NO_STACK`] without one.
fn main_site(entry: &SnapshotEntry, finding: &Finding) -> String {
    site(entry, finding.stack().unwrap_or(StackId::EMPTY))
}

/// The call site of a finding's largest part as a noun.
fn site_noun(entry: &SnapshotEntry, finding: &Finding) -> Sentence {
    let stack = finding.stack().unwrap_or(StackId::EMPTY);
    Sentence::default().site(site(entry, stack), stack_filter(entry, stack))
}

/// A call site as the subject of a sentence.
fn subject(site: &str) -> String {
    if site == NO_STACK { format!("Memory with {NO_STACK}") } else { site.to_owned() }
}

/// `8.00 MiB`, or `8.00 MiB to 11.0 MiB`.
fn range((min, max): (Bytes, Bytes)) -> String {
    if min == max { min.to_string() } else { format!("{min} to {max}") }
}

/// `every step`, or `every 3 steps`. `word` is the step's name.
fn interval(every: usize, word: &str) -> String {
    if every == 1 { format!("every {word}") } else { format!("every {every} {word}s") }
}

/// The name of what growth is compared between.
fn step_word(growth: &Growth) -> &'static str {
    if growth.repeats { "repetition" } else { "step" }
}

fn percent(part: Bytes, whole: Bytes) -> u64 {
    part.0.saturating_mul(100) / whole.0.max(1)
}

/// `1 block`, `12 blocks`.
fn counted(count: usize, noun: &str) -> String {
    format!("{} {noun}{}", grouped(count as u64), if count == 1 { "" } else { "s" })
}

/// `once`, `12 times`.
fn times(count: usize) -> String {
    if count == 1 { "once".to_owned() } else { counted(count, "time") }
}
