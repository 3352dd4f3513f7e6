//! The severity of findings.

use super::FindingKind;
use serde::{Deserialize, Serialize};

/// How much a finding matters. `High` sorts first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// It ended the run, or will.
    High,
    /// It costs memory.
    Medium,
    /// It costs hardly any memory, or may be intended.
    Low,
}

impl Severity {
    /// All severities, the most severe first.
    pub const ALL: [Self; 3] = [Self::High, Self::Medium, Self::Low];

    /// The severity of a finding about `bytes`, on a device whose `reserved_bytes` peak at
    /// `reserved_peak`. A finding about less than 1 % of that peak is one step less severe.
    pub fn of(kind: FindingKind, bytes: u64, reserved_peak: i64) -> Self {
        let is_small = u128::from(bytes) * 100 < reserved_peak.max(0) as u128;
        match kind {
            FindingKind::Oom => Self::High,
            FindingKind::Growth if !is_small => Self::High,
            FindingKind::Fragmentation | FindingKind::Settings => Self::Low,
            FindingKind::Growth => Self::Medium,
            FindingKind::NeverFreed
            | FindingKind::PendingFree
            | FindingKind::Retry
            | FindingKind::Outlier => {
                if is_small {
                    Self::Low
                } else {
                    Self::Medium
                }
            }
        }
    }

    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Medium => "medium",
            Self::Low => "low",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn severity_drops_one_level_below_one_percent_of_peak() {
        assert_eq!(Severity::of(FindingKind::Growth, 10, 1000), Severity::High);
        assert_eq!(Severity::of(FindingKind::Growth, 9, 1000), Severity::Medium);
        assert_eq!(Severity::of(FindingKind::Retry, 9, 1000), Severity::Low);
        assert_eq!(Severity::of(FindingKind::Settings, 0, 1000), Severity::Low);
        assert_eq!(Severity::of(FindingKind::Oom, 0, 1000), Severity::High);
        assert_eq!(Severity::of(FindingKind::Outlier, 5, -3), Severity::Medium);
    }
}
