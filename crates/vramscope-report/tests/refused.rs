//! A request that PyTorch refused early leaves no event. The file beside the snapshot tells it.

use std::path::Path;
use vramscope_report::diagnose::{Listing, at_peak, diagnose};
use vramscope_report::{FileReader, Target};

/// The kinds of blind spots of a recording with a file beside it that gives this reason.
fn kinds(name: &str, reason: &str) -> Vec<&'static str> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test_data").join(name);
    let bytes = std::fs::read(path).expect("test data");
    let mut reader = FileReader::new(name, bytes.len() as u64);
    reader.feed(&bytes).expect("a snapshot");
    let mut file = reader.finish().expect("a snapshot");
    let beside = format!(r#"{{"version": 1, "reason": "{reason}"}}"#);
    file.entries[0].set_sidecar(beside.as_bytes());
    assert_eq!(file.entries[0].sidecar_fault(), None);
    let target = Target { path: &file.path, entry: &file.entries[0], index: 0 };
    let diagnosis = diagnose(vec![at_peak(target)], Listing::Main(5), 0);
    diagnosis.blind_spots.iter().map(|spot| spot.kind).collect()
}

#[test]
fn a_request_that_was_refused_early_is_told() {
    // No event of a failure, and a snapshot because memory ran out.
    assert_eq!(kinds("recorded/gpt_leak.pickle.gz", "oom").first(), Some(&"refused_early"));
    assert!(!kinds("recorded/gpt_leak.pickle.gz", "end").contains(&"refused_early"));
    // The failure has its event, or nothing was recorded.
    let failed = kinds("documents/oom_except.pickle.gz", "oom");
    assert!(!failed.contains(&"refused_early"), "{failed:?}");
    let none = kinds("recorded/misc/norecord.pickle", "oom");
    assert!(!none.contains(&"refused_early"), "{none:?}");
}
