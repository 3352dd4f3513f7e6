//! Allocator settings, training steps and inputs of two sides, and whether they are the cause of
//! the difference.

use super::{BytesDiff, Pair};
use crate::Quantity;
use crate::peak::BandKind;
use crate::side::Side;
use serde::{Deserialize, Serialize};
use vramscope_inference::Category;
use vramscope_units::signed_grouped;

/// An allocator setting that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct SettingDiff {
    /// The key. A group, such as `roundup_power2_divisions`, is one row if all its members have
    /// equal values in each side.
    pub key: String,
    /// The value in A as JSON text; null if A does not have the key.
    pub a: Option<String>,
    /// The value in B as JSON text; null if B does not have the key.
    pub b: Option<String>,
}

/// The data that training steps read. A file does not say how many tokens that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct TokensDiff {
    /// Bytes of the input blocks of a typical step.
    pub input_bytes_per_step: BytesDiff,
}

/// Values differ noticeably from this change on, in percent.
const NOTICEABLE_PERCENT: u64 = 1;

/// The exponents between which activations may grow with the input: some do not grow with it, and
/// attention grows faster.
const SIMILAR_GROWTH: std::ops::RangeInclusive<f64> = 0.8..=1.2;

/// The settings that differ. Empty if a side has none, which tells nothing.
pub(super) fn settings(a: &Side, b: &Side) -> Vec<SettingDiff> {
    if a.settings.is_empty() || b.settings.is_empty() {
        return Vec::new();
    }
    let value = |side: &Side, key: &str| {
        side.settings.iter().find(|(k, _)| k == key).map(|(_, value)| value.clone())
    };
    let in_a = a.settings.iter().map(|(key, _)| key);
    let only_b = b.settings.iter().map(|(key, _)| key).filter(|key| value(a, key).is_none());
    let differing = in_a.chain(only_b).filter_map(|key| {
        let row = SettingDiff { key: key.clone(), a: value(a, key), b: value(b, key) };
        (row.a != row.b).then_some(row)
    });
    let mut rows: Vec<SettingDiff> = differing.collect();
    merge_groups(a, b, &mut rows);
    rows
}

/// Replaces the rows of a group by one row if the group has one value in A and one value in B.
fn merge_groups(a: &Side, b: &Side, rows: &mut Vec<SettingDiff>) {
    let group = |key: &str| key.split_once('.').map(|(group, _)| group.to_owned());
    let only_value = |side: &Side, name: &str| {
        let members = side.settings.iter().filter(|(key, _)| group(key).as_deref() == Some(name));
        let mut values = members.map(|(_, value)| value);
        let first = values.next().cloned();
        (first.is_none() || values.all(|value| Some(value) == first.as_ref())).then_some(first)
    };
    for row in rows.iter_mut() {
        let Some(name) = group(&row.key) else { continue };
        if let (Some(in_a), Some(in_b)) = (only_value(a, &name), only_value(b, &name)) {
            *row = SettingDiff { key: name, a: in_a, b: in_b };
        }
    }
    rows.dedup();
}

/// The inputs of both sides; `None` unless both are known.
pub(super) fn tokens(a: &Side, b: &Side) -> Option<TokensDiff> {
    let input_bytes_per_step = BytesDiff::of(a.input_bytes?, b.input_bytes?);
    Some(TokensDiff { input_bytes_per_step })
}

/// The sentences about the cause of a pair's difference.
pub(super) fn causes(pair: &Pair) -> Vec<String> {
    [by_settings(pair), by_inputs(pair)].into_iter().flatten().collect()
}

fn is_noticeable(change: BytesDiff) -> bool {
    let limit = change.a.0.unsigned_abs().saturating_mul(NOTICEABLE_PERCENT);
    change.change.0.unsigned_abs().saturating_mul(100) > limit
}

/// Whether a setting can change how the device's memory is carved and kept. Others are about pinned
/// host memory, locks and the recording.
fn affects_device(key: &str) -> bool {
    !["pinned_", "trace_", "max_cached_size", "max_round_threshold", "release_lock_on_cudamalloc"]
        .iter()
        .any(|other| key.starts_with(other))
}

/// The configuration as the user wrote it. The other settings say the same.
const CONFIGURATION: &str = "PYTORCH_CUDA_ALLOC_CONF";

/// If the program requests the same memory, and the allocator takes more or less for it, the
/// allocator's settings are the cause.
fn by_settings(pair: &Pair) -> Option<String> {
    // A key that only one release of PyTorch writes is no decision of the user.
    let differing = pair.settings.iter().filter(|s| s.a.is_some() && s.b.is_some());
    let mut keys: Vec<&str> =
        differing.map(|s| s.key.as_str()).filter(|key| affects_device(key)).collect();
    if keys.len() > 1 {
        keys.retain(|&key| key != CONFIGURATION);
    }
    let changed = [BandKind::Reserved, BandKind::Active, BandKind::Allocated]
        .into_iter()
        .find(|&band| is_noticeable(pair.band(band).peak))?;
    if keys.is_empty() || is_noticeable(pair.requested_bytes.peak) {
        return None;
    }
    let (name, peak) = (changed.name(), pair.band(changed).peak);
    Some(format!(
        "The allocator settings differ, the requested memory does not: {} at the peak of {name} \
         ({}) come from {}.",
        Quantity::change_of_bytes(peak.change.0).text,
        peak.percent(),
        listed(&keys),
    ))
}

