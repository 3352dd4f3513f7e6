//! Chrome's JSON trace format for <https://ui.perfetto.dev>. Without a clock, one event takes one
//! microsecond.

use crate::device_name;
use crate::peak::BandKind;
use crate::phases;
use crate::segments::by_most;
use crate::text::free_kind;
use crate::{Target, time_of};
use serde::Serialize;
use std::io::{self, Write};
use vramscope_inference::Category;
use vramscope_trace::named_ranges;
use vramscope_trace::slicing::Budget;

/// The cost of a slot of a band, in units of [`Budget`].
const SLOT_COST: u64 = 32;

/// The track of phases and of steps, above those of annotated ranges.
const PHASES: [u32; 2] = [1, 2];

/// The track of the first lane of annotated ranges.
const FIRST_LANE: u32 = 3;

/// One entry of `traceEvents`. `ph` is the phase: `M` metadata, `C` counter, `X` complete slice,
/// `i` instant.
#[derive(Serialize)]
struct Event<'a> {
    ph: &'static str,
    name: &'a str,
    pid: u32,
    tid: u32,
    ts: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<i64>,
    /// Scope of an instant: `p` is the process.
    #[serde(skip_serializing_if = "Option::is_none")]
    s: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<Args>,
}

/// Named values of an event.
#[derive(Serialize)]
#[serde(untagged)]
enum Args {
    Name { name: String },
    Counter { bytes: u64 },
    Phase { peak_bytes: u64, peak_event: i64, reserved_growth: i64 },
    OutOfMemory { device_free: Option<u64>, event: u32, requested: u64 },
}

struct Writer<'o> {
    out: &'o mut (dyn Write + Send),
    pid: u32,
    /// What `ts` counts from, in microseconds since the Unix epoch.
    origin: i64,
    comma: &'static str,
}

/// Where the events of a device go in a trace.
#[derive(Clone, Copy, Debug)]
pub struct TracePlace {
    /// The number of the process that stands for the device. No other process may have it.
    pub pid: u32,
    /// What the trace's times count from, in microseconds since the Unix epoch.
    pub origin: i64,
    /// Whether the trace has events before these.
    pub follows: bool,
}

impl Writer<'_> {
    fn put(&mut self, event: &Event<'_>) -> io::Result<()> {
        writeln!(self.out, "{}", self.comma)?;
        self.comma = ",";
        Ok(serde_json::to_writer(&mut *self.out, event)?)
    }

    fn event<'a>(&self, ph: &'static str, name: &'a str, tid: u32, ts: i64) -> Event<'a> {
        let ts = ts.wrapping_sub(self.origin);
        Event { ph, name, pid: self.pid, tid, ts, dur: None, s: None, args: None }
    }

    /// Names a process or a track.
    fn name(&mut self, what: &'static str, tid: u32, name: String) -> io::Result<()> {
        let event = self.event("M", what, tid, self.origin);
        self.put(&Event { args: Some(Args::Name { name }), ..event })
    }

    /// Writes a value of a counter, unless the counter has it already.
    fn count(&mut self, counter: &mut Counter<'_>, time: i64, value: u64) -> io::Result<()> {
        // Perfetto shows only the last of several values at one time.
        match &mut counter.next {
            Some(next) if next.0 == time => next.1 = value,
            _ => {
                self.flush(counter)?;
                counter.next = Some((time, value));
            }
        }
        Ok(())
    }

    fn flush(&mut self, counter: &mut Counter<'_>) -> io::Result<()> {
        let Some((time, bytes)) = counter.next.take().filter(|next| counter.last != Some(next.1))
        else {
            return Ok(());
        };
        counter.last = Some(bytes);
        let event = self.event("C", counter.name, 0, time);
        self.put(&Event { args: Some(Args::Counter { bytes }), ..event })
    }
}

/// A counter with the value that was written last, and the next one.
struct Counter<'a> {
    name: &'a str,
    last: Option<u64>,
    next: Option<(i64, u64)>,
}

impl<'a> Counter<'a> {
    fn new(name: &'a str) -> Self {
        Self { name, last: None, next: None }
    }
}

/// The time of slots. The state before the window has the time of the first event.
fn time(target: Target<'_>, slot: u32) -> i64 {
    let trace = target.trace();
    match &trace.clock {
        Some(clock) => time_of(trace, slot).unwrap_or(clock.start.0),
        None => i64::from(slot),
    }
}

pub(super) async fn write(
    target: Target<'_>,
    out: &mut (dyn Write + Send),
    budget: &mut Budget,
) -> io::Result<()> {
    write!(out, "{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[")?;
    // Perfetto treats process 0 as no process.
    let place = TracePlace { pid: target.device() + 1, origin: 0, follows: false };
    events(target, place, out, budget).await?;
    writeln!(out, "\n]}}")
}

