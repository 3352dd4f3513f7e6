//! Reads a snapshot's objects into rows, one field after the other, as a short Python program
//! would.

use super::unpickle::{Dict, Id, Object, Objects, Result};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Rows of stacks before the reference gives up.
const MAX_ROWS: usize = 1 << 22;
/// The ordinal of pinned host memory. The reference gives up where a device has it.
const HOST: u32 = 128;
/// Settings before the reference leaves them out.
const MAX_SETTINGS: usize = 1000;

pub(super) type Bytes = Rc<[u8]>;
pub(super) type Stack = Rc<[Frame]>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) name: Bytes,
    pub(super) file: Bytes,
    pub(super) line: u32,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) action: Bytes,
    pub(super) addr: u64,
    pub(super) size: u64,
    pub(super) time: Option<i64>,
    pub(super) stream: i64,
    pub(super) pool: Option<(u64, u64)>,
    pub(super) stack: Stack,
    pub(super) device_free: Option<u64>,
    /// Compile context, user metadata, internal metadata, category, forward frames.
    pub(super) texts: [Text; 5],
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Text {
    Missing,
    Plain(Bytes),
    /// Something else than a text. Its form is vramscope's own.
    Other,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) device: u32,
    pub(super) address: u64,
    /// Total, allocated, active, requested.
    pub(super) sizes: [u64; 4],
    pub(super) stream: i64,
    pub(super) is_small: Option<bool>,
    pub(super) pool: Option<(u64, u64)>,
    pub(super) is_expandable: bool,
    pub(super) stack: Stack,
    pub(super) blocks: Vec<Block>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Allocated,
    PendingFree,
    Inactive,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) address: Option<u64>,
    pub(super) size: u64,
    pub(super) requested: u64,
    pub(super) state: State,
    pub(super) stack: Stack,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Annotation {
    pub(super) name: Bytes,
    pub(super) is_end: bool,
    pub(super) device: i64,
    pub(super) time: Option<i64>,
}

/// The rows of a device: its events, and its segments by address.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Device {
    pub(super) events: Vec<Event>,
    pub(super) segments: Vec<Segment>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tables {
    /// By ordinal; the host's is 128.
    pub(super) devices: BTreeMap<u32, Device>,
    pub(super) annotations: Vec<Annotation>,
    /// Settings with plain values, in the order of the file. `None` if some are not plain.
    pub(super) settings: Option<Vec<(String, String)>>,
    /// Whether a value was dropped or changed, so that no number is exact.
    pub(super) is_changed: bool,
}

pub(super) fn tables(objects: &Objects, root: Id) -> Result<Tables> {
    let mut reader =
        Reader { objects, tables: Tables::default(), stacks: BTreeMap::new(), rows: 0 };
    let roots = |key: &str| match objects.get(root) {
        Object::Dict(dict) => dict.get(key),
        Object::List(_) if key == "segments" => Some(root),
        _ => None,
    };
    let (segments, traces) = (roots("segments"), roots("device_traces"));
    if segments.is_none() && traces.is_none() {
        return Err("not a snapshot");
    }
    for item in reader.list(segments)? {
        if let Some(segment) = reader.segment(item)? {
            if segment.device >= HOST {
                return Err("a device beyond PyTorch's");
            }
            reader.device(segment.device).segments.push(segment);
        }
    }
    for (ordinal, trace) in (0..).zip(reader.list(traces)?) {
        let events = reader.events(Some(trace))?;
        if !events.is_empty() {
            reader.device(ordinal).events = events;
        }
    }
    if reader.tables.devices.len() > HOST as usize {
        return Err("too many devices");
    }
    reader.host(roots("host_segments"), roots("host_traces"))?;
    for device in reader.tables.devices.values_mut() {
        device.segments.sort_by_key(|segment| segment.address);
    }
    for item in reader.list(roots("external_annotations"))? {
        let annotation = reader.annotation(item);
        reader.tables.annotations.extend(annotation);
    }
    reader.tables.settings = reader.settings(root);
    Ok(reader.tables)
}

struct Reader<'a> {
    objects: &'a Objects,
    tables: Tables,
    stacks: BTreeMap<Id, Stack>,
    /// Rows and frames made so far.
    rows: usize,
}

impl<'a> Reader<'a> {
    fn device(&mut self, ordinal: u32) -> &mut Device {
        self.tables.devices.entry(ordinal).or_default()
    }

