//! The file beside a snapshot, which `vramscope.record` writes: what a snapshot lacks
//! (SIDECAR.md).
//!
//! Any program may have written it, so it is only data. A field of another kind than expected is
//! left out, and the others are used: a warning about the snapshot says so.

pub mod holders;
pub mod launch;

use self::holders::Holders;
use self::launch::Launch;
use crate::dry::DryRun;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use vramscope_inference::{MeasuredMemory, UseTrace};
use vramscope_snapshot::DeviceKind;
use vramscope_trace::Trace;
use vramscope_trace::slicing::Budget;

/// The end of the name of a sidecar.
pub const EXTENSION: &str = ".vramscope.json";

/// The largest sidecar that is read, in bytes. One with the tensors of a large model has a few MB.
pub const MAX_BYTES: u64 = 32 << 20;

/// Steps whose tensors are read: the last ones. Each takes a look at every block.
const MAX_STEPS: usize = 16;

/// Microseconds after the last event at which tensors of the recording may still be listed: a step
/// may end long after its last allocation.
const MAX_LATER_US: i64 = 600_000_000;

/// Blocks between two charges of the budget.
const STRIDE: usize = 1 << 14;

/// The version of the fields that this program knows.
const VERSION: u32 = 1;

/// The file beside a snapshot.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Sidecar {
    /// The version of the fields.
    pub version: u32,
    /// Why the snapshot was written: `step`, `oom`, `signal`, `end` or `call`.
    pub reason: Option<String>,
    /// The rank of the process.
    pub rank: Option<u32>,
    /// The number of processes of the job.
    pub world_size: Option<u32>,
    /// Where the process ran.
    pub host: Option<String>,
    /// What the command line says of an inference engine. The rest of it is not kept.
    #[serde(rename = "command", skip_serializing_if = "Launch::is_empty")]
    pub launch: Launch,
    /// The version of PyTorch.
    pub torch: Option<String>,
    /// The backend of the devices: `cuda`, `rocm`, `xpu`, `npu` or `mtia`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
    /// The version of CUDA that PyTorch was built with.
    pub cuda: Option<String>,
    /// The newest version of CUDA that the driver supports.
    pub driver: Option<String>,
    /// `PYTORCH_CUDA_ALLOC_CONF`.
    pub alloc_conf: Option<String>,
    /// The devices that the process used, when the snapshot was written.
    pub devices: Vec<DeviceMemory>,
    /// When steps ended.
    pub steps: Vec<StepEnd>,
    /// The tensors at the end of the last steps.
    pub tensors: Vec<TensorsAt>,
    /// What the operations of a traced step read and wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uses: Option<Box<UseTrace>>,
    /// Lines of source, by file and line number.
    pub sources: BTreeMap<String, BTreeMap<u32, String>>,
    /// Who holds the large live blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holders: Option<Box<Holders>>,
    /// What a dry run was of; `None` for a run on a device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dry: Option<Box<DryRun>>,
    /// The fields that cannot be used, each with the reason. They are as if they were absent.
    #[serde(skip)]
    pub left_out: Vec<String>,
}

/// The memory of a device when the snapshot was written, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceMemory {
    /// The device's ordinal.
    pub device: u32,
    /// The device's name.
    #[serde(default)]
    pub name: String,
    /// The memory of the device.
    pub total_bytes: u64,
    /// Free bytes, as the driver reported them.
    pub free_bytes: u64,
    /// Bytes that PyTorch had reserved in this process.
    pub reserved_bytes: u64,
    /// The rest: the CUDA context, libraries such as NCCL, other processes.
    pub other_bytes: u64,
    /// What `set_per_process_memory_fraction` leaves for PyTorch; null if no limit is known.
    #[serde(default)]
    pub limit_bytes: Option<u64>,
}

impl DeviceMemory {
    /// The figures, for claims and replays.
    pub fn measured(&self) -> MeasuredMemory {
        MeasuredMemory {
            total: self.total_bytes,
            reserved: self.reserved_bytes,
            free: self.free_bytes,
            limit: self.limit_bytes,
        }
    }
}

/// When a step ended.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct StepEnd {
    /// The step, as the program counts.
    pub step: u64,
    /// The time in microseconds since 1970.
    pub time_us: i64,
}

/// The tensors at the end of a step.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TensorsAt {
    /// The time in microseconds since 1970.
    pub time_us: i64,
    /// The tensors.
    pub tensors: Vec<Tensor>,
}

/// A tensor.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Tensor {
    /// The device's ordinal.
    pub device: u32,
    /// The address of its storage.
    pub address: u64,
    /// The bytes of its storage; 0 if they are not known.
    #[serde(default)]
    pub bytes: u64,
    /// What it is.
    #[serde(flatten)]
    pub record: TensorRecord,
}

