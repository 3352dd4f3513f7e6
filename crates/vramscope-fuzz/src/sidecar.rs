//! Reads bytes as the file beside a snapshot.

use crate::fixture::{START, recording};
use crate::load::report;
use vramscope_report::redact::Redaction;
use vramscope_report::sidecar::Sidecar;
use vramscope_report::{Target, copy, holders, modules};

/// Reads the bytes as the file beside a small recording, and runs every report of it. A copy of
/// the file, redacted or not, is read as it was written.
///
/// # Panics
/// When an invariant is broken.
pub fn sidecar(json: &[u8]) {
    let parsed = Sidecar::parse(json);
    match &parsed {
        Ok(sidecar) => assert_eq!(again(&text(sidecar)), text(sidecar)),
        Err(why) => assert!(!why.is_empty(), "a failure has a reason"),
    }
    let mut file = recording("run/rank0.json", START);
    file.entries[0].set_sidecar(json);
    let entry = &file.entries[0];
    if parsed.is_err() {
        assert!(entry.sidecar_fault().is_some() && entry.sidecar().is_none());
        return;
    }
    let is_whole = entry.sidecar().is_some_and(|sidecar| sidecar.left_out.is_empty());
    assert!(entry.sidecar_fault().is_some() != is_whole);
    for redaction in [None, Some(Redaction::new(b"salt"))] {
        let Some(copy) = copy::sidecar(entry, redaction.as_ref()) else { continue };
        assert_eq!(again(&copy), copy);
    }
    let target = Target { path: "run/rank0.json", entry, index: 0 };
    report(target);
    drop(serde_json::to_string(&modules::modules(target, None, None)).expect("a report"));
    let end = target.trace().slots() - 1;
    drop(serde_json::to_string(&holders::holders_at(target, end, None)).expect("a report"));
}

fn text(sidecar: &Sidecar) -> String {
    serde_json::to_string(sidecar).expect("a file beside a snapshot is JSON")
}

fn again(json: &str) -> String {
    text(&Sidecar::parse(json.as_bytes()).expect("what was written can be read"))
}