    /// The items of a list. None and a missing one are empty.
    fn list(&mut self, list: Option<Id>) -> Result<Vec<Id>> {
        match list.map(|id| self.objects.get(id)) {
            None | Some(Object::None) => Ok(Vec::new()),
            Some(Object::List(items)) => {
                self.rows += items.len();
                if self.rows > MAX_ROWS { Err("too many rows") } else { Ok(items.clone()) }
            }
            Some(_) => Err("something else than a list"),
        }
    }

    /// The dict of a row, if it has one of the keys that make it one, of each group.
    fn row(&mut self, id: Id, keys: &[&[&str]]) -> Option<&'a Dict> {
        let found = match self.objects.get(id) {
            Object::Dict(dict) => {
                let has = |key: &&str| dict.get(key).is_some();
                keys.iter().all(|group| group.iter().any(has)).then_some(dict)
            }
            _ => None,
        };
        self.tables.is_changed |= found.is_none();
        found
    }

    fn number(&self, id: Option<Id>) -> Option<i128> {
        match self.objects.get(id?) {
            Object::Int(i) => Some(*i),
            Object::Bool(b) => Some(i128::from(*b)),
            Object::Float(f) if f.fract() == 0.0 && f.abs() < 1e38 => Some(*f as i128),
            Object::Str(text) => std::str::from_utf8(text).ok()?.parse().ok(),
            _ => None,
        }
    }

    /// A size in bytes.
    fn bytes(&mut self, dict: &Dict, key: &str) -> u64 {
        let id = dict.get(key);
        let bytes = self.number(id).and_then(|i| u64::try_from(i).ok());
        self.tables.is_changed |= id.is_some() && bytes.is_none();
        bytes.unwrap_or(0)
    }

    fn address(&mut self, dict: &Dict, key: &str) -> Option<u64> {
        let id = dict.get(key)?;
        let address = self.number(Some(id));
        self.tables.is_changed |= address.is_none();
        Some(address.unwrap_or(0) as u64)
    }

    fn small(&self, dict: &Dict, key: &str) -> Option<i64> {
        self.number(dict.get(key)).and_then(|i| i64::try_from(i).ok())
    }

    fn stream(&self, dict: &Dict) -> i64 {
        self.number(dict.get("stream")).map_or(0, |handle| handle as i64)
    }

    fn text(&self, dict: &Dict, key: &str) -> Option<Bytes> {
        match self.objects.get(dict.get(key)?) {
            Object::Str(text) => Some(text.as_slice().into()),
            _ => None,
        }
    }

    fn pool(&self, id: Option<Id>) -> Option<(u64, u64)> {
        let (Object::Tuple(items) | Object::List(items)) = self.objects.get(id?) else {
            return None;
        };
        let whole = |id: Id| match self.objects.get(id) {
            Object::Int(i) => u64::try_from(*i).ok(),
            _ => None,
        };
        match items[..] {
            [a, b] => Some((whole(a)?, whole(b)?)),
            _ => None,
        }
    }

    /// A stack. Items that are no frames are left out.
    fn stack(&mut self, dict: &Dict) -> Result<Stack> {
        let Some(id) = dict.get("frames") else { return Ok([].into()) };
        if let Some(known) = self.stacks.get(&id) {
            return Ok(known.clone());
        }
        let mut frames = Vec::new();
        for item in self.list(Some(id))? {
            let Object::Dict(frame) = self.objects.get(item) else { continue };
            let has = |key| frame.get(key).is_some();
            if has("name") && has("filename") {
                let line = self.small(frame, "line").and_then(|line| u32::try_from(line).ok());
                let text = |key| self.text(frame, key).unwrap_or_else(|| [].into());
                let line = line.unwrap_or(0);
                frames.push(Frame { name: text("name"), file: text("filename"), line });
            }
        }
        let stack: Stack = frames.into();
        self.stacks.insert(id, stack.clone());
        Ok(stack)
    }

    fn events(&mut self, trace: Option<Id>) -> Result<Vec<Event>> {
        let mut events = Vec::new();
        for item in self.list(trace)? {
            events.push(match self.row(item, &[&["action"]]) {
                Some(dict) => self.event(dict)?,
                // It keeps its place.
                None => Event {
                    action: b"(no action)"[..].into(),
                    addr: 0,
                    size: 0,
                    time: None,
                    stream: 0,
                    pool: None,
                    stack: [].into(),
                    device_free: None,
                    texts: [const { Text::Missing }; 5],
                },
            });
        }
        Ok(events)
    }

    fn event(&mut self, dict: &Dict) -> Result<Event> {
        let field = |key| dict.get(key);
        let pools = (field("pool_id"), field("segment_pool_id"));
        if pools.0.is_some() && pools.1.is_some() {
            return Err("two pools of an event");
        }
        let (has_free, pool) = (field("device_free").is_some(), self.pool(pools.0.or(pools.1)));
        Ok(Event {
            action: self.text(dict, "action").unwrap_or_else(|| b"(no action)"[..].into()),
            addr: self.address(dict, "addr").unwrap_or(0),
            size: self.bytes(dict, "size"),
            time: self.small(dict, "time_us").filter(|&time| time != i64::MIN),
            stream: self.stream(dict),
            pool,
            stack: self.stack(dict)?,
            device_free: has_free.then(|| self.bytes(dict, "device_free")),
            texts: [
                self.metadata(dict, "compile_context"),
                self.metadata(dict, "user_metadata"),
                self.metadata(dict, "internal_metadata"),
                self.metadata(dict, "category"),
                self.traceback(dict),
            ],
        })
    }

    fn metadata(&self, dict: &Dict, key: &str) -> Text {
        match dict.get(key).map(|id| self.objects.get(id)) {
            None | Some(Object::None) => Text::Missing,
            Some(Object::Str(text)) if text.is_empty() || text == b"N/A" => Text::Missing,
            Some(Object::Str(text)) => Text::Plain(text.as_slice().into()),
            Some(_) => Text::Other,
        }
    }

    /// The lines of a traceback, joined.
    fn traceback(&self, dict: &Dict) -> Text {
        match dict.get("forward_frames").map(|id| self.objects.get(id)) {
            None | Some(Object::None) => Text::Missing,
            Some(Object::List(lines)) if lines.is_empty() => Text::Missing,
            Some(Object::List(lines)) => {
                let lines = lines.iter().map(|&line| match self.objects.get(line) {
                    Object::Str(text) => Some(&text[..]),
                    _ => None,
                });
                let lines = lines.collect::<Option<Vec<_>>>();
                lines.map_or(Text::Other, |lines| Text::Plain(lines.concat().into()))
            }
            Some(_) => Text::Other,
        }
    }

    fn segment(&mut self, item: Id) -> Result<Option<Segment>> {
        let Some(dict) = self.row(item, &[&["blocks", "total_size"]]) else { return Ok(None) };
        let field = |key| dict.get(key);
        let device = self.number(field("device")).and_then(|i| u32::try_from(i).ok());
        let is_expandable = self.number(field("is_expandable")) == Some(1);
        let (listed, pool) = (field("blocks"), self.pool(field("segment_pool_id")));
        let address = self.address(dict, "address").unwrap_or(0);
        let mut blocks = Vec::new();
        let mut end = address;
        for item in self.list(listed)? {
            if let Some(mut block) = self.block(item)? {
                // Old files have no addresses.
                let start = *block.address.get_or_insert(end);
                end = start.wrapping_add(block.size);
                blocks.push(block);
            }
        }
        Ok(Some(Segment {
            device: device.unwrap_or(0),
            address,
            sizes: ["total_size", "allocated_size", "active_size", "requested_size"]
                .map(|key| self.bytes(dict, key)),
            stream: self.stream(dict),
            is_small: match self.text(dict, "segment_type").as_deref() {
                Some(b"small") => Some(true),
                Some(b"large") => Some(false),
                _ => None,
            },
            pool,
            is_expandable,
            stack: self.stack(dict)?,
            blocks,
        }))
    }

    fn block(&mut self, item: Id) -> Result<Option<Block>> {
        let Some(dict) = self.row(item, &[&["state"], &["size"]]) else { return Ok(None) };
        let size = self.bytes(dict, "size");
        let mut requested = dict.get("requested_size").map(|_| 0);
        if let Some(requested) = &mut requested {
            *requested = self.bytes(dict, "requested_size");
        }
        let mut stack = self.stack(dict)?;
        let history = dict.get("history");
        if let Some(&first) = self.list(history)?.first()
            && let Some(newest) = self.row(first, &[&["real_size"]])
        {
            stack = self.stack(newest)?;
            let real_size = self.bytes(newest, "real_size");
            requested = requested.filter(|&bytes| bytes > 0).or(Some(real_size));
        }
        let state = match self.text(dict, "state").as_deref() {
            Some(b"active_allocated") => State::Allocated,
            Some(b"active_pending_free" | b"active_awaiting_free") => State::PendingFree,
            _ => State::Inactive,
        };
        let address = self.address(dict, "address");
        Ok(Some(Block { address, size, requested: requested.unwrap_or(size), state, stack }))
    }

    fn annotation(&mut self, item: Id) -> Option<Annotation> {
        let dict = self.row(item, &[&["stage"], &["name"]])?;
        Some(Annotation {
            name: self.text(dict, "name").unwrap_or_else(|| [].into()),
            is_end: self.text(dict, "stage").as_deref() == Some(b"END"),
            device: self.small(dict, "device").unwrap_or(-1),
            time: self.small(dict, "time_us").filter(|&time| time != i64::MIN),
        })
    }

    /// Pinned host memory: its allocator never splits a segment, so each is one block.
    fn host(&mut self, segments: Option<Id>, trace: Option<Id>) -> Result<()> {
        let mut rows = Vec::new();
        for item in self.list(segments)? {
            let is_segment = match self.objects.get(item) {
                Object::Dict(dict) => {
                    ["blocks", "total_size"].iter().any(|key| dict.get(key).is_some())
                }
                _ => false,
            };
            if is_segment {
                rows.extend(self.segment(item)?.map(with_block));
            } else {
                rows.extend(self.block(item)?.map(around));
            }
        }
        let events = self.events(trace)?;
        if !(rows.is_empty() && events.is_empty()) {
            for segment in &mut rows {
                segment.device = HOST;
            }
            self.tables.devices.insert(HOST, Device { events, segments: rows });
        }
        Ok(())
    }

    /// Settings as dotted keys, if all values are plain.
    fn settings(&self, root: Id) -> Option<Vec<(String, String)>> {
        let Object::Dict(dict) = self.objects.get(root) else { return Some(Vec::new()) };
        let mut out = Vec::new();
        for &(key, value) in &dict.pairs {
            let Object::Str(key) = self.objects.get(key) else { continue };
            match &key[..] {
                b"segments"
                | b"device_traces"
                | b"external_annotations"
                | b"host_segments"
                | b"host_traces" => {}
                b"shape_data" if matches!(self.objects.get(value), Object::List(_)) => {}
                b"source_code" if matches!(self.objects.get(value), Object::Dict(_)) => {}
                b"allocator_settings" => self.flat("", value, &mut out, 0)?,
                key => self.flat(&plain(key)?, value, &mut out, 0)?,
            }
        }
        Some(out)
    }

    fn flat(
        &self,
        prefix: &str,
        value: Id,
        out: &mut Vec<(String, String)>,
        depth: usize,
    ) -> Option<()> {
        let text = match self.objects.get(value) {
            Object::None => "null".to_owned(),
            Object::Bool(b) => b.to_string(),
            Object::Int(i) => i.to_string(),
            Object::Str(text) => format!("\"{}\"", plain(text)?),
            // A dict like a row is shown as one.
            Object::Dict(dict) if depth < 4 && !is_like_row(dict) => {
                for &(key, value) in &dict.pairs {
                    let Object::Str(key) = self.objects.get(key) else { return None };
                    let key = plain(key)?;
                    let dotted = if prefix.is_empty() { key } else { format!("{prefix}.{key}") };
                    self.flat(&dotted, value, out, depth + 1)?;
                }
                return Some(());
            }
            _ => return None,
        };
        out.push((prefix.to_owned(), text));
        (out.len() < MAX_SETTINGS).then_some(())
    }
}

