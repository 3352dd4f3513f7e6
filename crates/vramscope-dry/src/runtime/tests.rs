//! The runtime by its exported functions.

#![expect(unsafe_code, reason = "calls of exported functions")]

use super::copy::{
    REAL, cudaMemcpy, cudaMemcpy2D, cudaMemset, dry_next, dry_next_clear, dry_reads,
};
use super::event::{
    cudaEventCreateWithFlags, cudaEventDestroy, cudaEventElapsedTime, cudaEventQuery,
    cudaEventRecord, cudaEventSynchronize,
};
use super::graph::{
    cudaGraphAddEmptyNode, cudaGraphDestroy, cudaGraphGetNodes, cudaGraphNodeGetType,
    cudaGraphRetainUserObject, cudaUserObjectCreate, cudaUserObjectRelease,
};
use super::memory::{
    cudaFree, cudaFreeHost, cudaHostAlloc, cudaIpcGetMemHandle, cudaMalloc, cudaMemGetInfo,
};
use super::properties::{cudaGetDevice, cudaGetDeviceProperties_v2, cudaSetDevice};
use super::status::{cudaGetErrorString, cudaGetLastError, cudaPeekAtLastError};
use super::stream::{
    cudaLaunchHostFunc, cudaStreamBeginCapture, cudaStreamCreateWithPriority, cudaStreamDestroy,
    cudaStreamEndCapture, cudaStreamGetCaptureInfo_v2, cudaStreamGetPriority,
    cudaStreamIsCapturing, cudaStreamQuery, cudaStreamSynchronize, cudaStreamWaitEvent,
};
use crate::device::is_mapped;
use crate::device::python::dry_set_event_lag;
use crate::errors::{
    ILLEGAL_STATE, INVALID_DEVICE, INVALID_HANDLE, INVALID_VALUE, NOT_READY, NOT_SUPPORTED,
    OUT_OF_MEMORY,
};
use std::ffi::CStr;
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The lag of events and the wait for all work concern all tests.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls a function that writes one value and succeeds.
fn get<T: Default>(call: impl FnOnce(*mut T) -> i32) -> T {
    let mut value = T::default();
    assert_eq!(call(&raw mut value), 0);
    value
}

/// A new stream.
fn stream() -> u64 {
    // SAFETY: the place is valid.
    get(|place| unsafe { cudaStreamCreateWithPriority(place, 1, 0) })
}

/// A new event.
fn event() -> u64 {
    // SAFETY: the place is valid.
    get(|place| unsafe { cudaEventCreateWithFlags(place, 0) })
}

/// New memory of a device.
fn allocate(bytes: usize) -> u64 {
    // SAFETY: the place is valid.
    get(|place| unsafe { cudaMalloc(place, bytes) })
}

/// The text of an error.
fn text(code: i32) -> &'static str {
    // SAFETY: the function returns a text that lives forever.
    unsafe { CStr::from_ptr(cudaGetErrorString(code)) }.to_str().unwrap()
}

#[test]
fn failures_stay_until_they_are_read() {
    // SAFETY: the places are valid.
    unsafe {
        let mut address = 5;
        assert_eq!(cudaMalloc(&raw mut address, 1 << 50), OUT_OF_MEMORY);
        assert_eq!(address, 0);
        assert_eq!(cudaPeekAtLastError(), OUT_OF_MEMORY);
        assert_eq!(cudaGetLastError(), OUT_OF_MEMORY);
        assert_eq!(cudaGetLastError(), 0);
        assert_eq!(cudaSetDevice(99), INVALID_DEVICE);
        assert_eq!(get(|place| cudaGetDevice(place)), 0);
        assert_eq!(cudaIpcGetMemHandle(), NOT_SUPPORTED);
    }
    assert_eq!(text(OUT_OF_MEMORY), "out of memory");
    assert_eq!(text(INVALID_DEVICE), "invalid device ordinal");
    assert_eq!(text(NOT_READY), "device not ready");
    assert_eq!(text(NOT_SUPPORTED), "operation not supported");
    assert_eq!(text(123_456), "unrecognized error code");
}

#[test]
fn small_copies_are_real_and_large_ones_give_zeros() {
    assert!(is_mapped());
    let device = allocate(2 * REAL) as *mut u8;
    let from: Vec<u8> = (0..=REAL).map(|index| index as u8 | 1).collect();
    let mut to = vec![7; from.len()];
    // SAFETY: the ranges are valid.
    unsafe {
        assert_eq!(cudaMemcpy(device, from.as_ptr(), REAL, 1), 0);
        let reads = dry_reads();
        assert_eq!(cudaMemcpy(to.as_mut_ptr(), device, REAL, 2), 0);
        assert!(dry_reads() > reads);
        assert_eq!(to[..REAL], from[..REAL]);
        assert_eq!(to[REAL], 7);
        assert_eq!(cudaMemcpy(to.as_mut_ptr(), device, REAL + 1, 2), 0);
        assert!(to.iter().all(|&byte| byte == 0));
        // Copies to the device: one byte more than is copied.
        assert_eq!(cudaMemset(device, 9, REAL), 0);
        assert_eq!(cudaMemcpy(device, from.as_ptr(), REAL + 1, 1), 0);
        assert_eq!(cudaMemcpy(to.as_mut_ptr(), device, REAL, 2), 0);
        assert!(to[..REAL].iter().all(|&byte| byte == 9));
        assert_eq!(cudaFree(device as u64), 0);
    }
}

