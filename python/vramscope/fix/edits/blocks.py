"""Checkpointing of the blocks of a model."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..lever import Lever
from ..rewrite import Declined, Tree, expression
from ..sources import Sources
from .constructors import set_trainer_arguments
from .places import assigned, shown, tree_at

_NOT_REENTRANT = "use_reentrant=False"
_OF_TRANSFORMERS = '{"use_reentrant": False}'


def checkpoint(lever: Lever, sources: Sources) -> str:
    """Blocks that compute again in backward what they saved."""
    is_half = lever.value == "half"
    path = sources.find(lever.file) if lever.file is not None else None
    if path is None:
        if is_half:
            raise Declined("the loop over the blocks is not a line of the program")
        return _of_package(lever, sources)
    tree = sources.tree(path)
    at = shown(path, lever.line)
    for small in tree.smalls(lever.line):
        for call, loop in _block_calls(tree, small):
            _in_loop(tree, call, loop, is_half)
            which = "every other" if is_half else "each"
            return f"checkpoint() around the call of {which} block at {at}"
    forward = next(
        (one for one in tree.all(cst.FunctionDef) if _is_forward_at(tree, one, lever)), None
    )
    if forward is None or is_half:
        raise Declined(f"{at} is in no loop over blocks")
    _in_forward(tree, forward)
    owner = tree.above(forward, cst.ClassDef)
    return f"checkpoint() inside of {owner.name.value if owner else 'the block'}.forward()"


def each(lever: Lever, sources: Sources) -> str:
    """A checkpoint around each block in the place of one around all."""
    tree, path = tree_at(lever, sources)
    for small in tree.smalls(lever.line):
        for call in tree.all(cst.Call, small):
            if not tree.name(call).endswith("checkpoint.checkpoint") or not call.args:
                continue
            function = call.args[0].value
            inner = _function(tree, function)
            found = [one for of in _smalls(tree, inner) for one in _block_calls(tree, of)]
            if len(found) != 1:
                raise Declined(f"{tree.code(function)} has no single loop over blocks")
            _in_loop(tree, *found[0], is_half=False)
            own = (
                "use_reentrant",
                "preserve_rng_state",
                "determinism_check",
                "debug",
                "context_fn",
            )
            args = [one for one in call.args[1:] if not (one.keyword and one.keyword.value in own)]
            if args:
                args[-1] = args[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
            tree.replace(call, cst.Call(function, args))
            return f"checkpoint() around each block in {tree.code(function)}()"
    raise Declined(f"{shown(path, lever.line)} calls no checkpoint()")


def _of_package(lever: Lever, sources: Sources) -> str:
    """Blocks of a model of transformers."""
    told = set_trainer_arguments(
        sources,
        gradient_checkpointing="True",
        gradient_checkpointing_kwargs=_OF_TRANSFORMERS,
    )
    if told is not None:
        return told
    models = [
        (sources.tree(path), path, one)
        for path in sources.files
        for one in sources.tree(path).all(cst.Assign)
        if _is_of_transformers(sources.tree(path), one)
    ]
    if len(models) != 1:
        if models:
            raise Declined(f"{len(models)} models of transformers are made")
        raise Declined("no loop over the blocks is a line of the program")
    tree, path, made = models[0]
    name = tree.code(made.targets[0].target)
    call = f"{name}.gradient_checkpointing_enable({_OF_TRANSFORMERS})"
    # After later statements that give the name another value: `.cuda()`, `.to()`.
    tree.insert_after(assigned(tree, name)[0], f"{call}\n")
    return f"gradient_checkpointing_enable() at {shown(path, tree.lines(made)[0])}"


def _is_of_transformers(tree: Tree, one: cst.Assign) -> bool:
    """Whether a statement makes a model: ``GPT2LMHeadModel(config).cuda()``."""
    names = (tree.name(call) for call in tree.all(cst.Call, one.value))
    parts = (name.split(".") for name in names if name.startswith("transformers."))
    return any("Model" in part[1] or "For" in part[1] for part in parts if len(part) > 1)


def _function(tree: Tree, of: cst.BaseExpression) -> cst.FunctionDef:
    name = of.attr.value if isinstance(of, cst.Attribute) else tree.code(of)
    found = [one for one in tree.all(cst.FunctionDef) if one.name.value == name]
    if len(found) != 1:
        raise Declined(f"{len(found)} functions have the name {name}")
    return found[0]


def _smalls(tree: Tree, below: cst.CSTNode) -> Iterator[cst.BaseSmallStatement]:
    return tree.all(cst.BaseSmallStatement, below)


def _block_calls(tree: Tree, small: cst.CSTNode) -> Iterator[tuple[cst.Call, cst.For]]:
    """Calls in a statement of what a loop around it takes from a list, and that loop."""
    for call in tree.all(cst.Call, small):
        if not isinstance(call.func, cst.Name):
            continue
        for loop in tree.around(call, cst.For):
            targets = {one.value for one in tree.all(cst.Name, loop.target)}
            if call.func.value in targets:
                yield call, loop
                break


def _in_loop(tree: Tree, call: cst.Call, loop: cst.For, is_half: bool) -> None:
    args = ", ".join([tree.code(call.func), *(_argument(tree, one) for one in call.args)])
    new = f"checkpoint({args}, {_NOT_REENTRANT})"
    if is_half:
        if not isinstance(loop.target, cst.Name):
            raise Declined("the loop over the blocks has several targets")
        counted = f"for block_index, {tree.code(loop.target)} in enumerate({tree.code(loop.iter)}):"
        head = cst.parse_statement(f"{counted}\n    pass\n")
        assert isinstance(head, cst.For)
        tree.replace(loop.target, head.target)
        tree.replace(loop.iter, head.iter)
        new = f"({new} if block_index % 2 == 0 else {tree.code(call)})"
    tree.replace(call, expression(new))
    tree.add_import("torch.utils.checkpoint", "checkpoint")


def _argument(tree: Tree, one: cst.Arg) -> str:
    return tree.code(one.with_changes(comma=cst.MaybeSentinel.DEFAULT))


def _is_forward_at(tree: Tree, one: cst.FunctionDef, lever: Lever) -> bool:
    return one.name.value == "forward" and lever.line in tree.lines(one)


def _in_forward(tree: Tree, forward: cst.FunctionDef) -> None:
    """The block calls itself under a checkpoint: what was ``forward`` is ``_forward``."""
    owner = tree.above(forward, cst.ClassDef)
    if owner is None or not isinstance(owner.body, cst.IndentedBlock) or not forward.params.params:
        raise Declined("its forward() is not that of a class")
    own = forward.params.params[0].name.value
    head = tree.module.code_for_node(forward.params)
    plain = forward.params.params[1:]
    rest = forward.params
    if rest.kwonly_params or rest.posonly_params or rest.star_kwarg or _is_starred(rest):
        raise Declined("its forward() has arguments other than positional ones")
    names = ", ".join(one.name.value for one in plain)
    text = (
        f"def forward({head}):\n"
        f"    return checkpoint({own}._forward, {names}, {_NOT_REENTRANT})\n\n"
    )
    (new,) = tree.parsed(text)
    renamed = forward.with_changes(
        name=cst.Name("_forward"), leading_lines=[cst.EmptyLine(indent=False)]
    )
    body = []
    for one in owner.body.body:
        if one is forward:
            body += [new.with_changes(leading_lines=forward.leading_lines), renamed]
        else:
            body.append(one)
    tree.replace(owner.body, owner.body.with_changes(body=body))
    tree.add_import("torch.utils.checkpoint", "checkpoint")


def _is_starred(params: cst.Parameters) -> bool:
    return isinstance(params.star_arg, (cst.Param, cst.ParamStar))
