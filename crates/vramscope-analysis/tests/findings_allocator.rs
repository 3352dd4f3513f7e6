//! Findings about the allocator on hand-made traces, one kind at a time. Sizes are in MiB.

use crate::{Device, parse};
use serde_json::{Value, json};
use vramscope_analysis::{
    Basis, Category, CostlySetting, Facts, Finding, FindingKind, OomStory, PendingFrees,
    ReservedPeak, Returned, SegmentChurn, Severity, StrandedPool, Verdict,
};
use vramscope_snapshot::{PoolId, StackId};
use vramscope_units::{Bytes, EventIndex};

const MIB: u64 = 1 << 20;

fn mib(mib: u64) -> Bytes {
    Bytes(mib * MIB)
}

#[derive(Clone)]
struct Segment {
    address: u64,
    size: u64,
    pool: (u64, u64),
    stream: u64,
    is_expandable: bool,
    blocks: Vec<Block>,
}

#[derive(Clone)]
struct Block {
    address: u64,
    size: u64,
    requested: u64,
    is_pending: bool,
}

/// A program's memory, with the events that lead to it.
#[derive(Default)]
struct Memory {
    events: Vec<Value>,
    annotations: Vec<Value>,
    segments: Vec<Segment>,
    settings: Value,
    next: u64,
    /// Whether events name their pool, as since PyTorch 2.12.
    names_pools: bool,
}

impl Memory {
    /// Adds an event at a line of `train.py`; line 0 means no call stack.
    fn event(&mut self, action: &str, addr: u64, size: u64, segment: Option<usize>, line: u32) {
        let time = self.events.len() as u64 * 10;
        let mut event = json!({"action": action, "size": size, "stream": 0, "time_us": time});
        if action != "oom" {
            event["addr"] = addr.into();
        }
        if let Some(segment) = segment.map(|segment| &self.segments[segment]) {
            event["stream"] = segment.stream.into();
            if self.names_pools {
                event["pool_id"] = json!([segment.pool.0, segment.pool.1]);
            }
        }
        if line > 0 {
            event["frames"] = json!([{"name": "step", "filename": "train.py", "line": line}]);
        }
        self.events.push(event);
    }

    fn frames(&mut self, frames: Value) {
        self.events.last_mut().expect("an event")["frames"] = frames;
    }

    /// Reserves a segment of the default pool and stream.
    fn reserve(&mut self, size: u64, line: u32) -> usize {
        self.reserve_in((0, 0), 0, size, line)
    }

    fn reserve_in(&mut self, pool: (u64, u64), stream: u64, size: u64, line: u32) -> usize {
        self.next += 1;
        let (address, size) = (self.next << 36, size * MIB);
        let is_expandable = self.settings["expandable_segments"] == json!(true);
        let blocks = Vec::new();
        self.segments.push(Segment { address, size, pool, stream, is_expandable, blocks });
        let segment = self.segments.len() - 1;
        let action = if is_expandable { "segment_map" } else { "segment_alloc" };
        self.event(action, address, size, Some(segment), line);
        segment
    }

    /// Returns a segment to the driver.
    fn give_back(&mut self, segment: usize, line: u32) {
        let Segment { address, size, is_expandable, .. } = self.segments[segment];
        let action = if is_expandable { "segment_unmap" } else { "segment_free" };
        self.event(action, address, size, Some(segment), line);
        self.segments[segment].size = 0;
    }

    /// Allocates at an offset in a segment.
    fn alloc(&mut self, segment: usize, at: u64, size: u64, line: u32) -> (usize, u64) {
        self.alloc_bytes(segment, at * MIB, (size * MIB, size * MIB), line)
    }

    /// Allocates a block for a request. Both are in bytes.
    fn alloc_bytes(
        &mut self,
        segment: usize,
        at: u64,
        (requested, size): (u64, u64),
        line: u32,
    ) -> (usize, u64) {
        let address = self.segments[segment].address + at;
        let block = Block { address, size, requested, is_pending: false };
        self.segments[segment].blocks.push(block);
        self.event("alloc", address, requested, Some(segment), line);
        (segment, address)
    }

    /// Reserves a segment and fills it.
    fn fill(&mut self, size: u64, line: u32) -> (usize, u64) {
        let segment = self.reserve(size, line);
        self.alloc(segment, 0, size, line)
    }