#[test]
fn freed_memory_is_zeros() {
    // No chunk has room for it. Other tests take the end of its addresses first.
    let device = allocate(3 << 30) as *mut u8;
    let mut to = [1_u8; 16];
    // SAFETY: the ranges are valid.
    unsafe {
        assert_eq!(cudaMemset(device, 9, 16), 0);
        assert_eq!(cudaFree(device as u64), 0);
        assert_eq!(cudaMemcpy(to.as_mut_ptr(), device, 16, 2), 0);
        assert_eq!(to, [0; 16]);
        assert_eq!(cudaFree(device as u64), INVALID_VALUE);
        cudaGetLastError();
    }
}

#[test]
fn rows_are_copied_with_their_distances() {
    let device = allocate(64) as *mut u8;
    let from: Vec<u8> = (0..12).collect();
    let mut to = [99_u8; 6];
    // SAFETY: the ranges are valid.
    unsafe {
        assert_eq!(cudaMemset(device, 50, 64), 0);
        assert_eq!(cudaMemcpy2D(device, 8, from.as_ptr(), 4, 3, 3, 1), 0);
        assert_eq!(cudaMemcpy2D(to.as_mut_ptr(), 2, device, 8, 2, 3, 2), 0);
        assert_eq!(to, [0, 1, 4, 5, 8, 9]);
        assert_eq!(cudaFree(device as u64), 0);
    }
}

#[test]
fn next_small_copy_to_the_host_finds_the_count() {
    let device = allocate(64) as *mut u8;
    let (mut small, mut large) = ([0_u8; 8], [1_u8; 9]);
    dry_next(0x1234);
    dry_next(5);
    // SAFETY: the ranges are valid.
    unsafe {
        assert_eq!(cudaMemcpy(large.as_mut_ptr(), device, 9, 2), 0);
        assert_eq!(large, [0; 9]);
        assert_eq!(cudaMemcpy(small.as_mut_ptr(), device, 4, 2), 0);
        assert_eq!(u64::from_ne_bytes(small), 0x1234);
        assert_eq!(dry_next_clear(), 1);
        assert_eq!(dry_next_clear(), 0);
        assert_eq!(cudaMemcpy(small.as_mut_ptr(), device, 8, 2), 0);
        assert_eq!(small, [0; 8]);
        assert_eq!(cudaFree(device as u64), 0);
    }
}

#[test]
fn pinned_memory_of_the_host_belongs_to_no_device() {
    // SAFETY: the place is valid.
    unsafe {
        let host: u64 = get(|place| cudaHostAlloc(place, 100, 0));
        assert_eq!(host % 4096, 0);
        let mut attributes = [0_u64; 11];
        let place = attributes.as_mut_ptr().cast();
        assert_eq!(super::memory::cudaPointerGetAttributes(place, host + 99), 0);
        assert_eq!((attributes[0] as i32, attributes[1], attributes[2]), (1, host + 99, host + 99));
        assert_eq!(cudaFreeHost(host), 0);
        assert_eq!(super::memory::cudaPointerGetAttributes(place, host), 0);
        assert_eq!((attributes[0] as i32, (attributes[0] >> 32) as i32), (0, -1));
        assert_eq!(cudaFreeHost(host), INVALID_VALUE);
        cudaGetLastError();
        let device = allocate(1);
        assert_eq!(super::memory::cudaPointerGetAttributes(place, device), 0);
        assert_eq!((attributes[0] as i32, attributes[1]), (2, device));
        assert_eq!(cudaFree(device), 0);
    }
}

#[test]
fn streams_have_priorities_until_they_are_destroyed() {
    // SAFETY: the places are valid.
    unsafe {
        let stream: u64 = get(|place| cudaStreamCreateWithPriority(place, 1, -3));
        assert_eq!(get(|place| cudaStreamGetPriority(stream, place)), -3);
        assert_eq!(get(|place| cudaStreamGetPriority(0, place)), 0);
        assert_eq!(cudaStreamQuery(stream), 0);
        assert_eq!(cudaStreamDestroy(stream), 0);
        assert_eq!(cudaStreamQuery(stream), INVALID_HANDLE);
        assert_eq!(cudaStreamDestroy(stream), INVALID_HANDLE);
        cudaGetLastError();
    }
}

