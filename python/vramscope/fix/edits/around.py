"""A context manager around a forward pass."""

from __future__ import annotations

import libcst as cst

from ..lever import Lever
from ..rewrite import Declined, Tree
from ..sources import Sources
from .places import pass_at, shown, tree_at


def offload(lever: Lever, sources: Sources) -> str:
    """What a forward pass saves for backward goes to the host."""
    tree, path = tree_at(lever, sources)
    forward, _, _ = pass_at(tree, lever.line)
    forward = [one for one in forward if not _is_zero_grad(tree, one)]
    _wrap(tree, forward, "torch.autograd.graph.save_on_cpu(pin_memory=True)")
    tree.add_import("torch")
    at = shown(path, tree.lines(forward[0])[0])
    return f"save_on_cpu around the forward pass at {at}"


def no_grad(lever: Lever, sources: Sources) -> str:
    """A forward pass that nothing is derived from runs without autograd."""
    tree, path = tree_at(lever, sources)
    calling = [one for one in tree.smalls(lever.line) if any(True for _ in tree.all(cst.Call, one))]
    if len(calling) != 1:
        raise Declined(f"{shown(path, lever.line)} has {len(calling)} statements that call")
    statement = calling[0]
    if isinstance(statement, cst.Return):
        _on_function(tree, statement)
    else:
        _wrap(tree, [statement], "torch.no_grad()")
    tree.add_import("torch")
    return f"torch.no_grad() around {shown(path, lever.line)}"


def _on_function(tree: Tree, statement: cst.BaseSmallStatement) -> None:
    function = tree.above(statement, cst.FunctionDef)
    if function is None:
        raise Declined("it is returned by no function")
    decorator = cst.Decorator(cst.parse_expression("torch.no_grad()"))
    tree.replace(function, function.with_changes(decorators=[*function.decorators, decorator]))


def _wrap(tree: Tree, smalls: list[cst.BaseSmallStatement], manager: str) -> None:
    """Puts statements of one block below ``with``."""
    lines = "".join(f"    {tree.statement(one)}\n" for one in smalls)
    tree.replace_statement(smalls[0], tree.parsed(f"with {manager}:\n{lines}"))
    for one in smalls[1:]:
        tree.replace_statement(one, [])


def _is_zero_grad(tree: Tree, small: cst.BaseSmallStatement) -> bool:
    return any(
        isinstance(call.func, cst.Attribute) and call.func.attr.value == "zero_grad"
        for call in tree.all(cst.Call, small)
    )
