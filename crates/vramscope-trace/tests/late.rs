//! Recordings cut at the front, as if recording had started later. The rest must give the same
//! block sizes as the whole recording.

use crate::load;
use vramscope_trace::slicing::now;
use vramscope_trace::{Carving, Series, Trace};

/// The largest difference between a late series and the whole one. The late series starts at slot
/// `first`.
fn max_difference(found: &Series, whole: &Series, first: u32) -> u64 {
    assert_eq!(found.len(), whole.len() - first as usize);
    let rest = whole.values(first..whole.len() as u32);
    found.to_vec().into_iter().zip(rest).map(|(a, b)| a.abs_diff(b)).max().unwrap_or(0)
}

#[test]
fn late_recordings_give_the_same_block_sizes() {
    let (mut cuts, mut equal) = (0, 0);
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
        let snapshot = load(format!("recorded/{name}"));
        for device in &snapshot.devices {
            let whole = now(async |budget| {
                Carving::new(&snapshot, &Trace::new(&snapshot, device), budget).await
            });
            let events = device.events.len() as u32;
            for part in 1..20 {
                let first = events * part / 20;
                let mut late = device.clone();
                late.events.start += first;
                let found = now(async |budget| {
                    Carving::new(&snapshot, &Trace::new(&snapshot, &late), budget).await
                });
                let active = max_difference(&found.active, &whole.active, first);
                let allocated = max_difference(&found.allocated, &whole.allocated, first);
                let difference = active.max(allocated);
                // A large block that is live at the cut can be up to 1 MiB larger than its request.
                // The file does not show it if the block is freed later, has free memory behind it,
                // and nothing is allocated right behind it.
                assert!(difference <= 1 << 20, "{name} from event {first}: {difference} bytes");
                cuts += 1;
                equal += u32::from(difference == 0);
            }
        }
    }
    assert!(equal * 100 >= cuts * 96, "{equal} of {cuts} cuts give the same sizes in every slot");
}