/// A tensor in JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct TensorRecord {
    /// `parameter`, `buffer`, `gradient` or `optimizer_state`.
    pub kind: String,
    /// The name in the model: `layers.0.weight`.
    pub name: String,
    /// The shape.
    #[cfg_attr(feature = "typescript", ts(type = "number[]"))]
    pub shape: Vec<u64>,
    /// The type of its elements: `float32`.
    pub dtype: String,
}

impl TensorRecord {
    /// The tensor in words: `gradient layers.0.weight, bfloat16 [512, 256]`.
    pub fn text(&self) -> String {
        format!("{} {}", self.kind.replace('_', " "), self.short_text())
    }

    /// The tensor in words, without its kind: `layers.0.weight, bfloat16 [512, 256]`.
    pub fn short_text(&self) -> String {
        format!("{}, {} {}", self.name, self.dtype, self.shape_text())
    }

    /// The shape in words: `[512, 256]`.
    pub fn shape_text(&self) -> String {
        let shape: Vec<String> = self.shape.iter().map(u64::to_string).collect();
        format!("[{}]", shape.join(", "))
    }
}

/// The name of the sidecar of a snapshot: `rank0.vramscope.json` of `rank0.pickle`. `None` for a
/// path that is no snapshot's.
pub fn path_of(snapshot: &str) -> Option<String> {
    let plain = snapshot.strip_suffix(".gz").unwrap_or(snapshot);
    let endings = [".pickle", ".pkl", ".pt"];
    let stem = endings.iter().find_map(|ending| plain.strip_suffix(ending))?;
    (!stem.is_empty() && !stem.ends_with(['/', '\\'])).then(|| format!("{stem}{EXTENSION}"))
}

impl Sidecar {
    /// Reads a sidecar.
    ///
    /// # Errors
    /// Why nothing of it can be used.
    pub fn parse(json: &[u8]) -> Result<Self, String> {
        if json.len() as u64 > MAX_BYTES {
            return Err(format!("it has {} bytes, of at most {MAX_BYTES}", json.len()));
        }
        let (mut sidecar, left_out) = match Self::parse_whole(json) {
            Ok(whole) => (whole, Vec::new()),
            Err(reason) => Self::parse_fields(json).ok_or(reason)?,
        };
        if let Some(holders) = &mut sidecar.holders {
            holders.is_of_end = sidecar.reason.as_deref() == Some("end");
        }
        match sidecar.version {
            VERSION => Ok(Self { left_out, ..sidecar }),
            version => Err(format!("its version is {version}, expected {VERSION}")),
        }
    }

    /// Reads a sidecar without faults.
    fn parse_whole(json: &[u8]) -> Result<Self, String> {
        let sidecar: Self = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        sidecar.holders.as_ref().map_or(Ok(()), |holders| holders.check())?;
        sidecar.uses.as_ref().map_or(Ok(()), |uses| uses.check())?;
        Ok(sidecar)
    }

    /// Reads the fields that can be used, and says why the others cannot. `None` without fields.
    fn parse_fields(json: &[u8]) -> Option<(Self, Vec<String>)> {
        let mut fields: BTreeMap<String, &RawValue> = serde_json::from_slice(json).ok()?;
        let mut left_out = Vec::new();
        fields.retain(|name, value| {
            let alone = serde_json::to_vec(&BTreeMap::from([(name.as_str(), *value)]));
            let read = alone.map_err(|error| error.to_string());
            let Err(reason) = read.and_then(|alone| Self::parse_whole(&alone)) else { return true };
            left_out.push(format!("{name}: {reason}"));
            false
        });
        let rest = serde_json::to_vec(&fields).ok()?;
        Some((Self::parse_whole(&rest).ok()?, left_out))
    }

    /// The sidecar, if it may be of the recording with these traces.
    ///
    /// # Errors
    /// Its tensors are of a time long after the last event: it is of another recording.
    pub(crate) fn of_recording(self, traces: &[Trace]) -> Result<Self, String> {
        // A part of a recording ends early.
        let whole = traces.iter().filter(|trace| trace.device.excerpt.is_none());
        let clocks = whole.filter_map(|trace| trace.clock.as_ref());
        let end = clocks.map(|clock| clock.start.0.saturating_add_unsigned(clock.span())).max();
        let last = self.tensors.iter().map(|at| at.time_us).max();
        match (last, end) {
            (Some(last), Some(end)) if last > end.saturating_add(MAX_LATER_US) => {
                let hours = last.saturating_sub(end) / 3_600_000_000;
                Err(format!(
                    "its tensors are of a time {hours} hours after the last event, so it is of \
                     another recording"
                ))
            }
            _ => Ok(self),
        }
    }

