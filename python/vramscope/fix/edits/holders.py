"""References that hold memory: what they keep goes to the host, without its graph."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import libcst as cst

from ..lever import Lever
from ..rewrite import Declined, Tree, expression, last_name
from ..sources import Sources
from .places import assigned, is_backward, shown

#: Methods whose result is a tensor.
_OF_TENSORS = ("detach", "clone", "to", "float", "half", "bfloat16", "contiguous", "squeeze")
#: Entries of a cache beyond which it begins anew.
_MOST = 8


def drop(lever: Lever, sources: Sources) -> str:
    """What a list, a dict or a running sum keeps needs no memory of the device."""
    if not lever.holders:
        raise Declined("no reference is known that holds it")
    reasons = []
    for holder in lever.holders:
        for path in sources.files:
            try:
                told = _of_holder(sources.tree(path), path, holder)
            except Declined as reason:
                reasons.append(str(reason))
                continue
            if told is not None:
                return told
    raise Declined(reasons[0] if reasons else f"no line shows what {lever.holders[0]} keeps")


def _of_holder(tree: Tree, path: pathlib.Path, holder: str) -> str | None:
    memo = _memo(tree, holder)
    if memo is not None:
        name = tree.code(memo.target)
        tree.insert_before(memo.statement, f"if len({name}) >= {_MOST}:\n    {name}.clear()\n")
        return f"{name} begins anew after {_MOST} entries at {shown(path, memo.line)}"
    stores = [*_appended(tree, holder), *_added(tree, holder)]
    if not stores:
        # A list that keeps it holds it, too: both references hold one graph.
        stores = [one for one in _appended(tree, None) if tree.code(one) == holder]
    if not stores:
        return None
    if len(stores) > 1:
        lines = ", ".join(shown(path, tree.lines(one)[0]) for one in stores[:3])
        raise Declined(f"{len(stores)} lines add to {holder}: {lines}")
    store = stores[0]
    _check_unused_by_backward(tree, holder, store)
    value = _tensor(tree, store)
    text = tree.code(value)
    bare = (
        text
        if isinstance(value, (cst.Name, cst.Attribute, cst.Call, cst.Subscript))
        else f"({text})"
    )
    is_sum = not isinstance(tree.parent(store), cst.Arg)
    # A sum is made on the device; a list is only kept.
    moved = ".detach()" if is_sum else ".detach().cpu()"
    for known in (".detach()", ".cpu()"):
        if f"{known}" in text:
            moved = moved.replace(known, "")
    if not moved:
        raise Declined(f"what {holder} keeps is on the host at {shown(path, tree.lines(store)[0])}")
    tree.replace(value, expression(f"{bare}{moved}"))
    if not is_sum:
        _move_beside(tree, store)
    return f"{moved[1:]} of what {holder} keeps at {shown(path, tree.lines(store)[0])}"


def _move_beside(tree: Tree, store: cst.BaseExpression) -> None:
    """What the same block adds to other lists goes with it: they are used together."""
    small = tree.above(store, cst.Expr)
    for one in tree.statements(small) if small is not None else []:
        call = one.value if isinstance(one, cst.Expr) and one is not small else None
        if isinstance(call, cst.Call) and last_name(call.func) == "append" and len(call.args) == 1:
            value = call.args[0].value
            if isinstance(value, (cst.Name, cst.Attribute)):
                tree.replace(value, expression(f"{tree.code(value)}.detach().cpu()"))


def _is_holder(tree: Tree, node: cst.BaseExpression, holder: str) -> bool:
    """Whether an expression is the holder, or an entry of it: ``self.kept[tag]``."""
    while isinstance(node, cst.Subscript):
        node = node.value
    if tree.code(node) == holder:
        return True
    # The object has another name inside of its methods.
    return (
        "." in holder
        and isinstance(node, cst.Attribute)
        and node.attr.value == holder.rpartition(".")[2]
    )


def _appended(tree: Tree, holder: str | None) -> Iterator[cst.BaseExpression]:
    for call in tree.all(cst.Call):
        func = call.func
        if (
            isinstance(func, cst.Attribute)
            and func.attr.value in ("append", "appendleft", "add")
            and len(call.args) == 1
            and (holder is None or _is_holder(tree, func.value, holder))
        ):
            yield call.args[0].value


def _added(tree: Tree, holder: str) -> Iterator[cst.BaseExpression]:
    """What is added to a running sum: ``total += loss``, ``total = total + loss``."""
    for one in tree.all(cst.AugAssign):
        if isinstance(one.operator, cst.AddAssign) and tree.code(one.target) == holder:
            yield one.value
    for assign in tree.all(cst.Assign):
        value = assign.value
        if (
            len(assign.targets) == 1
            and tree.code(assign.targets[0].target) == holder
            and isinstance(value, cst.BinaryOperation)
            and isinstance(value.operator, cst.Add)
        ):
            if tree.code(value.left) == holder:
                yield value.right
            elif tree.code(value.right) == holder:
                yield value.left


def _tensor(tree: Tree, value: cst.BaseExpression) -> cst.BaseExpression:
    """The tensor in what is kept: that itself, or the one of a tuple."""
    if isinstance(value, cst.Call) and last_name(value.func)[:1].isupper():
        raise Declined(f"the source does not show which part of {tree.code(value)} is a tensor")
    if not isinstance(value, (cst.Tuple, cst.List)):
        return value
    tensors = [
        one.value
        for one in value.elements
        if isinstance(one.value, cst.Call) and last_name(one.value.func) in _OF_TENSORS
    ]
    if len(tensors) != 1:
        raise Declined(f"the source does not show which part of {tree.code(value)} is a tensor")
    return tensors[0]


def _check_unused_by_backward(tree: Tree, holder: str, store: cst.BaseExpression) -> None:
    """Backward may need the graph of what is kept."""
    function = tree.above(store, cst.FunctionDef)
    if function is not None and function.name.value in ("forward", "__call__"):
        reads = [one for one in tree.all(cst.Name, function.body) if one.value == holder]
        made = assigned(tree, holder, function)
        if len(reads) > 1 + len(made):
            raise Declined(f"{function.name.value}() uses what {holder} keeps")
    for small in tree.all(cst.BaseSmallStatement):
        if is_backward(small, tree) is None:
            continue
        names = tree.reads(small)
        for one in tree.all(cst.Assign):
            is_loss = any(last_name(target.target) in names for target in one.targets)
            if is_loss and any(store is node for node in tree.all(cst.BaseExpression, one)):
                continue
            if is_loss and holder in tree.reads(one.value):
                raise Declined(f"backward() may need what {holder} keeps")
        if holder in names:
            raise Declined(f"backward() needs what {holder} keeps")


class _Memo:
    """``if key not in cache: cache[key] = made()``."""

    def __init__(self, target: cst.BaseExpression, statement: cst.Assign, line: int) -> None:
        self.target, self.statement, self.line = target, statement, line


def _memo(tree: Tree, holder: str) -> _Memo | None:
    """Where a dict is filled only if it lacks a key: what it has can be made again."""
    found = []
    stores = 0
    for one in tree.all(cst.Assign):
        target = one.targets[0].target
        if not isinstance(target, cst.Subscript) or not _is_holder(tree, target.value, holder):
            continue
        stores += 1
        key = tree.module.code_for_node(target).partition("[")[2].rpartition("]")[0]
        name = tree.code(target.value)
        guard = tree.above(one, cst.If)
        if guard is not None and tree.code(guard.test) == f"{key} not in {name}":
            found.append(_Memo(target.value, one, tree.lines(one)[0]))
    return found[0] if len(found) == 1 and stores == 1 else None


def idle(lever: Lever, sources: Sources) -> str:
    """A model that is idle most of the time is on the device only while it runs."""
    # The way to a parameter, `pipe.encoder.norm.weight`, begins with the way to its model.
    prefixes = [prefix for holder in lever.holders for prefix in _prefixes(holder)]
    for holder in dict.fromkeys(prefixes):
        for path in sources.files:
            tree = sources.tree(path)
            calls = [
                small
                for small in tree.all(cst.BaseSmallStatement)
                if any(tree.code(call.func) == holder for call in tree.all(cst.Call, small))
            ]
            if len(calls) != 1:
                continue
            small = calls[0]
            if isinstance(small, cst.Return):
                raise Declined(f"{holder} runs in a return statement")
            again = tree.above(small, cst.FunctionDef) or tree.above(small, cst.For)
            if again is not None:
                tree.insert_before(small, f"{holder}.cuda()\n")
            tree.insert_after(small, f"{holder}.cpu()\ntorch.cuda.empty_cache()\n")
            tree.add_import("torch")
            return f"{holder} on the host but at {shown(path, tree.lines(small)[0])}"
    raise Declined("no single line runs the idle model")


def _prefixes(holder: str) -> list[str]:
    parts = holder.split(".")
    return [".".join(parts[:end]) for end in range(len(parts), 0, -1)]
