"""Where an edit is: lines, calls and loops of the program."""

from __future__ import annotations

import pathlib
from typing import Callable, NamedTuple

import libcst as cst

from ..lever import Lever
from ..rewrite import Declined, Tree
from ..sources import Sources


def tree_at(lever: Lever, sources: Sources) -> tuple[Tree, pathlib.Path]:
    """The file that a lever's line is in."""
    if lever.file is None:
        raise Declined("no call stack shows its line")
    path = sources.find(lever.file)
    if path is None:
        name = pathlib.PurePath(lever.file).name
        raise Declined(f"{name}:{lever.line} is not a line of {sources.root.name}/")
    return sources.tree(path), path


def shown(path: pathlib.Path, line: int) -> str:
    """``train.py:12``."""
    return f"{path.name}:{line}"


class CallAt(NamedTuple):
    """A call of the program."""

    tree: Tree
    path: pathlib.Path
    call: cst.Call

    @property
    def shown(self) -> str:
        """``train.py:12``."""
        return shown(self.path, self.tree.lines(self.call)[0])


def calls(sources: Sources, is_named: Callable[[str], bool]) -> list[CallAt]:
    """The calls of the program whose function has such a name by the imports."""
    return [
        CallAt(sources.tree(path), path, call)
        for path in sources.files
        for call in sources.tree(path).calls(is_named)
    ]


def single_call(sources: Sources, is_named: Callable[[str], bool], what: str) -> CallAt:
    """The one call of the program with such a name."""
    found = calls(sources, is_named)
    if not found:
        raise Declined(f"no call of {what} is in {_files(sources)}")
    if len(found) > 1:
        lines = ", ".join(one.shown for one in found[:3])
        raise Declined(f"{len(found)} calls of {what}: {lines}")
    return found[0]


def _files(sources: Sources) -> str:
    names = [path.name for path in sources.files]
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} modules"


def is_backward(small: cst.CSTNode, tree: Tree) -> cst.Call | None:
    """The call of ``loss.backward()``, or of a scaler's or an accelerator's, in a statement."""
    for call in tree.all(cst.Call, small):
        if isinstance(call.func, cst.Attribute) and call.func.attr.value == "backward":
            return call
    return None


def pass_at(
    tree: Tree, line: int
) -> tuple[list[cst.BaseSmallStatement], cst.BaseSmallStatement, cst.Call]:
    """The forward pass at a line: its statements up to ``backward()``, that statement, its call."""
    smalls = tree.smalls(line)
    for small in smalls:
        statements = tree.statements(small)
        at = statements.index(small)
        for end in range(at, len(statements)):
            one = statements[end]
            call = is_backward(one, tree) if isinstance(one, cst.BaseSmallStatement) else None
            if call is None:
                continue
            # On one line with others, the pass begins with the first statement that calls.
            begin = next(
                (i for i in range(at, end) if any(True for _ in tree.all(cst.Call, statements[i]))),
                at,
            )
            forward = [
                one for one in statements[begin:end] if isinstance(one, cst.BaseSmallStatement)
            ]
            if not forward or len(forward) != end - begin:
                raise Declined("its forward pass is not one row of simple statements")
            assert isinstance(one, cst.BaseSmallStatement)
            return forward, one, call
    raise Declined("no backward() follows in the block of this line")


def assigned(tree: Tree, name: str, below: cst.CSTNode | None = None) -> list[cst.Assign]:
    """The statements that assign a name or an attribute: ``model = ...``, ``self.model = ...``."""
    return [
        one
        for one in tree.all(cst.Assign, below)
        if any(tree.code(target.target) == name for target in one.targets)
    ]
