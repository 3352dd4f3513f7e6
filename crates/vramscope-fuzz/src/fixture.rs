//! A small recording with times, beside which other files are read.

use std::fmt::Write as _;
use vramscope_report::LoadedFile;
use vramscope_session::Loader;

/// When the recording begins, in microseconds since 1970.
pub(crate) const START: i64 = 1_700_000_000_000_000;

/// Reads the recording under this path. Its events begin at `start`.
///
/// Blocks of 1 MiB lie at multiples of 4 MiB, from 4 MiB on: parameters that stay, and in each of
/// four steps activations that go.
pub(crate) fn recording(path: &str, start: i64) -> LoadedFile {
    let text = snapshot(start);
    let mut loader = Loader::new(path, text.len() as u64);
    loader.feed(text.as_bytes()).expect("a snapshot");
    loader.finish().expect("a whole snapshot")
}

/// The recording as JSON.
pub(crate) fn snapshot(start: i64) -> String {
    let mut events = String::new();
    let mut time = start;
    let mut event = |action: &str, place: u64, line: u32| {
        let comma = if events.is_empty() { "" } else { "," };
        write!(
            events,
            r#"{comma}{{"action": "{action}", "addr": {}, "size": 1048576, "stream": 0,
            "time_us": {time},
            "frames": [{{"name": "f{line}", "filename": "/train/m.py", "line": {line}}}]}}"#,
            place << 22,
        )
        .expect("writing to memory");
        time = time.saturating_add(1000);
    };
    for place in 1..4 {
        event("segment_alloc", place, 1);
        event("alloc", place, 2);
    }
    for _step in 0..4 {
        for place in 4..7 {
            event("alloc", place, 3);
        }
        for place in 4..7 {
            event("free_requested", place, 4);
            event("free_completed", place, 4);
        }
    }
    format!(r#"{{"segments": [], "device_traces": [[{events}]]}}"#)
}
