//! A trace of `torch.profiler` with a snapshot's tracks.
//!
//! Kineto, the profiler of PyTorch, writes Chrome's trace format. Times are in microseconds since
//! `baseTimeNanoseconds` (since PyTorch 2.4) or since the Unix epoch (before). A snapshot has the
//! time of the same system clock. The profiler's events are copied as they are, and those of the
//! snapshot get times of the trace, so that no digit of the profiler's times is lost.
//!
//! A trace can be larger than memory. It is read twice, one event at a time: first for its range of
//! times, then to copy it.

use super::{TracePlace, trace_events};
use crate::Target;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::cell::Cell;
use std::fmt;
use std::io::{self, BufRead, Write};
use std::rc::Rc;
use vramscope_units::Micros;

/// The member with the events.
const EVENTS: &str = "traceEvents";

/// The member with what times count from.
const BASE: &str = "baseTimeNanoseconds";

/// Bytes that an event or another member of a trace may have. Each is in memory as a whole.
const MAX_MEMBER: usize = 16 << 20;

/// Process numbers below this are checked for use.
const PIDS: usize = 1 << 16;

/// A trace of `torch.profiler`.
pub struct Profile<'a> {
    /// Its path, for messages.
    pub name: &'a str,
    /// Begins to read its JSON, from the first byte.
    pub open: &'a dyn Fn() -> io::Result<Box<dyn BufRead>>,
}

/// Why a trace and a device were not written.
#[derive(Debug)]
pub enum MergeError {
    /// The trace cannot be read, or does not fit the device: the reason.
    Unusable(String),
    /// The output cannot be written.
    Output(io::Error),
}

/// Writes the profiler's trace with the events of the device.
///
/// # Errors
/// The trace cannot be read, the snapshot has no times, the two do not overlap, or the output
/// cannot be written.
pub fn merge_profile(
    target: Target<'_>,
    profile: &Profile<'_>,
    out: &mut (dyn Write + Send),
) -> Result<(), MergeError> {
    let Some(clock) = &target.trace().clock else {
        return Err(MergeError::Unusable(format!(
            "{}: its events have no times, so it cannot be put on the clock of a trace",
            target.path
        )));
    };
    let mut about = About::new();
    read(profile, &mut about)?;
    if !about.has_events {
        return Err(wrong(profile, "it has no traceEvents: expected a trace of torch.profiler"));
    }
    let Some((from, to)) = about.range() else {
        return Err(wrong(profile, "none of its events has a time"));
    };
    let snapshot = (clock.start, Micros(clock.start.0.saturating_add_unsigned(clock.span())));
    if to < snapshot.0 || from > snapshot.1 {
        return Err(MergeError::Unusable(format!(
            "{} and {} were not recorded at the same time, in seconds since 1970: the snapshot \
             from {} to {}, the trace from {} to {}",
            target.path,
            profile.name,
            seconds(snapshot.0),
            seconds(snapshot.1),
            seconds(from),
            seconds(to),
        )));
    }
    let place = about.place(target.device() + 1);
    let mut copy = Copy { out, place, target, failure: None, comma: "" };
    let copied = read(profile, &mut copy);
    match copy.failure {
        Some(failure) => Err(MergeError::Output(failure)),
        None => copied,
    }
}

/// A time in seconds, for messages.
fn seconds(time: Micros) -> String {
    format!("{}.{:03}", time.0.div_euclid(1_000_000), time.0.rem_euclid(1_000_000) / 1000)
}

fn wrong(profile: &Profile<'_>, what: impl fmt::Display) -> MergeError {
    MergeError::Unusable(format!("{}: {what}", profile.name))
}

