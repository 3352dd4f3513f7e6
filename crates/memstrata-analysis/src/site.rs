//! Which frames are the user's own, and a hash of a stack that is the same in every rank and on every machine.

use memstrata_snapshot::{Frame, Snapshot, StackId, StrId};
use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::xxh3_64;

/// Folders that are PyTorch's own wherever it is installed or built.
const TORCH: &[&str] = &[
    "/site-packages/torch/",
    "/dist-packages/torch/",
    "/torch/nn/",
    "/torch/autograd/",
    "/torch/optim/",
    "/torch/utils/",
    "/torch/cuda/",
    "/torch/distributed/",
    "/torch/_dynamo/",
    "/torch/_inductor/",
    "/torch/_functorch/",
    "/torch/_ops.py",
    "/torch/_tensor.py",
    "/torch/csrc/",
    "/torch/fx/",
    "/torch/amp/",
];

/// Whether a file belongs to PyTorch, to Python's library, or to compiled code: frames that stand between the user and
/// the allocator. Packages that build on PyTorch count as the user's.
pub fn is_framework_file(file: &str) -> bool {
    let python = is_python(file);
    let library = file.contains("/lib/python") && !file.contains("-packages/");
    !python && !file.starts_with("<ipython") || library || TORCH.iter().any(|folder| file.contains(folder))
}

#[expect(clippy::case_sensitive_file_extension_comparisons, reason = "Python imports no other spelling")]
fn is_python(file: &str) -> bool {
    file.ends_with(".py")
}

/// Whether a C++ frame says what was computed, and not how memory for it was had: backward runs in a thread without
/// Python frames.
fn names_operation(name: &str) -> bool {
    name.starts_with("torch::autograd::generated::") || name.starts_with("at::_ops::")
}

/// What a stack comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// The innermost frame that is the user's; else the innermost of Python; else the one that names the operation
    /// (a node of autograd, or an operator); else the innermost. `None` without frames.
    pub frame: Option<Frame>,
    /// Hash of that frame's name, file and line: equal call sites have equal hashes in every file.
    pub site_hash: u64,
    /// Hash of the whole stack's names, files and lines.
    pub stack_hash: u64,
}

/// The sites of all stacks of a snapshot, by [`StackId`].
#[derive(Clone, Debug)]
pub struct Sites {
    sites: Vec<Site>,
}

impl Sites {
    /// Look at every stack once.
    pub fn new(snapshot: &Snapshot) -> Self {
        // Many frames are in one file, and looking for so many folders in its name takes its time.
        let mut files: FxHashMap<StrId, (bool, bool)> = FxHashMap::default();
        let mut frames: Vec<(u64, bool, bool, bool)> = Vec::with_capacity(snapshot.frames.len());
        for id in 0..snapshot.frames.len() as u32 {
            let frame = snapshot.frame(memstrata_snapshot::FrameId(id));
            let (own, python) = *files.entry(frame.file).or_insert_with(|| {
                let file = snapshot.text(frame.file);
                (!is_framework_file(&file), is_python(&file))
            });
            let names = names_operation(&snapshot.text(frame.name));
            frames.push((hash_frame(snapshot, frame), own, python, names));
        }
        let site = |id: u32| {
            let ids = snapshot.stacks.frames(StackId(id));
            let at = |f: &memstrata_snapshot::FrameId| frames[f.0 as usize];
            let own = ids.iter().find(|f| at(f).1).or_else(|| ids.iter().find(|f| at(f).2));
            let own = own.or_else(|| ids.iter().find(|f| at(f).3)).or(ids.first());
            let hashes: Vec<u8> = ids.iter().flat_map(|f| at(f).0.to_le_bytes()).collect();
            Site {
                frame: own.map(|&f| snapshot.frame(f)),
                site_hash: own.map_or(0, |f| at(f).0),
                stack_hash: xxh3_64(&hashes),
            }
        };
        Self { sites: (0..snapshot.stacks.len() as u32).map(site).collect() }
    }

    /// The hash of a frame: that of the sites that it names.
    pub fn hash_of(snapshot: &Snapshot, frame: Frame) -> u64 {
        hash_frame(snapshot, frame)
    }

    /// The site of a stack.
    pub fn get(&self, stack: StackId) -> Site {
        self.sites[stack.0 as usize]
    }
}

/// The hash of a name that a program gave: the same in every rank and on every machine.
pub fn name_hash(name: &str) -> u64 {
    xxh3_64(name.as_bytes())
}

fn hash_frame(snapshot: &Snapshot, frame: Frame) -> u64 {
    let (name, file) = (snapshot.strings.bytes(frame.name), snapshot.strings.bytes(frame.file));
    // Zero bytes keep name and file apart; the line has a fixed width, the same on every target.
    xxh3_64(&[name, b"\0", file, b"\0", &frame.line.to_le_bytes()].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn framework_files_are_told_from_the_users() {
        for file in [
            "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/module.py",
            "/usr/lib/python3.11/threading.py",
            "/build/pytorch/torch/csrc/autograd/engine.cpp",
            "/build/pytorch/torch/nn/functional.py",
            "??",
            "",
            "<frozen runpy>",
        ] {
            assert!(is_framework_file(file), "{file}");
        }
        for file in [
            "/train/model.py",
            "model.py",
            "/home/me/torch/train.py",
            "/opt/venv/lib/python3.11/site-packages/transformers/models/qwen2/modeling_qwen2.py",
            "<ipython-input-3-abc>",
        ] {
            assert!(!is_framework_file(file), "{file}");
        }
    }
}
