//! What is said about devices other than CUDA's.

use serde_json::{Value, json};
use vramscope_report::findings::of_device;
use vramscope_report::info::info;
use vramscope_report::summary::summarize;
use vramscope_report::what_if::why_no_model;
use vramscope_report::{DeviceKind, FileReader, LoadedFile, now};

const MIB: u64 = 1 << 20;

fn read(root: &[u8]) -> LoadedFile {
    let mut reader = FileReader::new("file", root.len() as u64);
    reader.feed(root).expect("a snapshot");
    reader.finish().expect("a snapshot")
}

fn of(action: &str, addr: u64, size: u64) -> Value {
    json!({"action": action, "addr": addr, "size": size, "frames": []})
}

fn oom(free: u64) -> Value {
    json!({"action": "oom", "device_free": free, "size": 128 * MIB, "frames": []})
}

/// A program that fails, gives 64 MiB back, and fails again, with so much free memory.
fn two_failures(settings: &Value, frees: [u64; 2]) -> Vec<u8> {
    let (first, second) = (1 << 30, 2 << 30);
    let events = json!([
        of("segment_alloc", first, 64 * MIB),
        of("alloc", first, 64 * MIB),
        of("segment_alloc", second, 64 * MIB),
        of("alloc", second, 64 * MIB),
        oom(frees[0]),
        of("free_requested", second, 64 * MIB),
        of("free_completed", second, 64 * MIB),
        of("segment_free", second, 64 * MIB),
        oom(frees[1]),
    ]);
    let block = json!({"address": first, "size": 64 * MIB, "requested_size": 64 * MIB,
                       "state": "active_allocated", "frames": []});
    let segment = json!({"device": 0, "address": first, "total_size": 64 * MIB,
                         "segment_type": "large", "blocks": [block]});
    let root = json!({"segments": [segment], "device_traces": [events],
                      "allocator_settings": settings});
    root.to_string().into_bytes()
}

/// The texts of the findings about failures.
fn told(file: &LoadedFile) -> String {
    let found = of_device(file.target(0, 0).expect("a device")).into_iter();
    let failures = found.filter(|entry| entry.record.kind.name() == "oom");
    failures.map(|entry| entry.record.text).collect()
}

const KEPT: &str = "PyTorch returned 64.00 MiB between the failure at #4 and that at #8, and the \
                    driver had no more free memory then: other memory has grown, or ROCm has kept \
                    what was returned.";

#[test]
fn rocm_may_keep_what_was_returned() {
    let rocm = json!({"release_lock_on_hipmalloc": false});
    let frees = [30 * MIB, 30 * MIB];
    let file = read(&two_failures(&rocm, frees));
    assert!(told(&file).contains(KEPT), "{}", told(&file));
    // The driver has more, and a GPU of CUDA.
    let rises = read(&two_failures(&rocm, [30 * MIB, 94 * MIB]));
    let cuda = read(&two_failures(&json!({}), frees));
    for other in [rises, cuda] {
        assert!(told(&other).contains("failed at #"), "{}", told(&other));
        assert!(!told(&other).contains("ROCm"), "{}", told(&other));
    }
}

#[test]
fn free_memory_of_intel_gpus_is_an_estimate() {
    let frame = json!([{"name": "empty", "filename": "/x/torch/xpu/memory.py", "line": 7}]);
    let mut root: Value = serde_json::from_slice(&two_failures(&json!({}), [MIB, MIB])).unwrap();
    root["device_traces"][0][1]["frames"] = frame;
    let file = read(root.to_string().as_bytes());
    assert!(told(&file).contains("On Intel GPUs the free memory is an estimate"), "{root}");
    assert!(!told(&read(&two_failures(&json!({}), [MIB, MIB]))).contains("estimate: PyTorch"));
}

#[test]
fn the_file_beside_a_snapshot_names_the_backend() {
    let kind = |sidecar: Value| {
        let mut file = read(&two_failures(&json!({}), [MIB, MIB]));
        file.entries[0].set_sidecar(sidecar.to_string().as_bytes());
        file.entries[0].traces[0].device.kind
    };
    for (sidecar, expected) in [
        (json!({"version": 1, "backend": "npu"}), DeviceKind::Npu),
        (json!({"version": 1, "backend": "xpu", "torch": "2.11.0"}), DeviceKind::Xpu),
        (json!({"version": 1, "torch": "2.9.1+rocm6.4"}), DeviceKind::Rocm),
        (json!({"version": 1, "torch": "2.9.1+xpu"}), DeviceKind::Xpu),
        (json!({"version": 1, "torch": "2.9.1+cu128"}), DeviceKind::Cuda),
        (json!({"version": 1, "torch": "2.9.1"}), DeviceKind::Cuda),
        (json!({"version": 1, "backend": "other"}), DeviceKind::Cuda),
        (json!({"version": 2, "backend": "npu"}), DeviceKind::Cuda),
    ] {
        assert_eq!(kind(sidecar.clone()), expected, "{sidecar}");
    }
}

#[test]
fn a_dump_beside_one_failure_shows_what_the_driver_kept() {
    let mut root: Value = serde_json::from_slice(&two_failures(&json!({}), [30 * MIB, 0])).unwrap();
    root["device_traces"][0].as_array_mut().unwrap().pop();
    let mut file = read(root.to_string().as_bytes());
    let device = json!({"device": 0, "name": "MI300X", "total_bytes": 1024 * MIB,
                        "free_bytes": 30 * MIB, "reserved_bytes": 64 * MIB,
                        "other_bytes": 930 * MIB});
    let sidecar = json!({"version": 1, "backend": "rocm", "devices": [device]});
    file.entries[0].set_sidecar(sidecar.to_string().as_bytes());
    assert!(told(&file).contains("the failure at #4 and the dump,"), "{}", told(&file));
}

#[test]
fn records_name_an_npu_and_the_model_declines() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../test_data/npu/n05_streams.pickle.gz");
    let file = read(&std::fs::read(path).expect("a file of test_data"));
    let reason = why_no_model(&file.entries[0].traces[0]).expect("no model");
    assert!(reason.contains("torch_npu"), "{reason}");
    let info = now(async |budget| info("file", &file.entries[0], budget).await);
    let device = &info.devices[0];
    assert_eq!((device.kind, device.backend), ("gpu", Some("npu")));
    assert_eq!(device.provenance.matches("not checked on a device").count(), 1);
    let summary = summarize("file", 0, &Ok(file));
    let device = &summary[0].devices[0];
    assert_eq!((device.kind, device.backend), ("gpu", Some("npu")));
    // Two workspaces: three events each, of which two have the names of others.
    let real = device.allocations_in_window;
    assert_eq!((device.actions["alloc"], device.actions["workspace_snapshot"]), (real + 2, 2));
    assert_eq!(device.coverage, "whole");
}
