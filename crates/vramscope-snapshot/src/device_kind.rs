//! The kind of device that a snapshot is of, told by the file's content.
//!
//! PyTorch writes one format for all devices, and names none. What tells them apart is what their
//! allocators do differently: names of settings, of modules in call stacks, and on Ascend NPUs the
//! sizes of blocks. Where nothing tells, the device is one of CUDA.

use crate::events::Events;
use crate::frames::Frames;
use crate::ids::FrameId;
use crate::segments::Block;
use crate::snapshot::Snapshot;
use memchr::memmem::Finder;
use vramscope_pickle::{StrId, Strings};
use vramscope_units::Bytes;

/// The memory that a [`Device`](crate::Device) stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceKind {
    /// An Nvidia GPU, or a device that the file does not tell from one.
    #[default]
    Cuda,
    /// An AMD GPU: PyTorch built for ROCm.
    Rocm,
    /// An Intel GPU (`torch.xpu`).
    Xpu,
    /// An Ascend NPU (`torch_npu`).
    Npu,
    /// A device of `torch.mtia`.
    Mtia,
    /// Pinned host memory (since PyTorch 2.14, if recorded).
    Host,
}

impl DeviceKind {
    /// The name in JSON: `host`, or `gpu` for the memory of any accelerator.
    pub fn name(self) -> &'static str {
        if self.is_host() { "host" } else { "gpu" }
    }

    /// The name of the backend in JSON: `rocm`, `xpu`, `npu`, `mtia`. `None` for CUDA, which stays
    /// unsaid, and for the host.
    pub fn backend(self) -> Option<&'static str> {
        match self {
            Self::Cuda | Self::Host => None,
            Self::Rocm => Some("rocm"),
            Self::Xpu => Some("xpu"),
            Self::Npu => Some("npu"),
            Self::Mtia => Some("mtia"),
        }
    }

    /// The device's name in texts. `None` for CUDA, which stays unsaid, and for the host.
    pub fn word(self) -> Option<&'static str> {
        match self {
            Self::Cuda | Self::Host => None,
            Self::Rocm => Some("ROCm"),
            Self::Xpu => Some("Intel XPU"),
            Self::Npu => Some("Ascend NPU"),
            Self::Mtia => Some("MTIA"),
        }
    }

    /// The kind with a [`DeviceKind::backend`], or `cuda`.
    pub fn of_backend(name: &str) -> Option<Self> {
        match name {
            "cuda" => Some(Self::Cuda),
            "rocm" => Some(Self::Rocm),
            "xpu" => Some(Self::Xpu),
            "npu" => Some(Self::Npu),
            "mtia" => Some(Self::Mtia),
            _ => None,
        }
    }

    /// The device in a text about any program, without an article: `GPU`, `NPU`.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Cuda | Self::Rocm | Self::Xpu | Self::Host => "GPU",
            Self::Npu => "NPU",
            Self::Mtia => "MTIA",
        }
    }

    /// The Python module with the calls of `torch.cuda`.
    pub fn module(self) -> &'static str {
        match self {
            Self::Cuda | Self::Rocm | Self::Host => "torch.cuda",
            Self::Xpu => "torch.xpu",
            Self::Npu => "torch_npu.npu",
            Self::Mtia => "torch.mtia",
        }
    }

    /// Whether this is pinned host memory.
    pub fn is_host(self) -> bool {
        self == Self::Host
    }
}

/// Settings that only PyTorch for ROCm writes: those of CUDA with other names.
const ROCM_SETTINGS: [&str; 3] =
    ["PYTORCH_HIP_ALLOC_CONF", "release_lock_on_hipmalloc", "pinned_use_hip_host_register"];

/// A setting that only PyTorch for CUDA writes.
const CUDA_SETTING: &str = "release_lock_on_cudamalloc";

/// Bytes that `torch_npu` adds to each request before it rounds (`AddPadSize` in
/// `NPUCachingAllocator.cpp`). From Ascend 950 with CANN 9.1 on it adds none.
const NPU_PADDING: u64 = 32;

/// The share of blocks, in percent, that must have the padding.
const PADDED_PERCENT: usize = 90;

/// Fewer blocks tell nothing: a block can be larger than its request for other reasons.
const MIN_PADDED: usize = 8;

/// A block of an ordinary segment can be larger by a rest of at most this many bytes, which is not
/// split off (`should_split`). Such a block tells nothing. The padding is within the last MiB.
const MAX_REST: u64 = (1 << 20) + 1024;

/// What the file says about its devices.
pub(crate) struct Told {
    pub(crate) kind: DeviceKind,
    /// Bytes that the allocator adds to each request before it rounds.
    pub(crate) padding: Bytes,
}