    fn block(&mut self, (segment, address): (usize, u64)) -> &mut Block {
        let mut blocks = self.segments[segment].blocks.iter_mut();
        blocks.find(|block| block.address == address).expect("a live block")
    }

    fn request_free(&mut self, block: (usize, u64), line: u32) {
        self.block(block).is_pending = true;
        let size = self.block(block).requested;
        self.event("free_requested", block.1, size, Some(block.0), line);
    }

    fn complete_free(&mut self, block: (usize, u64)) {
        let size = self.block(block).requested;
        self.event("free_completed", block.1, size, Some(block.0), 0);
        self.segments[block.0].blocks.retain(|b| b.address != block.1);
    }

    fn free(&mut self, block: (usize, u64)) {
        self.request_free(block, 0);
        self.complete_free(block);
    }

    /// A failed request of the default stream, beside `device_free` free MiB of the driver.
    fn oom(&mut self, size: u64, device_free: u64, line: u32) {
        self.event("oom", 0, size * MIB, None, line);
        self.events.last_mut().expect("an event")["device_free"] = (device_free * MIB).into();
    }

    fn optimizer_step(&mut self) {
        for stage in ["START", "END"] {
            let time = self.events.len() as u64 * 10;
            let name = "Optimizer.step#SGD.step";
            self.annotations
                .push(json!({"name": name, "stage": stage, "device": 0, "time_us": time}));
        }
    }

    fn device(&self) -> Device {
        let mut segments = self.segments.clone();
        segments.sort_by_key(|segment| segment.address);
        let segments: Vec<Value> = (segments.iter_mut())
            .filter(|segment| segment.size > 0)
            .map(|segment| {
                segment.blocks.sort_by_key(|block| block.address);
                json!({
                    "device": 0,
                    "address": segment.address,
                    "total_size": segment.size,
                    "stream": segment.stream,
                    "segment_type": if segment.size > 2 * MIB { "large" } else { "small" },
                    "segment_pool_id": [segment.pool.0, segment.pool.1],
                    "is_expandable": segment.is_expandable,
                    "blocks": blocks(segment),
                })
            })
            .collect();
        let file = json!({
            "segments": segments,
            "device_traces": [self.events],
            "external_annotations": self.annotations,
            "allocator_settings": self.settings,
        });
        Device::new(parse(file.to_string().as_bytes()))
    }

    fn of_kind(&self, kind: FindingKind) -> Vec<Finding> {
        self.device().of_kind(kind)
    }

    fn story(&self) -> (Finding, OomStory) {
        let mut found = self.of_kind(FindingKind::Oom);
        assert_eq!(found.len(), 1, "{found:?}");
        let finding = found.remove(0);
        let Facts::Oom(story) = finding.facts.clone() else { panic!("{finding:?}") };
        (finding, *story)
    }

    fn reserved(&self) -> Option<(Finding, ReservedPeak)> {
        let finding = self.of_kind(FindingKind::Reserved).pop()?;
        let Facts::Reserved(peak) = finding.facts.clone() else { panic!("{finding:?}") };
        Some((finding, *peak))
    }

    fn stranded(&self) -> Option<(Finding, StrandedPool)> {
        let finding = self.of_kind(FindingKind::StrandedPool).pop()?;
        let Facts::StrandedPool(side) = finding.facts.clone() else { panic!("{finding:?}") };
        Some((finding, side))
    }

    fn pending(&self) -> Option<(Finding, PendingFrees)> {
        let finding = self.of_kind(FindingKind::PendingFree).pop()?;
        let Facts::PendingFree(waits) = finding.facts.clone() else { panic!("{finding:?}") };
        Some((finding, waits))
    }

    fn churn(&self) -> Option<(Finding, SegmentChurn)> {
        let finding = self.of_kind(FindingKind::Churn).pop()?;
        let Facts::Churn(churn) = finding.facts.clone() else { panic!("{finding:?}") };
        Some((finding, churn))
    }
}

