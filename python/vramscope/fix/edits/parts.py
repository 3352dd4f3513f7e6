"""A function that works on rows, in parts; and copies in higher precision, left out."""

from __future__ import annotations

import libcst as cst

from ..lever import Lever
from ..rewrite import Declined, Tree
from ..sources import Sources
from .places import shown, tree_at

#: Functions of PyTorch and methods of tensors that make each value of its own.
_ELEMENTWISE = {
    *("abs", "add", "clamp", "clamp_min", "cos", "div", "exp", "float", "gelu", "half", "log"),
    *("max", "maximum", "min", "minimum", "mul", "neg", "pow", "relu", "rsqrt", "sigmoid", "sin"),
    *("sqrt", "square", "sub", "tanh", "to", "type_as", "where"),
}
#: Those that work along a dimension, which is another than the first.
_ALONG = {"amax", "amin", "argmax", "argmin", "log_softmax", "mean", "norm", "softmax", "sum"}


def in_parts(lever: Lever, sources: Sources) -> str:
    """The function of a line runs for some rows of its arguments after the other."""
    tree, path = tree_at(lever, sources)
    around = [one for one in tree.all(cst.FunctionDef) if lever.line in tree.lines(one)]
    if not around:
        raise Declined(f"{shown(path, lever.line)} is in no function")
    inner = around[-1]
    params = [one.name.value for one in inner.params.params]
    if not params or params[0] == "self" or tree.above(inner, cst.ClassDef) is not None:
        raise Declined(f"{inner.name.value} is no function of tensors alone")
    name = inner.name.value
    divided = next(
        (of for of in ([params[0]], params) if _Rows(tree, inner, of).are_results()), None
    )
    if divided is None:
        raise Declined(f"the source does not show that {name}() works on each row alone")
    parts = [f"{one}_part" if one in divided else one for one in params]
    chunks = [f"{one}.chunk({lever.value})" for one in divided]
    over = f"zip({', '.join(chunks)})" if len(chunks) > 1 else chunks[0]
    targets = ", ".join(f"{one}_part" for one in divided)
    head = tree.module.code_for_node(inner.params)
    text = (
        f"def {name}({head}):\n"
        f"    parts = [{name}_of_part({', '.join(parts)}) for {targets} in {over}]\n"
        "    return torch.cat(parts)\n"
    )
    (new,) = tree.parsed(text)
    assert isinstance(new, cst.FunctionDef)
    whole = tree.parent(inner)
    assert isinstance(whole, (cst.Module, cst.IndentedBlock))
    renamed = inner.with_changes(name=cst.Name(f"{name}_of_part"))
    body: list[cst.BaseStatement] = []
    for one in whole.body:
        if one is inner:
            body += [renamed, new.with_changes(leading_lines=[cst.EmptyLine(indent=False)] * 2)]
        else:
            body.append(one)
    tree.replace(whole, whole.with_changes(body=body))
    tree.add_import("torch")
    return f"{name}() in {lever.value} parts of {' and '.join(divided)}"


def upcast(lever: Lever, sources: Sources) -> str:
    """A loss of the logits as they are."""
    tree, path = tree_at(lever, sources)
    calls = [
        call
        for small in tree.smalls(lever.line)
        for call in tree.all(cst.Call, small)
        if isinstance(call.func, cst.Attribute)
        and (
            (call.func.attr.value == "float" and not call.args)
            or (call.func.attr.value == "to" and "float32" in tree.code(call))
        )
    ]
    at = shown(path, lever.line)
    if len(calls) != 1:
        raise Declined(f"{at} has {len(calls)} conversions to float32")
    func = calls[0].func
    assert isinstance(func, cst.Attribute)
    tree.replace(calls[0], func.value)
    return f"no conversion to float32 at {at}"


