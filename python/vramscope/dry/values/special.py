"""Kernels that a function of Python cannot call."""

from __future__ import annotations

from typing import Any, Callable

import torch


def _power_of_number(base: Any, exponent: Any) -> Any:
    """Its kernel makes a tensor of the GPU that is marked as a number.

    A function of Python gets that as a number, without its device.
    """
    dtype = torch.result_type(exponent, base)
    return torch.pow(torch.full((), base, dtype=dtype, device=exponent.device), exponent)


SPECIAL: dict[str, Callable[..., Any]] = {"aten::pow.Scalar": _power_of_number}
