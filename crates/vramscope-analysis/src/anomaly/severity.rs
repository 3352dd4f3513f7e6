//! How much a finding matters to somebody whose run has just ended.

use super::AnomalyKind;

/// How much a finding matters; the most severe is the least of them, so that it comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// What ends a run, or will.
    High,
    /// What costs memory.
    Medium,
    /// What costs hardly any memory, or may be as it was meant.
    Low,
}

impl Severity {
    /// All of them, the most severe first.
    pub const ALL: [Self; 3] = [Self::High, Self::Medium, Self::Low];

    /// Of a finding about `bytes` of memory, on a device whose `reserved_bytes` are `reserved_peak`
    /// at most: what is about less than a hundredth of that is one step lower than its kind.
    pub fn of(kind: AnomalyKind, bytes: u64, reserved_peak: i64) -> Self {
        let is_small = u128::from(bytes) * 100 < reserved_peak.max(0) as u128;
        match kind {
            AnomalyKind::Oom => Self::High,
            AnomalyKind::Growth if !is_small => Self::High,
            AnomalyKind::Fragmentation | AnomalyKind::Settings => Self::Low,
            AnomalyKind::Growth => Self::Medium,
            _ if is_small => Self::Low,
            _ => Self::Medium,
        }
    }

    /// The name that programs read.
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
    fn little_memory_is_less_severe() {
        assert_eq!(Severity::of(AnomalyKind::Growth, 10, 1000), Severity::High);
        assert_eq!(Severity::of(AnomalyKind::Growth, 9, 1000), Severity::Medium);
        assert_eq!(Severity::of(AnomalyKind::Retry, 9, 1000), Severity::Low);
        assert_eq!(Severity::of(AnomalyKind::Settings, 0, 1000), Severity::Low);
        assert_eq!(Severity::of(AnomalyKind::Oom, 0, 1000), Severity::High);
        assert_eq!(Severity::of(AnomalyKind::Outlier, 5, -3), Severity::Medium);
    }
}
