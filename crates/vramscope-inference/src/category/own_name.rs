//! The qualified name of a C++ function, without what else its symbol names.

use std::borrow::Cow;

const ANONYMOUS: &str = "(anonymous namespace)";

/// The symbols that follow `operator` in a name and would else open or close a group. Longer ones
/// come first.
const OPERATORS: [&str; 11] = ["()", "<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "<"];

/// A function's own qualified name: without its return type, and without the arguments of functions
/// and templates. `void at::run<c10::Half>(at::Tensor const&)` becomes `at::run`.
///
/// Names without arguments, and names in Python, stay as they are.
pub fn own_name(function: &str) -> Cow<'_, str> {
    let is_python = function.starts_with('<') || !function.contains(['(', '<']);
    if is_python {
        return Cow::Borrowed(function);
    }
    let mut own = String::new();
    let mut depth = 0_u32;
    let mut has_arguments = false;
    let mut rest = function;
    while let Some(c) = rest.chars().next() {
        let mut step = c.len_utf8();
        match c {
            _ if depth == 0 && rest.starts_with(ANONYMOUS) => {
                step = ANONYMOUS.len();
                own.push_str(ANONYMOUS);
            }
            '(' | '<' | '>' | '-' if own.ends_with("operator") && depth == 0 => {
                let symbol = OPERATORS.iter().find(|symbol| rest.starts_with(**symbol));
                step = symbol.map_or(1, |symbol| symbol.len());
                own.push_str(&rest[..step]);
            }
            '(' | '<' => {
                has_arguments |= c == '(' && depth == 0;
                depth += 1;
            }
            // In the arguments of a template, `->` is part of a type.
            '-' if rest.starts_with("->") => step = 2,
            ')' | '>' => depth = depth.saturating_sub(1),
            _ if depth > 0 => {}
            ' ' if has_arguments => match rest.strip_prefix(" const::") {
                // The name goes on inside of a function, for example with a lambda.
                Some(inner) => step = rest.len() - inner.len() - "::".len(),
                None => break,
            },
            ' ' if rest.starts_with(" [") => break,
            // `operator<< <int>` is one name.
            ' ' if rest.starts_with(" <") => {}
            // What came before is the type that a function template returns.
            ' ' if !own.ends_with("operator") => own.clear(),
            _ => own.push(c),
        }
        rest = &rest[step..];
    }
    Cow::Owned(own)
}

#[cfg(test)]
mod tests {
    use super::own_name;

    #[test]
    fn own_name_has_no_arguments_and_no_return_type() {
        for (function, expected) in [
            ("", ""),
            ("forward", "forward"),
            ("<listcomp>", "<listcomp>"),
            ("at::cuda::blas::gemm [clone .cold]", "at::cuda::blas::gemm [clone .cold]"),
            ("at::empty(c10::ArrayRef<long>, bool) [clone .cold]", "at::empty"),
            ("void at::cuda::blas::gemm<c10::Half>(char, long)", "at::cuda::blas::gemm"),
            ("unsigned int at::run<(at::Type)1>(int)", "at::run"),
            ("std::vector<at::Tensor> torch::autograd::Engine::run<int>(int)", {
                "torch::autograd::Engine::run"
            }),
            (
                "at::native::(anonymous namespace)::cublasCommonArgs::cublasCommonArgs(at::Tensor \
                 const&, std::optional<at::cuda::blas::ScalingType> const&)",
                "at::native::(anonymous namespace)::cublasCommonArgs::cublasCommonArgs",
            ),
            ("at::(anonymous namespace)::T at::native::run<int>(int)", "at::native::run"),
            (
                "torch::Node::apply(std::vector<at::Tensor>&&) const::{lambda(int)#1}::operator()\
                 (c10d::Work) const",
                "torch::Node::apply::{lambda#1}::operator()",
            ),
            ("std::ostream& c10::operator<< <int>(std::ostream&, int)", "c10::operator<<"),
            ("c10::operator<(c10::Half, c10::Half)", "c10::operator<"),
            (
                "c10::intrusive_ptr<c10d::Work>::operator->() const",
                "c10::intrusive_ptr::operator->",
            ),
            ("c10::Scalar::operator bool() const", "c10::Scalar::operator bool"),
            ("at::run<auto (c10d::Work) -> int>::call(int)", "at::run::call"),
            // A name that was cut.
            ("at::run(std::vector<c10d::Work", "at::run"),
        ] {
            assert_eq!(own_name(function), expected, "{function}");
        }
    }
}
