//! Ids of frames and call stacks that are equal in all ranks, files, runs and commits.
//!
//! A frame counts with its function and its file. A package's file counts with its path in the
//! package, any other one with its name: checkouts of a program lie in folders of any name. Lines
//! do not count, because each commit moves them.

use std::borrow::Cow;
use vramscope_trace::{file_name, is_generated_file};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

/// The file of all code that `torch.compile` generates. Its names are hashes.
const GENERATED: &str = "<generated>";

/// The start of the name of the rest of a function at which `torch.compile` broke its graph. The
/// line follows.
const RESUMED: &str = "torch_dynamo_resume_in_";

/// A file as it counts in ids.
pub(crate) fn file_in_package(file: &str) -> Cow<'_, str> {
    if is_generated_file(file) {
        return GENERATED.into();
    }
    let parts: Vec<&str> = file.split(['/', '\\']).collect();
    let is_packages = |part: &&str| matches!(*part, "site-packages" | "dist-packages");
    let package = parts.iter().rposition(is_packages).map(|at| at + 1);
    let is_library = |two: &[&str]| two[0] == "lib" && two[1].starts_with("python");
    let library = || parts.windows(2).rposition(is_library).map(|at| at + 2);
    match package.or_else(library) {
        Some(at) if at < parts.len() => parts[at..].join("/").into(),
        _ => file_name(file).into(),
    }
}

/// A function as it counts in ids.
pub(crate) fn function(name: &str) -> &str {
    let resumed = name.strip_prefix(RESUMED).and_then(|rest| rest.rsplit_once("_at_"));
    resumed.map_or(name, |(of, _)| &name[..RESUMED.len() + of.len()])
}

/// The bytes of a frame that its id and those of its stacks are made of.
pub(crate) fn frame_key(key: &mut Vec<u8>, name: &str, file: &str) {
    for part in [name, "\0", file, "\0"] {
        key.extend_from_slice(part.as_bytes());
    }
}

/// The id of a frame.
pub(crate) fn frame_id(name: &str, file: &str) -> i64 {
    let mut key = Vec::new();
    frame_key(&mut key, name, file);
    xxh3_64(&key) as i64
}

/// The id of a stack, from the keys of its frames, innermost first.
pub(crate) fn stack_id(keys: &[u8]) -> String {
    format!("{:032x}", xxh3_128(keys))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_count_with_their_place_in_a_package() {
        for (file, counted) in [
            (
                "/venv/lib/python3.12/site-packages/torch/nn/modules/linear.py",
                "torch/nn/modules/linear.py",
            ),
            (r"C:\venv\Lib\site-packages\torch\optim\adam.py", "torch/optim/adam.py"),
            ("/usr/lib/python3.11/threading.py", "threading.py"),
            ("/usr/lib/python3.11/concurrent/futures/thread.py", "concurrent/futures/thread.py"),
            ("/home/me/run42/train.py", "train.py"),
            ("/tmp/torchinductor_me/ab/code.py", GENERATED),
            ("/usr/lib/libtorch_cpu.so", "libtorch_cpu.so"),
            ("<string>", "<string>"),
            ("??", "??"),
            ("", ""),
        ] {
            assert_eq!(file_in_package(file), counted, "{file}");
        }
    }

    #[test]
    fn lines_in_names_of_functions_do_not_count() {
        assert_eq!(
            function("torch_dynamo_resume_in_forward_at_12"),
            "torch_dynamo_resume_in_forward"
        );
        assert_eq!(function("look_at_12"), "look_at_12");
    }

    #[test]
    fn ids_are_those_of_xxh3() {
        // python: xxhash.xxh3_64_intdigest, xxhash.xxh3_128_hexdigest
        assert_eq!(frame_id("", ""), xxh3_64(b"\0\0") as i64);
        assert_eq!(stack_id(b""), "99aa06d3014798d86001c324468d497f");
    }
}
