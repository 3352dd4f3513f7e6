"""Kernels that a function of Python cannot call."""

from __future__ import annotations

from typing import Any, Callable

import torch


def _power_of_number(base: Any, exponent: Any, *, out: Any = None) -> Any:
    """Its kernel makes a tensor of the GPU that is marked as a number.

    A function of Python gets that as a number, without its device. The kernel allocates the result
    first.
    """
    if out is None:
        out = torch.empty_like(exponent, dtype=torch.result_type(exponent, base))
    if base == 1:
        return out.fill_(1)
    wide = torch.scalar_tensor(base, dtype=_DOUBLE.get(type(base)), device=exponent.device)
    return torch.pow(wide, exponent, out=out)


#: The types that PyTorch gives to numbers.
_DOUBLE = {bool: torch.bool, int: torch.int64, float: torch.float64, complex: torch.complex128}
SPECIAL: dict[str, Callable[..., Any]] = {
    "aten::pow.Scalar": _power_of_number,
    "aten::pow.Scalar_out": _power_of_number,
}
