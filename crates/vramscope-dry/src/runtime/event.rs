//! Events.

#![expect(unsafe_code, reason = "exported functions of the runtime")]

use super::status::status;
use super::timeline::timeline;
use crate::abi::api;
use crate::errors::SUCCESS;
use crate::tables::put;

api! {
    /// Makes an event.
    fn cudaEventCreate(place: *mut u64) -> i32 { cudaEventCreateWithFlags(place, 0) }

    /// Makes an event.
    fn cudaEventCreateWithFlags(place: *mut u64, flags: u32) -> i32 {
        put(place, timeline().add_event(flags));
        SUCCESS
    }

    /// Destroys an event.
    fn cudaEventDestroy(event: u64) -> i32 { status(timeline().remove_event(event)) }

    /// Records an event.
    fn cudaEventRecord(event: u64, stream: u64) -> i32 { status(timeline().record(event, stream)) }

    /// Records an event.
    fn cudaEventRecordWithFlags(event: u64, stream: u64, _flags: u32) -> i32 {
        status(timeline().record(event, stream))
    }

    /// Fails while an event is pending.
    fn cudaEventQuery(event: u64) -> i32 { status(timeline().query(event)) }

    /// Waits for an event.
    fn cudaEventSynchronize(event: u64) -> i32 { status(timeline().wait_for(event)) }

    /// Writes the milliseconds between two events.
    fn cudaEventElapsedTime(milliseconds: *mut f32, start: u64, end: u64) -> i32 {
        status(timeline().elapsed(start, end).map(|time| put(milliseconds, time)))
    }

    /// Writes the milliseconds between two events.
    fn cudaEventElapsedTime_v2(milliseconds: *mut f32, start: u64, end: u64) -> i32 {
        cudaEventElapsedTime(milliseconds, start, end)
    }
}
