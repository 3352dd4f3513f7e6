"""When gradients are dropped, and which are made."""

from __future__ import annotations

import libcst as cst

from ..lever import Lever
from ..rewrite import Declined, Tree, argument, with_keyword
from ..sources import Sources
from .places import assigned, shown, tree_at


def zero_grad(lever: Lever, sources: Sources) -> str:
    """Gradients are dropped right after the optimizer's step."""
    if lever.value != "early":
        raise Declined("no edit of the source is known for it")
    found = [
        (sources.tree(path), path, call)
        for path in sources.files
        for call in _methods(sources.tree(path), "zero_grad")
    ]
    if len(found) != 1:
        raise Declined(f"{len(found)} calls of zero_grad()")
    tree, path, zero = found[0]
    at = shown(path, tree.lines(zero)[0])
    small = tree.above(zero, cst.Expr)
    if small is None:
        raise Declined(f"zero_grad() at {at} is no statement")
    siblings = tree.statements(small)
    steps = [one for one in siblings if isinstance(one, cst.Expr) and _is_step(tree, one)]
    if len(steps) != 1:
        raise Declined(f"{len(steps)} calls of step() in the block of zero_grad() at {at}")
    step = steps[0]
    outside = siblings[: siblings.index(small)], siblings[siblings.index(step) + 1 :]
    if any(_reads_gradients(tree, one) for part in outside for one in part):
        raise Declined(f"gradients are read after step() at {shown(path, tree.lines(step)[0])}")
    new = zero if argument(zero, "set_to_none") is None and not zero.args else None
    early = new or with_keyword(zero.with_changes(args=()), "set_to_none", "True")
    if siblings.index(small) > siblings.index(step):
        tree.replace(zero, early)
    else:
        tree.insert_after(step, f"{tree.module.code_for_node(early).strip()}\n")
        tree.replace_statement(small, [])
    return f"zero_grad() right after step() at {shown(path, tree.lines(step)[0])}"


def frozen(lever: Lever, sources: Sources) -> str:
    """Parameters that nothing trains get no gradients."""
    tree, path = tree_at(lever, sources)
    for small in tree.smalls(lever.line):
        for call in tree.all(cst.Call, small):
            name = tree.code(call.func)
            made = assigned(tree, name)
            if len(made) == 1 and isinstance(made[0].value, cst.Call):
                tree.insert_after(made[0], f"{name}.requires_grad_(False)\n")
                return f"{name}.requires_grad_(False) at {shown(path, tree.lines(made[0])[0])}"
    raise Declined(f"no line shows where the model of {shown(path, lever.line)} is made")


def _methods(tree: Tree, name: str) -> list[cst.Call]:
    return [
        one
        for one in tree.all(cst.Call)
        if isinstance(one.func, cst.Attribute) and one.func.attr.value == name
    ]


def _is_step(tree: Tree, small: cst.Expr) -> bool:
    """``optimizer.step()`` or ``scaler.step(optimizer)``, not that of a scheduler."""
    return any(
        isinstance(call.func, cst.Attribute)
        and call.func.attr.value == "step"
        and not any(word in tree.code(call.func.value).lower() for word in ("sched", "prof"))
        for call in tree.all(cst.Call, small)
    )


def _reads_gradients(tree: Tree, node: cst.CSTNode) -> bool:
    return any(one.attr.value == "grad" for one in tree.all(cst.Attribute, node))
