//! Streams, events and graphs. All streams share one timeline, on which work is done at once.

use crate::device::current_device;
use crate::errors::{Code, ILLEGAL_STATE, INVALID_HANDLE, NOT_READY};
use crate::settings::settings;
use crate::tables::new_handle;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

mod graphs;

pub(crate) use graphs::{Destroy, EMPTY_NODE, KERNEL_NODE};
use graphs::{Graph, UserObject};

/// Streams below this number are the default streams of the current device: the legacy stream
/// (0 and 1) and that of a thread (2).
const DEFAULT_STREAMS: u64 = 3;

/// PyTorch's watchdog looks every 100 ms, and then lets go of the tensors of a collective. A device
/// keeps the host waiting long enough for that.
const COLLECTIVE_WAIT: Duration = Duration::from_millis(120);

/// An event that cannot measure time.
const DISABLE_TIMING: u32 = 2;

/// All streams, events and graphs.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    /// Streams by handle.
    streams: BTreeMap<u64, Stream>,
    /// The default streams by device.
    default_streams: BTreeMap<i32, Stream>,
    /// Streams that capture, by handle: ordered, so that the end of a capture finds all.
    capturing: BTreeMap<StreamKey, Capture>,
    /// Events by handle.
    events: BTreeMap<u64, Event>,
    /// Graphs by handle.
    graphs: BTreeMap<u64, Graph>,
    /// Graphs that hold each user object, and the program itself, by handle.
    objects: BTreeMap<u64, UserObject>,
    /// Events recorded until now.
    recorded: u64,
    /// Events that the host has waited for: all until this number.
    waited: u64,
    /// Captures begun until now.
    captures: u64,
    /// How many queries of an event find it pending.
    lag: u32,
}

/// A stream by its handle, or the default stream of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum StreamKey {
    /// The default stream of a device.
    Default(i32),
    /// A stream that the program made.
    Made(u64),
}

/// A stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    /// Its device.
    pub(crate) device: i32,
    /// From 0 down to -5, the most urgent.
    pub(crate) priority: i32,
    /// The flags of its creation.
    pub(crate) flags: u32,
}

/// A capture of work into a graph.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Capture {
    /// The number of the capture, from 1.
    pub(crate) number: u64,
    /// The graph.
    pub(crate) graph: u64,
}

/// An event.
#[derive(Debug)]
struct Event {
    /// Whether it measures time.
    timed: bool,
    /// Its last record.
    record: Option<Record>,
}

/// A record of an event.
#[derive(Debug)]
struct Record {
    /// The number on the timeline.
    number: u64,
    /// Queries that find it pending.
    remaining: u32,
    /// The capture of its stream.
    capture: Option<Capture>,
    /// When it was recorded.
    time: Instant,
}

/// The lock of the timeline.
pub(crate) static TIMELINE: LazyLock<Mutex<Timeline>> = LazyLock::new(|| {
    crate::device::fork::watch();
    Mutex::new(Timeline { lag: settings().event_lag, ..Timeline::default() })
});

/// Whether a collective was called since the host last waited.
static COLLECTIVE: AtomicBool = AtomicBool::new(false);

/// The timeline of this process.
pub(crate) fn timeline() -> MutexGuard<'static, Timeline> {
    TIMELINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes a collective: the next wait takes longer.
pub(crate) fn note_collective() {
    COLLECTIVE.store(true, Ordering::Relaxed);
}

/// The host waits for all work.
pub(crate) fn synchronize() {
    if COLLECTIVE.swap(false, Ordering::Relaxed) {
        std::thread::sleep(COLLECTIVE_WAIT);
    }
    timeline().wait();
}

/// The number of a stream of the current device, if the handle is that of a default stream.
fn key(stream: u64) -> StreamKey {
    if stream < DEFAULT_STREAMS {
        StreamKey::Default(current_device())
    } else {
        StreamKey::Made(stream)
    }
}

impl Timeline {
    /// Everything until now is done.
    pub(crate) fn wait(&mut self) {
        self.waited = self.recorded;
    }

    /// Changes how many queries of an event find it pending.
    pub(crate) fn set_lag(&mut self, lag: u32) {
        self.lag = lag;
    }

    /// Makes a stream. Returns its handle.
    pub(crate) fn add_stream(&mut self, stream: Stream) -> u64 {
        let handle = new_handle();
        self.streams.insert(handle, stream);
        handle
    }

    /// Destroys a stream.
    pub(crate) fn remove_stream(&mut self, stream: u64) -> Result<(), Code> {
        self.capturing.remove(&StreamKey::Made(stream));
        self.streams.remove(&stream).map(drop).ok_or(INVALID_HANDLE)
    }

