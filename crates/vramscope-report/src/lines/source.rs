//! What a line of the program does, by its source and the functions that it calls.

use crate::target::Target;
use std::borrow::Cow;
use vramscope_snapshot::StackId;
use vramscope_trace::{is_framework_frame, is_python};

/// What a call stack does: the function of PyTorch that makes another copy of what exists, else
/// the only call of its kind on the program's line.
pub(super) fn does(target: Target<'_>, stack: StackId) -> Option<Cow<'static, str>> {
    let snapshot = target.snapshot();
    for frame in snapshot.stack(stack) {
        let (name, file) = (snapshot.text(frame.name), snapshot.text(frame.file));
        let is_of = |of: &&Operation| of.functions.iter().any(|part| name.contains(part));
        if let Some(of) = OPERATIONS.iter().find(is_of).filter(|_| is_python(&file)) {
            return Some(of.noun.into());
        }
        if is_python(&file) && !is_framework_frame(&name, &file) {
            break;
        }
    }
    let source = own_source(target, stack)?;
    let mut found =
        OPERATIONS.iter().filter(|of| of.calls.iter().any(|call| source.contains(call)));
    match (found.next(), found.next()) {
        (Some(only), None) => Some(only.noun.into()),
        _ => called(source).map(Cow::from),
    }
}

/// The source line of the program that allocates, not through a module that it calls.
fn own_source(target: Target<'_>, stack: StackId) -> Option<&str> {
    let snapshot = target.snapshot();
    let frames =
        snapshot.stack(stack).map(|of| (snapshot.text(of.name), snapshot.text(of.file), of));
    let mut frames = frames.filter(|(_, file, _)| is_python(file));
    let (name, file, frame) =
        frames.find(|(name, file, _)| name == MODULE_CALL || !is_framework_frame(name, file))?;
    target.entry.source(&file, frame.line).filter(|_| name != MODULE_CALL)
}

/// The function of `torch.nn.Module` that each call of a module runs.
const MODULE_CALL: &str = "_call_impl";

/// The function of PyTorch by which the program's line allocates: `F.interpolate`.
pub(crate) fn call_of(target: Target<'_>, stack: StackId) -> Option<String> {
    own_source(target, stack).and_then(called)
}

/// The only function of PyTorch that a line of source calls by its module: `F.interpolate`. Without
/// one, the last method that copies a tensor: `.repeat()`.
fn called(source: &str) -> Option<String> {
    let (mut functions, mut method): (Vec<&str>, Option<&str>) = (Vec::new(), None);
    for part in source.split(|c: char| !(c.is_alphanumeric() || matches!(c, '.' | '_' | '('))) {
        // Of `f(torch.cat(` each call.
        for call in part.split_inclusive('(').filter_map(|call| call.strip_suffix('(')) {
            let Some((of, name)) = call.rsplit_once('.') else { continue };
            if MODULES.contains(&of) && !NO_RESULT.contains(&name) {
                functions.push(call);
            } else if METHODS.contains(&name) {
                method = Some(name);
            }
        }
    }
    functions.sort_unstable();
    functions.dedup();
    match functions[..] {
        [only] => Some(only.to_owned()),
        [] => method.map(|name| format!(".{name}()")),
        _ => None,
    }
}

/// Methods of tensors that make a copy of another size or order.
const METHODS: &[&str] = &[
    "repeat",
    "repeat_interleave",
    "reshape",
    "contiguous",
    "argsort",
    "sort",
    "softmax",
    "log_softmax",
    "cumsum",
    "index_select",
    "gather",
];

/// The modules of PyTorch whose functions a line is named by.
const MODULES: &[&str] = &["torch", "F", "torch.nn.functional", "nn.functional"];

/// Functions of `torch` that allocate nothing.
const NO_RESULT: &[&str] =
    &["no_grad", "inference_mode", "enable_grad", "autocast", "device", "compile", "Generator"];

/// An operation that makes another copy of what exists.
struct Operation {
    noun: &'static str,
    /// Parts of names of functions that do nothing else.
    functions: &'static [&'static str],
    /// The operation in a source line.
    calls: &'static [&'static str],
}

/// The functions are those of PyTorch's Python code, Accelerate's `convert_to_fp32`, and
/// bitsandbytes', torchao's and GPTQ's `dequantize`.
const OPERATIONS: &[Operation] = &[
    Operation { noun: "dequantized weights", functions: &["dequant"], calls: &["dequantize"] },
    Operation {
        noun: "conversion",
        functions: &["to_fp32", "to_fp16", "to_bf16", "upcast"],
        calls: &[".float()", ".double()", ".half()", ".bfloat16()", ".to(dtype", ".to(torch."],
    },
    Operation {
        noun: "gathered weights or results",
        functions: &["all_gather", "unshard"],
        calls: &["all_gather"],
    },
    Operation { noun: "copy", functions: &["deepcopy"], calls: &[".clone()", "deepcopy("] },
    Operation {
        noun: "loaded file",
        functions: &["load_tensor", "restore_location", "persistent_load"],
        calls: &["torch.load("],
    },
];

#[cfg(test)]
mod tests {
    use super::called;

    #[test]
    fn one_function_of_a_line_is_named() {
        let named = [
            ("d = torch.cdist(a, b)", Some("torch.cdist")),
            ("return F.interpolate(logits, size=images.shape[-2:])", Some("F.interpolate")),
            ("(torch.cat(a) == torch.cat(b)).sum()", Some("torch.cat")),
            ("x = torch.nn.functional.gelu(y)", Some("torch.nn.functional.gelu")),
            ("x = F.relu(torch.mm(a, b))", None),
            ("with torch.no_grad(): y = model(x)", None),
            ("self.F.x(1)", None),
            ("return bias.repeat(batch, 1, 1, 1)", Some(".repeat()")),
            ("x = v.unfold(2, 9, 3).reshape(-1, 9)", Some(".reshape()")),
        ];
        for (source, name) in named {
            assert_eq!(called(source).as_deref(), name, "{source}");
        }
    }
}