/// The blocks of a segment and the free memory between them.
fn blocks(segment: &Segment) -> Vec<Value> {
    let (mut at, mut blocks) = (segment.address, Vec::new());
    let free = |address: u64, size: u64| json!({"address": address, "size": size, "requested_size": 0, "state": "inactive"});
    for block in &segment.blocks {
        if at < block.address {
            blocks.push(free(at, block.address - at));
        }
        let state = if block.is_pending { "active_pending_free" } else { "active_allocated" };
        blocks.push(json!({
            "address": block.address,
            "size": block.size,
            "requested_size": block.requested,
            "state": state,
        }));
        at = block.address + block.size;
    }
    let end = segment.address + segment.size;
    if at < end {
        blocks.push(free(at, end - at));
    }
    blocks
}

/// Two segments of 100 MiB, whose second halves are free.
fn halves(memory: &mut Memory) {
    for line in [1, 2] {
        let segment = memory.reserve(100, line);
        memory.alloc(segment, 0, 50, line);
    }
}

#[test]
fn oom_beyond_the_device_is_demand() {
    let mut memory = Memory::default();
    memory.fill(100, 1);
    memory.fill(40, 2);
    memory.oom(60, 20, 3);
    let (finding, story) = memory.story();
    assert_eq!((story.verdict, story.excess()), (Verdict::Demand, Some(mib(40))));
    assert_eq!((story.room, story.active, story.usable), (Some(mib(160)), mib(140), mib(0)));
    assert_eq!((finding.severity, finding.bytes, finding.blocks), (Severity::High, 60 * MIB, 2));
    // The request comes first, then the call sites with most bytes.
    let parts: Vec<_> = finding.parts.iter().map(|p| (p.bytes, p.blocks)).collect();
    assert_eq!(parts, [(mib(60), 0), (mib(100), 1), (mib(40), 1)]);
    assert_eq!(finding.stack(), Some(story.stack));
    assert_eq!((finding.basis, finding.events), (Basis::Exact, vec![4]));
}

#[test]
fn oom_beside_free_pieces_is_fragmentation() {
    let mut memory = Memory::default();
    halves(&mut memory);
    memory.oom(80, 30, 3);
    let (_, story) = memory.story();
    assert_eq!((story.verdict, story.excess()), (Verdict::Fragmentation, None));
    assert_eq!((story.usable, story.largest_usable), (mib(100), mib(50)));
    assert_eq!((story.new_segment, story.segment_lacks()), (Some(mib(80)), Some(mib(50))));
}

#[test]
fn oom_says_nothing_of_new_segments_with_expandable_segments() {
    let mut memory = Memory { settings: json!({"expandable_segments": true}), ..Memory::default() };
    halves(&mut memory);
    memory.oom(80, 30, 3);
    let (_, story) = memory.story();
    assert_eq!((story.verdict, story.segment_lacks()), (Verdict::Fragmentation, None));
}

/// Free memory of a private pool never serves the default pool, whatever the settings.
#[test]
fn oom_beside_a_private_pool_is_stranded() {
    for names_pools in [true, false] {
        let mut memory = Memory { names_pools, ..Memory::default() };
        memory.fill(20, 1);
        let pool = memory.reserve_in((0, 1), 0, 400, 2);
        memory.alloc(pool, 0, 20, 2);
        memory.oom(200, 30, 3);
        if names_pools {
            memory.events.last_mut().expect("the failure")["pool_id"] = json!([0, 0]);
        }
        let (finding, story) = memory.story();
        assert_eq!((story.verdict, story.usable), (Verdict::StrandedPool, mib(0)));
        assert_eq!(story.unusable[0].free, mib(380));
        assert_eq!(story.is_pool_assumed, !names_pools);
        assert_eq!(finding.basis, if names_pools { Basis::Exact } else { Basis::Estimate });
        // One cause is told once.
        assert_eq!(memory.stranded(), None);
        assert_eq!(memory.reserved(), None);
    }
}

#[test]
fn oom_beside_a_piece_that_waited_for_a_stream_is_pending() {
    for waits in [true, false] {
        let mut memory = Memory::default();
        let segment = memory.reserve(100, 1);
        memory.alloc(segment, 60, 40, 1);
        let block = memory.alloc(segment, 0, 60, 2);
        memory.request_free(block, 2);
        if waits {
            memory.fill(20, 3);
        }
        memory.complete_free(block);
        memory.oom(50, 10, 4);
        let (_, story) = memory.story();
        // Without a wait, nothing explains why the piece was not used.
        let verdict = if waits { Verdict::Pending } else { Verdict::Fragmentation };
        assert_eq!((story.verdict, story.largest_usable), (verdict, mib(60)));
    }
}

