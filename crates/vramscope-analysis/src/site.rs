//! Call sites: the user's frame of each stack, and hashes of frames and stacks that are equal in
//! every rank and on every machine.

use rustc_hash::FxHashMap;
use vramscope_snapshot::{Frame, FrameId, Snapshot, StackId, StrId};
use xxhash_rust::xxh3::xxh3_64;

/// Subfolders that identify a folder `torch` as PyTorch's own, wherever it is installed or built.
const TORCH_SUBFOLDERS: &[&str] = &[
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

/// Whether a file belongs to PyTorch, to Python's standard library, or to compiled code. Such
/// frames lie between the user's code and the allocator. Packages that build on PyTorch count as
/// the user's code.
pub fn is_framework_file(file: &str) -> bool {
    if !is_python(file) {
        return !file.starts_with("<ipython");
    }
    let parts: Vec<&str> = file.split('/').collect();
    is_torch(&parts) || is_standard_library(&parts)
}

/// Whether a path lies in one of PyTorch's own folders.
fn is_torch(parts: &[&str]) -> bool {
    let below = parts.get(1..).unwrap_or_default();
    let folder = |part: &[&str]| match *part {
        ["site-packages" | "dist-packages", "torch", _] => true,
        ["torch", folder, _] => TORCH_SUBFOLDERS.contains(&folder),
        ["torch", file] => file.starts_with("_ops.py") || file.starts_with("_tensor.py"),
        _ => false,
    };
    below.windows(3).any(folder) || below.windows(2).any(folder)
}

/// Whether a path lies in Python's standard library, and not in an installed package.
fn is_standard_library(parts: &[&str]) -> bool {
    let below = parts.get(1..).unwrap_or_default();
    let [folders @ .., _] = parts else { return false };
    below.windows(2).any(|part| part[0] == "lib" && part[1].starts_with("python"))
        && !folders.iter().any(|folder| folder.ends_with("-packages"))
}

#[expect(
    clippy::case_sensitive_file_extension_comparisons,
    reason = "Python only imports files with a lowercase extension"
)]
fn is_python(file: &str) -> bool {
    file.ends_with(".py")
}

/// Whether a C++ frame names the operation: an autograd node or an operator. Stacks of the backward
/// pass have no other useful frame, because its threads have no Python frames.
fn names_operation(name: &[u8]) -> bool {
    name.starts_with(b"torch::autograd::generated::") || name.starts_with(b"at::_ops::")
}

/// Whether a frame helps to distinguish stacks: its file is Python, or its function is an operator
/// or an autograd node. Frames of the Python interpreter, and frames between an operator and the
/// allocator, do not help.
pub fn is_distinctive(name: &[u8], file: &str) -> bool {
    is_python(file) || !is_framework_file(file) || names_operation(name)
}

/// The call site of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// The innermost frame of the best kind that the stack has. Kinds, best first: the user's code,
    /// Python, an operation (an autograd node or an operator), any. `None` for an empty stack.
    pub frame: Option<Frame>,
    /// Hash of the frame's function, file and line. Equal call sites have equal hashes in every
    /// snapshot.
    pub site_hash: u64,
    /// Hash of the functions, files and lines of the whole stack.
    pub stack_hash: u64,
}

/// The sites of all stacks of a snapshot, by [`StackId`].
#[derive(Clone, Debug)]
pub struct Sites {
    sites: Vec<Site>,
}

