"""Numbers of Python in the place of tensors.

PyTorch marks a tensor that was a number, and such a tensor does not raise the type of a result
beyond its kind: int64 times 0.07 is float32. A function in Python gets the number back, and a
kernel takes tensors only. A tensor of the type that the result has does the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

Number = (int, float, bool, complex)


def with_tensors(operator: Any, args: tuple[Any, ...]) -> Any:
    """The arguments of an operator, with tensors for numbers where it takes tensors only."""
    kinds = operator._schema.arguments
    for one, kind in zip(args, kinds):
        if one.__class__ in Number and "Tensor" in str(kind.type):
            return as_tensors(
                [at for at, kind in enumerate(kinds) if "Tensor" in str(kind.type)], args
            )
    return args


def as_tensors(positions: Iterable[int], args: tuple[Any, ...]) -> list[Any]:
    """The arguments, with tensors for numbers."""
    replaced = list(args)
    others = [one for one in args if isinstance(one, torch.Tensor)]
    for at in positions:
        if at < len(replaced) and isinstance(replaced[at], Number):
            value = replaced[at]
            replaced[at] = torch.scalar_tensor(value, dtype=_type(others, value), device="cpu")
    return replaced


def _type(others: list[Any], value: Any) -> Any:
    if others and all(not one.dim() for one in others):
        return torch.result_type(others[0], value)
    if isinstance(value, bool):
        return torch.bool
    if isinstance(value, int):
        return torch.int64
    if isinstance(value, complex):
        doubles = (torch.float64, torch.complex128)
        is_double = not others or any(one.dtype in doubles for one in others)
        return torch.complex128 if is_double else torch.complex64
    if any(one.dtype.is_floating_point or one.dtype.is_complex for one in others):
        return torch.float64
    return torch.get_default_dtype()