/// Writes the events of a device, with commas between them.
pub(super) async fn events(
    target: Target<'_>,
    place: TracePlace,
    out: &mut (dyn Write + Send),
    budget: &mut Budget,
) -> io::Result<()> {
    let (trace, snapshot) = (target.trace(), target.snapshot());
    let TracePlace { pid, origin, follows } = place;
    let mut writer = Writer { out, pid, origin, comma: if follows { "," } else { "" } };
    let name = format!("{} of {}", device_name(target.device()), target.path);
    writer.name("process_name", 0, name)?;
    for band in [BandKind::Requested, BandKind::Active, BandKind::Allocated, BandKind::Reserved] {
        let series = band.series(target, budget).await;
        let mut counter = Counter::new(band.name());
        for slot in 0..trace.slots() {
            writer.count(&mut counter, time(target, slot), series.at(slot))?;
            budget.charge(SLOT_COST).await;
        }
        writer.flush(&mut counter)?;
    }
    categories(target, &mut writer, budget).await?;
    largest_free(target, &mut writer, budget).await?;
    phases(target, &mut writer, budget).await?;
    if trace.clock.is_some() {
        for range in named_ranges(snapshot) {
            let name = snapshot.text(range.name);
            let mut event = writer.event("X", &name, FIRST_LANE + range.lane, range.start.0);
            event.dur = Some(range.end.0 - range.start.0);
            writer.put(&event)?;
        }
    }
    for oom in &trace.ooms {
        let mut event = writer.event("i", "out of memory", 0, time(target, oom.event.0 + 1));
        event.s = Some("p");
        event.args = Some(Args::OutOfMemory {
            event: oom.event.0,
            requested: oom.requested.0,
            device_free: oom.device_free.map(|b| b.0),
        });
        writer.put(&event)?;
    }
    Ok(())
}

/// A counter of requested bytes for each category that has any.
async fn categories(
    target: Target<'_>,
    writer: &mut Writer<'_>,
    budget: &mut Budget,
) -> io::Result<()> {
    let (trace, found) = (target.trace(), target.entry.categories(target.index));
    let names = Category::ALL.map(|category| format!("requested_bytes, {}", category.name()));
    let mut counters = Category::ALL.map(|category| Counter::new(&names[category as usize]));
    let mut bytes = Category::ALL.map(|_| 0u64);
    for slot in 0..trace.slots() {
        budget.charge(SLOT_COST).await;
        let mut is_changed = Category::ALL.map(|_| false);
        for change in trace.changes_at(slot) {
            let category = found.get(change.block()).category as usize;
            let size = trace.blocks[change.block() as usize].bytes.0;
            is_changed[category] = true;
            let bytes = &mut bytes[category];
            *bytes =
                if change.enters() { bytes.wrapping_add(size) } else { bytes.wrapping_sub(size) };
        }
        for category in (0..bytes.len()).filter(|&category| is_changed[category]) {
            writer.count(&mut counters[category], time(target, slot), bytes[category])?;
        }
    }
    counters.iter_mut().try_for_each(|counter| writer.flush(counter))
}

/// A counter of the largest free range for each pool, stream and size class.
async fn largest_free(
    target: Target<'_>,
    writer: &mut Writer<'_>,
    budget: &mut Budget,
) -> io::Result<()> {
    let slots = target.trace().slots();
    for (of, _) in by_most(target.entry.largest_free(target.index), slots) {
        let name = format!("largest free, {}", free_kind(target.snapshot(), of.kind));
        let mut counter = Counter::new(&name);
        for &(slot, bytes) in of.changes() {
            writer.count(&mut counter, time(target, slot), bytes)?;
            budget.charge(SLOT_COST).await;
        }
        writer.flush(&mut counter)?;
    }
    Ok(())
}

/// Steps or repetitions, and their phases, as slices on two tracks.
async fn phases(
    target: Target<'_>,
    writer: &mut Writer<'_>,
    budget: &mut Budget,
) -> io::Result<()> {
    let report = phases::phases(target, None, budget).await;
    if report.steps.is_empty() && report.outside.is_empty() {
        return Ok(());
    }
    let [steps, phases] = PHASES;
    let [word, words] = report.step_words;
    writer.name("thread_name", steps, words.to_owned())?;
    writer.name("thread_name", phases, "phases".to_owned())?;
    // The state after an event lasts until the next one, so slices end where the next begins.
    let at = |event: u32| time(target, event.saturating_add(1).min(target.trace().slots() - 1));
    for step in &report.steps {
        let name = format!("{word} {}", step.step);
        let begin = at(step.begin);
        let event = writer.event("X", &name, steps, begin);
        writer.put(&Event { dur: Some(at(step.end) - begin), ..event })?;
    }
    let of_steps = report.steps.iter().flat_map(|step| &step.phases);
    for phase in of_steps.chain(&report.outside) {
        let begin = at(phase.begin);
        let event = writer.event("X", phase.phase, phases, begin);
        let (peak_bytes, peak_event) = (phase.peak_bytes, phase.peak_event);
        let reserved_growth = phase.reserved_growth;
        let args = Some(Args::Phase { peak_bytes, peak_event, reserved_growth });
        writer.put(&Event { dur: Some(at(phase.end) - begin), args, ..event })?;
    }
    Ok(())
}
