"""The size of a batch: smaller, or in parts whose gradients add up."""

from __future__ import annotations

import pathlib
import re

import libcst as cst

from ..lever import Lever
from ..rewrite import Declined, Tree, argument, expression, last_name, with_keyword
from ..sources import Sources
from .constructors import set_trainer_arguments, trainer_arguments
from .places import pass_at, shown, tree_at

#: Options of programs for it, without their dashes.
_OPTION = re.compile(r"--?(?:(?:per[-_]device[-_])?(?:train[-_])?batch(?:[-_]?size)?|bs|b)", re.I)
_NAMES = ("batch", "batch_size", "batchsize", "train_batch_size", "bs")
#: Arguments of transformers' trainer.
_BATCH_OF_TRAINER = "per_device_train_batch_size"
_STEPS_OF_TRAINER = "gradient_accumulation_steps"
#: Functions of PyTorch that make a tensor of a shape.
_MAKES = re.compile(r"torch\.(rand|randn|randint|zeros|ones|empty|full)")


def batch(lever: Lever, sources: Sources) -> str:
    """A smaller batch in training."""
    return _smaller(lever, sources, _BATCH_OF_TRAINER, is_trained=True)


def eval_batch(lever: Lever, sources: Sources) -> str:
    """A smaller batch in evaluation."""
    return _smaller(lever, sources, "per_device_eval_batch_size", is_trained=False)


def _smaller(lever: Lever, sources: Sources, of_trainer: str, *, is_trained: bool) -> str:
    factor = float(lever.value)
    if is_trained:
        told = _in_arguments(sources, factor)
        if told is not None:
            return told
    trainer = trainer_arguments(sources)
    if trainer is not None:
        call = trainer.call
        # transformers has 8 where nothing is said.
        given = argument(call, of_trainer)
        size = _whole(given.value) if given is not None else 8
        if size is None:
            raise Declined(f"{of_trainer} is no number in the source")
        told = set_trainer_arguments(sources, **{of_trainer: str(_times(size, factor))})
        assert told is not None
        return told
    try:
        tree, path, node, size = _size(sources, is_trained)
        nodes: list[cst.BaseExpression] = [node]
    except Declined:
        if not is_trained:
            raise
        tree, path, nodes, size = _shapes(lever, sources)
    if _times(size, factor) == size:
        raise Declined(f"the batch at {shown(path, tree.lines(nodes[0])[0])} has {size}")
    for node in nodes:
        tree.replace(node, cst.Integer(str(_times(size, factor))))
    at = shown(path, tree.lines(nodes[0])[0])
    return f"{_times(size, factor)} in the place of {size} at {at}"


def _in_arguments(sources: Sources, factor: float) -> str | None:
    """The option of the program's own command line."""
    words = sources.arguments
    for at, word in enumerate(words):
        name, equal, value = word.partition("=")
        if not _OPTION.fullmatch(name):
            continue
        if equal and value.isdecimal():
            words[at] = f"{name}={_times(int(value), factor)}"
            return f"the argument {words[at]}"
        if not equal and at + 1 < len(words) and words[at + 1].isdecimal():
            words[at + 1] = str(_times(int(words[at + 1]), factor))
            return f"the argument {name} {words[at + 1]}"
    return None


def _size(sources: Sources, is_trained: bool) -> tuple[Tree, pathlib.Path, cst.BaseExpression, int]:
    """The number in the source that is the size of a batch."""
    loaders = [
        (sources.tree(path), path, call)
        for path in sources.files
        for call in sources.tree(path).calls(lambda name: name.endswith(".DataLoader"))
        if argument(call, "batch_size") is not None
    ]
    wanted = [one for one in loaders if _is_shuffled(one[2]) == is_trained] or loaders
    if len(wanted) == 1:
        tree, path, call = wanted[0]
        given = argument(call, "batch_size")
        assert given is not None
        size = _whole(given.value)
        if size is not None:
            return tree, path, given.value, size
    if loaders and not is_trained and len(loaders) == 1:
        raise Declined("training and evaluation have one loader")
    found = [
        (sources.tree(path), path, node, size)
        for path in sources.files
        for node, size in _numbers(sources.tree(path))
    ]
    if not is_trained:
        raise Declined("no number in the source is the batch of an evaluation")
    if len(found) != 1:
        raise Declined(f"{len(found)} numbers in the source are the size of a batch")
    return found[0]