    /// A stream.
    pub(crate) fn stream(&mut self, stream: u64) -> Result<&Stream, Code> {
        match key(stream) {
            StreamKey::Default(device) => {
                let new = Stream { device, priority: 0, flags: 0 };
                Ok(self.default_streams.entry(device).or_insert(new))
            }
            StreamKey::Made(handle) => self.streams.get(&handle).ok_or(INVALID_HANDLE),
        }
    }

    /// The capture of a stream.
    pub(crate) fn capture(&mut self, stream: u64) -> Result<Option<Capture>, Code> {
        self.stream(stream)?;
        Ok(self.capturing.get(&key(stream)).copied())
    }

    /// Begins a capture into `graph`, or into a new graph.
    pub(crate) fn begin_capture(&mut self, stream: u64, graph: Option<u64>) -> Result<(), Code> {
        if self.capture(stream)?.is_some() {
            return Err(ILLEGAL_STATE);
        }
        let graph = graph.unwrap_or_else(|| self.add_graph());
        // The captured work counts as one kernel: launches are not recorded.
        self.add_node(graph, KERNEL_NODE)?;
        self.captures += 1;
        self.capturing.insert(key(stream), Capture { number: self.captures, graph });
        Ok(())
    }

    /// Ends the capture of a stream and of the streams that joined it. Returns the graph.
    pub(crate) fn end_capture(&mut self, stream: u64) -> Result<u64, Code> {
        let capture = self.capture(stream)?.ok_or(ILLEGAL_STATE)?;
        self.capturing.retain(|_, other| other.number != capture.number);
        Ok(capture.graph)
    }

    /// A stream waits for an event, and joins its capture.
    pub(crate) fn wait_event(&mut self, stream: u64, event: u64) -> Result<(), Code> {
        let capture = self.event(event)?.record.as_ref().and_then(|record| record.capture);
        self.stream(stream)?;
        // The event can be older than the end of its capture.
        let live =
            |capture: &Capture| self.capturing.values().any(|other| other.number == capture.number);
        if let Some(capture) = capture.filter(live) {
            self.capturing.insert(key(stream), capture);
        }
        Ok(())
    }

    /// Makes an event. Returns its handle.
    pub(crate) fn add_event(&mut self, flags: u32) -> u64 {
        let handle = new_handle();
        let timed = flags & DISABLE_TIMING == 0;
        self.events.insert(handle, Event { timed, record: None });
        handle
    }

    /// Destroys an event.
    pub(crate) fn remove_event(&mut self, event: u64) -> Result<(), Code> {
        self.events.remove(&event).map(drop).ok_or(INVALID_HANDLE)
    }

    /// An event.
    fn event(&mut self, event: u64) -> Result<&mut Event, Code> {
        self.events.get_mut(&event).ok_or(INVALID_HANDLE)
    }

    /// Records an event in a stream.
    pub(crate) fn record(&mut self, event: u64, stream: u64) -> Result<(), Code> {
        let capture = self.capture(stream)?;
        self.recorded += 1;
        let (number, remaining) = (self.recorded, self.lag);
        let time = Instant::now();
        self.event(event)?.record = Some(Record { number, remaining, capture, time });
        Ok(())
    }

    /// Fails with [`NOT_READY`] while an event is pending.
    pub(crate) fn query(&mut self, event: u64) -> Result<(), Code> {
        let waited = self.waited;
        match &mut self.event(event)?.record {
            Some(record) if record.remaining > 0 && record.number > waited => {
                record.remaining -= 1;
                Err(NOT_READY)
            }
            _ => Ok(()),
        }
    }

    /// The host waits for an event.
    pub(crate) fn wait_for(&mut self, event: u64) -> Result<(), Code> {
        if let Some(record) = &mut self.event(event)?.record {
            record.remaining = 0;
        }
        Ok(())
    }

    /// Milliseconds from one event to the other, by the clock of the host.
    pub(crate) fn elapsed(&mut self, start: u64, end: u64) -> Result<f32, Code> {
        let mut time = |event| {
            let event = self.event(event)?;
            let time = event.record.as_ref().filter(|_| event.timed).map(|record| record.time);
            time.ok_or(INVALID_HANDLE)
        };
        let (start, end) = (time(start)?, time(end)?);
        let backwards = start.saturating_duration_since(end).as_secs_f64();
        Ok(((end.saturating_duration_since(start).as_secs_f64() - backwards) * 1e3) as f32)
    }
}
