//! Writes a snapshot as a pickle: what was read of a file, and nothing else of it.
//!
//! The pickle has the keys that PyTorch writes, in protocol 4. Reading it gives the same tables.
//! What holds source code is left out: tracebacks of forward calls, and the notes of frames.

use crate::{Action, BlockState, Device, Events, PoolIndex, Segment, SegmentType};
use crate::{Snapshot, StackId, Stage, StrId};
use rustc_hash::FxHashMap;
use serde_json::Value;
use std::borrow::Cow;

/// Changes the texts that a pickle gets.
pub trait Texts {
    /// The function and the file of a frame.
    fn frame(&self, function: &str, file: &str) -> (String, String);
    /// The name of a range.
    fn range(&self, name: &str) -> String;
    /// A text of the program: metadata, or a word that PyTorch does not define.
    fn note(&self, text: &str) -> String;
    /// The dotted key of a setting, and its value as JSON.
    fn setting(&self, key: &str, value: &str) -> (String, String);
}

/// Leaves all texts as they were recorded.
#[derive(Clone, Copy, Debug)]
pub struct AsRecorded;

impl Texts for AsRecorded {
    fn frame(&self, function: &str, file: &str) -> (String, String) {
        (function.to_owned(), file.to_owned())
    }

    fn range(&self, name: &str) -> String {
        name.to_owned()
    }

    fn note(&self, text: &str) -> String {
        text.to_owned()
    }

    fn setting(&self, key: &str, value: &str) -> (String, String) {
        (key.to_owned(), value.to_owned())
    }
}

/// Bytes that are passed on at once.
const PIECE: usize = 1 << 16;

/// Writes a snapshot as a pickle, in pieces.
pub fn write_pickle(snapshot: &Snapshot, texts: &dyn Texts, put: &mut dyn FnMut(&[u8])) {
    let frames = vec![None; snapshot.frames.len()];
    let stacks = vec![None; snapshot.stacks.len()];
    let out = b"\x80\x04".to_vec();
    let strings = FxHashMap::default();
    let mut writer = Writer { snapshot, texts, put, out, memo: 0, strings, frames, stacks };
    writer.root();
    writer.op(b'.');
    let Writer { put, out, .. } = writer;
    put(&out);
}

struct Writer<'a> {
    snapshot: &'a Snapshot,
    texts: &'a dyn Texts,
    put: &'a mut dyn FnMut(&[u8]),
    out: Vec<u8>,
    /// The next memo number.
    memo: u32,
    /// Memo numbers of strings, of frames and of stacks.
    strings: FxHashMap<String, u32>,
    frames: Vec<Option<u32>>,
    stacks: Vec<Option<u32>>,
}

