//! Labels shared by reports and page: places, call sites, ranks, events, lifetimes.

use crate::BlockReference;
use crate::quantity::Quantity;
pub use vramscope_inference::category_label as category;
use vramscope_snapshot::{DeviceKind, Frame, PoolId, PoolIndex, SegmentType, Snapshot, StreamId};
use vramscope_trace::{Block, FreeKind, SMALL_SIZE, Trace, is_framework_frame, short_operation};
pub use vramscope_trace::{
    NO_STACK, file_name, frame_filter, frame_label, label_of, no_stack, place, place_if_known,
    place_of, short_name, without_arguments,
};
use vramscope_units::{Addr, Bytes, EventIndex, Micros, grouped, shown_name, signed_grouped};

/// A change of a count with its sign: `+1,204`.
pub fn signed_count(n: i64) -> String {
    format!("{}{}", if n > 0 { "+" } else { "" }, signed_grouped(n))
}

/// Numbers in rising order as ranges: `0-3,7`.
///
/// ```
/// assert_eq!(vramscope_report::text::ranges(&[0, 1, 2, 4, 5, 9]), "0-2,4-5,9");
/// assert_eq!(vramscope_report::text::ranges(&[]), "");
/// ```
pub fn ranges(numbers: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match ranges.last_mut() {
            Some((_, end)) if end.checked_add(1) == Some(number) => *end = number,
            _ => ranges.push((number, number)),
        }
    }
    let text = |&(begin, end): &(u32, u32)| {
        if begin == end { begin.to_string() } else { format!("{begin}-{end}") }
    };
    ranges.iter().map(text).collect::<Vec<_>>().join(",")
}

/// A rank as texts name it: `rank 3`, or the file's name if the rank is unknown.
pub fn rank_name(rank: Option<u32>, path: &str) -> String {
    rank.map_or_else(|| file_name(path).to_owned(), |rank| format!("rank {rank}"))
}

/// A frame with its full name: `(unknown file) at::empty(c10::ArrayRef<long>)`.
pub fn full_label(snapshot: &Snapshot, frame: Frame) -> String {
    format!("{} {}", place(&snapshot.text(frame.file), frame.line), snapshot.text(frame.name))
}

/// The function of a frame in a short form: the name of its operation, or its own.
pub fn short_function(snapshot: &Snapshot, frame: Frame) -> String {
    let name = snapshot.text(frame.name);
    let operation = short_operation(&name);
    shown_name(operation.as_deref().unwrap_or(&name)).into_owned()
}

/// Whether a frame belongs to PyTorch, Python, compiled code or a package's wrappers.
pub fn is_framework(snapshot: &Snapshot, frame: Frame) -> bool {
    is_framework_frame(&snapshot.text(frame.name), &snapshot.text(frame.file))
}

/// An event and its time from the window's start: `#3,702  +1.204 s`.
pub fn event(trace: &Trace, event: EventIndex) -> String {
    match &trace.clock {
        Some(clock) => format!("{event}  +{}", Micros(clock.offset(event.0) as i64)),
        None => event.to_string(),
    }
}

/// A block's lifetime within the window: `412 events, 38.2 ms`.
pub fn lifetime(trace: &Trace, block: &Block) -> String {
    match lifetime_parts(trace, block) {
        (events, Some(time)) => format!("{events}, {time}"),
        (events, None) => events,
    }
}

/// A short lifetime: `38.2 ms`, or `412 events` without a clock.
pub fn short_lifetime(trace: &Trace, block: &Block) -> Quantity {
    let (events, time) = lifetime_parts(trace, block);
    let value = vramscope_trace::lifetime(trace, block).into();
    let text = time.map_or_else(|| events.clone(), |time| time.to_string());
    let exact = if time.is_some() { format!("{events}, {text}") } else { events };
    Quantity { value, text, exact }
}

/// A block's lifetime as `412 events`, and its time if the trace has a clock.
fn lifetime_parts(trace: &Trace, block: &Block) -> (String, Option<Micros>) {
    let events = Quantity::count(u64::from(block.leaves - block.enters), "event", "events").exact;
    let last = trace.slots() - 1;
    let clock = trace.clock.as_ref().filter(|_| last > 0);
    // A state begins at its event's time. The state before the window has the first event's time.
    let time = clock.map(|clock| {
        let at = |slot: u32| clock.offset(slot.clamp(1, last) - 1) as i64;
        Micros(at(block.leaves.min(last)) - at(block.enters))
    });
    (events, time)
}