/// Tells the kind of a file's devices. `has_workspaces`: the trace has events of `torch_npu`'s
/// workspace allocator.
pub(crate) fn tell(snapshot: &Snapshot, has_workspaces: bool) -> Told {
    let padding = Padding::of(&snapshot.blocks);
    let named = |kind| Told { kind, padding: Bytes(0) };
    let npu = |is_padded: bool| Told {
        kind: DeviceKind::Npu,
        padding: Bytes(if is_padded { NPU_PADDING } else { 0 }),
    };
    if has_workspaces {
        return npu(!padding.is_refuted());
    }
    let has_setting = |name: &&str| snapshot.settings.iter().any(|(key, _)| key == name);
    if ROCM_SETTINGS.iter().any(has_setting) {
        return named(DeviceKind::Rocm);
    }
    if has_setting(&CUDA_SETTING) {
        return named(DeviceKind::Cuda);
    }
    match of_frames(&snapshot.frames, &snapshot.strings) {
        Some(DeviceKind::Npu) => return npu(!padding.is_refuted()),
        Some(kind) => return named(kind),
        None => {}
    }
    // torch_npu writes neither. PyTorch writes settings since 2.3, and times since 2.2.
    let is_bare = snapshot.settings.is_empty() && !has_times(&snapshot.events);
    if is_bare && padding.is_shown() { npu(true) } else { named(DeviceKind::Cuda) }
}

fn has_times(events: &Events) -> bool {
    !events.is_empty() && events.time(events.len() as u32 - 1).is_some()
}

/// Blocks in use for whose requests the two roundings differ.
struct Padding {
    padded: usize,
    plain: usize,
    other: usize,
}

impl Padding {
    fn of(blocks: &[Block]) -> Self {
        let round = |bytes: u64| bytes.checked_next_multiple_of(512);
        let mut found = Self { padded: 0, plain: 0, other: 0 };
        for block in blocks.iter().filter(|b| b.state.is_active()) {
            let (size, request) = (Some(block.size.0), block.requested_size.0);
            let plain = round(request);
            let padded = request.checked_add(NPU_PADDING).and_then(round);
            if plain == padded {
                continue;
            }
            if size == padded {
                found.padded += 1;
            } else if size == plain {
                found.plain += 1;
            } else if size < padded || block.size.0 - request > MAX_REST {
                found.other += 1;
            }
        }
        found
    }

    /// Whether the blocks can only be those of an allocator that pads.
    fn is_shown(&self) -> bool {
        let all = self.padded + self.plain + self.other;
        self.padded >= MIN_PADDED && self.padded * 100 >= all * PADDED_PERCENT
    }

    /// Whether more blocks have the size without padding.
    fn is_refuted(&self) -> bool {
        self.plain > self.padded
    }
}