impl Writer<'_> {
    fn op(&mut self, op: u8) {
        self.out.push(op);
    }

    fn memoize(&mut self) -> u32 {
        self.op(b'\x94');
        self.memo += 1;
        self.memo - 1
    }

    fn get(&mut self, memo: u32) {
        self.op(b'j');
        self.out.extend(memo.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        if let Some(&memo) = self.strings.get(text) {
            return self.get(memo);
        }
        self.op(b'X');
        self.out.extend((text.len() as u32).to_le_bytes());
        self.out.extend(text.as_bytes());
        let memo = self.memoize();
        self.strings.insert(text.to_owned(), memo);
    }

    fn int(&mut self, value: i128) {
        if let Ok(value) = i32::try_from(value) {
            self.op(b'J');
            self.out.extend(value.to_le_bytes());
        } else {
            self.out.extend([b'\x8a', 16]);
            self.out.extend(value.to_le_bytes());
        }
    }

    fn bool(&mut self, value: bool) {
        self.op(if value { b'\x88' } else { b'\x89' });
    }

    fn number(&mut self, key: &str, value: u64) {
        self.text(key);
        self.int(i128::from(value));
    }

    /// A dict whose pairs `fill` writes.
    fn dict(&mut self, fill: impl FnOnce(&mut Self)) {
        self.out.extend(b"}(");
        fill(self);
        self.op(b'u');
    }

    /// A list whose items `fill` writes.
    fn list(&mut self, fill: impl FnOnce(&mut Self)) {
        self.out.extend(b"](");
        fill(self);
        self.op(b'e');
        if self.out.len() >= PIECE {
            (self.put)(&self.out);
            self.out.clear();
        }
    }

    /// Items in the batches that Python writes, which readers can take while they arrive.
    fn batches<T>(&mut self, items: impl Iterator<Item = T>, mut one: impl FnMut(&mut Self, T)) {
        self.out.extend(b"](");
        for (at, item) in items.enumerate() {
            if at > 0 && at % 1000 == 0 {
                self.out.extend(b"e(");
                (self.put)(&self.out);
                self.out.clear();
            }
            one(self, item);
        }
        self.op(b'e');
    }

    fn root(&mut self) {
        let s = self.snapshot;
        let of =
            |is_host: bool| s.devices.iter().filter(move |device| device.kind.is_host() == is_host);
        self.dict(|w| {
            w.text("segments");
            w.list(|w| of(false).for_each(|device| w.segments(device)));
            w.text("device_traces");
            w.list(|w| {
                let mut next = 0;
                for device in of(false).filter(|device| !device.events.is_empty()) {
                    // Traces are numbered by their place in the list.
                    for _ in next..device.device {
                        w.op(b']');
                    }
                    next = device.device + 1;
                    w.batches(device.events.clone(), Self::event);
                }
            });
            for host in of(true) {
                w.text("host_segments");
                w.list(|w| w.segments(host));
                w.text("host_traces");
                w.batches(host.events.clone(), Self::event);
            }
            // Some files repeat a setting beside PyTorch's.
            let is_again =
                |at: usize| s.settings[..at].iter().any(|other| other.0 == s.settings[at].0);
            let (again, first): (Vec<_>, Vec<_>) =
                (0..s.settings.len()).partition(|&at| is_again(at));
            w.text("allocator_settings");
            w.dict(|w| first.into_iter().for_each(|at| w.setting(at)));
            for at in again {
                w.setting(at);
            }
            w.text("external_annotations");
            w.list(|w| {
                for mark in &s.annotations {
                    w.dict(|w| {
                        w.text("stage");
                        w.text(if mark.stage == Stage::Start { "START" } else { "END" });
                        w.text("name");
                        w.text(&w.texts.range(&s.text(mark.name)));
                        w.text("device");
                        w.int(i128::from(mark.device));
                        if let Some(time) = mark.time {
                            w.text("time_us");
                            w.int(i128::from(time.0));
                        }
                    });
                }
            });
        });
    }

    fn setting(&mut self, at: usize) {
        let (key, value) = &self.snapshot.settings[at];
        let (key, value) = self.texts.setting(key, value);
        self.text(&key);
        self.json(&value);
    }

    /// A value of a setting. What is no JSON stays text.
    fn json(&mut self, value: &str) {
        match serde_json::from_str(value) {
            Ok(value) => self.value(&value),
            Err(_) => self.text(value),
        }
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.op(b'N'),
            Value::Bool(value) => self.bool(*value),
            Value::Number(number) => {
                let whole = number.as_i64().map(i128::from).or(number.as_u64().map(i128::from));
                match whole {
                    Some(whole) => self.int(whole),
                    None => {
                        self.op(b'G');
                        self.out.extend(number.as_f64().unwrap_or(f64::NAN).to_be_bytes());
                    }
                }
            }
            Value::String(text) => self.text(text),
            Value::Array(items) => self.list(|w| items.iter().for_each(|item| w.value(item))),
            Value::Object(pairs) => self.dict(|w| {
                for (key, value) in pairs {
                    w.text(key);
                    w.value(value);
                }
            }),
        }
    }

    fn stack(&mut self, id: StackId) {
        self.text("frames");
        if let Some(memo) = self.stacks[id.0 as usize] {
            return self.get(memo);
        }
        let snapshot = self.snapshot;
        self.op(b']');
        let memo = self.memoize();
        self.stacks[id.0 as usize] = Some(memo);
        self.op(b'(');
        for &frame in snapshot.stacks.frames(id) {
            let place = frame.0 as usize;
            if let Some(memo) = self.frames[place] {
                self.get(memo);
                continue;
            }
            let known = snapshot.frame(frame);
            let (name, file) =
                self.texts.frame(&snapshot.text(known.name), &snapshot.text(known.file));
            self.op(b'}');
            let memo = self.memoize();
            self.frames[place] = Some(memo);
            self.op(b'(');
            self.text("name");
            self.text(&name);
            self.text("filename");
            self.text(&file);
            self.number("line", u64::from(known.line));
            self.op(b'u');
        }
        self.op(b'e');
    }

    fn pool(&mut self, key: &str, pool: PoolIndex) {
        if let Some(id) = self.snapshot.pool(pool) {
            self.text(key);
            self.int(i128::from(id.0));
            self.int(i128::from(id.1));
            self.op(b'\x86');
        }
    }

    fn stream(&mut self, stream: crate::StreamId) {
        self.text("stream");
        self.int(i128::from(self.snapshot.stream(stream)));
    }

    fn note(&mut self, key: &str, column: &crate::SparseColumn<StrId>, row: u32) {
        if let Some(text) = Events::sparse(column, row) {
            self.text(key);
            self.text(&self.texts.note(&self.snapshot.text(text)));
        }
    }

    fn event(&mut self, row: u32) {
        let s = self.snapshot;
        let events = &s.events;
        let action = events.action(row);
        self.dict(|w| {
            w.text("action");
            let name = s.action_name(action);
            w.text(&if action <= Action::LAST { name } else { Cow::Owned(w.texts.note(&name)) });
            // An event without an address, such as of a failed allocation, has 0.
            if events.addr(row).0 != 0 {
                w.number("addr", events.addr(row).0);
            }
            w.number("size", events.size(row).0);
            w.stream(events.stream(row));
            if let Some(time) = events.time(row) {
                w.text("time_us");
                w.int(i128::from(time.0));
            }
            w.pool("segment_pool_id", events.pool(row));
            if let Some(free) = Events::sparse(&events.device_free, row) {
                w.number("device_free", free.0);
            }
            w.note("compile_context", &events.compile_context, row);
            w.note("user_metadata", &events.user_metadata, row);
            w.note("internal_metadata", &events.internal_metadata, row);
            w.note("category", &events.category, row);
            w.stack(events.stack(row));
        });
    }

    fn segments(&mut self, device: &Device) {
        self.snapshot.segments_of(device).iter().for_each(|segment| self.segment(segment));
    }

    fn segment(&mut self, segment: &Segment) {
        let s = self.snapshot;
        self.dict(|w| {
            w.number("device", u64::from(segment.device));
            w.number("address", segment.address.0);
            w.number("total_size", segment.total_size.0);
            w.number("allocated_size", segment.allocated_size.0);
            w.number("active_size", segment.active_size.0);
            w.number("requested_size", segment.requested_size.0);
            w.stream(segment.stream);
            let kind = match segment.segment_type {
                SegmentType::Small => Some("small"),
                SegmentType::Large => Some("large"),
                SegmentType::Unknown => None,
            };
            if let Some(kind) = kind {
                w.text("segment_type");
                w.text(kind);
            }
            w.pool("segment_pool_id", segment.pool);
            w.text("is_expandable");
            w.bool(segment.is_expandable);
            w.stack(segment.stack);
            w.text("blocks");
            w.list(|w| {
                for block in s.blocks_of(segment) {
                    w.dict(|w| {
                        w.number("address", block.address.0);
                        w.number("size", block.size.0);
                        w.number("requested_size", block.requested_size.0);
                        w.text("state");
                        w.text(match block.state {
                            BlockState::Allocated => "active_allocated",
                            BlockState::PendingFree => "active_pending_free",
                            BlockState::Inactive => "inactive",
                        });
                        w.stack(block.stack);
                    });
                }
            });
        });
    }
}