#[test]
fn events_are_pending_for_the_lag_or_until_the_host_waits() {
    let _alone = alone();
    let event = event();
    // SAFETY: the handles are known.
    unsafe {
        assert_eq!(cudaEventQuery(event), 0);
        dry_set_event_lag(2);
        assert_eq!(cudaEventRecord(event, 0), 0);
        assert_eq!([0; 3].map(|_| cudaEventQuery(event)), [NOT_READY, NOT_READY, 0]);
        assert_eq!(cudaEventRecord(event, 0), 0);
        assert_eq!(cudaStreamSynchronize(0), 0);
        assert_eq!(cudaEventQuery(event), 0);
        assert_eq!(cudaEventRecord(event, 0), 0);
        assert_eq!(cudaEventQuery(event), NOT_READY);
        assert_eq!(cudaEventSynchronize(event), 0);
        assert_eq!(cudaEventQuery(event), 0);
        dry_set_event_lag(0);
        assert_eq!(cudaEventDestroy(event), 0);
        assert_eq!(cudaEventRecord(event, 0), INVALID_HANDLE);
        cudaGetLastError();
    }
}

#[test]
fn elapsed_time_is_that_of_the_host() {
    let [start, end] = [0; 2].map(|_| event());
    let mut time = 0.0;
    // SAFETY: the handles are known and the place is valid.
    unsafe {
        assert_eq!(cudaEventRecord(start, 0), 0);
        assert_eq!(cudaEventElapsedTime(&raw mut time, start, end), INVALID_HANDLE);
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert_eq!(cudaEventRecord(end, 0), 0);
        assert_eq!(cudaEventElapsedTime(&raw mut time, start, end), 0);
        assert!(time >= 5.0);
        assert_eq!(cudaEventElapsedTime(&raw mut time, end, start), 0);
        assert!(time <= -5.0);
        cudaGetLastError();
    }
}

#[test]
fn streams_that_wait_for_an_event_join_its_capture() {
    let [first, second] = [0; 2].map(|_| stream());
    let event = event();
    // SAFETY: the handles are known and the places are valid.
    unsafe {
        let capturing = |stream| get(|place: *mut i32| cudaStreamIsCapturing(stream, place));
        assert_eq!(cudaStreamBeginCapture(first, 0), 0);
        assert_eq!(cudaStreamBeginCapture(first, 0), ILLEGAL_STATE);
        assert_eq!(cudaEventRecord(event, first), 0);
        assert_eq!([first, second, 0].map(capturing), [1, 0, 0]);
        assert_eq!(cudaStreamWaitEvent(second, event, 0), 0);
        assert_eq!([first, second, 0].map(capturing), [1, 1, 0]);
        let info = |stream| {
            let (mut state, mut number, mut graph) = (0, 0, 0);
            let places = (&raw mut state, &raw mut number, &raw mut graph);
            let (null, count) = (null_mut(), null_mut());
            let result =
                cudaStreamGetCaptureInfo_v2(stream, places.0, places.1, places.2, null, count);
            assert_eq!(result, 0);
            (state, number, graph)
        };
        assert_eq!(info(first), info(second));
        let (_, number, graph) = info(first);
        assert!(number > 0);
        assert_eq!(get(|place| cudaStreamEndCapture(first, place)), graph);
        assert_eq!([first, second, 0].map(capturing), [0, 0, 0]);
        assert_eq!(info(second), (0, 0, 0));
        // The event is older than the end of the capture.
        assert_eq!(cudaStreamWaitEvent(second, event, 0), 0);
        assert_eq!(capturing(second), 0);
        let mut none = 5_u64;
        assert_eq!(cudaStreamEndCapture(first, &raw mut none), ILLEGAL_STATE);
        assert_eq!(none, 0);
        cudaGetLastError();
        assert_eq!(cudaGraphDestroy(graph), 0);
    }
}

#[test]
fn graph_has_the_captured_work_and_the_added_nodes() {
    let stream = stream();
    // SAFETY: the handles are known and the places are valid.
    unsafe {
        assert_eq!(cudaStreamBeginCapture(stream, 0), 0);
        let graph = get(|place| cudaStreamEndCapture(stream, place));
        let empty: u64 = get(|place| cudaGraphAddEmptyNode(place, graph, null_mut(), 0));
        assert_eq!(get(|count| cudaGraphGetNodes(graph, null_mut(), count)), 2_usize);
        let (mut nodes, mut count) = ([1_u64; 3], 3);
        assert_eq!(cudaGraphGetNodes(graph, nodes.as_mut_ptr(), &raw mut count), 0);
        assert_eq!((count, nodes[1], nodes[2]), (2, empty, 0));
        let kind = |node| get(|place: *mut i32| cudaGraphNodeGetType(node, place));
        assert_eq!([nodes[0], empty].map(kind), [0, 5]);
        assert_eq!(cudaGraphDestroy(graph), 0);
        assert_eq!(cudaGraphDestroy(graph), INVALID_VALUE);
        cudaGetLastError();
    }
}