#[test]
fn oom_after_other_memory_grew_says_so() {
    let mut memory = Memory::default();
    let block = memory.fill(300, 1);
    memory.free(block);
    memory.give_back(0, 1);
    memory.fill(100, 2);
    memory.oom(150, 20, 3);
    let (_, story) = memory.story();
    // 300 MiB were reserved before, and now 120 MiB are all that PyTorch can have.
    assert_eq!((story.verdict, story.shrunk), (Verdict::OtherMemory, mib(180)));
    assert_eq!(story.excess(), Some(mib(130)));
}

#[test]
fn oom_beside_enough_memory_of_the_driver_is_a_limit() {
    let mut memory = Memory::default();
    memory.fill(100, 1);
    memory.oom(60, 500, 3);
    assert_eq!(memory.story().1.verdict, Verdict::Limit);
    let failure = memory.events.last_mut().and_then(Value::as_object_mut).expect("the failure");
    failure.remove("device_free");
    let (_, story) = memory.story();
    assert_eq!((story.verdict, story.room), (Verdict::Unknown, None));
}

#[test]
fn ooms_of_one_step_are_one_finding_about_the_first() {
    let mut memory = Memory::default();
    memory.fill(100, 1);
    memory.optimizer_step();
    memory.oom(24, 10, 2);
    let block = memory.fill(5, 3);
    memory.oom(480, 5, 4);
    memory.free(block);
    memory.optimizer_step();
    memory.fill(5, 5);
    memory.oom(30, 0, 6);
    let mut found = memory.of_kind(FindingKind::Oom);
    found.sort_by_key(|finding| finding.events[0]);
    let stories: Vec<_> = (found.iter())
        .map(|finding| {
            let Facts::Oom(story) = &finding.facts else { panic!("{finding:?}") };
            (story.event.0, story.requested, story.failures, story.last.0, finding.step)
        })
        .collect();
    assert_eq!(
        stories,
        [(2, mib(24), 2, 5, Some(1)), (10, mib(30), 1, 10, Some(2))],
        "the first failure of a step, although a later one asks for more"
    );
}

#[test]
fn ooms_without_steps_are_one_finding() {
    let mut memory = Memory::default();
    memory.fill(100, 1);
    for size in [24, 480, 30] {
        memory.oom(size, 10, 2);
        memory.fill(2, 3);
    }
    let (finding, story) = memory.story();
    assert_eq!((story.requested, story.failures, finding.step), (mib(24), 3, None));
}

/// What is in use counts blocks, so that reserved memory minus it is what is free.
#[test]
fn oom_counts_rounding_as_in_use() {
    let mut memory = Memory::default();
    let segment = memory.reserve(100, 1);
    memory.alloc_bytes(segment, 0, (100 * MIB - 600_000, 100 * MIB), 1);
    memory.oom(60, 20, 3);
    let (_, story) = memory.story();
    assert_eq!((story.active, story.rounding), (mib(100), Bytes(600_000)));
}

#[test]
fn oom_names_blocks_of_its_size_and_the_settings_that_cost_memory() {
    let divisions: Value = (0..16).map(|i| ((1u64 << i).to_string(), json!(2))).collect();
    let mut memory =
        Memory { settings: json!({"roundup_power2_divisions": divisions}), ..Memory::default() };
    let segment = memory.reserve(96, 1);
    memory.alloc_bytes(segment, 0, (66 * MIB, 96 * MIB), 1);
    memory.fill(2, 2);
    memory.oom(96, 20, 3);
    let (_, story) = memory.story();
    let device = memory.device();
    let lines: Vec<u32> = (story.twins.iter())
        .flat_map(|&stack| device.snapshot.stack(stack).map(|frame| frame.line))
        .collect();
    assert_eq!(lines, [1], "66 MiB are rounded up to 96 MiB");
    assert_eq!(story.settings, [CostlySetting::RoundupPower2Divisions { bytes: mib(30) }]);
}