/// What is done with the members and the events of a trace.
trait Reader {
    /// A member that is not the list of events.
    fn member(&mut self, key: &str, value: &RawValue) -> io::Result<()>;
    /// The list of events begins.
    fn events_begin(&mut self) -> io::Result<()>;
    /// An event of the list.
    fn event(&mut self, event: &RawValue) -> io::Result<()>;
    /// The list of events ends.
    fn events_end(&mut self) -> io::Result<()>;
    /// The object begins or ends.
    fn bracket(&mut self, bracket: &'static str) -> io::Result<()>;
}

/// Reads a trace.
fn read(profile: &Profile<'_>, reader: &mut dyn Reader) -> Result<(), MergeError> {
    let failed = |e: io::Error| wrong(profile, format_args!("cannot read the trace: {e}"));
    let input = (profile.open)().map_err(failed)?;
    let left = Rc::new(Cell::new(MAX_MEMBER));
    let input = Bounded { input, left: left.clone() };
    let mut json = serde_json::Deserializer::from_reader(input);
    let members = Members { reader, left: &left };
    members.deserialize(&mut json).and_then(|()| json.end()).map_err(|error| {
        wrong(profile, format_args!("expected a trace of torch.profiler as JSON: {error}"))
    })
}

/// Input that fails if one member has more than [`MAX_MEMBER`] bytes.
struct Bounded<R> {
    input: R,
    /// Bytes that the current member may still have.
    left: Rc<Cell<usize>>,
}

impl<R: io::Read> io::Read for Bounded<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let left = self.left.get();
        if left == 0 {
            return Err(io::Error::other(format!(
                "an event or member has over {MAX_MEMBER} bytes"
            )));
        }
        let most = bytes.len().min(left);
        let count = self.input.read(&mut bytes[..most])?;
        self.left.set(left - count);
        Ok(count)
    }
}

/// Reads the object of a trace.
struct Members<'r> {
    reader: &'r mut dyn Reader,
    left: &'r Cell<usize>,
}

impl<'de> DeserializeSeed<'de> for Members<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Members<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "an object with {EVENTS}")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        self.reader.bracket("{").map_err(A::Error::custom)?;
        while let Some(key) = map.next_key::<String>()? {
            if key == EVENTS {
                map.next_value_seed(EventList { reader: &mut *self.reader, left: self.left })?;
            } else {
                let value = map.next_value::<Box<RawValue>>()?;
                self.reader.member(&key, &value).map_err(A::Error::custom)?;
            }
            self.left.set(MAX_MEMBER);
        }
        self.reader.bracket("}").map_err(A::Error::custom)
    }
}

/// Reads the list of events.
struct EventList<'r> {
    reader: &'r mut dyn Reader,
    left: &'r Cell<usize>,
}

impl<'de> DeserializeSeed<'de> for EventList<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for EventList<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        self.reader.events_begin().map_err(A::Error::custom)?;
        self.left.set(MAX_MEMBER);
        while let Some(event) = list.next_element::<Box<RawValue>>()? {
            self.reader.event(&event).map_err(A::Error::custom)?;
            self.left.set(MAX_MEMBER);
        }
        self.reader.events_end().map_err(A::Error::custom)
    }
}

/// What must be known of a trace before it is copied.
struct About {
    has_events: bool,
    /// `baseTimeNanoseconds`, in microseconds.
    base: i64,
    /// The first start and the last end, in the trace's microseconds.
    times: Option<(f64, f64)>,
    /// The process numbers in use.
    pids: Vec<bool>,
    events: u64,
}

/// The members of an event that are read. Their types are not certain.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    ts: Option<&'a RawValue>,
    #[serde(borrow)]
    dur: Option<&'a RawValue>,
    #[serde(borrow)]
    pid: Option<&'a RawValue>,
    #[serde(borrow)]
    ph: Option<&'a RawValue>,
}

impl About {
    fn new() -> Self {
        Self { has_events: false, base: 0, times: None, pids: vec![false; PIDS], events: 0 }
    }

    /// The times of the trace's events, since the Unix epoch.
    fn range(&self) -> Option<(Micros, Micros)> {
        // A float to an integer saturates.
        let time = |ts: f64| Micros(self.base.saturating_add(ts as i64));
        self.times.map(|(from, to)| (time(from), time(to)))
    }

