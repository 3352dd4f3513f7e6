//! Writes a snapshot into bytes as a trace of `torch.profiler`.

use crate::fixture::{START, recording};
use crate::pieces;
use serde::de::IgnoredAny;
use serde_json::Value;
use std::io::{BufReader, Cursor};
use vramscope_report::Target;
use vramscope_report::export::{MergeError, Profile, merge_profile};

/// Writes the events of a small recording into the bytes as a trace, which arrive in pieces. What
/// is written is JSON with all events of the trace, in their order.
///
/// # Panics
/// When an invariant is broken.
pub fn profile(data: &[u8]) {
    let Some((size, bytes)) = pieces(data) else { return };
    for start in [START, i64::MAX - 10_000] {
        let file = recording("rank0.json", start);
        let target = Target { path: "rank0.json", entry: &file.entries[0], index: 0 };
        let merged = merge(target, bytes, bytes.len().max(1));
        assert_eq!(merged, merge(target, bytes, size), "in pieces of {size} bytes");
        match merged {
            Ok(text) => check(bytes, &text),
            Err(why) => assert!(why.starts_with("trace.json") || why.starts_with("rank0.json")),
        }
    }
}

fn merge(target: Target<'_>, bytes: &[u8], size: usize) -> Result<String, String> {
    let open = || -> std::io::Result<Box<dyn std::io::BufRead>> {
        Ok(Box::new(BufReader::with_capacity(size, Cursor::new(bytes.to_vec()))))
    };
    let mut out = Vec::new();
    match merge_profile(target, &Profile { name: "trace.json", open: &open }, &mut out) {
        Ok(()) => Ok(String::from_utf8(out).expect("UTF-8")),
        Err(MergeError::Unusable(why)) => Err(why),
        Err(MergeError::Output(error)) => panic!("memory takes all bytes: {error}"),
    }
}

/// Checks what was written of a trace.
fn check(bytes: &[u8], text: &str) {
    serde_json::from_str::<IgnoredAny>(text).expect("JSON");
    let events = |json: &[u8]| -> Option<Vec<Value>> {
        let mut value: Value = serde_json::from_slice(json).ok()?;
        serde_json::from_value(value.get_mut("traceEvents")?.take()).ok()
    };
    // A value that is deeper or larger than this reader takes is copied all the same.
    let Some(before) = events(bytes) else { return };
    let after = events(text.as_bytes()).expect("events");
    assert!(after.len() > before.len(), "the recording has events");
    assert_eq!(after[..before.len()], before, "the events of the trace");
    assert!(after[before.len()..].iter().all(|event| event["ts"].is_i64() || event["ts"].is_u64()));
}
