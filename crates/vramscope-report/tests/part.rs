//! Parts of recordings: each state of a part equals that of the whole recording.

use std::ops::Range;
use std::path::Path;
use vramscope_report::{FileReader, LoadedFile, Target, copy, now, part};
use vramscope_snapshot::DeviceKind;
use vramscope_trace::Exactness;

fn load(name: &str, bytes: &[u8]) -> LoadedFile {
    let mut reader = FileReader::new(name, bytes.len() as u64);
    reader.feed(bytes).expect("a snapshot");
    reader.finish().expect("a snapshot")
}

fn read(name: &str) -> LoadedFile {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test_data").join(name);
    load(name, &std::fs::read(path).expect("test data"))
}

/// A recording, cut and read again.
fn cut(target: Target<'_>, events: Range<u32>) -> LoadedFile {
    let part = now(async |budget| part(target, events, budget).await).expect("a part");
    let mut bytes = Vec::new();
    copy::snapshot(&part, &mut |piece| bytes.extend(piece));
    load("part.pickle", &bytes)
}

/// Requested, reserved and active bytes in each slot.
fn curves(target: Target<'_>) -> [Vec<u64>; 3] {
    let trace = target.trace();
    let carving = target.entry.carving(target.index);
    let reserved = now(async |budget| trace.reserved(target.snapshot(), budget).await);
    [&trace.requested, &reserved, &carving.active]
        .map(|series| (0..trace.slots()).map(|slot| series.at(slot)).collect())
}

fn targets(file: &LoadedFile) -> impl Iterator<Item = Target<'_>> {
    let entry = &file.entries[0];
    (0..entry.traces.len()).map(move |index| Target { path: &file.path, entry, index })
}

/// Ranges of a window: all of it, thirds, an end, a few events.
fn ranges(events: u32) -> Vec<Range<u32>> {
    let third = events / 3;
    let few = third..(third + 5).min(events);
    vec![0..events, 0..third, third..2 * third, 2 * third..events, few]
}

#[test]
fn states_of_a_part_are_those_of_the_whole() {
    let mut compared = 0;
    for name in [
        "recorded/gpt_late.pickle.gz",
        "recorded/gpt_ring10000.pickle.gz",
        "recorded/t26/expandable_gpt.pickle.gz",
        "recorded/late_expandable_26.pickle.gz",
        "recorded/late_max_split_26.pickle.gz",
        "recorded/oom_expandable.pickle.gz",
        "recorded/t20/gpt_small.pickle.gz",
        "recorded/t26/streams.pickle.gz",
        "recorded/t29/pools.pickle",
        "recorded/t29/two_devices.pickle.gz",
        "recorded/t215_pinned_loader.pickle",
        "recorded/pinned/threshold_8.pickle.gz",
    ] {
        let whole = read(name);
        for target in targets(&whole).filter(|target| target.trace().slots() > 10) {
            let of_whole = curves(target);
            for events in ranges(target.trace().slots() - 1) {
                let file = cut(target, events.clone());
                let of_part = targets(&file).next().expect("a device");
                let slots = events.start as usize..events.end as usize + 1;
                let is_sure = target.entry.carving(target.index).exactness == Exactness::Exact;
                let names = ["requested", "reserved", "active"];
                for ((name_of, whole), part) in names.iter().zip(&of_whole).zip(curves(of_part)) {
                    let same = whole[slots.clone()].iter().zip(&part).position(|(a, b)| a != b);
                    let at = same.map(|at| (at, whole[slots.start + at], part[at]));
                    assert_eq!(
                        at,
                        None,
                        "{name} {} {events:?} {name_of} {is_sure}",
                        target.device()
                    );
                    assert_eq!(part.len(), slots.len());
                }
                let frames = |target: Target<'_>, index: u32| {
                    let snapshot = target.snapshot();
                    let row = target.trace().device.events.start + index;
                    let stack = snapshot.stacks.frames(snapshot.events.stack(row));
                    let label = |&frame: &_| {
                        let frame = snapshot.frame(frame);
                        format!("{} {}", snapshot.text(frame.file), frame.line)
                    };
                    stack.iter().map(label).collect::<Vec<_>>()
                };
                for (index, event) in events.clone().enumerate().step_by(97) {
                    assert_eq!(frames(of_part, index as u32), frames(target, event), "{name}");
                }
                assert_eq!(of_part.snapshot().settings, target.snapshot().settings, "{name}");
                compared += 1;
            }
        }
    }
    assert!(compared >= 60, "{compared}");
}

#[test]
fn parts_have_one_device_and_the_ranges_that_are_open_in_them() {
    let whole = read("recorded/t215_pinned_loader.pickle");
    let host = targets(&whole).last().expect("the host");
    let of_host = cut(host, 10..20);
    let [device] = &of_host.entries[0].snapshot.devices[..] else { panic!("one device") };
    assert_eq!(device.kind, DeviceKind::Host);
    let gpu = targets(&whole).next().expect("a device");
    let (all, some) = (gpu.snapshot(), cut(gpu, 100..200));
    let marks = &some.entries[0].snapshot.annotations;
    let clock = gpu.trace().clock.as_ref().expect("a clock");
    let (from, to) =
        (clock.start.0 as u64 + clock.offset(100), clock.start.0 as u64 + clock.offset(199));
    let within = |time: u64| (from..=to).contains(&time);
    let times = all.annotations.iter().filter_map(|mark| mark.time).map(|time| time.0 as u64);
    let inside = times.filter(|&time| within(time)).count();
    assert!(marks.len() >= inside && marks.len() < all.annotations.len(), "{}", marks.len());
    let more = now(async |budget| part(gpu, 0..100_000, budget).await);
    assert!(more.is_none(), "the device has fewer events");
}
