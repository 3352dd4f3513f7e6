//! Frames by whose code they run: the user's, a framework's, or a compiler's.

use super::operation;
use crate::path::components;

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

/// Whether a file belongs to PyTorch, to Python's standard library, to compiled code, or to the
/// recorder. Such frames lie between the user's code and the allocator. Packages that build on
/// PyTorch count as the user's code.
pub fn is_framework_file(file: &str) -> bool {
    if !is_python(file) {
        return !file.starts_with("<ipython");
    }
    let parts = components(file);
    is_torch(&parts) || is_standard_library(&parts) || is_generated(&parts) || is_recorder(&parts)
}

/// Whether a path lies in the Python package of vramscope, which runs a recorded program and dumps
/// from within its calls.
fn is_recorder(parts: &[&str]) -> bool {
    let is_program = |part: &[&str]| part == ["vramscope", "__main__.py"];
    let is_package = |part: &[&str]| matches!(part[0], "site-packages" | "dist-packages");
    let is_recorder = |part: &[&str]| matches!(part, ["vramscope", "recorder" | "integrations"]);
    parts.windows(2).any(|part| {
        is_program(part) || is_recorder(part) || is_package(part) && part[1] == "vramscope"
    })
}

/// Whether a frame is between the user's code and the allocator: its file is a framework's, or it
/// is a package's wrapper around a function of someone else.
pub fn is_framework_frame(name: &str, file: &str) -> bool {
    is_framework_file(file) || is_wrapper(name, file)
}

/// Whether a C++ function captures the stack, allocates, or starts a thread or the process. Every
/// stack has such frames, and they say nothing about it.
pub(super) fn is_in_every_stack(function: &str) -> bool {
    const STARTS: &[&str] = &["torch::unwind::", "torch::CapturedTraceback::", "__libc_start"];
    const PARTS: &[&str] = &["gather_with_cpp", "CUDACachingAllocator", "libc_start_call_main"];
    const NAMES: &[&str] = &["_start", "start_thread", "clone", "clone3"];
    STARTS.iter().any(|start| function.starts_with(start))
        || PARTS.iter().any(|part| function.contains(part))
        || NAMES.contains(&function)
}

/// The installed package that a Python file belongs to: the folder below `site-packages`.
pub(super) fn package(file: &str) -> Option<&str> {
    let parts = components(file);
    let root = parts.iter().rposition(|part| part.ends_with("-packages"))?;
    parts.get(root + 1).copied()
}

/// Whether a Python file belongs to an installed package.
pub fn is_package_file(file: &str) -> bool {
    package(file).is_some()
}

/// Whether a frame is PyTorch's call of a module.
pub(super) fn is_module_call(file: &str) -> bool {
    components(file).ends_with(&["torch", "nn", "modules", "module.py"])
}

/// Whether `torch.compile` wrote a file. The frame that calls it is the model's line.
pub fn is_generated_file(file: &str) -> bool {
    is_python(file) && is_generated(&components(file))
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
    (below.windows(2).any(|part| part[0] == "lib" && part[1].starts_with("python"))
        || is_windows_library(folders))
        && !folders.iter().any(|folder| folder.ends_with("-packages"))
}

/// Whether folders are those of Python's standard library on Windows: `Lib` in an installation, as
/// in `C:\Python311\Lib` or `C:\miniconda3\envs\train\Lib`.
fn is_windows_library(folders: &[&str]) -> bool {
    let is_drive = |folder: &str| folder.len() == 2 && folder.ends_with(':');
    let is_installation = |above: &[&str]| {
        let is_python = |folder: &str| {
            let folder = folder.to_ascii_lowercase();
            folder.contains("conda")
                || folder
                    .strip_prefix("python")
                    .is_some_and(|version| version.bytes().all(|b| b.is_ascii_digit() || b == b'.'))
        };
        above.last().is_some_and(|folder| is_python(folder))
            || above.len() > 1 && above[above.len() - 2] == "envs"
    };
    folders.first().is_some_and(|first| is_drive(first))
        && (0..folders.len())
            .any(|i| folders[i].eq_ignore_ascii_case("lib") && is_installation(&folders[..i]))
}

