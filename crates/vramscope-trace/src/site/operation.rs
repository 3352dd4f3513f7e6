//! Operations that C++ frames name: nodes of the autograd graph, and operators.

/// The node of the autograd graph that a C++ function runs: `MulBackward0`, `AccumulateGrad`.
/// `None` for any other function.
pub fn node(function: &str) -> Option<&str> {
    let rest = function.strip_prefix("torch::autograd::")?;
    let (name, method) = rest.strip_prefix("generated::").unwrap_or(rest).split_once("::")?;
    let is_name = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    // `PyNode` runs a function in Python, whose own frames say more.
    (is_name && method.starts_with("apply(") && name != "PyNode").then_some(name)
}

/// The operator that a C++ function calls, without its overload: `mul` for
/// `at::_ops::mul_Tensor::call`. `None` for any other function.
pub fn operator(function: &str) -> Option<&str> {
    let (name, _) = function.strip_prefix("at::_ops::")?.split_once("::")?;
    Some(without_overload(name))
}

/// Overloads in lower case, in the order in which they are removed. Those in upper case need no
/// list: the name of an operator has none.
const OVERLOADS: &[&str] = &[
    "_out",
    "_int",
    "_dim",
    "_self",
    "_memory_format",
    "_dtype_layout",
    "_dtype",
    "_correction",
    "_vec",
    "_start_step",
    "_start",
    "_src",
    "_value",
    "_stable",
    "_generator",
];

/// Removes the overload from the name of an operator's class: `sum_dim_IntList` becomes `sum`.
fn without_overload(class: &str) -> &str {
    let starts_overload = |&(at, _): &(usize, &str)| {
        let rest = class.as_bytes().get(at + 1..).unwrap_or_default();
        rest.first().is_some_and(u8::is_ascii_uppercase)
            && rest.get(1).is_some_and(u8::is_ascii_lowercase)
    };
    let end = class.match_indices('_').find(starts_overload).map_or(class.len(), |(at, _)| at);
    let mut name = &class[..end];
    for overload in OVERLOADS {
        // The operator itself may have the name of an overload.
        name = name.strip_suffix(overload).filter(|rest| !rest.is_empty()).unwrap_or(name);
    }
    name
}

/// A short name for the operation that a C++ function runs: a [`node`], or an [`operator`] as
/// `aten::mul`. `None` for any other function.
pub fn short_operation(function: &str) -> Option<String> {
    let operator = || operator(function).map(|name| format!("aten::{name}"));
    node(function).map(str::to_owned).or_else(operator)
}

/// Whether an operator only makes an uninitialized tensor. Every other operator calls one of these.
pub(super) fn is_empty_operator(name: &str) -> bool {
    matches!(name.strip_prefix("new_").unwrap_or(name), name if name.starts_with("empty"))
}

#[cfg(test)]
mod tests {
    use super::{node, operator, short_operation};

    #[test]
    fn node_is_the_class_whose_apply_runs() {
        for (function, name) in [
            (
                "torch::autograd::generated::MulBackward0::apply(std::vector<at::Tensor>&&)",
                Some("MulBackward0"),
            ),
            ("torch::autograd::AccumulateGrad::apply(std::vector<at::Tensor>&&)", {
                Some("AccumulateGrad")
            }),
            ("torch::autograd::PyNode::apply(std::vector<at::Tensor>&&)", None),
            ("torch::autograd::Node::operator()(std::vector<at::Tensor>&&)", None),
            ("torch::autograd::Engine::thread_main(std::shared_ptr<GraphTask> const&)", None),
            ("torch::autograd::generated::details::mm_mat1_grad(at::Tensor const&)", None),
            ("at::_ops::mul_Tensor::call(at::Tensor const&)", None),
        ] {
            assert_eq!(node(function), name, "{function}");
        }
    }

    #[test]
    fn operator_has_no_overload() {
        for (class, name) in [
            ("mul_Tensor", "mul"),
            ("add__Tensor", "add_"),
            ("_log_softmax", "_log_softmax"),
            ("log_softmax_int", "log_softmax"),
            ("_log_softmax_backward_data", "_log_softmax_backward_data"),
            ("sum_dim_IntList", "sum"),
            ("mul_out", "mul"),
            ("empty_memory_format", "empty"),
            ("repeat_interleave_self_int", "repeat_interleave"),
            ("pow_Tensor_Scalar", "pow"),
            ("numpy_T", "numpy_T"),
            ("native_layer_norm", "native_layer_norm"),
            ("_out", "_out"),
        ] {
            let function = format!("at::_ops::{class}::redispatch(c10::DispatchKeySet)");
            assert_eq!(operator(&function), Some(name), "{class}");
        }
        assert_eq!(operator("at::native::mul(at::Tensor const&)"), None);
        let short = short_operation("at::_ops::mul_Tensor::call(at::Tensor const&)");
        assert_eq!(short.as_deref(), Some("aten::mul"));
        assert_eq!(short_operation("forward"), None);
    }
}