class _Rows:
    """Whether the rows of a function's results are made of the same rows of arguments alone."""

    def __init__(self, tree: Tree, function: cst.FunctionDef, arguments: list[str]) -> None:
        self._tree = tree
        self._function = function
        self._rows = set(arguments)
        self._lambdas: dict[str, cst.Lambda] = {}

    def are_results(self) -> bool:
        """Whether all results are so."""
        results = 0
        body = self._function.body
        if not isinstance(body, cst.IndentedBlock):
            return False
        for line in body.body:
            if not isinstance(line, cst.SimpleStatementLine):
                return False
            for small in line.body:
                if isinstance(small, cst.Return):
                    results += 1
                    if small.value is None or self._is_row(small.value) is not True:
                        return False
                elif isinstance(small, cst.Assign) and len(small.targets) == 1:
                    if not self._assign(small.targets[0].target, small.value):
                        return False
                elif not self._is_text(small):
                    return False
        return results == 1

    def _is_text(self, small: cst.BaseSmallStatement) -> bool:
        return isinstance(small, cst.Expr) and isinstance(small.value, cst.SimpleString)

    def _assign(self, target: cst.BaseAssignTargetExpression, value: cst.BaseExpression) -> bool:
        if not isinstance(target, cst.Name):
            return False
        if isinstance(value, cst.Lambda):
            self._lambdas[target.value] = value
            return True
        row = self._is_row(value)
        if row is None:
            return False
        (self._rows.add if row else self._rows.discard)(target.value)
        return True

    def _is_row(self, node: cst.BaseExpression) -> bool | None:
        """True for rows, false for what does not depend on them, ``None`` if it is not known."""
        if isinstance(node, cst.Name):
            return node.value in self._rows
        if isinstance(node, (cst.Integer, cst.Float, cst.SimpleString)):
            return False
        if isinstance(node, cst.UnaryOperation):
            return self._is_row(node.expression)
        if isinstance(node, (cst.BinaryOperation, cst.Comparison)):
            right = node.right if isinstance(node, cst.BinaryOperation) else None
            sides = [node.left, right] if right is not None else [node.left]
            if isinstance(node, cst.Comparison):
                sides += [one.comparator for one in node.comparisons]
            if isinstance(node, cst.BinaryOperation) and isinstance(
                node.operator, cst.MatrixMultiply
            ):
                return (
                    self._is_row(node.left)
                    if self._is_row(sides[1] or node.left) is False
                    else None
                )
            return self._any([one for one in sides if one is not None])
        if isinstance(node, cst.Subscript):
            row = self._is_row(node.value)
            if not row:
                return row
            first = node.slice[0].slice
            whole = isinstance(first, cst.Slice) and first.lower is None and first.upper is None
            is_rest = isinstance(first, cst.Index) and isinstance(first.value, cst.Ellipsis)
            return True if whole or is_rest else None
        if isinstance(node, cst.Call):
            return self._of_call(node)
        free = not (self._tree.reads(node) & self._rows)
        return False if free else None

    def _any(self, nodes: list[cst.BaseExpression]) -> bool | None:
        found = [self._is_row(one) for one in nodes]
        return None if None in found else any(found)

    def _of_call(self, node: cst.Call) -> bool | None:
        values = [one.value for one in node.args]
        if isinstance(node.func, cst.Name) and node.func.value in self._lambdas:
            called = self._lambdas[node.func.value]
            params = [one.name.value for one in called.params.params]
            if len(params) != len(values):
                return None
            outer = set(self._rows)
            for name, value in zip(params, values):
                row = self._is_row(value)
                if row is None:
                    return None
                (self._rows.add if row else self._rows.discard)(name)
            result = self._is_row(called.body)
            self._rows = outer
            return result
        if not isinstance(node.func, cst.Attribute):
            return None if self._any(values) is not False else False
        is_function = self._tree.name(node).startswith("torch.")
        tensors = values if is_function else [node.func.value, *values]
        name = node.func.attr.value
        row = self._any(tensors)
        if not row:
            return row
        if name in _ELEMENTWISE and not self._has_dimension(node, is_function):
            return True
        if name in _ALONG and self._is_along_last(node, is_function):
            return True
        # Each row takes values of its own by an index of its own.
        own = name == "gather" and self._is_along_last(node, is_function)
        return True if own and all(self._is_row(one) for one in [tensors[0], tensors[-1]]) else None

    def _has_dimension(self, node: cst.Call, is_function: bool) -> bool:
        """``x.max(0)``: a reduction by the name of an operation of two tensors."""
        assert isinstance(node.func, cst.Attribute)
        if node.func.attr.value not in ("max", "min"):
            return False
        others = [self._is_row(one.value) for one in node.args[1 if is_function else 0 :]]
        numbers = [isinstance(one.value, (cst.Integer, cst.UnaryOperation)) for one in node.args]
        return not others or any(numbers)

    def _is_along_last(self, node: cst.Call, is_function: bool) -> bool:
        given = [one for one in node.args if one.keyword is None][1 if is_function else 0 :]
        named = [one for one in node.args if one.keyword and one.keyword.value == "dim"]
        texts = [self._tree.code(one.value) for one in [*given[:1], *named[:1]]]
        return texts[:1] == ["-1"]