#[test]
fn oom_tells_of_its_flush_and_leaves_churn_silent() {
    let mut memory = Memory::default();
    memory.fill(100, 1);
    memory.optimizer_step();
    let mut cached: Vec<_> = (0..4).map(|_| memory.fill(40, 2)).collect();
    cached.drain(..).for_each(|block| memory.free(block));
    memory.give_back(1, 3);
    let more = memory.reserve(40, 3);
    memory.alloc(more, 0, 40, 3);
    (2..5).for_each(|segment| memory.give_back(segment, 4));
    memory.oom(300, 100, 4);
    memory.fill(60, 5);
    let (_, story) = memory.story();
    assert_eq!(story.flush, Some(Returned { segments: 3, bytes: mib(120) }));
    assert_eq!(story.retries, 1);
    assert_eq!(memory.churn(), None);
}

/// The step that failed has larger inputs, and its tensors outlive it.
#[test]
fn oom_compares_steps_and_finds_what_the_exception_keeps() {
    for keeps in [true, false] {
        let mut memory = Memory::default();
        let input = |memory: &mut Memory, size: u64| {
            let block = memory.fill(size, 7);
            memory.frames(json!([{"name": "to", "filename": "/t/torch/utils/data/_utils/pin.py",
                "line": 3}, {"name": "next_batch", "filename": "train.py", "line": 7}]));
            block
        };
        memory.fill(64, 1);
        memory.optimizer_step();
        let block = input(&mut memory, 20);
        memory.free(block);
        memory.optimizer_step();
        let failed = input(&mut memory, 40);
        memory.oom(300, 10, 8);
        if !keeps {
            memory.free(failed);
        }
        for _ in 0..2 {
            let block = input(&mut memory, 20);
            memory.free(block);
            memory.optimizer_step();
        }
        let (_, story) = memory.story();
        assert_eq!(story.kept, keeps.then_some((mib(40), 1)));
        let larger = story.larger.expect("40 MiB after 20 MiB");
        assert_eq!((larger.bytes, larger.before, larger.step), (mib(40), mib(20), 1));
        assert_eq!(larger.category, Category::Input);
    }
}

#[test]
fn reserved_says_what_the_memory_is_for() {
    let mut memory = Memory::default();
    let idle: Vec<_> = (0..2).map(|_| memory.fill(200, 1)).collect();
    for block in idle {
        memory.free(block);
    }
    let used = memory.reserve(300, 2);
    memory.alloc(used, 0, 100, 2);
    memory.alloc(used, 200, 50, 2);
    let (finding, peak) = memory.reserved().expect("more than half is not needed");
    assert_eq!((peak.reserved, peak.needed), (mib(700), mib(400)));
    assert_eq!((peak.memory.idle, peak.memory.idle_segments), (mib(400), 2));
    assert_eq!(peak.memory.in_use, mib(100));
    assert_eq!((peak.memory.stuck, peak.memory.stuck_segments), (mib(200), 1));
    assert_eq!((finding.bytes, finding.severity), (300 * MIB, Severity::Low));
    assert_eq!(finding.events, [6 + 2]);
}

#[test]
fn reserved_is_silent_below_a_tenth_of_the_peak() {
    let mut memory = Memory::default();
    let block = memory.fill(300, 1);
    memory.free(block);
    memory.fill(3000, 2);
    assert_eq!(memory.reserved(), None, "a tenth of 3300 MiB is 330 MiB");
    let block = memory.fill(40, 1);
    memory.free(block);
    memory.fill(40, 2);
    assert!(memory.reserved().is_some());
}

/// The allocator had to make room, so less matters more.
#[test]
fn reserved_matters_when_memory_was_short() {
    let mut memory = Memory::default();
    let block = memory.fill(30, 1);
    memory.free(block);
    memory.give_back(0, 2);
    let segment = memory.reserve(100, 2);
    memory.alloc(segment, 0, 90, 2);
    let (finding, peak) = memory.reserved().expect("10 of 100 MiB");
    assert_eq!((finding.severity, peak.was_short), (Severity::Medium, true));
}

#[test]
fn reserved_judges_a_file_without_events() {
    let mut memory = Memory::default();
    for _ in 0..10 {
        let segment = memory.reserve(200, 1);
        memory.alloc(segment, 50, 100, 1);
    }
    memory.events.clear();
    let (finding, peak) = memory.reserved().expect("half is free");
    assert_eq!((peak.is_state_only, peak.event, peak.reserved), (true, None, mib(2000)));
    assert_eq!((peak.memory.stuck, peak.memory.largest_stuck), (mib(1000), mib(50)));
    assert_eq!(finding.bytes, 1000 * MIB);
}

