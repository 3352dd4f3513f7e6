"""What the interception of an operator needs to know, read once from its schema."""

from __future__ import annotations

from typing import Any

import torch

from .substitutes import PRIVATE, SUBSTITUTES

#: Operators that allocate and write nothing.
ALLOCATES = {
    "empty",
    "empty_like",
    "empty_quantized",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
}
#: Operators that compute nothing, or only by others, though their schemas name no alias.
PASSES = {
    "_cudnn_rnn_flatten_weight",
    "_pin_memory",
    "_reshape_alias",
    "_unsafe_view",
    "is_pinned",
    "lift",
    "lift_fresh",
    "record_stream",
}
#: Operators after which the former values of what they write do not matter.
OVERWRITES = {
    "bernoulli_",
    "cauchy_",
    "copy_",
    "exponential_",
    "fill_",
    "geometric_",
    "log_normal_",
    "normal_",
    "random_",
    "uniform_",
    "zero_",
}
#: Operators whose kernel reads back how large the result is.
COUNTED = {
    "_unique",
    "_unique2",
    "equal",
    "masked_select",
    "nms",
    "nonzero",
    "repeat_interleave",
    "unique_consecutive",
    "unique_dim",
    "unique_dim_consecutive",
}
#: Operators whose kernel calls others that read a size.
SIZED = {"bincount", "histogramdd"}
#: Operators that give a value to the host, and whose result no size depends on.
ANSWERS = {"_local_scalar_dense", "equal", "is_nonzero"}
#: Namespaces with kernels of the CPU for each operator.
COMPUTED_NAMESPACES = ("aten", "torchvision")


class Plan:
    """How an operator is intercepted."""

    __slots__ = (
        "allocates",
        "answers",
        "call",
        "counted",
        "is_copy",
        "is_foreign",
        "is_out",
        "is_private",
        "is_random",
        "is_resize",
        "keywords",
        "name",
        "operator",
        "outputs",
        "overwrites",
        "positions",
        "sized",
        "takes_generator",
    )

    def __init__(self, operator: Any, name: str, is_foreign: bool) -> None:
        arguments = operator._schema.arguments
        self.operator = operator
        substitute = SUBSTITUTES.get(f"{name}.{operator._overloadname}", SUBSTITUTES.get(name))
        #: What computes it on the CPU.
        self.call = substitute or operator
        self.name = name
        #: Its results that are not computed are not missed.
        self.is_private = name in PRIVATE
        #: It has no kernel of the CPU that takes the same arguments.
        self.is_foreign = is_foreign
        self.allocates = name in ALLOCATES
        self.answers = name in ANSWERS
        self.counted = name in COUNTED
        self.sized = name in SIZED
        self.overwrites = name in OVERWRITES
        self.is_copy = name == "copy_"
        self.is_resize = name == "resize_"
        self.is_random = torch.Tag.nondeterministic_seeded in operator.tags
        self.takes_generator = any(one.name == "generator" for one in arguments)
        #: Arguments that are tensors or lists of them: position, and whether they are written.
        self.positions = tuple(
            (at, _is_written(one)) for at, one in enumerate(arguments) if _is_tensor(one)
        )
        self.keywords = {one.name: _is_written(one) for one in arguments if _is_tensor(one)}
        #: It writes arguments whose size it may change.
        self.is_out = any(one.is_out for one in arguments)
        #: The names of arguments that are left out on the CPU, which makes results of its own.
        self.outputs = frozenset(
            one.name for one in arguments if one.is_out and (substitute or self.counted)
        )
        if self.counted and self.is_out:
            # What is written has not its final size yet.
            self.call = getattr(getattr(torch.ops, operator.namespace), name).default


def plan_of(operator: Any, namespace: str, name: str, is_foreign: bool) -> Plan | None:
    """The plan of an operator; ``None`` for one that is left alone."""
    schema = operator._schema
    if name in PASSES or any("Storage" in str(one.type) for one in schema.arguments):
        return None
    writes = any(_is_written(one) for one in schema.arguments)
    if not writes and any(one.alias_info is not None for one in schema.returns):
        return None
    if namespace not in COMPUTED_NAMESPACES:
        is_foreign = True
    plan = Plan(operator, name, is_foreign)
    if plan.call is operator and not _has_cpu(schema.name + _overload(operator), "CPU"):
        plan.is_foreign = True
    return plan


def _overload(operator: Any) -> str:
    overload = str(operator._overloadname)
    return "" if overload == "default" else f".{overload}"


_has_cpu = torch._C._dispatch_has_computed_kernel_for_dispatch_key


def _is_tensor(argument: Any) -> bool:
    return "Tensor" in str(argument.type)


def _is_written(argument: Any) -> bool:
    return argument.alias_info is not None and bool(argument.alias_info.is_write)
