//! Recordings cut at the front, as if recording had begun later: what is left must tell the same
//! block sizes as the whole.

use std::path::Path;
use vramscope_analysis::{Carving, Series, Trace};
use vramscope_snapshot::{Reader, Snapshot};

fn load(name: &str) -> Snapshot {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test_data/recorded").join(name);
    let mut reader = Reader::default();
    reader.feed(&std::fs::read(path).expect("a file of test_data")).expect("a snapshot");
    reader.finish().expect("a snapshot").remove(0).snapshot
}

/// The largest difference between two series.
/// How far what is found is from the whole, of which it lacks the first slots.
fn apart(found: &Series, whole: &Series, first: u32) -> u64 {
    assert_eq!(found.len(), whole.len() - first as usize);
    let rest = whole.values(first..whole.len() as u32);
    found.to_vec().into_iter().zip(rest).map(|(a, b)| a.abs_diff(b)).max().unwrap_or(0)
}

#[test]
fn a_late_start_tells_the_same_sizes() {
    let (mut cuts, mut same) = (0, 0);
    for name in [
        "gpt_leak.pickle.gz",
        "gpt_amp.pickle.gz",
        "gpt_max_split.pickle.gz",
        "late_expandable_26.pickle.gz",
        "late_max_split_26.pickle.gz",
        "oom_expandable.pickle.gz",
        "t20/streams.pickle.gz",
        "t26/expandable_gpt.pickle.gz",
        "t26/gpt_small.pickle.gz",
        "t26/oom_observer.pickle.gz",
        "t29/two_devices.pickle.gz",
    ] {
        let snapshot = load(name);
        for device in &snapshot.devices {
            let whole = Carving::new(&snapshot, &Trace::new(&snapshot, device));
            let events = device.events.len() as u32;
            for part in 1..20 {
                let first = events * part / 20;
                let mut late = device.clone();
                late.events.start += first;
                let found = Carving::new(&snapshot, &Trace::new(&snapshot, &late));
                let off = apart(&found.active, &whole.active, first).max(apart(
                    &found.allocated,
                    &whole.allocated,
                    first,
                ));
                // A large block that was live at the cut, is freed later, and has free memory
                // behind it, may have kept up to 1 MiB more than it asked for: where nothing is
                // allocated right behind it, nothing tells.
                assert!(off <= 1 << 20, "{name} from event {first}: {off} bytes apart");
                cuts += 1;
                same += u32::from(off == 0);
            }
        }
    }
    assert!(same * 100 >= cuts * 96, "{same} of {cuts} cuts tell the same sizes in every slot");
}
