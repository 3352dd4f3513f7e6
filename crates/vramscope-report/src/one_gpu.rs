//! Several processes of one GPU on one clock: what they reserve together.
//!
//! Each recording tells what its own process reserves, at the times of its own events. The sum is
//! known only while all of them were recorded. Nothing in a snapshot says which GPU it is of: the
//! user does, and recordings of different hosts are refused.

use crate::rank_of::rank_of;
use crate::target::Target;
use serde::Serialize;
use vramscope_trace::slicing::{Budget, strides};
use vramscope_units::{Bytes, Micros};

/// The part of the common time, in percent, from which a pause between two events is told.
const MIN_PAUSE_PERCENT: u64 = 10;

/// `vramscope.one-gpu/1`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OneGpu {
    /// The schema's name and version.
    pub schema: &'static str,
    /// Why the recordings cannot be compared; null if they can.
    pub declined: Option<String>,
    /// The memory of the GPU, from a file beside a snapshot; null if none has it.
    pub capacity: Option<Bytes>,
    /// The begin of the common time, in microseconds since 1970; null if declined.
    pub from_us: Option<Micros>,
    /// The length of the common time.
    pub length: Micros,
    /// The most that the processes reserve together.
    pub peak: Bytes,
    /// When they do so first, from the begin of the common time.
    pub peak_after: Micros,
    /// What nobody accounts for at the end of the common time: the driver's used memory without
    /// what the processes reserve. CUDA contexts, libraries and other programs. Null without the
    /// file beside the snapshot that was written first.
    pub unaccounted: Option<Bytes>,
    /// The processes, those with most reserved memory at the peak first.
    pub processes: Vec<ProcessRecord>,
}

/// One process in the common time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessRecord {
    /// The file's path.
    pub path: String,
    /// The rank in the path; null if there is none.
    pub rank: Option<u32>,
    /// The device's ordinal in the process.
    pub device: u32,
    /// `reserved_bytes` at the peak of the sum.
    pub reserved: Bytes,
    /// `active_bytes` at that time. The rest of the reserved memory is cached.
    pub active: Bytes,
    /// The highest `reserved_bytes`.
    pub highest: Bytes,
    /// The lowest `reserved_bytes`.
    pub lowest: Bytes,
    /// When that is reached first, from the begin of the common time.
    pub lowest_after: Micros,
    /// The longest time without an event of the allocator, from a tenth of the common time on.
    pub pause: Option<PauseRecord>,
}

/// A time in which a process neither allocates nor frees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PauseRecord {
    /// Its begin, from the begin of the common time.
    pub after: Micros,
    /// Its length.
    pub length: Micros,
    /// `reserved_bytes` meanwhile.
    pub reserved: Bytes,
    /// `active_bytes` meanwhile.
    pub active: Bytes,
}

/// A state of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessState {
    /// When it begins, in microseconds since 1970.
    pub time: i64,
    /// `reserved_bytes`.
    pub reserved: u64,
    /// `active_bytes`.
    pub active: u64,
}

/// The GPU, when the snapshot of a process was written, from the file beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// The memory of the GPU in bytes.
    pub total: u64,
    /// Free bytes, as the driver says.
    pub free: u64,
}

/// What is known of a process of the GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// The file's path.
    pub path: String,
    /// The device's ordinal in the process.
    pub device: u32,
    /// Where it ran, if known.
    pub host: Option<String>,
    /// The GPU at the end.
    pub measured: Option<Measured>,
    /// The states after each event, by time.
    pub states: Vec<ProcessState>,
}

impl Process {
    /// What a recording tells of its process; `None` without a clock.
    pub async fn of(target: Target<'_>, budget: &mut Budget) -> Option<Self> {
        let trace = target.trace();
        let clock = trace.clock.as_ref()?;
        let reserved = trace.reserved(target.snapshot(), budget).await;
        let active = &target.entry.carving(target.index).active;
        let mut states: Vec<ProcessState> = Vec::new();
        for part in strides(trace.device.events.len()) {
            budget.charge(2 * part.len() as u64).await;
            for event in part.start as u32..part.end as u32 {
                let time = clock.start.0 + clock.offset(event) as i64;
                let (reserved, active) = (reserved.at(event + 1), active.at(event + 1));
                states.push(ProcessState { time, reserved, active });
            }
        }
        let sidecar = target.entry.sidecar();
        let device = target.device();
        let measured = sidecar.and_then(|sidecar| {
            let of_device = sidecar.devices.iter().find(|memory| memory.device == device)?;
            Some(Measured { total: of_device.total_bytes, free: of_device.free_bytes })
        });
        Some(Self {
            path: target.path.to_owned(),
            device,
            host: sidecar.and_then(|sidecar| sidecar.host.clone()),
            measured,
            states,
        })
    }

