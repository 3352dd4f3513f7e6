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

/// Bytes that torch_npu adds to each request before it rounds (`AddPadSize` in
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

/// Tells the kind of a file's devices. `has_workspaces`: the trace has events of torch_npu's
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