fn is_like_row(dict: &Dict) -> bool {
    ["action", "filename", "blocks", "total_size", "state", "stage", "real_size"]
        .into_iter()
        .any(|key| dict.get(key).is_some())
}

/// A short text without anything that JSON escapes, and not empty.
fn plain(text: &[u8]) -> Option<String> {
    let is_plain = |b: &u8| b.is_ascii_graphic() && !b"\"\\".contains(b) || *b == b' ';
    let is_short = (1..200).contains(&text.len()) && text.iter().all(is_plain);
    is_short.then(|| String::from_utf8_lossy(text).into_owned())
}

fn with_block(mut segment: Segment) -> Segment {
    let [total, allocated, active, requested] = segment.sizes;
    if segment.blocks.is_empty() && total > 0 {
        segment.blocks.push(Block {
            address: Some(segment.address),
            size: total,
            requested: if requested == 0 { total } else { requested },
            state: match (allocated, active) {
                (0, 0) => State::Inactive,
                (0, _) => State::PendingFree,
                _ => State::Allocated,
            },
            stack: segment.stack.clone(),
        });
    }
    segment
}

fn around(mut block: Block) -> Segment {
    let when = |counts: bool| if counts { block.size } else { 0 };
    let address = *block.address.get_or_insert(u64::MAX);
    Segment {
        device: HOST,
        address,
        sizes: [
            block.size,
            when(block.state == State::Allocated),
            when(block.state != State::Inactive),
            block.requested,
        ],
        stream: 0,
        is_small: None,
        pool: None,
        is_expandable: false,
        stack: block.stack.clone(),
        blocks: vec![block],
    }
}