    /// The state at a time of the recording.
    fn at(&self, time: i64) -> ProcessState {
        let after = self.states.partition_point(|state| state.time <= time);
        self.states[after.saturating_sub(1)]
    }

    /// The states within a time, the first of which begins with it.
    fn within(&self, from: i64, to: i64) -> impl Iterator<Item = ProcessState> {
        let next = self.states.partition_point(|state| state.time <= from);
        let end = self.states.partition_point(|state| state.time <= to);
        let first = ProcessState { time: from, ..self.at(from) };
        std::iter::once(first).chain(self.states[next..end.max(next)].iter().copied())
    }
}

/// Puts processes of one GPU on one clock. Each has at least one state.
pub fn one_gpu(processes: &[Process]) -> OneGpu {
    let mut record = OneGpu {
        schema: "vramscope.one-gpu/1",
        declined: None,
        capacity: processes.iter().find_map(|one| one.measured).map(|gpu| Bytes(gpu.total)),
        from_us: None,
        length: Micros(0),
        peak: Bytes(0),
        peak_after: Micros(0),
        unaccounted: None,
        processes: Vec::new(),
    };
    let time = match common_time(processes) {
        Ok(time) => time,
        Err(why) => return OneGpu { declined: Some(why), ..record },
    };
    let (from, to) = time;
    let (peak, at) = peak_of_sum(processes, time);
    record.from_us = Some(Micros(from));
    record.length = Micros(to - from);
    (record.peak, record.peak_after) = (Bytes(peak), Micros(at - from));
    record.unaccounted = unaccounted(processes, to);
    record.processes = processes.iter().map(|one| of_process(one, time, at)).collect();
    record.processes.sort_by(|a, b| (b.reserved, &a.path).cmp(&(a.reserved, &b.path)));
    record
}

/// The time in which all processes were recorded.
fn common_time(processes: &[Process]) -> Result<(i64, i64), String> {
    if processes.len() < 2 {
        return Err("One clock needs the recordings of two processes or more.".to_owned());
    }
    let mut hosts = processes.iter().filter_map(|one| Some((one.host.as_ref()?, &one.path)));
    if let Some((host, path)) = hosts.next()
        && let Some((other, its_path)) = hosts.find(|(other, _)| *other != host)
    {
        return Err(format!("{path} ran on {host}, and {its_path} on {other}."));
    }
    let begin = |one: &&Process| one.states.first().map_or(i64::MAX, |state| state.time);
    let end = |one: &&Process| one.states.last().map_or(i64::MIN, |state| state.time);
    let last_begin = processes.iter().max_by_key(begin).expect("two processes");
    let first_end = processes.iter().min_by_key(end).expect("two processes");
    let (from, to) = (begin(&last_begin), end(&first_end));
    if from > to {
        return Err(format!(
            "The recordings have no common time: {} ends before {} begins.",
            first_end.path, last_begin.path
        ));
    }
    Ok((from, to))
}

/// The highest sum of reserved bytes, and when it is reached first.
fn peak_of_sum(processes: &[Process], (from, to): (i64, i64)) -> (u64, i64) {
    let mut changes: Vec<(i64, i128)> = Vec::new();
    for process in processes {
        let mut before = 0;
        for state in process.within(from, to) {
            changes.push((state.time, i128::from(state.reserved) - before));
            before = i128::from(state.reserved);
        }
    }
    changes.sort_by_key(|change| change.0);
    let (mut sum, mut peak, mut at) = (0, 0, from);
    // The order of changes of one microsecond is not known: only what stays counts.
    for changes in changes.chunk_by(|a, b| a.0 == b.0) {
        sum += changes.iter().map(|change| change.1).sum::<i128>();
        if sum > peak {
            (peak, at) = (sum, changes[0].0);
        }
    }
    (u64::try_from(peak).unwrap_or(u64::MAX), at)
}

/// What the driver calls used when the first snapshot was written, without what all reserve.
fn unaccounted(processes: &[Process], to: i64) -> Option<Bytes> {
    let first = processes.iter().find(|one| one.states.last().is_some_and(|s| s.time == to))?;
    let gpu = first.measured?;
    let reserved: u64 = processes.iter().map(|one| one.at(to).reserved).sum();
    gpu.total.checked_sub(gpu.free)?.checked_sub(reserved).map(Bytes)
}

