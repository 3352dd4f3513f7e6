//! A program's memory with the events that lead to it, for traces made by hand.

use crate::{Device, parse};
use serde_json::{Value, json};
use vramscope_inference::{Finding, FindingKind};
use vramscope_units::Bytes;

pub(crate) const MIB: u64 = 1 << 20;

pub(crate) fn mib(mib: u64) -> Bytes {
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
pub(crate) struct Memory {
    pub(crate) events: Vec<Value>,
    annotations: Vec<Value>,
    segments: Vec<Segment>,
    settings: Value,
    next: u64,
    /// Whether events name their pool, as since PyTorch 2.12.
    names_pools: bool,
}

impl Memory {
    /// A program that runs under these allocator settings.
    pub(crate) fn under(settings: Value) -> Self {
        Self { settings, ..Self::default() }
    }

    /// A program whose events name their pool, or not.
    pub(crate) fn with_pools(names_pools: bool) -> Self {
        Self { names_pools, ..Self::default() }
    }

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

    pub(crate) fn frames(&mut self, frames: Value) {
        self.events.last_mut().expect("an event")["frames"] = frames;
    }

    /// Reserves a segment of the default pool and stream.
    pub(crate) fn reserve(&mut self, size: u64, line: u32) -> usize {
        self.reserve_in((0, 0), 0, size, line)
    }

    pub(crate) fn reserve_in(
        &mut self,
        pool: (u64, u64),
        stream: u64,
        size: u64,
        line: u32,
    ) -> usize {
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
    pub(crate) fn give_back(&mut self, segment: usize, line: u32) {
        let Segment { address, size, is_expandable, .. } = self.segments[segment];
        let action = if is_expandable { "segment_unmap" } else { "segment_free" };
        self.event(action, address, size, Some(segment), line);
        self.segments[segment].size = 0;
    }

    /// Allocates at an offset in a segment.
    pub(crate) fn alloc(&mut self, segment: usize, at: u64, size: u64, line: u32) -> (usize, u64) {
        self.alloc_bytes(segment, at * MIB, (size * MIB, size * MIB), line)
    }

    /// Allocates a block for a request. Both are in bytes.
    pub(crate) fn alloc_bytes(
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
    pub(crate) fn fill(&mut self, size: u64, line: u32) -> (usize, u64) {
        let segment = self.reserve(size, line);
        self.alloc(segment, 0, size, line)
    }

    fn block(&mut self, (segment, address): (usize, u64)) -> &mut Block {
        let mut blocks = self.segments[segment].blocks.iter_mut();
        blocks.find(|block| block.address == address).expect("a live block")
    }

    pub(crate) fn request_free(&mut self, block: (usize, u64), line: u32) {
        self.block(block).is_pending = true;
        let size = self.block(block).requested;
        self.event("free_requested", block.1, size, Some(block.0), line);
    }

    pub(crate) fn complete_free(&mut self, block: (usize, u64)) {
        let size = self.block(block).requested;
        self.event("free_completed", block.1, size, Some(block.0), 0);
        self.segments[block.0].blocks.retain(|b| b.address != block.1);
    }

    pub(crate) fn free(&mut self, block: (usize, u64)) {
        self.request_free(block, 0);
        self.complete_free(block);
    }

    /// A failed request of the default stream, beside `device_free` free MiB of the driver.
    pub(crate) fn oom(&mut self, size: u64, device_free: u64, line: u32) {
        self.event("oom", 0, size * MIB, None, line);
        self.events.last_mut().expect("an event")["device_free"] = (device_free * MIB).into();
    }

    pub(crate) fn optimizer_step(&mut self) {
        for stage in ["START", "END"] {
            let time = self.events.len() as u64 * 10;
            let name = "Optimizer.step#SGD.step";
            self.annotations
                .push(json!({"name": name, "stage": stage, "device": 0, "time_us": time}));
        }
    }

    pub(crate) fn device(&self) -> Device {
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

    pub(crate) fn of_kind(&self, kind: FindingKind) -> Vec<Finding> {
        self.device().of_kind(kind)
    }
}

/// The blocks of a segment and the free memory between them.
fn blocks(segment: &Segment) -> Vec<Value> {
    let (mut at, mut blocks) = (segment.address, Vec::new());
    let piece = |address: u64, size: u64, requested: u64, state: &str| {
        let mut piece = json!({"address": address, "size": size, "state": state});
        piece["requested_size"] = requested.into();
        piece
    };
    let free = |address: u64, size: u64| piece(address, size, 0, "inactive");
    for block in &segment.blocks {
        if at < block.address {
            blocks.push(free(at, block.address - at));
        }
        let state = if block.is_pending { "active_pending_free" } else { "active_allocated" };
        blocks.push(piece(block.address, block.size, block.requested, state));
        at = block.address + block.size;
    }
    let end = segment.address + segment.size;
    if at < end {
        blocks.push(free(at, end - at));
    }
    blocks
}