#[test]
fn free_memory_of_graph_pools_is_needed() {
    for (pool, stream, is_needed) in [((1, 0), 0, true), ((0, 1), 7, true), ((0, 1), 0, false)] {
        let mut memory = Memory::default();
        let segment = memory.reserve_in(pool, stream, 600, 1);
        memory.alloc(segment, 0, 200, 1);
        memory.fill(200, 2);
        assert_eq!(memory.reserved().is_none(), is_needed, "{pool:?} on stream {stream}");
    }
}

#[test]
fn reserved_names_max_split_size() {
    let mut memory = Memory { settings: json!({"max_split_size": 64 * MIB}), ..Memory::default() };
    for size in [300, 400] {
        let block = memory.fill(size, 1);
        memory.free(block);
    }
    memory.fill(300, 2);
    let (_, peak) = memory.reserved().expect("most is free");
    let expected = CostlySetting::MaxSplitSize { limit: mib(64), segments: 3, bytes: mib(700) };
    assert_eq!(peak.settings, [expected]);
}

#[test]
fn reserved_names_roundup() {
    let divisions: Value = (0..16).map(|i| ((1u64 << i).to_string(), json!(2))).collect();
    let mut memory =
        Memory { settings: json!({"roundup_power2_divisions": divisions}), ..Memory::default() };
    for line in 1..=3 {
        let segment = memory.reserve(384, line);
        memory.alloc_bytes(segment, 0, (260 * MIB, 384 * MIB), line);
    }
    let (finding, peak) = memory.reserved().expect("a third is added by rounding");
    assert_eq!(finding.bytes, 3 * 124 * MIB);
    assert_eq!(peak.settings, [CostlySetting::RoundupPower2Divisions { bytes: mib(372) }]);
}

/// A pool is emptied, then the default pool reserves as much again.
fn emptied_pool(pool: (u64, u64), stream: u64) -> Memory {
    let mut memory = Memory { names_pools: true, ..Memory::default() };
    let segment = memory.reserve_in(pool, stream, 400, 1);
    let block = memory.alloc(segment, 0, 400, 1);
    memory.free(block);
    memory.alloc(segment, 0, 50, 1);
    memory.fill(300, 2);
    memory.fill(100, 2);
    memory
}

#[test]
fn free_memory_of_a_private_pool_is_stranded() {
    let memory = emptied_pool((0, 1), 0);
    let (finding, side) = memory.stranded().expect("350 MiB are out of reach");
    assert_eq!((side.pool, side.free, side.largest), (Some(PoolId(0, 1)), mib(350), mib(350)));
    assert_eq!((side.unused, side.reserved_elsewhere), (mib(350), mib(400)));
    assert_eq!((finding.bytes, finding.severity), (350 * MIB, Severity::Low));
    assert_eq!((side.since, finding.events), (Some(EventIndex(4)), vec![4, 7]));
    // Graphs use their memory in replays.
    for (pool, stream) in [((1, 0), 0), ((0, 1), 7)] {
        assert_eq!(emptied_pool(pool, stream).stranded(), None, "{pool:?} on stream {stream}");
    }
}

#[test]
fn free_memory_of_a_pool_that_was_in_use_meanwhile_is_not_stranded() {
    let mut memory = Memory { names_pools: true, ..Memory::default() };
    memory.fill(300, 2);
    let segment = memory.reserve_in((0, 1), 0, 400, 1);
    let block = memory.alloc(segment, 0, 400, 1);
    memory.fill(400, 2);
    memory.free(block);
    memory.fill(20, 2);
    assert_eq!(memory.stranded(), None, "only 20 MiB were reserved beside it");
}

#[test]
fn only_parts_of_used_segments_are_stranded_on_a_side_stream() {
    for is_used in [true, false] {
        let mut memory = Memory::default();
        let side = memory.reserve_in((0, 0), 7, 400, 1);
        let block = memory.alloc(side, 0, 400, 1);
        memory.free(block);
        if is_used {
            memory.alloc(side, 390, 10, 1);
        }
        memory.fill(500, 2);
        let found = memory.stranded();
        // A free segment is returned when memory is short.
        assert_eq!(found.is_some(), is_used);
        if let Some((_, side)) = found {
            assert_eq!((side.pool, side.free), (None, mib(390)));
        }
    }
}

