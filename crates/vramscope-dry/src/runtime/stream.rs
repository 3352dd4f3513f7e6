//! Streams and captures.

#![expect(unsafe_code, reason = "exported functions of the runtime")]

use super::status::status;
use super::timeline::{Stream, synchronize, timeline};
use crate::abi::api;
use crate::device::current_device;
use crate::errors::{Code, SUCCESS};
use crate::settings::settings;
use crate::tables::{put, succeed};
use std::cell::Cell;

/// A function for `cudaLaunchHostFunc`.
type HostFunction = unsafe extern "C" fn(u64);

/// A function for `cudaStreamAddCallback`.
type Callback = unsafe extern "C" fn(u64, i32, u64);

/// The places that a query of a capture writes to. Each can be null.
struct CapturePlaces {
    /// 0: no capture; 1: a capture.
    status: *mut i32,
    /// The number of the capture.
    number: *mut u64,
    /// The graph.
    graph: *mut u64,
    /// The nodes that the next node depends on: none.
    nodes: *mut u64,
    /// Their edges.
    edges: *mut u64,
    /// Their number.
    count: *mut usize,
}

/// Makes a stream of the current device and writes its handle.
///
/// # Safety
///
/// `place` is valid for a write.
unsafe fn create(place: *mut u64, flags: u32, priority: i32) -> Code {
    let stream = Stream { device: current_device(), priority, flags };
    // SAFETY: the caller promises the place.
    unsafe { put(place, timeline().add_stream(stream)) };
    SUCCESS
}

/// Writes the state of a stream's capture.
///
/// # Safety
///
/// Places are null or valid for writes.
unsafe fn capture_info(stream: u64, places: &CapturePlaces) -> Code {
    let capture = timeline().capture(stream);
    let found = capture.ok().flatten();
    // SAFETY: the caller promises the places.
    unsafe {
        put(places.status, i32::from(found.is_some()));
        put(places.number, found.map_or(0, |capture| capture.number));
        put(places.graph, found.map_or(0, |capture| capture.graph));
        put(places.nodes, 0);
        put(places.edges, 0);
        put(places.count, 0);
    }
    status(capture.map(drop))
}

succeed! {
    cudaStreamUpdateCaptureDependencies cudaStreamUpdateCaptureDependencies_v2
    cudaStreamAttachMemAsync cudaStreamSetAttribute cudaStreamCopyAttributes
    cudaCtxResetPersistingL2Cache
}

api! {
    /// Makes a stream.
    fn cudaStreamCreate(place: *mut u64) -> i32 { create(place, 0, 0) }

    /// Makes a stream.
    fn cudaStreamCreateWithFlags(place: *mut u64, flags: u32) -> i32 { create(place, flags, 0) }

    /// Makes a stream.
    fn cudaStreamCreateWithPriority(place: *mut u64, flags: u32, priority: i32) -> i32 {
        create(place, flags, priority.clamp(-5, 0))
    }

    /// Destroys a stream.
    fn cudaStreamDestroy(stream: u64) -> i32 { status(timeline().remove_stream(stream)) }

    /// Writes the priority of a stream.
    fn cudaStreamGetPriority(stream: u64, priority: *mut i32) -> i32 {
        status(timeline().stream(stream).map(|stream| put(priority, stream.priority)))
    }

    /// Writes the flags of a stream.
    fn cudaStreamGetFlags(stream: u64, flags: *mut u32) -> i32 {
        status(timeline().stream(stream).map(|stream| put(flags, stream.flags)))
    }

    /// Writes the number of a stream: its handle.
    fn cudaStreamGetId(stream: u64, number: *mut u64) -> i32 {
        status(timeline().stream(stream).map(|_| put(number, stream)))
    }

    /// Writes the device of a stream.
    fn cudaStreamGetDevice(stream: u64, device: *mut i32) -> i32 {
        status(timeline().stream(stream).map(|stream| put(device, stream.device)))
    }

    /// Succeeds for a known stream: all work is done.
    fn cudaStreamQuery(stream: u64) -> i32 { status(timeline().stream(stream).map(drop)) }

    /// Waits for the work of a stream.
    fn cudaStreamSynchronize(stream: u64) -> i32 {
        let result = timeline().stream(stream).map(drop);
        synchronize();
        status(result)
    }

    /// A stream waits for an event, and joins its capture.
    fn cudaStreamWaitEvent(stream: u64, event: u64, _flags: u32) -> i32 {
        status(timeline().wait_event(stream, event))
    }

    /// Writes 1 during a capture.
    fn cudaStreamIsCapturing(stream: u64, capturing: *mut i32) -> i32 {
        let capture = timeline().capture(stream);
        status(capture.map(|capture| put(capturing, i32::from(capture.is_some()))))
    }

    /// Begins a capture.
    fn cudaStreamBeginCapture(stream: u64, _mode: i32) -> i32 {
        status(timeline().begin_capture(stream, None))
    }

    /// Begins a capture into a graph.
    fn cudaStreamBeginCaptureToGraph(
        stream: u64, graph: u64, _nodes: *const u64, _edges: *const u64, _count: usize, _mode: i32,
    ) -> i32 {
        status(timeline().begin_capture(stream, Some(graph)))
    }

    /// Ends a capture and writes the graph.
    fn cudaStreamEndCapture(stream: u64, graph: *mut u64) -> i32 {
        let result = timeline().end_capture(stream);
        put(graph, result.unwrap_or(0));
        status(result.map(drop))
    }

    /// Writes the state of a capture. Before CUDA 13 the function has three parameters.
    fn cudaStreamGetCaptureInfo(
        stream: u64, state: *mut i32, number: *mut u64, graph: *mut u64, nodes: *mut u64,
        edges: *mut u64, count: *mut usize,
    ) -> i32 {
        if settings().cuda >= 13000 {
            return cudaStreamGetCaptureInfo_v3(stream, state, number, graph, nodes, edges, count);
        }
        let null = std::ptr::null_mut();
        cudaStreamGetCaptureInfo_v2(stream, state, number, null, null, std::ptr::null_mut())
    }

    /// Writes the state of a capture.
    fn cudaStreamGetCaptureInfo_v2(
        stream: u64, state: *mut i32, number: *mut u64, graph: *mut u64, nodes: *mut u64,
        count: *mut usize,
    ) -> i32 {
        let edges = std::ptr::null_mut();
        capture_info(stream, &CapturePlaces { status: state, number, graph, nodes, edges, count })
    }

    /// Writes the state of a capture.
    fn cudaStreamGetCaptureInfo_v3(
        stream: u64, state: *mut i32, number: *mut u64, graph: *mut u64, nodes: *mut u64,
        edges: *mut u64, count: *mut usize,
    ) -> i32 {
        capture_info(stream, &CapturePlaces { status: state, number, graph, nodes, edges, count })
    }

    /// Exchanges the capture mode of the thread.
    fn cudaThreadExchangeStreamCaptureMode(mode: *mut i32) -> i32 {
        thread_local!(static MODE: Cell<i32> = const { Cell::new(0) });
        *mode = MODE.replace(*mode);
        SUCCESS
    }

    /// Calls a function of the host. During a capture a graph would call it.
    fn cudaLaunchHostFunc(stream: u64, function: HostFunction, argument: u64) -> i32 {
        let capture = timeline().capture(stream);
        if let Ok(None) = capture {
            function(argument);
        }
        status(capture.map(drop))
    }

    /// Calls a function of the host.
    fn cudaStreamAddCallback(
        stream: u64, function: Callback, argument: u64, _flags: u32,
    ) -> i32 {
        function(stream, SUCCESS, argument);
        SUCCESS
    }
}