    /// The kind of the process's devices: by the backend, or else by the build of PyTorch, as in
    /// `2.9.1+rocm6.4`.
    pub(crate) fn device_kind(&self) -> Option<DeviceKind> {
        if let Some(backend) = &self.backend {
            return DeviceKind::of_backend(backend);
        }
        let (_, build) = self.torch.as_ref()?.split_once('+')?;
        match build.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.') {
            "rocm" => Some(DeviceKind::Rocm),
            "xpu" => Some(DeviceKind::Xpu),
            _ => None,
        }
    }

    /// The memory of a device when the snapshot was written.
    pub fn device(&self, ordinal: u32) -> Option<&DeviceMemory> {
        self.devices.iter().find(|device| device.device == ordinal)
    }

    /// A line of source, without the space around it.
    pub fn source(&self, file: &str, line: u32) -> Option<&str> {
        let text = self.sources.get(file)?.get(&line)?.trim();
        (!text.is_empty()).then_some(text)
    }

    /// The tensors by the blocks that hold them. A tensor of a later step takes the place of one
    /// that had the block before.
    pub(crate) async fn tensors_by_block(
        &self,
        trace: &Trace,
        budget: &mut Budget,
    ) -> FxHashMap<u32, TensorRecord> {
        let mut found = FxHashMap::default();
        let Some(clock) = &trace.clock else { return found };
        let device = trace.device.device;
        for at in &self.tensors[self.tensors.len().saturating_sub(MAX_STEPS)..] {
            let mut by_address: FxHashMap<u64, &Tensor> = FxHashMap::default();
            for tensor in at.tensors.iter().filter(|tensor| tensor.device == device) {
                by_address.entry(tensor.address).or_insert(tensor);
            }
            let offset = u64::try_from(at.time_us.saturating_sub(clock.start.0));
            let slot = offset.map_or(0, |offset| clock.events_before(offset.saturating_add(1)));
            for (first, blocks) in (0..).step_by(STRIDE).zip(trace.blocks.chunks(STRIDE)) {
                for (index, block) in (first..).zip(blocks) {
                    if !block.is_live_at(slot) {
                        continue;
                    }
                    // A block does not hold a storage that is larger than it is.
                    let tensor = by_address.get(&block.address.0);
                    if let Some(tensor) = tensor.filter(|tensor| tensor.bytes <= block.bytes.0) {
                        found.insert(index, tensor.record.clone());
                    }
                }
                budget.charge(blocks.len() as u64).await;
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sidecar_has_the_name_of_its_snapshot() {
        let names = [
            (
                "runs/rank0_memory_snapshot.pickle",
                Some("runs/rank0_memory_snapshot.vramscope.json"),
            ),
            ("rank0.pickle.gz", Some("rank0.vramscope.json")),
            ("rank0.json", None),
            (".pickle", None),
            ("runs/.pickle", None),
        ];
        for (snapshot, wanted) in names {
            assert_eq!(path_of(snapshot).as_deref(), wanted, "{snapshot}");
        }
    }

    #[test]
    fn every_field_but_the_version_may_be_absent() {
        let sidecar = Sidecar::parse(br#"{"version": 1, "later": [1]}"#).expect("a sidecar");
        assert!(sidecar.devices.is_empty() && sidecar.source("a.py", 1).is_none());
        for (json, reason) in [
            (&b"{}"[..], "its version is 0, expected 1"),
            (b"{\"version\": 2}", "its version is 2, expected 1"),
            (b"[", "EOF while parsing a list at line 1 column 1"),
        ] {
            assert_eq!(Sidecar::parse(json).expect_err("no sidecar"), reason);
        }
    }

    #[test]
    fn a_field_that_cannot_be_used_is_left_out_alone() {
        let json = br#"{"version": 1, "devices": 3, "host": "node7", "steps": [{"step": 1}],
            "sources": {"/m.py": {"12": "y = f(x)"}}, "uses": {"storages": [1]}}"#;
        let sidecar = Sidecar::parse(json).expect("a sidecar");
        assert_eq!(sidecar.host.as_deref(), Some("node7"));
        assert_eq!(sidecar.source("/m.py", 12), Some("y = f(x)"));
        let names = sidecar.left_out.iter().map(|one| one.split(':').next().unwrap_or_default());
        assert_eq!(names.collect::<Vec<_>>(), ["devices", "steps", "uses"]);
        assert!(
            sidecar.left_out[0]
                .starts_with("devices: invalid type: integer `3`, expected a sequence")
        );
        assert!(sidecar.devices.is_empty() && sidecar.uses.is_none());
    }

    #[test]
    fn lines_of_source_are_found() {
        let json = br#"{"version": 1, "sources": {"/m.py": {"12": "    y = f(x)\n", "13": " "}}}"#;
        let sidecar = Sidecar::parse(json).expect("a sidecar");
        assert_eq!(sidecar.source("/m.py", 12), Some("y = f(x)"));
        assert_eq!((sidecar.source("/m.py", 13), sidecar.source("/n.py", 12)), (None, None));
    }
}
