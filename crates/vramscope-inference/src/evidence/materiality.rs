//! Materiality: the least that is worth a claim.

/// The fewest bytes that are worth a claim: less than a CUDA context varies by.
const FLOOR: u64 = 16 << 20;

/// The part of a device's peak below which bytes are noise, however small the program: 16 MiB of
/// 64 GiB, 48 MiB of 192 GiB.
const NOISE_DIVISOR: u64 = 4096;

/// How many bytes are worth a claim: both limits must be met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Materiality {
    /// Bytes.
    pub bytes: u64,
    /// The share of a whole, in percent.
    pub percent: u64,
}

impl Materiality {
    /// At least this share of a whole, in percent, and more than noise.
    pub(crate) const fn percent(percent: u64) -> Self {
        Self { bytes: FLOOR, percent }
    }

    /// More than noise, whatever the share.
    pub(crate) const NOISE: Self = Self::percent(0);

    /// Whether these bytes of `whole` are worth a claim.
    pub(crate) fn is_met(self, bytes: u64, whole: u64) -> bool {
        bytes >= self.least(whole)
    }

    /// The fewest bytes of `whole` that are worth a claim.
    pub(crate) fn least(self, whole: u64) -> u64 {
        let share = u128::from(whole) * u128::from(self.percent);
        self.bytes.max(whole / NOISE_DIVISOR).max(share.div_ceil(100) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_limits_count_and_the_floor_grows_with_the_device() {
        let two = Materiality::percent(2);
        assert_eq!(two.least(100 << 20), 16 << 20);
        assert_eq!(two.least(100 << 30), (2 << 30));
        assert!(two.is_met(2 << 30, 100 << 30) && !two.is_met((2 << 30) - 1, 100 << 30));
        assert_eq!(Materiality::NOISE.least(192 << 30), 48 << 20);
    }
}
