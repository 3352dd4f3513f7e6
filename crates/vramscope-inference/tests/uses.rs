//! Uses of a traced step on hand-made traces: what is dead, far, early, kept and not seen.

use crate::{Device, parse};
use serde_json::{Value, json};
use vramscope_inference::{FindingKind, NoUses, UseGroup, UseTrace, Uses};
use vramscope_trace::slicing::now;

const MIB: u64 = 1 << 20;
const READ: u64 = 1;
const WRITE: u64 = 2;
const RESULT: u64 = 4;

/// A program of which operations are noted. The clock advances by 10 µs with each event and each
/// operation.
#[derive(Default)]
struct Program {
    events: Vec<Value>,
    uses: UseTrace,
    time: u64,
    next: u64,
    last_begin: u64,
    is_traced: bool,
}

type Block = (u64, u64);

impl Program {
    fn event(&mut self, action: &str, (addr, size): Block, line: u32) {
        self.time += 10;
        let mut event = json!({
            "action": action, "addr": addr, "size": size, "stream": 0, "time_us": self.time,
        });
        if line > 0 {
            event["frames"] = json!([{"name": "step", "filename": "train.py", "line": line}]);
        }
        self.events.push(event);
    }

    fn alloc(&mut self, mib: u64, line: u32) -> Block {
        self.next += 1;
        let block = (self.next << 32, mib * MIB);
        self.event("alloc", block, line);
        block
    }

    fn free(&mut self, block: Block) {
        self.event("free_requested", block, 0);
        self.event("free_completed", block, 0);
    }

    fn begin(&mut self) {
        self.time += 10;
        self.uses.begin_us = self.time as i64;
        self.last_begin = self.time;
        self.is_traced = true;
    }

    fn end(&mut self) {
        self.time += 10;
        self.uses.end_us = self.time as i64;
        self.uses.complete = true;
        self.is_traced = false;
    }

    /// An operation with what happens in it.
    fn operation(&mut self, name: &str, mut uses: Vec<(Block, u64)>, inside: Option<(u64, u32)>) {
        self.time += 10;
        let begin = self.time;
        if let Some((mib, line)) = inside {
            let block = self.alloc(mib, line);
            uses.push((block, WRITE | RESULT));
        }
        self.time += 10;
        if !self.is_traced {
            return;
        }
        let at = self.uses.names.iter().position(|one| one == name).unwrap_or_else(|| {
            self.uses.names.push(name.to_owned());
            self.uses.names.len() - 1
        });
        self.uses.operations.extend([
            at as u64,
            begin - self.last_begin,
            self.time - begin,
            uses.len() as u64,
        ]);
        self.last_begin = begin;
        for ((address, _), how) in uses {
            let storages = &mut self.uses.storages;
            let index = storages.chunks(2).position(|of| of[1] == address);
            let index = index.unwrap_or_else(|| {
                storages.extend([0, address]);
                storages.len() / 2 - 1
            });
            self.uses.uses.push((index as u64) << 3 | how);
        }
    }

    /// An operation that makes a block.
    fn make(&mut self, name: &str, reads: &[Block], mib: u64, line: u32) -> Block {
        let uses = reads.iter().map(|&block| (block, READ)).collect();
        self.operation(name, uses, Some((mib, line)));
        (self.next << 32, mib * MIB)
    }

    fn read(&mut self, block: Block) {
        self.operation("aten.sum", vec![(block, READ)], None);
    }

    fn device(&self) -> Device {
        let file = json!({"segments": [], "device_traces": [self.events]});
        Device::new(parse(file.to_string().as_bytes()))
    }

    fn uses(&self, device: &Device) -> Result<Uses, NoUses> {
        now(async |budget| Uses::new(&self.uses, &device.snapshot, &device.trace, budget).await)
    }
}