/// A pool in JSON: `[0, 0]` is the default pool; `None` if the file does not record pools.
pub fn pool(snapshot: &Snapshot, index: PoolIndex) -> Option<[u64; 2]> {
    snapshot.pool(index).map(|p| [p.0, p.1])
}

/// A pool in tables: `(0, 0)` is the default pool.
pub fn pool_text([a, b]: [u64; 2]) -> String {
    format!("({a}, {b})")
}

/// The name of a segment type.
pub fn segment_type(of: SegmentType) -> &'static str {
    match of {
        SegmentType::Small => "small",
        SegmentType::Large => "large",
        SegmentType::Unknown => "unknown",
    }
}

/// The name of the segment type that serves blocks of this size.
pub fn size_class(block: Bytes) -> &'static str {
    segment_type(if block.0 <= SMALL_SIZE { SegmentType::Small } else { SegmentType::Large })
}

/// The text of a [`BlockReference`].
pub fn block_reference(trace: &Trace, block: &Block) -> String {
    BlockReference::of(trace, block).to_string()
}

/// A block's address, and which block of the window at this address it is:
/// `0x76002a000000 (4th block here)`. The first one has its address alone.
pub fn block_address(block: &Block) -> String {
    match block.reuse() {
        0 => block.address.to_string(),
        earlier => format!("{} ({} block here)", block.address, ordinal(earlier + 1)),
    }
}

/// [`block_address`] for a narrow column: `0x76002a000000 (4th)`.
pub fn short_block_address(block: &Block) -> String {
    match block.reuse() {
        0 => block.address.to_string(),
        earlier => format!("{} ({})", block.address, ordinal(earlier + 1)),
    }
}

/// `1st`, `2nd`, `11th`, `1,203rd`.
fn ordinal(n: u32) -> String {
    let ending = match (n % 100, n % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    };
    format!("{}{ending}", grouped(n.into()))
}

/// A stream's handle; `0 (default)` for the default stream.
pub fn stream(snapshot: &Snapshot, id: StreamId) -> String {
    match snapshot.stream(id) {
        0 => "0 (default)".to_owned(),
        handle => Addr(handle as u64).to_string(),
    }
}

/// A stream by its order in the file: `default stream`, or `stream 1`. Its handle says nothing.
pub fn stream_name(snapshot: &Snapshot, id: StreamId) -> String {
    if snapshot.stream(id) == 0 {
        return "default stream".to_owned();
    }
    let others = (0..=id.0).filter(|&other| snapshot.stream(StreamId(other)) != 0).count();
    format!("stream {others}")
}

/// A pool by its order in the file: `default pool`, or `CUDA graph pool 1`. Files before PyTorch
/// 2.1 name no pools.
pub fn pool_name(snapshot: &Snapshot, index: PoolIndex) -> String {
    let is_own = |id: PoolId| id != PoolId::DEFAULT;
    match snapshot.pool(index) {
        Some(id) if is_own(id) => {
            let own = (0..=index.0).filter_map(|other| snapshot.pool(PoolIndex(other)));
            let is_npu = snapshot.devices.iter().any(|device| device.kind == DeviceKind::Npu);
            let graph = if is_npu { "NPU" } else { "CUDA" };
            format!("{graph} graph pool {}", own.filter(|&id| is_own(id)).count())
        }
        Some(_) => "default pool".to_owned(),
        None => "pool not recorded".to_owned(),
    }
}

/// Pool, stream and size class: `default pool, default stream, large segments`.
pub fn free_kind(snapshot: &Snapshot, kind: FreeKind) -> String {
    let (pool, stream) = (pool_name(snapshot, kind.pool), stream_name(snapshot, kind.stream));
    let class = if kind.is_small { "small" } else { "large" };
    format!("{pool}, {stream}, {class} segments")
}

/// The handles of a pool and a stream, for a tooltip: `pool (1, 0), stream 0x7f00`.
pub fn handles(snapshot: &Snapshot, pool: PoolIndex, id: StreamId) -> String {
    let pool = snapshot.pool(pool).map(|pool| format!("pool ({}, {})", pool.0, pool.1));
    let stream = format!("stream {}", stream(snapshot, id));
    pool.into_iter().chain([stream]).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::ordinal;

    #[test]
    fn ordinals_of_eleven_to_thirteen_end_in_th() {
        let all = [1, 2, 3, 4, 11, 12, 13, 21, 101, 111, 1_203].map(ordinal);
        let expected = [
            "1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "101st", "111th", "1,203rd",
        ];
        assert_eq!(all, expected);
    }
}