/// If activations change as much as the input, the input is the cause.
fn by_inputs(pair: &Pair) -> Option<String> {
    let inputs = pair.tokens?.input_bytes_per_step;
    let activations = pair.categories.iter().find(|c| c.category == Category::Activation)?.bytes;
    let is_known = [inputs.a, inputs.b, activations.a, activations.b].iter().all(|n| n.0 > 0);
    if !is_known || !is_noticeable(inputs) || !is_noticeable(activations) {
        return None;
    }
    let factor = |change: BytesDiff| change.b.0 as f64 / change.a.0 as f64;
    let (of_inputs, of_activations) = (factor(inputs), factor(activations));
    let is_similar = SIMILAR_GROWTH.contains(&(of_activations.ln() / of_inputs.ln()));
    is_similar.then(|| {
        format!(
            "A step reads {} bytes of input against {} (x {of_inputs:.2}), and activations change \
             with them (x {of_activations:.2}, {}).",
            signed_grouped(inputs.a.0),
            signed_grouped(inputs.b.0),
            Quantity::change_of_bytes(activations.change.0).text,
        )
    })
}

/// `a, b and c`.
fn listed(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::side::BandFigures;

    const GIB: i64 = 1 << 30;

    /// A side with these peaks, settings, input bytes per step, and bytes of activations.
    fn side(
        [requested, reserved]: [i64; 2],
        settings: &[(&str, &str)],
        input: Option<u64>,
        activations: u64,
    ) -> Side {
        let band = |peak| BandFigures { start: 0, peak, end: 0, exact: true };
        Side {
            path: String::new(),
            rank: None,
            device: 0,
            band: BandKind::Requested,
            event: 0,
            settings: settings.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect(),
            steps: 5,
            input_bytes: input,
            bands: [requested, requested, requested, reserved].map(band),
            blocks: 0,
            ooms: 0,
            findings: Vec::new(),
            categories: vec![(Category::Activation, activations, 1)],
            stacks: Vec::new(),
            frames: Vec::new(),
            curves: Vec::new(),
        }
    }

    #[test]
    fn settings_are_the_cause_only_if_the_requested_memory_is_equal() {
        let split = [("max_split_size", "64"), ("pinned_num_register_threads", "1")];
        let whole = [("max_split_size", "-1"), ("pinned_num_register_threads", "8")];
        let a = side([4 * GIB, 6 * GIB], &split, None, 0);
        let with = |requested, reserved, settings| side([requested, reserved], settings, None, 0);
        let causes = Pair::new(&a, &with(4 * GIB, 5 * GIB, &whole)).causes;
        let expected = "The allocator settings differ, the requested memory does not: -1.00 GiB at \
                        the peak of reserved_bytes (-16.7 %) come from max_split_size.";
        assert_eq!(causes, [expected]);
        for other in [
            with(3 * GIB, 5 * GIB, &whole),
            with(4 * GIB, 6 * GIB, &whole),
            with(4 * GIB, 5 * GIB, &split),
            // Only settings of pinned memory differ.
            with(4 * GIB, 5 * GIB, &[split[0], whole[1]]),
            with(4 * GIB, 5 * GIB, &[]),
        ] {
            assert_eq!(Pair::new(&a, &other).causes, [""; 0], "{:?}", other.settings);
        }
    }

    #[test]
    fn settings_that_differ_are_listed_and_equal_groups_are_one_row() {
        let a = [("x", "1"), ("y", "2"), ("group.1", "0"), ("group.2", "0"), ("other.1", "0")];
        let b = [("x", "1"), ("group.1", "4"), ("group.2", "4"), ("other.1", "0"), ("z", "3")];
        let settings = |a: &[_], b: &[_]| {
            Pair::new(&side([0; 2], a, None, 0), &side([0; 2], b, None, 0)).settings
        };
        let row = |key: &str, a: Option<&str>, b: Option<&str>| SettingDiff {
            key: key.to_owned(),
            a: a.map(str::to_owned),
            b: b.map(str::to_owned),
        };
        assert_eq!(
            settings(&a, &b),
            [
                row("y", Some("2"), None),
                row("group", Some("0"), Some("4")),
                row("z", None, Some("3"))
            ]
        );
        // One member of the group differs.
        let one = [a[0], a[1], a[2], ("group.2", "4"), a[4]];
        assert_eq!(settings(&a, &one), [row("group.2", Some("0"), Some("4"))]);
        assert_eq!(settings(&a, &[]), []);
    }

    #[test]
    fn input_is_the_cause_if_activations_grow_alike() {
        let a = side([4 * GIB, 6 * GIB], &[], Some(16_384), 1 << 30);
        let b = |input, activations| side([5 * GIB, 7 * GIB], &[], input, activations);
        let double = Pair::new(&a, &b(Some(32_768), (2 << 30) - (1 << 27)));
        let expected = "A step reads 16,384 bytes of input against 32,768 (x 2.00), and \
                        activations change with them (x 1.88, +896.0 MiB).";
        assert_eq!(double.causes, [expected]);
        let change = double.tokens.expect("both are known").input_bytes_per_step;
        assert_eq!(change, BytesDiff::new(16_384, 32_768));
        for (input, activations) in [
            (Some(32_768), 1 << 30),
            (Some(32_768), 3 << 30),
            (Some(32_768), 0),
            (Some(8_192), 2 << 30),
            (Some(16_384), 2 << 30),
            (None, 2 << 30),
        ] {
            let causes = Pair::new(&a, &b(input, activations)).causes;
            assert_eq!(causes, [""; 0], "{input:?} {activations}");
        }
        assert_eq!(Pair::new(&a, &b(None, 0)).tokens, None);
    }
}
