//! Streams and events, which are those of the runtime.

#![expect(unsafe_code, reason = "exported functions of the driver")]

use super::context;
use crate::abi::api;
use crate::device::current_device;
use crate::errors::{SUCCESS, code};
use crate::runtime::timeline::{Stream, synchronize, timeline};
use crate::tables::put;

api! {
    /// Makes a stream.
    fn cuStreamCreate(place: *mut u64, flags: u32) -> i32 {
        cuStreamCreateWithPriority(place, flags, 0)
    }

    /// Makes a stream.
    fn cuStreamCreateWithPriority(place: *mut u64, flags: u32, priority: i32) -> i32 {
        let stream = Stream { device: current_device(), priority: priority.clamp(-5, 0), flags };
        put(place, timeline().add_stream(stream));
        SUCCESS
    }

    /// Destroys a stream.
    fn cuStreamDestroy_v2(stream: u64) -> i32 { code(timeline().remove_stream(stream)) }

    /// Succeeds for a known stream: all work is done.
    fn cuStreamQuery(stream: u64) -> i32 { code(timeline().stream(stream).map(drop)) }

    /// Waits for the work of a stream.
    fn cuStreamSynchronize(stream: u64) -> i32 {
        let result = timeline().stream(stream).map(drop);
        synchronize();
        code(result)
    }

    /// A stream waits for an event.
    fn cuStreamWaitEvent(stream: u64, event: u64, _flags: u32) -> i32 {
        code(timeline().wait_event(stream, event))
    }

    /// Writes the context of a stream.
    fn cuStreamGetCtx(stream: u64, place: *mut u64) -> i32 {
        code(timeline().stream(stream).map(|stream| put(place, context(stream.device))))
    }

    /// Writes 1 during a capture.
    fn cuStreamIsCapturing(stream: u64, capturing: *mut i32) -> i32 {
        let capture = timeline().capture(stream);
        code(capture.map(|capture| put(capturing, i32::from(capture.is_some()))))
    }

    /// Makes an event.
    fn cuEventCreate(place: *mut u64, flags: u32) -> i32 {
        put(place, timeline().add_event(flags));
        SUCCESS
    }

    /// Destroys an event.
    fn cuEventDestroy_v2(event: u64) -> i32 { code(timeline().remove_event(event)) }

    /// Records an event.
    fn cuEventRecord(event: u64, stream: u64) -> i32 { code(timeline().record(event, stream)) }

    /// Fails while an event is pending.
    fn cuEventQuery(event: u64) -> i32 { code(timeline().query(event)) }

    /// Waits for an event.
    fn cuEventSynchronize(event: u64) -> i32 { code(timeline().wait_for(event)) }

    /// Writes the milliseconds between two events.
    fn cuEventElapsedTime_v2(milliseconds: *mut f32, start: u64, end: u64) -> i32 {
        code(timeline().elapsed(start, end).map(|time| put(milliseconds, time)))
    }

    /// Writes the milliseconds between two events.
    fn cuEventElapsedTime(milliseconds: *mut f32, start: u64, end: u64) -> i32 {
        cuEventElapsedTime_v2(milliseconds, start, end)
    }
}