/// The group of the only block of each size at the peak of the step.
fn groups(device: &Device, uses: &Uses) -> Vec<(u64, UseGroup)> {
    let slot = uses.floor(&device.trace).slot;
    let moment = uses.moment(&device.trace, slot).expect("in the step");
    let block = |index: u32| device.trace.blocks[index as usize].bytes.0 / MIB;
    let mut groups: Vec<_> =
        moment.blocks.iter().map(|one| (block(one.block), one.group)).collect();
    groups.sort_unstable();
    groups
}

#[test]
fn a_block_is_dead_after_its_last_use() {
    let mut program = Program::default();
    let weight = program.alloc(10, 1);
    program.begin();
    let logits = program.make("aten.mm", &[weight], 40, 2);
    let loss = program.make("aten._log_softmax", &[logits], 30, 3);
    let gradient = program.make("aten._log_softmax_backward_data", &[loss, weight], 20, 4);
    program.free(loss);
    program.read(gradient);
    program.free(gradient);
    program.free(logits);
    program.end();
    let after = program.alloc(1, 5);
    program.free(after);
    let device = program.device();
    let uses = program.uses(&device).expect("uses");
    let found = groups(&device, &uses);
    let now = UseGroup::Now;
    assert_eq!(found, [(10, now), (20, now), (30, now), (40, UseGroup::Dead)]);
    let floor = uses.floor(&device.trace);
    // Without the logits: 10 + 40 + 30 while the loss is made, then 10 + 30 + 20.
    assert_eq!((floor.peak / MIB, floor.floor / MIB), (100, 80));
    let dead = uses.dead_bytes(&device.trace);
    assert_eq!(dead[(floor.slot - uses.slots.start) as usize] / MIB, 40);
    assert_eq!(dead.last(), Some(&0), "it is freed in the end");
}

#[test]
fn an_operation_that_runs_uses_its_arguments() {
    let mut program = Program::default();
    program.begin();
    let input = program.make("aten.randn", &[], 30, 1);
    let output = program.make("aten.exp", &[input], 30, 2);
    program.free(input);
    program.read(output);
    program.free(output);
    program.end();
    let last = program.alloc(1, 3);
    program.free(last);
    let device = program.device();
    let uses = program.uses(&device).expect("uses");
    assert_eq!(groups(&device, &uses), [(30, UseGroup::Now), (30, UseGroup::Now)]);
    assert_eq!(uses.floor(&device.trace).floor / MIB, 60);
}

#[test]
fn what_each_step_leaves_is_dead_only_if_no_step_reads_it() {
    // `reads`: whether a step reads what the one before has left.
    for reads in [false, true] {
        let mut program = Program::default();
        let mut left = program.alloc(20, 1);
        for step in 0..3 {
            if step == 1 {
                program.begin();
            }
            if reads {
                program.read(left);
            }
            let own = program.make("aten.mm", &[], 20, 1);
            program.read(own);
            let big = program.make("aten.mm", &[], 50, 2);
            program.free(big);
            program.free(left);
            left = own;
            if step == 1 {
                program.end();
            }
        }
        program.free(left);
        let device = program.device();
        let uses = program.uses(&device).expect("uses");
        let expected = if reads { UseGroup::Kept } else { UseGroup::Dead };
        // The old one has no use left in this step.
        let found = groups(&device, &uses);
        assert_eq!(found, [(20, UseGroup::Dead), (20, expected), (50, UseGroup::Now)], "{reads}");
    }
}

#[test]
fn what_piles_up_may_be_read_together() {
    let mut program = Program::default();
    let mut kept = Vec::new();
    for step in 0..6 {
        if step == 3 {
            program.begin();
        }
        kept.push(program.make("aten.mm", &[], 20, 1));
        let big = program.make("aten.mm", &[], 50, 2);
        program.free(big);
        if step == 3 {
            program.end();
        }
    }
    for block in kept {
        program.free(block);
    }
    let device = program.device();
    let uses = program.uses(&device).expect("uses");
    let found = groups(&device, &uses);
    assert!(found.iter().all(|of| of.1 != UseGroup::Dead), "{found:?}");
}