/// Folders of code that `torch.compile` generates.
const GENERATED_FOLDERS: &[&str] =
    &["torchinductor", "inductor_cache", "torch_compile_cache", "torch_compile_debug"];

/// The shortest name of a file in Inductor's cache, which is the hash of its code.
const MIN_HASH_LENGTH: usize = 40;

fn is_generated(parts: &[&str]) -> bool {
    let [folders @ .., file] = parts else { return false };
    // The default cache is `/tmp/torchinductor_USER`.
    let is_cache = |folder: &&str| {
        GENERATED_FOLDERS.contains(folder)
            || folder.starts_with("torchinductor_")
            || folder.starts_with("compile-ps")
    };
    folders.iter().any(is_cache) || is_code_hash(folders.last().unwrap_or(&""), file)
}

/// Whether a file is one of Inductor's in a cache with a name of its own. A hash in base 32 names
/// it, and the second and third character of the hash name its folder: `ab/cab....py`.
fn is_code_hash(folder: &str, file: &str) -> bool {
    let Some(hash) = file.strip_suffix(".py") else { return false };
    hash.len() >= MIN_HASH_LENGTH
        && hash.bytes().all(|b| matches!(b, b'a'..=b'z' | b'2'..=b'7'))
        && hash.get(1..3) == Some(folder)
}

/// Functions that call another function in their place: bodies of decorators.
const WRAPPERS: &[&str] = &[
    "wrapper",
    "_wrapper",
    "inner",
    "_inner",
    "inner_wrapper",
    "inner_fn",
    "wrapped",
    "_wrapped",
    "wrapped_func",
    "wrapped_fn",
    "wrapped_function",
    "wrap",
    "log_wrapper",
    "func_wrapper",
    "wrapper_fn",
    "decorate",
    "decorated",
    "decorate_context",
    "decorate_autocast",
    "decorator",
    "new_func",
    "_fn",
];

/// Functions through which a wrapper object calls what it wraps.
const FORWARDING: &[&str] = &["__call__", "forward", "_forward"];

/// Methods through which PyTorch passes each operation to a mode or a subclass of tensors, such as
/// a logger of shapes. The line that calls the operation is outside of them.
const INTERCEPTING: &[&str] = &["__torch_dispatch__", "__torch_function__"];

/// Whether PyTorch passes operations through a function of this name.
pub(crate) fn is_interceptor(name: &str) -> bool {
    INTERCEPTING.contains(&name)
}

/// Whether a frame intercepts operations, or is an installed package's wrapper around a function
/// of someone else. Wrapper objects are in the package's folder of utilities.
fn is_wrapper(name: &str, file: &str) -> bool {
    if is_interceptor(name) {
        return true;
    }
    let parts = components(file);
    let Some(root) = parts.iter().position(|part| part.ends_with("-packages")) else {
        return false;
    };
    let [folders @ .., _] = &parts[root + 1..] else { return false };
    let is_utility = || matches!(folders, [_, "utils" | "_utils"]);
    WRAPPERS.contains(&name) || FORWARDING.contains(&name) && is_utility()
}

/// Whether a file is Python's.
#[expect(
    clippy::case_sensitive_file_extension_comparisons,
    reason = "Python only imports files with a lowercase extension"
)]
pub fn is_python(file: &str) -> bool {
    file.ends_with(".py")
}

/// Whether a frame helps to distinguish stacks: its file is Python, or its function is an operator
/// or an autograd node. Frames of the Python interpreter, and frames between an operator and the
/// allocator, do not help.
pub fn is_distinctive(name: &str, file: &str) -> bool {
    is_python(file)
        || !is_framework_file(file)
        || operation::node(name).is_some()
        || operation::operator(name).is_some()
}

#[cfg(test)]
mod tests;