fn of_process(one: &Process, (from, to): (i64, i64), at: i64) -> ProcessRecord {
    let states: Vec<ProcessState> = one.within(from, to).collect();
    let lowest = states.iter().min_by_key(|state| state.reserved).expect("the first state");
    let ends = states.iter().skip(1).map(|state| state.time).chain([to]);
    let pauses = states.iter().zip(ends).map(|(state, end)| (end - state.time, state));
    let longest = pauses.max_by_key(|(length, state)| (*length, -state.time));
    let least = ((to - from).unsigned_abs()).saturating_mul(MIN_PAUSE_PERCENT) / 100;
    let is_long = |length: i64| length > 0 && length.unsigned_abs() >= least;
    let then = one.at(at);
    ProcessRecord {
        path: one.path.clone(),
        rank: rank_of(&one.path),
        device: one.device,
        reserved: Bytes(then.reserved),
        active: Bytes(then.active),
        highest: Bytes(states.iter().map(|state| state.reserved).max().unwrap_or(0)),
        lowest: Bytes(lowest.reserved),
        lowest_after: Micros(lowest.time - from),
        pause: longest.filter(|(length, _)| is_long(*length)).map(|(length, state)| PauseRecord {
            after: Micros(state.time - from),
            length: Micros(length),
            reserved: Bytes(state.reserved),
            active: Bytes(state.active),
        }),
    }
}

/// The peak in a sentence.
pub fn one_gpu_text(record: &OneGpu) -> String {
    if let Some(why) = &record.declined {
        return why.clone();
    }
    let of = record.capacity.map_or(String::new(), |bytes| format!(" of {bytes}"));
    let count = record.processes.len();
    let unaccounted = record.unaccounted.map_or(String::new(), |bytes| {
        format!(
            " At the end of the common time {bytes} are used by none of them: CUDA contexts, \
             libraries, other programs."
        )
    });
    format!(
        "One GPU, {count} processes: within the {} in which all were recorded, they reserve at \
         most {}{of}, after {}.{unaccounted}",
        record.length, record.peak, record.peak_after
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(path: &str, states: &[(i64, u64, u64)]) -> Process {
        let state = |&(time, reserved, active)| ProcessState { time, reserved, active };
        let states = states.iter().map(state).collect();
        Process { path: path.to_owned(), device: 0, host: None, measured: None, states }
    }

    /// The trainer reserves 30, then 70. The engine has 50, and sleeps meanwhile with 5.
    fn job() -> [Process; 2] {
        [
            process("trainer.pickle", &[(100, 10, 5), (200, 30, 30), (400, 70, 60), (900, 70, 0)]),
            process("engine.pickle", &[(0, 50, 40), (150, 50, 50), (399, 5, 1), (800, 50, 50)]),
        ]
    }

    #[test]
    fn sum_is_that_of_the_common_time() {
        let mut job = job();
        job[1].measured = Some(Measured { total: 200, free: 60 });
        let record = one_gpu(&job);
        assert_eq!((record.from_us, record.length), (Some(Micros(100)), Micros(700)));
        assert_eq!((record.peak, record.peak_after), (Bytes(120), Micros(700)), "70 + 50 at 800");
        assert_eq!((record.capacity, record.unaccounted), (Some(Bytes(200)), Some(Bytes(20))));
        let [trainer, engine] = &record.processes[..] else { panic!("two") };
        assert_eq!(
            (&*trainer.path, trainer.reserved, trainer.active),
            ("trainer.pickle", Bytes(70), Bytes(60))
        );
        assert_eq!((engine.lowest, engine.lowest_after), (Bytes(5), Micros(299)));
        assert_eq!((engine.highest, engine.reserved), (Bytes(50), Bytes(50)));
        let pause = engine.pause.expect("from 399 to 800");
        assert_eq!(
            (pause.after, pause.length, pause.reserved),
            (Micros(299), Micros(401), Bytes(5))
        );
    }

    #[test]
    fn memory_that_moves_within_a_microsecond_counts_once() {
        let job = [
            process("a", &[(0, 10, 0), (5, 0, 0), (9, 0, 0)]),
            process("b", &[(0, 0, 0), (5, 10, 0), (9, 10, 0)]),
        ];
        assert_eq!(one_gpu(&job).peak, Bytes(10));
    }

    #[test]
    fn declines_without_common_time_and_on_different_hosts() {
        let mut job = job();
        job[1].states.truncate(1);
        let declined = one_gpu(&job).declined.expect("the engine ends at 0");
        assert!(declined.contains("engine.pickle ends before trainer.pickle begins"), "{declined}");
        let mut job = self::job();
        for (one, host) in job.iter_mut().zip(["a", "b"]) {
            one.host = Some(host.to_owned());
        }
        let declined = one_gpu(&job).declined.expect("two hosts");
        assert_eq!(declined, "trainer.pickle ran on a, and engine.pickle on b.");
        assert!(one_gpu(&job[..1]).declined.is_some());
    }
}
