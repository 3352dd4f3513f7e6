//! What the property tests share.

use proptest::prelude::*;

pub(crate) const MIB: u64 = 1 << 20;

/// How many cases a property test runs. `VRAMSCOPE_LONG` asks for a hundred thousand.
pub(crate) fn cases(usual: u32) -> ProptestConfig {
    let is_long = std::env::var_os("VRAMSCOPE_LONG").is_some();
    ProptestConfig::with_cases(if is_long { 100_000 } else { usual })
}

/// A step of a program. The numbers choose among what there is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Bytes, stream and pool.
    Malloc(u64, u32, u32),
    Free(usize),
    FreeLater(usize),
    Complete(usize),
    EmptyCache,
    RetirePool(u32),
    ReleasePool(u32),
    Refuse,
}

/// Sizes on both sides of all limits.
pub(crate) fn size() -> impl Strategy<Value = u64> {
    let limits = prop::sample::select(vec![0, 1, 2, 10, 20, 32]);
    prop_oneof![
        3 => 0..=MIB,
        4 => MIB..=12 * MIB,
        2 => 8 * MIB..=80 * MIB,
        2 => (limits, -513i64..=513)
            .prop_map(|(mib, offset)| (mib * MIB).saturating_add_signed(offset)),
    ]
}

/// Steps with up to `pools` private pools.
pub(crate) fn step(pools: u32) -> impl Strategy<Value = Step> {
    let pool = move || (0..=2 * pools).prop_map(move |pool| pool.saturating_sub(pools));
    prop_oneof![
        12 => (size(), prop_oneof![3 => Just(0), 1 => 0..3u32], pool())
            .prop_map(|(bytes, stream, pool)| Step::Malloc(bytes, stream, pool)),
        8 => any::<usize>().prop_map(Step::Free),
        2 => any::<usize>().prop_map(Step::FreeLater),
        2 => any::<usize>().prop_map(Step::Complete),
        1 => Just(Step::EmptyCache),
    ]
}