#[test]
fn user_objects_live_as_long_as_their_graph() {
    use std::sync::atomic::{AtomicU64, Ordering};
    static DESTROYED: AtomicU64 = AtomicU64::new(0);
    unsafe extern "C" fn destroy(argument: u64) {
        DESTROYED.fetch_add(argument, Ordering::Relaxed);
    }
    let stream = stream();
    // SAFETY: the handles are known and the places are valid.
    unsafe {
        assert_eq!(cudaStreamBeginCapture(stream, 0), 0);
        let graph = get(|place| cudaStreamEndCapture(stream, place));
        let object: u64 = get(|place| cudaUserObjectCreate(place, 10, destroy, 1, 1));
        assert_eq!(cudaGraphRetainUserObject(graph, object, 1, 0), 0);
        assert_eq!(cudaUserObjectRelease(object, 1), 0);
        assert_eq!(DESTROYED.load(Ordering::Relaxed), 0);
        assert_eq!(cudaGraphDestroy(graph), 0);
        assert_eq!(DESTROYED.load(Ordering::Relaxed), 10);
    }
}

#[test]
fn functions_of_the_host_run_at_once_except_in_a_capture() {
    unsafe extern "C" fn add(place: u64) {
        // SAFETY: the test passes the address of a number.
        unsafe { *(place as *mut u32) += 1 };
    }
    let stream = stream();
    let mut calls = 0_u32;
    let place = &raw mut calls;
    // SAFETY: the handles are known, and the function gets the address of a number.
    unsafe {
        assert_eq!(cudaLaunchHostFunc(stream, add, place as u64), 0);
        assert_eq!(place.read(), 1);
        assert_eq!(cudaStreamBeginCapture(stream, 0), 0);
        assert_eq!(cudaLaunchHostFunc(stream, add, place as u64), 0);
        assert_eq!(place.read(), 1);
        let graph = get(|place| cudaStreamEndCapture(stream, place));
        assert_eq!(cudaGraphDestroy(graph), 0);
    }
}

#[test]
fn properties_are_those_of_the_settings() {
    let mut properties = [0_u8; 1032];
    // SAFETY: the place has the size of the layout of CUDA 12, the default.
    assert_eq!(unsafe { cudaGetDeviceProperties_v2(properties.as_mut_ptr(), 0) }, 0);
    let number = |at: usize| i32::from_ne_bytes(properties[at..at + 4].try_into().unwrap());
    assert!(properties.starts_with(b"NVIDIA H100 80GB HBM3\0"));
    assert_eq!([360, 364, 388, 584, 616].map(number), [9, 0, 132, 16, 50 << 20]);
    assert_eq!(u64::from_ne_bytes(properties[288..296].try_into().unwrap()), 85_017_493_504);
    // SAFETY: the function writes nothing for a device that is not there.
    assert_eq!(unsafe { cudaGetDeviceProperties_v2(null_mut(), 9) }, INVALID_DEVICE);
    // SAFETY: the function reads nothing.
    unsafe { cudaGetLastError() };
}

#[test]
fn threads_allocate_and_a_child_goes_on() {
    let (mut before, mut total) = (0, 0);
    // SAFETY: the places are valid.
    assert_eq!(unsafe { cudaMemGetInfo(&raw mut before, &raw mut total) }, 0);
    assert!(before < total);
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let (address, event) = (allocate(5 << 20), event());
                    // SAFETY: the handles are known.
                    let results = unsafe {
                        [cudaEventRecord(event, 0), cudaEventDestroy(event), cudaFree(address)]
                    };
                    assert_eq!(results, [0; 3]);
                }
            });
        }
        for _ in 0..20 {
            // SAFETY: the child calls only this library, which is made for forks, and ends.
            let child = unsafe { libc::fork() };
            if child == 0 {
                // A lock that a thread of the parent holds would hang it: the alarm ends it.
                // SAFETY: the calls are made for a child.
                unsafe {
                    libc::alarm(20);
                    let (mut address, mut event) = (0, 0);
                    let failed = cudaMalloc(&raw mut address, 3 << 20)
                        | cudaEventCreateWithFlags(&raw mut event, 0)
                        | cudaMemset(address as *mut u8, 1, 64)
                        | cudaFree(address);
                    libc::_exit(failed);
                }
            }
            let mut state = 0;
            // SAFETY: the place is valid.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut state, 0) }, child);
            assert!(libc::WIFEXITED(state) && libc::WEXITSTATUS(state) == 0, "{state:x}");
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}
