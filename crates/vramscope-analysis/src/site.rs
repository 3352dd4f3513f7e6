//! Which frames are the user's own, and a hash of a stack that is the same in every rank and on
//! every machine.

use rustc_hash::FxHashMap;
use vramscope_snapshot::{Frame, Snapshot, StackId, StrId};
use xxhash_rust::xxh3::xxh3_64;

/// Folders that only PyTorch has in one that is called `torch`, wherever it is installed or built.
const TORCH: &[&str] = &[
    "nn",
    "autograd",
    "optim",
    "utils",
    "cuda",
    "distributed",
    "_dynamo",
    "_inductor",
    "_functorch",
    "csrc",
    "fx",
    "amp",
];

/// Whether a file belongs to PyTorch, to Python's library, or to compiled code: frames that stand
/// between the user and the allocator. Packages that build on PyTorch count as the user's.
pub fn is_framework_file(file: &str) -> bool {
    if !is_python(file) {
        return !file.starts_with("<ipython");
    }
    let parts: Vec<&str> = file.split('/').collect();
    is_torch(&parts) || is_library(&parts)
}

/// Whether it lies in a folder that is PyTorch's own.
fn is_torch(parts: &[&str]) -> bool {
    let below = parts.get(1..).unwrap_or_default();
    let folder = |part: &[&str]| match *part {
        ["site-packages" | "dist-packages", "torch", _] => true,
        ["torch", folder, _] => TORCH.contains(&folder),
        ["torch", file] => file.starts_with("_ops.py") || file.starts_with("_tensor.py"),
        _ => false,
    };
    below.windows(3).any(folder) || below.windows(2).any(folder)
}

/// Whether it lies in what comes with Python, and not in a package that was added to it.
fn is_library(parts: &[&str]) -> bool {
    let below = parts.get(1..).unwrap_or_default();
    let [folders @ .., _] = parts else { return false };
    below.windows(2).any(|part| part[0] == "lib" && part[1].starts_with("python"))
        && !folders.iter().any(|folder| folder.ends_with("-packages"))
}

#[expect(
    clippy::case_sensitive_file_extension_comparisons,
    reason = "Python imports no other spelling"
)]
fn is_python(file: &str) -> bool {
    file.ends_with(".py")
}

/// Whether a C++ frame says what was computed, and not how memory for it was had: backward runs in
/// a thread without Python frames.
fn names_operation(name: &[u8]) -> bool {
    name.starts_with(b"torch::autograd::generated::") || name.starts_with(b"at::_ops::")
}

/// Whether a frame says something of the program or of what it computes, which neither Python's
/// interpreter nor the code between an operator and the allocator does: its file is Python, or its
/// name is that of an operator or of a node of autograd.
pub fn is_telling(name: &[u8], file: &str) -> bool {
    is_python(file) || !is_framework_file(file) || names_operation(name)
}

/// What a stack comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// The innermost frame that is the user's; else the innermost of Python; else the one that
    /// names the operation (a node of autograd, or an operator); else the innermost. `None` without
    /// frames.
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
        // What is hashed, in one buffer for all of it.
        let mut said = Vec::new();
        // Many frames are in one file.
        let mut files: FxHashMap<StrId, (bool, bool)> = FxHashMap::default();
        let mut frames: Vec<(u64, bool, bool, bool)> = Vec::with_capacity(snapshot.frames.len());
        for id in 0..snapshot.frames.len() as u32 {
            let frame = snapshot.frame(vramscope_snapshot::FrameId(id));
            let (own, python) = *files.entry(frame.file).or_insert_with(|| {
                let file = snapshot.text(frame.file);
                (!is_framework_file(&file), is_python(&file))
            });
            let names = names_operation(snapshot.strings.bytes(frame.name));
            frames.push((hash_frame(snapshot, frame, &mut said), own, python, names));
        }
        let site = |id: u32| {
            let ids = snapshot.stacks.frames(StackId(id));
            let at = |f: &vramscope_snapshot::FrameId| frames[f.0 as usize];
            let own = ids.iter().find(|f| at(f).1).or_else(|| ids.iter().find(|f| at(f).2));
            let own = own.or_else(|| ids.iter().find(|f| at(f).3)).or(ids.first());
            said.clear();
            for frame in ids {
                said.extend_from_slice(&at(frame).0.to_le_bytes());
            }
            Site {
                frame: own.map(|&f| snapshot.frame(f)),
                site_hash: own.map_or(0, |f| at(f).0),
                stack_hash: xxh3_64(&said),
            }
        };
        Self { sites: (0..snapshot.stacks.len() as u32).map(site).collect() }
    }

    /// The hash of a frame: that of the sites that it names.
    pub fn hash_of(snapshot: &Snapshot, frame: Frame) -> u64 {
        hash_frame(snapshot, frame, &mut Vec::new())
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

fn hash_frame(snapshot: &Snapshot, frame: Frame, said: &mut Vec<u8>) -> u64 {
    let (name, file) = (snapshot.strings.bytes(frame.name), snapshot.strings.bytes(frame.file));
    // Zero bytes keep name and file apart; the line has a fixed width, the same on every target.
    said.clear();
    for part in [name, b"\0", file, b"\0", &frame.line.to_le_bytes()] {
        said.extend_from_slice(part);
    }
    xxh3_64(said)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    #[test]
    fn what_says_something_is_told_from_what_stands_between() {
        for (name, file) in [
            ("forward", "/train/model.py"),
            ("forward", "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py"),
            ("<module>", "<ipython-input-3-abc>"),
            ("at::_ops::mul_Tensor::call(at::Tensor const&, at::Tensor const&)", "??"),
            ("torch::autograd::generated::MulBackward0::apply(std::vector<at::Tensor>&&)", ""),
        ] {
            assert!(is_telling(name.as_bytes(), file), "{name} {file}");
        }
        for (name, file) in [
            ("do_call_core", "/usr/local/src/Python/ceval.c"),
            ("_PyObject_VectorcallTstate", "/usr/local/include/internal/pycore_call.h"),
            ("at::TensorIteratorBase::build(at::TensorIteratorConfig&)", "??"),
            ("torch::unwind::unwind()", "??"),
        ] {
            assert!(!is_telling(name.as_bytes(), file), "{name} {file}");
        }
    }

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

    /// What [`is_framework_file`] tells, found by searching the name for each folder of its list,
    /// one after the other.
    fn by_name(file: &str) -> bool {
        let mut torch =
            Vec::from(["/site-packages/torch/", "/dist-packages/torch/"].map(String::from));
        for folder in
            "nn autograd optim utils cuda distributed _dynamo _inductor _functorch csrc fx amp"
                .split(' ')
        {
            torch.push(format!("/torch/{folder}/"));
        }
        torch.extend(["/torch/_ops.py", "/torch/_tensor.py"].map(String::from));
        let library = file.contains("/lib/python") && !file.contains("-packages/");
        library || torch.iter().any(|folder| file.contains(folder))
    }

    proptest! {
        #[test]
        fn a_path_is_told_by_any_of_its_folders(
            parts in vec(
                prop_oneof![
                    Just(""), Just("lib"), Just("python3.11"), Just("site-packages"), Just("my-packages"), Just("torch"),
                    Just("nn"), Just("_functorch"), Just("csrc"), Just("_ops.py"), Just("_tensor.pyx"), Just("train"),
                ],
                0..7,
            ),
            name in prop_oneof![Just("_ops.py"), Just("model.py"), Just(".py")],
        ) {
            let file = [&parts[..], &[name]].concat().join("/");
            prop_assert_eq!(is_framework_file(&file), by_name(&file), "{}", file);
        }
    }
}
