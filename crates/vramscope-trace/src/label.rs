//! Labels of frames and call sites: `model.py:212 forward`.

use crate::path::{file_name, is_library};
use crate::{NoStack, short_operation};
use vramscope_snapshot::{Frame, Snapshot};
use vramscope_units::shown_name;

/// `model.py:212`, or the file alone if the line is unknown.
pub fn place(file: &str, line: u32) -> String {
    place_if_known(file, line).unwrap_or_else(|| with_line("(unknown file)", line))
}

/// [`place`]; `None` if the file is unknown.
pub fn place_if_known(file: &str, line: u32) -> Option<String> {
    let name = file_name(file);
    if let Some(cell) = notebook_cell(file) {
        return Some(format!("cell {}, line {line}", shown_name(cell)));
    }
    // In a library, the line is an offset in bytes.
    let line = if is_library(name) { 0 } else { line };
    (!matches!(name, "" | "??")).then(|| with_line(&shown_name(name), line))
}

/// The name of a notebook's cell: its number, or the hash that `ipykernel` names its file by.
/// `None` for other files.
fn notebook_cell(file: &str) -> Option<&str> {
    let mut parts = file.rsplit(['/', '\\']);
    let name = parts.next()?;
    if let Some(number) = name.strip_prefix("<ipython-input-") {
        return number.split('-').next();
    }
    parts.next().filter(|folder| folder.starts_with("ipykernel_"))?;
    name.strip_suffix(".py")
}

fn with_line(name: &str, line: u32) -> String {
    if line == 0 { name.to_owned() } else { format!("{name}:{line}") }
}

/// [`place_if_known`] for a frame.
pub fn place_of(snapshot: &Snapshot, frame: Frame) -> Option<String> {
    place_if_known(&snapshot.text(frame.file), frame.line)
}

/// The words for a call stack that was not recorded.
pub const NO_STACK: &str = "no call stack";

/// The label of blocks without a call stack.
pub fn no_stack(why: NoStack) -> &'static str {
    match why {
        NoStack::BeforeRecording => "(before recording)",
        NoStack::Backward => "(backward, no Python frames)",
        NoStack::NotRecorded => "(no call stack)",
    }
}

/// A frame as a call site: `model.py:212 forward`.
pub fn label_of(snapshot: &Snapshot, frame: Frame) -> String {
    frame_label(&snapshot.text(frame.name), &snapshot.text(frame.file), frame.line)
}

/// A frame as a call site: `model.py:212 forward`.
///
/// Nodes of the autograd graph and operators have short names: `MulBackward0`, `aten::mul`. The
/// arguments of other C++ functions are removed. Without a known file, as in most C++ frames, only
/// the function remains.
pub fn frame_label(name: &str, file: &str, line: u32) -> String {
    match frame_parts(name, file, line) {
        (Some(place), short) => format!("{place} {short}"),
        (None, short) => short,
    }
}

/// The place and the function of [`frame_label`].
pub fn frame_parts(name: &str, file: &str, line: u32) -> (Option<String>, String) {
    let place = place_if_known(file, line).filter(|_| short_operation(name).is_none());
    (place, short_name(name))
}

/// The line of a frame in Python: `train.py:12`. `None` for operators and libraries.
pub fn line_of(snapshot: &Snapshot, frame: Frame) -> Option<String> {
    let (name, file) = (snapshot.text(frame.name), snapshot.text(frame.file));
    let is_line = frame.line > 0 && !is_library(file_name(&file));
    frame_parts(&name, &file, frame.line).0.filter(|_| is_line)
}

/// The filter of a call site: its file and line, or its operation or function without a known file.
pub fn frame_filter(snapshot: &Snapshot, frame: Frame) -> String {
    let name = snapshot.text(frame.name);
    let place = || place_of(snapshot, frame).unwrap_or_else(|| without_arguments(&name).to_owned());
    format!("site:{}", short_operation(&name).unwrap_or_else(place))
}

/// A function's short name: its operator or node of the autograd graph, else the name without
/// arguments.
pub fn short_name(name: &str) -> String {
    let operation = short_operation(name);
    shown_name(operation.as_deref().unwrap_or_else(|| without_arguments(name))).into_owned()
}

/// Removes the arguments from a C++ function's name: `at::(anonymous namespace)::run(int) const`
/// becomes `at::(anonymous namespace)::run`. Names in Python have no arguments.
pub fn without_arguments(name: &str) -> &str {
    let mut depth = 0;
    for (at, byte) in name.bytes().enumerate().rev() {
        match byte {
            b')' => depth += 1,
            b'(' => depth -= 1,
            // Names nested in a function, such as lambdas, follow that function's arguments.
            b':' if depth == 0 => break,
            _ => continue,
        }
        if depth == 0 {
            let before = &name[..at];
            // `call::operator()` and `at::(anonymous namespace)` are names without arguments.
            let is_name =
                before.is_empty() || before.ends_with(':') || before.ends_with("operator");
            return if is_name { name } else { before };
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::{frame_label, without_arguments};

    #[test]
    fn frame_label_has_place_and_function() {
        assert_eq!(frame_label("forward", "/train/model.py", 212), "model.py:212 forward");
        assert_eq!(
            frame_label("at::_ops::mul_Tensor::call(at::Tensor const&)", "??", 0),
            "aten::mul"
        );
        let node = "torch::autograd::generated::BmmBackward0::apply(std::vector<at::Tensor>&&)";
        assert_eq!(frame_label(node, "libtorch_cpu.so", 42_916_537), "BmmBackward0");
        // The line of a frame in a library is an offset.
        assert_eq!(frame_label("run(int)", "/lib/libtorch.so", 42), "libtorch.so run");
        assert_eq!(frame_label("forward", r"D:\train\model.py", 7), "model.py:7 forward");
        let cell = "/tmp/ipykernel_31/4118618764.py";
        assert_eq!(frame_label("<module>", cell, 1), "cell 4118618764, line 1 <module>");
        assert_eq!(frame_label("f", "<ipython-input-3-ab12>", 2), "cell 3, line 2 f");
        assert_eq!(
            frame_label("gather(bool, bool)", "../csrc/memory_snapshot.cpp", 0),
            "memory_snapshot.cpp gather"
        );
    }

    #[test]
    fn without_arguments_keeps_other_parentheses() {
        for (name, without) in [
            ("forward", "forward"),
            ("<lambda>", "<lambda>"),
            ("torch::(anonymous namespace)::gather()", "torch::(anonymous namespace)::gather"),
            ("at::empty<long>(c10::ArrayRef<long>, std::function<void (int)>)", "at::empty<long>"),
            ("c10::Scalar::equal<(void*)0>(int) const", "c10::Scalar::equal<(void*)0>"),
            ("run(int) const [clone .isra.0]", "run"),
            (
                "run(int)::{lambda(int)#1}::operator()(int) const",
                "run(int)::{lambda(int)#1}::operator()",
            ),
            ("std::function<void ()>::operator()", "std::function<void ()>::operator()"),
            ("at::(anonymous namespace)", "at::(anonymous namespace)"),
            ("(anonymous namespace)::run", "(anonymous namespace)::run"),
            (")", ")"),
            ("(a))", "(a))"),
            ("é(ü)", "é"),
            ("", ""),
        ] {
            assert_eq!(without_arguments(name), without, "{name}");
        }
    }
}
