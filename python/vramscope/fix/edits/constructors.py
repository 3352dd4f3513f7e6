"""Arguments of constructors: optimizers, DistributedDataParallel, autocast, queues."""

from __future__ import annotations

import libcst as cst

from ..lever import Lever
from ..rewrite import Declined, argument, expression, last_name, with_keyword
from ..sources import Sources
from .places import CallAt, assigned, calls, shown, single_call

#: Optimizers of PyTorch with an implementation in one kernel.
_FUSED = {"Adam", "AdamW", "SGD", "Adagrad"}
#: Optimizers of PyTorch by those of bitsandbytes with states of 8 bits.
_8BIT = {
    "Adam": "Adam8bit",
    "AdamW": "AdamW8bit",
    "SGD": "SGD8bit",
    "RMSprop": "RMSprop8bit",
    "Adagrad": "Adagrad8bit",
}
#: What transformers calls them, as the argument ``optim``.
_OF_TRAINER = {
    "8bit": "adamw_bnb_8bit",
    "adafactor": "adafactor",
    "fused": "adamw_torch_fused",
    "sgd": "sgd",
}
#: Arguments of PyTorch's optimizers that those of bitsandbytes do not have.
_NOT_OF_8BIT = ("foreach", "fused", "capturable", "differentiable", "maximize")


def trainer_arguments(sources: Sources) -> CallAt | None:
    """The one call of a class such as ``transformers.TrainingArguments``; ``None`` without one."""
    if not calls(sources, _is_trainer_arguments):
        return None
    return single_call(sources, _is_trainer_arguments, "TrainingArguments")


def _is_trainer_arguments(name: str) -> bool:
    package, _, last = name.rpartition(".")
    own = last.endswith("TrainingArguments") or (
        package.startswith("trl") and last[-6:] == "Config"
    )
    return own and package.partition(".")[0] in ("transformers", "trl")


def set_trainer_arguments(sources: Sources, **values: str) -> str | None:
    """Sets arguments of the one call of ``TrainingArguments``. Returns where; ``None`` without."""
    found = trainer_arguments(sources)
    if found is None:
        return None
    new = found.call
    for name, value in values.items():
        new = with_keyword(new, name, value)
    found.tree.replace(found.call, new)
    words = ", ".join(f"{name}={value}" for name, value in values.items())
    return f"{words} at {found.shown}"


def optimizer(lever: Lever, sources: Sources) -> str:
    """Another implementation of an optimizer, or another optimizer."""
    if lever.value in _OF_TRAINER:
        told = set_trainer_arguments(sources, optim=f'"{_OF_TRAINER[lever.value]}"')
        if told is not None:
            return told
    tree, path, call = single_call(sources, _is_optimizer, "an optimizer of PyTorch")
    name = last_name(call.func)
    name = tree.name(call).rpartition(".")[2] or name
    at = shown(path, tree.lines(call)[0])
    if lever.value == "fused":
        if name not in _FUSED:
            raise Declined(f"{name} has no fused implementation")
        new = with_keyword(call, "fused", "True")
        tree.replace(call, _without(new, "foreach"))
        return f"fused=True at {at}"
    if lever.value == "8bit":
        if name not in _8BIT:
            raise Declined(f"bitsandbytes has no {name} with states of 8 bits")
        new = _without(call, *_NOT_OF_8BIT)
        tree.add_import("bitsandbytes")
        tree.replace(call, new.with_changes(func=expression(f"bitsandbytes.optim.{_8BIT[name]}")))
        return f"bitsandbytes.optim.{_8BIT[name]} at {at}"
    # Its arguments, and what is learned with it, are for its user to choose.
    raise Declined(f"what replaces {name} at {at} changes the training: choose its arguments")


def foreach(lever: Lever, sources: Sources) -> str:
    """An optimizer that updates one parameter after the other."""
    tree, path, call = single_call(sources, _is_optimizer, "an optimizer of PyTorch")
    tree.replace(call, _without(with_keyword(call, "foreach", "False"), "fused"))
    return f"foreach=False at {shown(path, tree.lines(call)[0])}"


def autocast_cache(lever: Lever, sources: Sources) -> str:
    """Autocast without copies of the weights that live until its end."""
    tree, path, call = single_call(
        sources, lambda name: name.startswith("torch.") and name.endswith("autocast"), "autocast"
    )
    tree.replace(call, with_keyword(call, "cache_enabled", "False"))
    return f"cache_enabled=False at {shown(path, tree.lines(call)[0])}"


def bucket_views(lever: Lever, sources: Sources) -> str:
    """Gradients that lie in the buckets of DistributedDataParallel."""
    tree, path, call = single_call(
        sources,
        lambda name: name.startswith("torch.") and name.endswith(".DistributedDataParallel"),
        "DistributedDataParallel",
    )
    tree.replace(call, with_keyword(call, "gradient_as_bucket_view", "True"))
    return f"gradient_as_bucket_view=True at {shown(path, tree.lines(call)[0])}"


def peak_cause(lever: Lever, sources: Sources) -> str:
    """A bound for what waits in a queue; results of an evaluation that go to the host."""
    try:
        return _bound_queue(lever, sources)
    except Declined:
        told = set_trainer_arguments(sources, eval_accumulation_steps="1")
        if told is None:
            raise
        return told


def _bound_queue(lever: Lever, sources: Sources) -> str:
    """A queue whose producer waits."""
    for holder in lever.holders:
        # ``ready.queue`` is the list inside of the queue ``ready``.
        name = holder.rpartition(".")[0] or holder
        for path in sources.files:
            tree = sources.tree(path)
            made = [one for one in assigned(tree, name) if isinstance(one.value, cst.Call)]
            calls = [one.value for one in made if isinstance(one.value, cst.Call)]
            queues = [one for one in calls if tree.name(one) in ("queue.Queue", "queue.LifoQueue")]
            if len(calls) != 1 or len(queues) != 1:
                continue
            call = queues[0]
            if call.args and argument(call, "maxsize") is None:
                call = call.with_changes(args=())
            tree.replace(queues[0], with_keyword(call, "maxsize", "2"))
            return f"maxsize=2 at {shown(path, tree.lines(queues[0])[0])}"
    raise Declined("no line shows where the queue is made")


def _is_optimizer(name: str) -> bool:
    return (
        name.startswith("torch.optim.")
        and name.rpartition(".")[2][:1].isupper()
        and not (".lr_scheduler." in name or ".swa_utils." in name)
    )


def _without(call: cst.Call, *names: str) -> cst.Call:
    args = [one for one in call.args if one.keyword is None or one.keyword.value not in names]
    return call.with_changes(args=args)
