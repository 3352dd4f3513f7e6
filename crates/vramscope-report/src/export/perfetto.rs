//! Chrome's JSON trace format for <https://ui.perfetto.dev>. Without a clock, one event takes one
//! microsecond.

use crate::device_name;
use crate::peak::BandKind;
use crate::{Target, time_of};
use serde::Serialize;
use std::io::{self, Write};
use vramscope_analysis::named_ranges;
use vramscope_analysis::slicing::Budget;

/// The cost of a slot of a band, in units of [`Budget`].
const SLOT_COST: u64 = 32;

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
    Process { name: String },
    Counter { bytes: u64 },
    OutOfMemory { device_free: Option<u64>, event: u32, requested: u64 },
}

struct Writer<'o> {
    out: &'o mut (dyn Write + Send),
    pid: u32,
    comma: &'static str,
}

impl Writer<'_> {
    fn put(&mut self, event: &Event<'_>) -> io::Result<()> {
        writeln!(self.out, "{}", self.comma)?;
        self.comma = ",";
        Ok(serde_json::to_writer(&mut *self.out, event)?)
    }

    fn event<'a>(&self, ph: &'static str, name: &'a str, tid: u32, ts: i64) -> Event<'a> {
        Event { ph, name, pid: self.pid, tid, ts, dur: None, s: None, args: None }
    }
}

pub(super) async fn write(
    target: Target<'_>,
    out: &mut (dyn Write + Send),
    budget: &mut Budget,
) -> io::Result<()> {
    let (trace, snapshot) = (target.trace(), target.snapshot());
    // The state before the window has the time of the first event.
    let time = |slot: u32| match &trace.clock {
        Some(clock) => time_of(trace, slot).unwrap_or(clock.start.0),
        None => i64::from(slot),
    };
    write!(out, "{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[")?;
    // Perfetto treats process 0 as no process.
    let mut writer = Writer { out, pid: target.device() + 1, comma: "" };
    let mut process = writer.event("M", "process_name", 0, 0);
    let name = format!("{} of {}", device_name(target.device()), target.path);
    process.args = Some(Args::Process { name });
    writer.put(&process)?;
    for band in [BandKind::Requested, BandKind::Active, BandKind::Allocated, BandKind::Reserved] {
        let series = band.series_sliced(target, budget).await;
        let mut last = None;
        for slot in 0..trace.slots() {
            let value = series.at(slot);
            // Perfetto shows only the last of several values at one time.
            let is_last = slot + 1 == trace.slots() || time(slot + 1) > time(slot) || slot == 0;
            if is_last && last != Some(value) {
                let mut event = writer.event("C", band.name(), 0, time(slot));
                event.args = Some(Args::Counter { bytes: value });
                writer.put(&event)?;
                last = Some(value);
            }
            budget.charge(SLOT_COST).await;
        }
    }
    if trace.clock.is_some() {
        for range in named_ranges(snapshot) {
            let name = snapshot.text(range.name);
            let mut event = writer.event("X", &name, range.lane + 1, range.start.0);
            event.dur = Some(range.end.0 - range.start.0);
            writer.put(&event)?;
        }
    }
    for oom in &trace.ooms {
        let mut event = writer.event("i", "out of memory", 0, time(oom.event.0 + 1));
        event.s = Some("p");
        event.args = Some(Args::OutOfMemory {
            event: oom.event.0,
            requested: oom.requested.0,
            device_free: oom.device_free.map(|b| b.0),
        });
        writer.put(&event)?;
    }
    writeln!(writer.out, "\n]}}")
}
