//! The words of what an engine can give its KV cache.

use super::ServingRecord;
use crate::sidecar::launch::{Flag, Launch};
use std::fmt::Write as _;
use vramscope_inference::Serving;
use vramscope_units::grouped;

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

/// The sum, what it holds, and what it rests on.
pub(super) fn sentences(record: &ServingRecord, serving: &Serving, launch: &Launch) -> Vec<String> {
    if let Some(why) = record.declined {
        return vec![format!("No flag for the KV cache: {why}.")];
    }
    let mut text = vec![sum(record), holds(record)];
    let most = launch.count(&[Flag::MaxNumSeqs, Flag::MaxRunningRequests]);
    if serving.profile.is_none() {
        text.push(
            "No profile run is in the recording: activations are those of its requests.".to_owned(),
        );
    }
    match (most, record.sequences) {
        (Some(most), Some(sequences)) if most < sequences => text.push(format!(
            "Activations are those of at most {} sequences at once, as recorded: {} fit the cache.",
            grouped(most),
            grouped(sequences),
        )),
        (None, Some(_)) => text.push(
            "How many sequences at once the recorded activations are of is not known: more may \
             need more."
                .to_owned(),
        ),
        _ => {}
    }
    text
}

/// `KV cache 61.20 GiB = 79.18 - 12.70 weights - 2.10 activations - 0.90 margin`. The rounded
/// figures add up, too.
fn sum(record: &ServingRecord) -> String {
    let (unit, bytes) = if record.device_memory.0 >= GIB { ("GiB", GIB) } else { ("MiB", MIB) };
    let hundredths = |of: u64| (u128::from(of) * 100 + u128::from(bytes) / 2) / u128::from(bytes);
    let shown = |of: u128| format!("{}.{:02}", of / 100, of % 100);
    let mut before = record.kv_cache.0;
    let mut text = format!(
        "KV cache {} {unit} = {}",
        shown(hundredths(record.kv_cache.0)),
        shown(hundredths(record.device_memory.0)),
    );
    for part in &record.parts {
        let until = before + part.bytes.0;
        let figure = hundredths(until) - hundredths(before);
        if figure > 0 {
            write!(text, " - {} {}", shown(figure), part.name).expect("a String takes all text");
        }
        before = until;
    }
    text
}

/// How many sequences the cache holds, or what is missing for that.
fn holds(record: &ServingRecord) -> String {
    let recorded = record.recorded_kv_cache;
    match (record.recorded_tokens, record.bytes_per_token, record.length, record.sequences) {
        (Some(tokens), Some(each), Some(length), Some(sequences)) => format!(
            "It holds {} of {} tokens, {} for each token: the recorded {recorded} hold {} tokens.",
            counted(sequences, "sequence"),
            grouped(length),
            each,
            grouped(tokens),
        ),
        (Some(tokens), Some(each), ..) => format!(
            "It holds {} tokens, {each} for each: the recorded {recorded} hold {}. `--length N` \
             tells how many sequences fit.",
            grouped(record.kv_cache.0 / each.0.max(1)),
            grouped(tokens),
        ),
        _ => format!(
            "How many tokens the recorded {recorded} hold is not in the file. Engines log it (`GPU \
             KV cache size`, `max_total_num_tokens`): `what-if --cache-tokens N` tells how many \
             sequences fit."
        ),
    }
}

/// `1 sequence`, `98 sequences`.
fn counted(count: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(count), if count == 1 { "" } else { "s" })
}