def _shapes(
    lever: Lever, sources: Sources
) -> tuple[Tree, pathlib.Path, list[cst.BaseExpression], int]:
    """The first sizes of all tensors that the loop around a pass makes: one number."""
    tree, path = tree_at(lever, sources)
    smalls = tree.smalls(lever.line)
    loop = tree.above(smalls[0], cst.For) if smalls else None
    if loop is None:
        raise Declined(f"{shown(path, lever.line)} is in no loop")
    nodes = []
    for call in tree.all(cst.Call, loop):
        if not _MAKES.fullmatch(tree.name(call)):
            continue
        # `randint` has its bounds before the shape.
        shape = next((one.value for one in call.args if isinstance(one.value, cst.Tuple)), None)
        first = shape.elements[0].value if shape is not None else call.args[0].value
        if shape is None and last_name(call.func) == "randint":
            raise Declined("no number in the source is the size of a batch")
        nodes.append(first)
    sizes = {_whole(node) for node in nodes}
    size = sizes.pop() if len(sizes) == 1 else None
    if size is None:
        raise Declined("no number in the source is the size of a batch")
    return tree, path, nodes, size


def _is_shuffled(call: cst.Call) -> bool:
    given = argument(call, "shuffle")
    return given is not None and not (
        isinstance(given.value, cst.Name) and given.value.value == "False"
    )


def _numbers(tree: Tree) -> list[tuple[cst.BaseExpression, int]]:
    """Numbers with the name of a batch's size: assigned, default, argument, or option."""
    found: list[tuple[cst.BaseExpression, int]] = []

    def take(name: str, value: cst.BaseExpression | None) -> None:
        size = _whole(value) if value is not None else None
        if size is not None and value is not None and name.lower() in _NAMES:
            found.append((value, size))

    for one in tree.all(cst.Assign):
        for target in one.targets:
            take(last_name(target.target), one.value)
    for assign in tree.all(cst.AnnAssign):
        take(last_name(assign.target), assign.value)
    for param in tree.all(cst.Param):
        take(param.name.value, param.default)
    for call in tree.all(cst.Call):
        for arg in call.args:
            if arg.keyword is not None:
                take(arg.keyword.value, arg.value)
        default = argument(call, "default")
        if last_name(call.func) == "add_argument" and default is not None and call.args:
            options = [one.value for one in call.args if one.keyword is None]
            words = [tree.code(one).strip("'\"-").replace("-", "_") for one in options]
            take(max(words, key=len), default.value)
    return found


def _whole(value: cst.BaseExpression) -> int | None:
    return int(value.value, 0) if isinstance(value, cst.Integer) else None


def _times(size: int, factor: float) -> int:
    return max(1, int(size * factor))