impl Sites {
    /// Finds the site of every stack of a snapshot.
    pub fn new(snapshot: &Snapshot) -> Self {
        let mut buffer = Vec::new();
        // A file has many frames, so its properties are cached.
        let mut files: FxHashMap<StrId, (bool, bool)> = FxHashMap::default();
        let mut frames: Vec<FrameProperties> = Vec::with_capacity(snapshot.frames.len());
        for id in 0..snapshot.frames.len() as u32 {
            let frame = snapshot.frame(FrameId(id));
            let (is_user_code, is_python) = *files.entry(frame.file).or_insert_with(|| {
                let file = snapshot.text(frame.file);
                (!is_framework_file(&file), is_python(&file))
            });
            let names_operation = names_operation(snapshot.strings.bytes(frame.name));
            let hash = hash_frame(snapshot, frame, &mut buffer);
            frames.push(FrameProperties { hash, is_user_code, is_python, names_operation });
        }
        let site = |id: u32| {
            let ids = snapshot.stacks.frames(StackId(id));
            let of = |f: &FrameId| frames[f.0 as usize];
            let innermost =
                |is_kind: fn(FrameProperties) -> bool| ids.iter().find(|id| is_kind(of(id)));
            let frame = innermost(|f| f.is_user_code)
                .or_else(|| innermost(|f| f.is_python))
                .or_else(|| innermost(|f| f.names_operation))
                .or(ids.first());
            buffer.clear();
            for frame in ids {
                buffer.extend_from_slice(&of(frame).hash.to_le_bytes());
            }
            Site {
                frame: frame.map(|&f| snapshot.frame(f)),
                site_hash: frame.map_or(0, |f| of(f).hash),
                stack_hash: xxh3_64(&buffer),
            }
        };
        Self { sites: (0..snapshot.stacks.len() as u32).map(site).collect() }
    }

    /// The hash of a frame. Equals [`Site::site_hash`] of a site at that frame.
    pub fn hash_of(snapshot: &Snapshot, frame: Frame) -> u64 {
        hash_frame(snapshot, frame, &mut Vec::new())
    }

    /// The site of a stack.
    pub fn get(&self, stack: StackId) -> Site {
        self.sites[stack.0 as usize]
    }
}

/// The properties of a frame that decide about the site of a stack.
#[derive(Clone, Copy)]
struct FrameProperties {
    hash: u64,
    is_user_code: bool,
    is_python: bool,
    names_operation: bool,
}

/// The hash of a name from the program. Equal in every rank and on every machine.
pub fn name_hash(name: &str) -> u64 {
    xxh3_64(name.as_bytes())
}

/// Hashes a frame's function, file and line. `buffer` is scratch space.
fn hash_frame(snapshot: &Snapshot, frame: Frame, buffer: &mut Vec<u8>) -> u64 {
    let (name, file) = (snapshot.strings.bytes(frame.name), snapshot.strings.bytes(frame.file));
    // Zero bytes separate name and file. The line has a fixed width and byte order on every target.
    buffer.clear();
    for part in [name, b"\0", file, b"\0", &frame.line.to_le_bytes()] {
        buffer.extend_from_slice(part);
    }
    xxh3_64(buffer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    #[test]
    fn python_frames_and_operations_are_distinctive() {
        for (name, file) in [
            ("forward", "/train/model.py"),
            ("forward", "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py"),
            ("<module>", "<ipython-input-3-abc>"),
            ("at::_ops::mul_Tensor::call(at::Tensor const&, at::Tensor const&)", "??"),
            ("torch::autograd::generated::MulBackward0::apply(std::vector<at::Tensor>&&)", ""),
        ] {
            assert!(is_distinctive(name.as_bytes(), file), "{name} {file}");
        }
        for (name, file) in [
            ("do_call_core", "/usr/local/src/Python/ceval.c"),
            ("_PyObject_VectorcallTstate", "/usr/local/include/internal/pycore_call.h"),
            ("at::TensorIteratorBase::build(at::TensorIteratorConfig&)", "??"),
            ("torch::unwind::unwind()", "??"),
        ] {
            assert!(!is_distinctive(name.as_bytes(), file), "{name} {file}");
        }
    }

    #[test]
    fn is_framework_file_separates_pytorch_and_python_from_user_code() {
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

    /// [`is_framework_file`] for Python files, as a plain search for each folder in the path.
    fn contains_framework_folder(file: &str) -> bool {
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
        fn is_framework_file_matches_a_search_for_each_folder(
            parts in vec(
                prop_oneof![
                    Just(""),
                    Just("lib"),
                    Just("python3.11"),
                    Just("site-packages"),
                    Just("my-packages"),
                    Just("torch"),
                    Just("nn"),
                    Just("_functorch"),
                    Just("csrc"),
                    Just("_ops.py"),
                    Just("_tensor.pyx"),
                    Just("train"),
                ],
                0..7,
            ),
            name in prop_oneof![Just("_ops.py"), Just("model.py"), Just(".py")],
        ) {
            let file = [&parts[..], &[name]].concat().join("/");
            prop_assert_eq!(is_framework_file(&file), contains_framework_folder(&file), "{}", file);
        }
    }
}