/// Blocks of 40 MiB, whose frees wait until the work behind them is allocated.
fn waiting(frees: u32) -> Memory {
    let mut memory = Memory::default();
    memory.fill(200, 1);
    let blocks: Vec<_> = (0..frees).map(|i| memory.fill(40, 10 + i)).collect();
    for (i, &block) in blocks.iter().enumerate() {
        memory.request_free(block, 20 + i as u32 % 2);
    }
    let work = memory.fill(60, 3);
    for block in blocks {
        memory.complete_free(block);
    }
    memory.free(work);
    memory
}

#[test]
fn pending_frees_cost_the_difference_of_the_peaks() {
    let memory = waiting(3);
    let (finding, waits) = memory.pending().expect("the peak is 60 MiB higher");
    // 200 + 3 x 40 + 60 against 200 + 3 x 40.
    assert_eq!((waits.peak, waits.peak_without), (mib(380), mib(320)));
    assert_eq!((finding.bytes, waits.waiting, waits.frees), (60 * MIB, mib(120), 3));
    let parts: Vec<_> = finding.parts.iter().map(|p| (p.bytes, p.blocks)).collect();
    assert_eq!(parts, [(mib(80), 2), (mib(40), 1)], "one for each line that frees");
    assert_eq!(finding.severity, Severity::Medium);
}

#[test]
fn pending_frees_away_from_the_peak_are_silent() {
    let mut memory = waiting(3);
    assert!(memory.pending().is_some());
    memory.fill(400, 4);
    assert_eq!(memory.pending(), None, "the peak is now without a pending free");
}

/// Calls of `empty_cache` in a loop, with segments of other sizes every time.
fn emptied(calls: u64, frames: &Value) -> Memory {
    let mut memory = Memory::default();
    for call in 0..calls {
        let block = memory.fill(100 + call, 1);
        memory.free(block);
        memory.give_back(block.0, 2);
        memory.frames(frames.clone());
    }
    memory
}

fn empty_cache() -> Value {
    json!([{"name": "empty_cache", "filename": "/x/torch/cuda/memory.py", "line": 218},
        {"name": "step", "filename": "train.py", "line": 2}])
}

#[test]
fn churn_counts_all_bytes_reserved_again() {
    let (finding, churn) = emptied(4, &empty_cache()).churn().expect("four returns");
    assert_eq!((churn.bursts, churn.segments, churn.returned), (4, 4, mib(406)));
    // 101, 102 and 103 MiB are reserved after 100, 201 and 303 MiB were returned in all.
    assert_eq!(churn.reserved_again, mib(303));
    assert_eq!((finding.severity, finding.parts.len()), (Severity::Medium, 1));
    assert_ne!(finding.stack(), Some(StackId::EMPTY));
    let (finding, churn) = emptied(2, &empty_cache()).churn().expect("two returns");
    assert_eq!((churn.reserved_again, finding.severity), (mib(100), Severity::Low));
    assert_eq!(emptied(1, &empty_cache()).churn(), None, "once, between two phases");
}

#[test]
fn churn_is_silent_for_captures() {
    let mut frames = empty_cache();
    frames[1] = json!({"name": "__enter__", "filename": "/x/torch/cuda/graphs.py", "line": 175});
    assert_eq!(emptied(4, &frames).churn(), None);
    // Old releases record other stacks. What is allocated next tells.
    let mut memory = Memory::default();
    for graph in 1..5 {
        let block = memory.fill(100, 1);
        memory.free(block);
        memory.give_back(block.0, 1);
        let pool = memory.reserve_in((graph, 0), 7, 50, 3);
        memory.alloc(pool, 0, 50, 3);
    }
    assert_eq!(memory.churn(), None);
}

#[test]
fn churn_of_the_allocator_is_another_finding() {
    let mut memory = Memory::default();
    for size in [100, 120, 140, 160] {
        let segment = memory.reserve(size, 1);
        let block = memory.alloc(segment, 0, size, 1);
        memory.free(block);
        memory.give_back(segment, 1);
    }
    memory.fill(180, 1);
    let (finding, churn) = memory.churn().expect("four retries");
    assert!(churn.by_allocator);
    assert_eq!((churn.bursts, churn.reserved_again), (4, mib(520)));
    assert_eq!(finding.id, "churn-0-make-room");
}
