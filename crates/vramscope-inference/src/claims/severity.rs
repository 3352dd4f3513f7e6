//! The severity of findings.

use super::kinds::FindingKind;
use serde::{Deserialize, Serialize};
use vramscope_units::named;

/// The share of the peak, in percent, from which a finding is [`Severity::Medium`].
const MEDIUM_PERCENT: u128 = 5;

named! {
    /// How much a finding matters. `High` sorts first.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    #[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
    #[serde(rename_all = "snake_case")]
    pub enum Severity {
        /// It ended the run, or will.
        High = "high",
        /// It costs memory.
        Medium = "medium",
        /// It costs hardly any memory, or may be intended.
        Low = "low",
    }
}

impl Severity {
    /// The severity of a finding that costs `cost` bytes at the peak, on a device whose
    /// `reserved_bytes` peak at `reserved_peak`.
    ///
    /// A failed allocation ended the run, and growth will. Other findings are `Medium` from
    /// 5 percent of the peak.
    pub fn of(kind: FindingKind, cost: u64, reserved_peak: i64) -> Self {
        let at_least =
            |percent: u128| u128::from(cost) * 100 >= reserved_peak.max(0) as u128 * percent;
        match kind {
            FindingKind::Oom => Self::High,
            FindingKind::Growth if at_least(1) => Self::High,
            FindingKind::Growth => Self::Medium,
            _ if at_least(MEDIUM_PERCENT) => Self::Medium,
            _ => Self::Low,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn severity_follows_from_the_share_of_the_peak() {
        assert_eq!(Severity::of(FindingKind::Growth, 10, 1000), Severity::High);
        assert_eq!(Severity::of(FindingKind::Growth, 9, 1000), Severity::Medium);
        assert_eq!(Severity::of(FindingKind::Churn, 49, 1000), Severity::Low);
        assert_eq!(Severity::of(FindingKind::HeldTooLong, 50, 1000), Severity::Medium);
        assert_eq!(Severity::of(FindingKind::Oom, 0, 1000), Severity::High);
        assert_eq!(Severity::of(FindingKind::RankSkew, 5, -3), Severity::Medium);
    }
}