def accumulate(lever: Lever, sources: Sources) -> str:
    """A step whose batch goes through the model in parts."""
    parts = int(lever.value)
    trainer = trainer_arguments(sources)
    if trainer is not None:
        call = trainer.call
        given = [argument(call, name) for name in (_BATCH_OF_TRAINER, _STEPS_OF_TRAINER)]
        # transformers has 8 and 1 where nothing is said.
        size, steps = (_whole(one.value) if one else own for one, own in zip(given, (8, 1)))
        if size is None or steps is None or size % parts:
            raise Declined("the size of its batch is no number in the source that can be divided")
        told = set_trainer_arguments(
            sources,
            **{_BATCH_OF_TRAINER: str(size // parts), _STEPS_OF_TRAINER: str(steps * parts)},
        )
        assert told is not None
        return told
    told = _of_frameworks(sources, parts)
    if told is not None:
        return told
    tree, path = tree_at(lever, sources)
    forward, last, backward = pass_at(tree, lever.line)
    outside = [one for one in forward if "zero_grad" in tree.code(one)]
    inside = [one for one in forward if one not in outside]
    _check_mean(tree, inside)
    batches = _batches(tree, inside)
    renamed = {name: f"{name}_part" for name in batches if name.isidentifier()}
    others = [one for one in batches if not one.isidentifier()]
    renamed.update({text: f"part_{at}" for at, text in enumerate(others)})
    loss = _loss(tree, backward)
    chunks = ", ".join(f"{name}.chunk({parts})" for name in renamed)
    targets = ", ".join(renamed.values())
    lines = [_renamed(tree, one, renamed) for one in inside]
    lines.append(_renamed(tree, last, {loss: f"({loss} / {parts})"}))
    body = "".join(f"    {one}\n" for one in lines)
    over = f"zip({chunks})" if len(renamed) > 1 else chunks
    text = f"for {targets} in {over}:\n{body}"
    before = "".join(f"{tree.statement(one)}\n" for one in outside)
    statements = [*forward, last]
    tree.replace_statement(statements[0], tree.parsed(before + text))
    for one in statements[1:]:
        tree.replace_statement(one, [])
    names = " and ".join(renamed)
    return f"{parts} parts of {names} at {shown(path, tree.lines(inside[0])[0])}"


#: The arguments by which trainers of packages make a step of several batches.
_STEPS_OF = {
    "pytorch_lightning": ("Trainer", "accumulate_grad_batches"),
    "lightning": ("Trainer", "accumulate_grad_batches"),
    "accelerate": ("Accelerator", "gradient_accumulation_steps"),
}


def _of_frameworks(sources: Sources, parts: int) -> str | None:
    """More and smaller batches a step, where a trainer adds up the gradients; ``None`` without."""
    for path in sources.files:
        tree = sources.tree(path)
        for call in tree.all(cst.Call):
            package, _, last = tree.name(call).rpartition(".")
            name, steps = _STEPS_OF.get(package.partition(".")[0], ("", ""))
            # Without `accumulate`, an Accelerator adds nothing up.
            if not name or name != last or (name == "Accelerator" and not _accumulates(sources)):
                continue
            given = argument(call, steps)
            now = _whole(given.value) if given is not None else 1
            of, _at, node, size = _size(sources, is_trained=True)
            if now is None or size % parts:
                raise Declined("the size of its batch is no number that can be divided")
            of.replace(node, cst.Integer(str(size // parts)))
            tree.replace(call, with_keyword(call, steps, str(now * parts)))
            where = shown(path, tree.lines(call)[0])
            return f"{steps}={now * parts} at {where}, batches of {size // parts}"
    return None


def _accumulates(sources: Sources) -> bool:
    return any(
        last_name(call.func) == "accumulate"
        for path in sources.files
        for call in sources.tree(path).all(cst.Call)
    )


def _check_mean(tree: Tree, forward: list[cst.BaseSmallStatement]) -> None:
    text = " ".join(tree.code(one) for one in forward)
    whole = tree.module.code
    if ".sum()" in text or re.search(r"reduction\s*=\s*.sum", whole):
        raise Declined("its loss is a sum: parts of a mean are needed")


def _batches(tree: Tree, forward: list[cst.BaseSmallStatement]) -> list[str]:
    """The tensors of a batch that a forward pass reads: names, or calls that make them."""
    own = {
        last_name(target.target)
        for one in forward
        if isinstance(one, cst.Assign)
        for target in one.targets
    }
    read = set().union(*(tree.reads(one) for one in forward)) - own
    loop = tree.above(forward[0], cst.For)
    made: dict[str, cst.BaseExpression | None] = {}
    if loop is not None:
        made.update({name: None for name in _samples(tree, loop)})
        body = tree.statements(forward[0])
        for one in body[: body.index(forward[0])]:
            if isinstance(one, cst.Assign):
                made.update(_values(one))
    names = sorted((name for name in read if name in made), key=list(made).index)
    for name in names:
        value = made[name]
        if value is not None and not _is_tensor(tree, value):
            raise Declined(f"the source does not show that {name} is a tensor of samples")
    if any("**" in tree.code(one) for one in forward):
        raise Declined("its batch is passed as a dictionary")
    calls = [
        call
        for one in forward
        for call in tree.all(cst.Call, one)
        if _MAKES.fullmatch(tree.name(call))
    ]
    texts = [tree.code(call) for call in calls]
    if not names and not texts:
        raise Declined("no tensor of its batch is a name in the loop")
    return [*names, *texts]


def _samples(tree: Tree, loop: cst.For) -> list[str]:
    """The targets of a loop that may be tensors: no counters, and nothing of a literal list."""
    over, target = loop.iter, loop.target
    if isinstance(over, cst.Call) and tree.code(over.func) == "range":
        return []
    if isinstance(over, (cst.List, cst.Tuple)):
        return []
    if isinstance(over, cst.Call) and tree.code(over.func) == "enumerate":
        if not isinstance(target, cst.Tuple):
            return []
        return [name.value for one in target.elements[1:] for name in tree.all(cst.Name, one)]
    return [one.value for one in tree.all(cst.Name, target)]


def _values(one: cst.Assign) -> dict[str, cst.BaseExpression | None]:
    """The values of ``x, y = x.cuda(), y.cuda()`` by name."""
    found: dict[str, cst.BaseExpression | None] = {}
    for target in one.targets:
        if isinstance(target.target, cst.Name):
            found[target.target.value] = one.value
        elif isinstance(target.target, cst.Tuple):
            values = one.value.elements if isinstance(one.value, cst.Tuple) else ()
            for at, name in enumerate(target.target.elements):
                if isinstance(name.value, cst.Name):
                    found[name.value.value] = values[at].value if at < len(values) else None
    return found


def _is_tensor(tree: Tree, value: cst.BaseExpression) -> bool:
    """``x.to(device)``, ``x.cuda()``, ``x[:, 1:]``, or a call of PyTorch that makes a tensor."""
    if isinstance(value, cst.Subscript):
        # Samples stay samples where the first index takes all.
        first = value.slice[0].slice
        return isinstance(first, cst.Slice) and first.lower is None and first.upper is None
    if not isinstance(value, cst.Call):
        return False
    moved = ("to", "cuda", "float", "long", "half", "bfloat16")
    return last_name(value.func) in moved or bool(_MAKES.fullmatch(tree.name(value)))


def _loss(tree: Tree, backward: cst.Call) -> str:
    """The name of what ``backward`` begins with."""
    assert isinstance(backward.func, cst.Attribute)
    if isinstance(backward.func.value, cst.Name) and not backward.args:
        return backward.func.value.value
    inner = backward if backward.args else backward.func.value
    if isinstance(backward.func.value, cst.Name) and all(one.keyword for one in backward.args):
        return backward.func.value.value
    if isinstance(inner, cst.Call) and inner.args:
        return tree.code(inner.args[0].value)
    raise Declined("the source does not show what backward() begins with")


def _renamed(tree: Tree, small: cst.BaseSmallStatement, names: dict[str, str]) -> str:
    """The text of a statement with other expressions in the place of some."""

    class Rename(cst.CSTTransformer):
        def on_leave(  # type: ignore[override]
            self, original_node: cst.CSTNode, updated_node: cst.CSTNode
        ) -> cst.CSTNode:
            if isinstance(original_node, (cst.Name, cst.Call, cst.Attribute)):
                parent = tree.parent(original_node)
                is_attribute = isinstance(parent, cst.Attribute) and parent.attr is original_node
                is_keyword = isinstance(parent, cst.Arg) and parent.keyword is original_node
                text = tree.code(original_node)
                if text in names and not is_attribute and not is_keyword:
                    return expression(names[text])
            return updated_node

    new = small.visit(Rename())
    assert isinstance(new, cst.CSTNode)
    return tree.code(new.with_changes(semicolon=cst.MaybeSentinel.DEFAULT))
