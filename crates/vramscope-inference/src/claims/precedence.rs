//! Precedence: one cause is one finding. This table has every rule by which a finding takes the
//! word from another.

use super::findings::all_detectors;
use super::findings::facts::{Facts, Finding};
use super::findings::oom::Verdict;
use super::kinds::FindingKind;
use crate::evidence::Evidence;
use rustc_hash::FxHashSet;
use vramscope_snapshot::StackId;

/// Declares [`Detector`].
macro_rules! detectors {
    ($($of:ident: $on:ident, $room:ident::$detect:ident($($needs:ident),*);)*) => {
        /// The detectors, in the order in which they are asked. Those of the allocator share what
        /// they read, so `findings/ask.rs` asks them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Detector {
            $($of,)*
            Oom,
            Churn,
            Reserved,
            Stranded,
            GraphPools,
        }
    };
}

all_detectors!(detectors);

/// The loss of a detector to a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    /// The blocks of its call stacks: the other detector leaves them out.
    Stacks,
    /// Everything: the other detector is not asked.
    All,
    /// Findings all of whose call stacks it has as well: they are dropped.
    Named,
}

/// One rule: whoever `speaks` takes something from `silenced`.
struct Rule {
    speaks: Detector,
    silenced: Detector,
    takes: Takes,
    /// When the rule holds; always without a condition.
    when: Option<fn(Evidence<'_>, &Finding) -> bool>,
    /// Why.
    #[cfg_attr(not(test), expect(dead_code, reason = "the reason is for readers and a test"))]
    because: &'static str,
}

const fn rule(speaks: Detector, takes: Takes, silenced: Detector, because: &'static str) -> Rule {
    Rule { speaks, silenced, takes, when: None, because }
}

/// The rules. A detector is asked after all that may silence it.
const RULES: &[Rule] = &{
    use Detector as D;
    use Takes::{All, Named, Stacks};
    [
        rule(D::Growth, Stacks, D::NoGrad, "a graph that something holds is a leak"),
        rule(D::Growth, Stacks, D::GradientsHeld, "gradients that grow are a leak"),
        rule(D::Growth, Stacks, D::HeldTooLong, "what grows is not held by accident"),
        rule(D::Growth, Stacks, D::PerPass, "results that grow are a leak"),
        rule(D::Growth, All, D::PeakEvaluation, "a leak sets the peak where it ends"),
        rule(D::Growth, All, D::PeakBuilding, "a leak sets the peak where it ends"),
        rule(D::Growth, All, D::PeakStep, "a leak makes each step higher than the one before"),
        rule(D::NoGrad, Stacks, D::HeldTooLong, "a graph is dropped with its last output"),
        Rule {
            when: Some(makes_the_peak),
            ..rule(D::NoGrad, All, D::PeakEvaluation, "graphs of an evaluation are not its results")
        },
        rule(D::Buckets, All, D::GradientsHeld, "gradients in buckets stay on purpose"),
        rule(D::Ahead, All, D::PeakStep, "a queue that is full at the start is no larger step"),
        rule(D::PeakEvaluation, All, D::PeakBuilding, "one moment sets the peak"),
        rule(D::PeakEvaluation, All, D::PeakStep, "one moment sets the peak"),
        rule(D::PeakBuilding, All, D::PeakStep, "one moment sets the peak"),
        rule(D::DeadAtPeak, Named, D::HeldTooLong, "a traced step knows the last uses"),
        Rule {
            when: Some(is_stranded),
            ..rule(D::Oom, All, D::Reserved, "the failure tells of the free memory")
        },
        Rule {
            when: Some(is_stranded),
            ..rule(D::Oom, All, D::Stranded, "the failure tells of the free memory")
        },
        Rule {
            when: Some(is_stranded),
            ..rule(D::Oom, All, D::GraphPools, "the failure tells of the free memory")
        },
    ]
};

/// Whether graphs without a backward pass make more than a twentieth of the peak.
fn makes_the_peak(cx: Evidence<'_>, finding: &Finding) -> bool {
    matches!(&finding.facts, Facts::NoGrad(graphs) if graphs.peak_without.0 < cx.peak() / 20 * 19)
}

/// Whether an allocation failed beside free memory of another pool or stream.
fn is_stranded(_: Evidence<'_>, finding: &Finding) -> bool {
    matches!(&finding.facts, Facts::Oom(story) if story.verdict == Verdict::StrandedPool)
}

/// Whether a finding is a detail beside findings of these kinds on its device: the list of findings
/// has it, the first screen has not. A failed allocation tells of the free memory that it could not
/// use.
pub fn is_detail(kind: FindingKind, beside: impl IntoIterator<Item = FindingKind>) -> bool {
    kind == FindingKind::Reserved && beside.into_iter().any(|other| other == FindingKind::Oom)
}

/// The findings of a device, and what they leave for the next detector.
pub(crate) struct Floor<'a> {
    cx: Evidence<'a>,
    found: Vec<(Detector, Finding)>,
}

impl<'a> Floor<'a> {
    pub(crate) fn new(cx: Evidence<'a>) -> Self {
        Self { cx, found: Vec::new() }
    }

    /// The findings by which a rule silences a detector.
    fn above(&self, of: Detector, takes: Takes) -> impl Iterator<Item = &Finding> {
        let rules = RULES.iter().filter(move |rule| rule.silenced == of && rule.takes == takes);
        rules.flat_map(move |rule| {
            let speaks = self.found.iter().filter(move |(by, _)| *by == rule.speaks);
            let holds =
                move |finding: &&Finding| rule.when.is_none_or(|when| when(self.cx, finding));
            speaks.map(|(_, finding)| finding).filter(holds)
        })
    }

    /// Whether a detector is asked.
    pub(crate) fn may_speak(&self, of: Detector) -> bool {
        self.above(of, Takes::All).next().is_none()
    }

    /// The call stacks that a detector leaves out.
    pub(crate) fn taken(&self, of: Detector) -> Vec<StackId> {
        let parts = self.above(of, Takes::Stacks).flat_map(|finding| &finding.parts);
        parts.map(|part| part.stack).collect()
    }

    /// Adds what a detector found, and drops what it names better.
    pub(crate) fn add(&mut self, by: Detector, found: impl IntoIterator<Item: Into<Finding>>) {
        for finding in found.into_iter().map(Into::into) {
            let stacks: FxHashSet<StackId> = finding.parts.iter().map(|part| part.stack).collect();
            let drops = |of: Detector| {
                let is_rule = |rule: &Rule| {
                    rule.speaks == by && rule.silenced == of && rule.takes == Takes::Named
                };
                RULES.iter().any(is_rule)
            };
            self.found.retain(|(of, other)| {
                !drops(*of) || !other.parts.iter().all(|part| stacks.contains(&part.stack))
            });
            self.found.push((by, finding));
        }
    }

    /// All findings.
    pub(crate) fn into_findings(self) -> Vec<Finding> {
        self.found.into_iter().map(|(_, finding)| finding).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Detectors are asked in the order of the enumeration, so a rule that takes something before
    /// its speaker is heard would never hold.
    #[test]
    fn speakers_come_first_and_have_a_reason() {
        for rule in RULES {
            let is_later = rule.speaks < rule.silenced;
            assert_eq!(
                is_later,
                rule.takes != Takes::Named,
                "{:?} {:?}",
                rule.speaks,
                rule.silenced
            );
            assert!(rule.because.len() > 10, "{:?}", rule.speaks);
        }
    }
}