#[test]
fn blocks_without_a_use_are_not_seen_and_overwritten_ones_are_told() {
    let mut program = Program::default();
    let stays = program.alloc(5, 1);
    program.begin();
    let silent = program.alloc(7, 2);
    let buffer = program.make("aten.empty", &[], 9, 3);
    program.read(buffer);
    let early = program.make("aten.zeros", &[], 11, 4);
    let far = program.make("aten.mm", &[stays], 13, 5);
    let big = program.make("aten.mm", &[stays], 50, 6);
    program.free(big);
    for _ in 0..60 {
        program.read(stays);
    }
    program.operation("aten.copy_", vec![(buffer, WRITE), (stays, READ)], None);
    program.read(early);
    program.read(far);
    for block in [silent, buffer, early, far] {
        program.free(block);
    }
    program.end();
    let last = program.alloc(1, 7);
    program.free(last);
    let device = program.device();
    let uses = program.uses(&device).expect("uses");
    assert_eq!(
        groups(&device, &uses),
        [
            (5, UseGroup::Now),
            (7, UseGroup::NotSeen),
            (9, UseGroup::Overwritten),
            (11, UseGroup::Far),
            (13, UseGroup::Far),
            (50, UseGroup::Now),
        ]
    );
    let slot = uses.floor(&device.trace).slot;
    let moment = uses.moment(&device.trace, slot).expect("in the step");
    let is_early = |one: &&vramscope_inference::NextUse| one.early.is_some();
    let early: Vec<u64> = moment
        .blocks
        .iter()
        .filter(is_early)
        .map(|one| device.trace.blocks[one.block as usize].bytes.0 / MIB)
        .collect();
    assert_eq!(early, [11], "what has inputs is no early block");
    // `aten.empty`, and then a read: a kernel that is not seen has filled it.
    assert_eq!((uses.filled_unseen, uses.is_exact()), (1, false));
}

#[test]
fn a_trace_that_is_cut_or_of_another_device_says_nothing() {
    let mut program = Program::default();
    program.begin();
    let block = program.make("aten.mm", &[], 20, 1);
    program.read(block);
    program.free(block);
    program.end();
    let device = program.device();
    program.uses.complete = false;
    assert_eq!(program.uses(&device).err(), Some(NoUses::Cut));
    program.uses.complete = true;
    program.uses.storages[1] += 512;
    assert_eq!(program.uses(&device).err(), Some(NoUses::Mismatch));
    program.uses.begin_us += 1 << 50;
    program.uses.end_us += 1 << 50;
    assert_eq!(program.uses(&device).err(), Some(NoUses::NotRecorded));
}

#[test]
fn the_finding_names_the_line_with_most_dead_bytes() {
    let mut program = Program::default();
    program.begin();
    let small = program.make("aten.exp", &[], 17, 1);
    let large = program.make("aten.mm", &[], 40, 2);
    let sum = program.make("aten.cat", &[small, large], 57, 3);
    let peak = program.make("aten.exp", &[sum], 57, 4);
    for block in [small, large, sum, peak] {
        program.free(block);
    }
    program.end();
    let last = program.alloc(1, 5);
    program.free(last);
    let device = program.device();
    let uses = program.uses(&device).expect("uses");
    let evidence = vramscope_inference::Evidence { uses: Some(&uses), ..device.evidence() };
    let found = now(async |budget| vramscope_inference::findings(evidence, budget).await);
    let dead: Vec<_> = found.iter().filter(|one| one.kind() == FindingKind::DeadAtPeak).collect();
    assert_eq!(dead.len(), 1);
    assert_eq!((dead[0].bytes / MIB, dead[0].blocks, dead[0].parts.len()), (57, 2, 2));
    let frame = device.sites.get(dead[0].parts[0].stack).frame.expect("a line");
    assert_eq!(frame.line, 2);
    assert!(device.of_kind(FindingKind::DeadAtPeak).is_empty(), "without a trace");
}
