//! Annotated ranges: pairs starts with ends, and lays the ranges out in lanes.
use rustc_hash::FxHashMap;
use vramscope_snapshot::{Annotation, Snapshot, Stage, StrId};
use vramscope_units::Micros;

/// A range that the program named (`record_function`, `ProfilerStep#N`, `Optimizer.step#...`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedRange {
    /// Name of the range.
    pub name: StrId,
    /// The current device of the thread that started it.
    pub device: i64,
    /// Start time, since the Unix epoch.
    pub start: Micros,
    /// End time, since the Unix epoch. The time of the last annotation if the end was not recorded.
    pub end: Micros,
    /// Lane of the range. Ranges in a lane either nest or do not overlap, so ranges of several
    /// threads need several lanes.
    pub lane: u32,
}

/// All ranges of a file, by start. Of ranges with equal starts the longer comes first.
///
/// Annotations have no thread. An end pairs with the latest open start of the same name. Ends
/// without a start and annotations without a time are dropped.
pub fn named_ranges(snapshot: &Snapshot) -> Vec<NamedRange> {
    let mut open: FxHashMap<StrId, Vec<usize>> = FxHashMap::default();
    let mut ranges: Vec<NamedRange> = Vec::new();
    let last = snapshot.annotations.iter().filter_map(|a| a.time).max().unwrap_or(Micros(0));
    for annotation in &snapshot.annotations {
        let Some(time) = annotation.time else { continue };
        let open_indices = open.entry(annotation.name).or_default();
        match annotation.stage {
            Stage::Start => {
                open_indices.push(ranges.len());
                let Annotation { name, device, .. } = *annotation;
                ranges.push(NamedRange { name, device, start: time, end: last, lane: 0 });
            }
            Stage::End => {
                if let Some(index) = open_indices.pop() {
                    let range = &mut ranges[index];
                    range.end = time.max(range.start);
                }
            }
        }
    }
    ranges.sort_by_key(|r| (r.start, std::cmp::Reverse(r.end)));
    // For each lane, the ends of its open ranges, outermost first.
    let mut lanes: Vec<Vec<Micros>> = Vec::new();
    for range in &mut ranges {
        let fits = |ends: &mut Vec<Micros>| {
            ends.retain(|&end| end > range.start);
            ends.last().is_none_or(|&end| end >= range.end)
        };
        let lane = lanes.iter_mut().position(fits).unwrap_or_else(|| {
            lanes.push(Vec::new());
            lanes.len() - 1
        });
        lanes[lane].push(range.end);
        range.lane = lane as u32;
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;
    use vramscope_snapshot::Reader;

    #[test]
    fn ends_pair_by_name_and_crossing_ranges_get_separate_lanes() {
        let ends = [
            ("a", "START", 1),
            ("b", "START", 2),
            ("a", "START", 3),
            ("a", "END", 4),
            ("lost", "END", 4),
        ];
        let more = [("a", "END", 6), ("b", "END", 8), ("c", "START", 9)];
        let rows = ends.into_iter().chain(more).map(|(name, stage, time)| {
            format!("{{\"name\":\"{name}\",\"stage\":\"{stage}\",\"device\":0,\"time_us\":{time}}}")
        });
        let rows: Vec<String> = rows.collect();
        let text = format!(
            "{{\"segments\":[],\"device_traces\":[],\"external_annotations\":[{}]}}",
            rows.join(",")
        );
        let mut reader = Reader::default();
        reader.feed(text.as_bytes()).expect("JSON");
        let snapshot = reader.finish().expect("a snapshot").remove(0).snapshot;
        let found: Vec<_> = named_ranges(&snapshot)
            .iter()
            .map(|r| (snapshot.text(r.name).into_owned(), r.start.0, r.end.0, r.lane))
            .collect();
        let expected = [("a", 1, 6, 0), ("b", 2, 8, 1), ("a", 3, 4, 0), ("c", 9, 9, 0)];
        assert_eq!(
            found,
            expected.map(|(name, start, end, lane)| (name.to_owned(), start, end, lane))
        );
    }
}