/// The backend that call stacks name: by a file of its Python module, or by a C++ namespace. `None`
/// if they name none, or several.
fn of_frames(frames: &Frames, strings: &Strings) -> Option<DeviceKind> {
    let files = [
        (Finder::new("/torch_npu/"), DeviceKind::Npu),
        (Finder::new("/torch/xpu/"), DeviceKind::Xpu),
        (Finder::new("/torch/mtia/"), DeviceKind::Mtia),
    ];
    let names = [
        (Finder::new("c10_npu::"), DeviceKind::Npu),
        (Finder::new("c10::xpu::"), DeviceKind::Xpu),
        (Finder::new("c10::hip::"), DeviceKind::Rocm),
    ];
    let mut seen = vec![false; strings.len()];
    let mut is_new = |id: StrId| !std::mem::replace(&mut seen[id.0 as usize], true);
    let mut found = None;
    for frame in (0..frames.len() as u32).map(|id| frames.get(FrameId(id))) {
        for (id, needles) in [(frame.file, &files), (frame.name, &names)] {
            if !is_new(id) {
                continue;
            }
            let text = strings.bytes(id);
            for (needle, kind) in needles {
                if needle.find(text).is_none() {
                    continue;
                }
                if found.is_some_and(|before| before != *kind) {
                    return None;
                }
                found = Some(*kind);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reader;
    use serde_json::{Value, json};

    fn read(root: &Value) -> Snapshot {
        let mut reader = Reader::default();
        reader.feed(root.to_string().as_bytes()).expect("JSON");
        reader.finish().expect("a snapshot").remove(0).snapshot
    }

    fn kind(root: &Value) -> DeviceKind {
        read(root).devices[0].kind
    }

    /// A snapshot with one event, of a frame.
    fn with_frame(name: &str, file: &str) -> Value {
        let frames = json!([{"name": name, "filename": file, "line": 7}]);
        let event = json!({"action": "alloc", "addr": 4096, "size": 100, "frames": frames});
        json!({"segments": [], "device_traces": [[event]]})
    }

    /// A snapshot with blocks of these requests and sizes.
    fn with_blocks(blocks: &[(u64, u64)], settings: &Value) -> Value {
        let mut address = 1 << 21;
        let rows: Vec<Value> = blocks
            .iter()
            .map(|&(requested, size)| {
                address += size;
                json!({"address": address - size, "size": size, "requested_size": requested,
                       "state": "active_allocated"})
            })
            .collect();
        let size = address - (1 << 21);
        let segment = json!({"device": 0, "address": 1 << 21, "total_size": size, "blocks": rows});
        json!({"segments": [segment], "device_traces": [], "allocator_settings": settings})
    }

    #[test]
    fn settings_tell_rocm() {
        let with = |key: &str| {
            let mut root = with_frame("f", "/train/a.py");
            root["allocator_settings"] = json!({key: false, "expandable_segments": false});
            root
        };
        for key in ROCM_SETTINGS {
            assert_eq!(kind(&with(key)), DeviceKind::Rocm, "{key}");
        }
        for key in ["release_lock_on_cudamalloc", "PYTORCH_CUDA_ALLOC_CONF", "max_split_size"] {
            assert_eq!(kind(&with(key)), DeviceKind::Cuda, "{key}");
        }
    }

    #[test]
    fn call_stacks_tell_backends() {
        let site = "/venv/site-packages";
        for (name, file, expected) in [
            ("empty", format!("{site}/torch_npu/npu/memory.py"), DeviceKind::Npu),
            ("c10_npu::NPUCachingAllocator::malloc()", "??".to_owned(), DeviceKind::Npu),
            ("empty_cache", format!("{site}/torch/xpu/memory.py"), DeviceKind::Xpu),
            ("c10::xpu::XPUCachingAllocator::malloc()", String::new(), DeviceKind::Xpu),
            ("synchronize", format!("{site}/torch/mtia/__init__.py"), DeviceKind::Mtia),
            ("c10::hip::HIPCachingAllocator::malloc()", String::new(), DeviceKind::Rocm),
            ("forward", "/train/torch_npu_compat.py".to_owned(), DeviceKind::Cuda),
            ("is_torch_npu_available", "/train/npu.py".to_owned(), DeviceKind::Cuda),
            ("c10::cuda::CUDACachingAllocator::malloc()", String::new(), DeviceKind::Cuda),
        ] {
            assert_eq!(kind(&with_frame(name, &file)), expected, "{name} {file}");
        }
    }

    #[test]
    fn call_stacks_of_two_backends_tell_none() {
        let mut root = with_frame("a", "/x/torch/xpu/memory.py");
        let other = with_frame("b", "/x/torch/mtia/memory.py");
        let event = other["device_traces"][0][0].clone();
        root["device_traces"][0].as_array_mut().expect("a trace").push(event);
        assert_eq!(kind(&root), DeviceKind::Cuda);
    }

    #[test]
    fn padded_blocks_tell_an_npu() {
        let none = json!({});
        let padded = [(512, 1024), (1 << 20, (1 << 20) + 512), (1000, 1536)];
        let eight: Vec<_> = padded.iter().cycle().take(8).copied().collect();
        let snapshot = read(&with_blocks(&eight, &none));
        assert_eq!((snapshot.devices[0].kind, snapshot.padding.0), (DeviceKind::Npu, 32));
        // Too few, two of ten without padding, and a file with settings.
        assert_eq!(kind(&with_blocks(&eight[1..], &none)), DeviceKind::Cuda);
        let mixed = [&eight[..], &[(512, 512), (1024, 1024)]].concat();
        assert_eq!(kind(&with_blocks(&mixed, &none)), DeviceKind::Cuda);
        let settings = json!({"max_split_size": -1});
        assert_eq!(kind(&with_blocks(&eight, &settings)), DeviceKind::Cuda);
        // Both roundings explain these.
        let plain: Vec<_> = [(100, 512), (400, 512)].iter().cycle().take(40).copied().collect();
        assert_eq!(kind(&with_blocks(&plain, &none)), DeviceKind::Cuda);
        // Plain rounding with a rest of 512 bytes explains a few, and the others are plain.
        let rests = [vec![(2048, 2048); 40], vec![(2048, 2560); 9]].concat();
        assert_eq!(kind(&with_blocks(&rests, &none)), DeviceKind::Cuda);
    }

    #[test]
    fn made_up_events_are_told_by_their_order_and_block() {
        let event = |action: &str, addr: u64| json!({"action": action, "addr": addr, "size": 4096});
        let read = |events: Vec<Value>| {
            let snapshot = read(&json!({"segments": [], "device_traces": [events]}));
            let actions =
                (0..snapshot.events.len() as u32).map(|row| snapshot.events.action(row).0);
            (snapshot.devices[0].kind, actions.collect::<Vec<u8>>())
        };
        let three =
            vec![event("workspace_snapshot", 8), event("segment_alloc", 8), event("alloc", 8)];
        assert_eq!(read(three.clone()), (DeviceKind::Npu, vec![11, 12, 13]));
        let four = [&three[..], &[event("alloc", 16)]].concat();
        assert_eq!(read(four).1, [11, 12, 13, 0]);
        let other = vec![event("workspace_snapshot", 8), event("segment_alloc", 16)];
        assert_eq!(read(other).1, [11, 3]);
        assert_eq!(read(vec![event("segment_alloc", 8), event("alloc", 8)]).1, [3, 0]);
    }
}