    /// The first unused process number from `first` on.
    fn place(&self, first: u32) -> TracePlace {
        let is_free = |pid: &u32| self.pids.get(*pid as usize).is_none_or(|is_used| !is_used);
        let pid = (first..u32::MAX).find(is_free).unwrap_or(first);
        TracePlace { pid, origin: self.base, follows: self.events > 0 }
    }
}

fn number(value: Option<&RawValue>) -> Option<f64> {
    value?.get().parse().ok().filter(|number: &f64| number.is_finite())
}

impl Reader for About {
    fn member(&mut self, key: &str, value: &RawValue) -> io::Result<()> {
        if key == BASE {
            let nanoseconds: i64 = value.get().parse().map_err(|_| {
                io::Error::other(format!("{BASE} is {}, expected an integer", value.get()))
            })?;
            self.base = nanoseconds.div_euclid(1000);
        }
        Ok(())
    }

    fn events_begin(&mut self) -> io::Result<()> {
        if self.has_events {
            return Err(io::Error::other(format!("{EVENTS} is there twice")));
        }
        self.has_events = true;
        Ok(())
    }

    fn event(&mut self, event: &RawValue) -> io::Result<()> {
        self.events += 1;
        let Ok(event) = serde_json::from_str::<Event<'_>>(event.get()) else { return Ok(()) };
        let pid = event.pid.and_then(|pid| pid.get().parse::<usize>().ok());
        if let Some(is_used) = pid.and_then(|pid| self.pids.get_mut(pid)) {
            *is_used = true;
        }
        // Metadata happens at no time.
        if event.ph.is_some_and(|ph| ph.get() == "\"M\"") {
            return Ok(());
        }
        if let Some(from) = number(event.ts) {
            let to = from + number(event.dur).unwrap_or(0.0);
            let (first, last) = self.times.unwrap_or((from, to));
            self.times = Some((first.min(from), last.max(to)));
        }
        Ok(())
    }

    fn events_end(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn bracket(&mut self, _bracket: &'static str) -> io::Result<()> {
        Ok(())
    }
}

/// Copies a trace, with the events of a device behind its own.
struct Copy<'o, 't> {
    out: &'o mut (dyn Write + Send),
    place: TracePlace,
    target: Target<'t>,
    /// Why the output could not be written.
    failure: Option<io::Error>,
    /// Precedes the next member or event.
    comma: &'static str,
}

impl Copy<'_, '_> {
    /// Keeps the reason of a failure, which the reader of JSON turns into text.
    fn write(
        &mut self,
        write: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>,
    ) -> io::Result<()> {
        write(self.out).map_err(|error| {
            let text = error.to_string();
            self.failure = Some(error);
            io::Error::other(text)
        })
    }
}

impl Reader for Copy<'_, '_> {
    fn member(&mut self, key: &str, value: &RawValue) -> io::Result<()> {
        let comma = std::mem::replace(&mut self.comma, ",");
        self.write(|out| {
            writeln!(out, "{comma}")?;
            serde_json::to_writer(&mut *out, key)?;
            write!(out, ": {}", value.get())
        })
    }

    fn events_begin(&mut self) -> io::Result<()> {
        let comma = std::mem::take(&mut self.comma);
        self.write(|out| write!(out, "{comma}\n\"{EVENTS}\": ["))
    }

    fn event(&mut self, event: &RawValue) -> io::Result<()> {
        let comma = std::mem::replace(&mut self.comma, ",");
        self.write(|out| write!(out, "{comma}\n{}", event.get()))
    }

    fn events_end(&mut self) -> io::Result<()> {
        self.comma = ",";
        let (target, place) = (self.target, self.place);
        self.write(|out| {
            trace_events(target, place, out)?;
            out.write_all(b"\n]")
        })
    }

    fn bracket(&mut self, bracket: &'static str) -> io::Result<()> {
        self.write(|out| out.write_all(bracket.as_bytes()))
    }
}
