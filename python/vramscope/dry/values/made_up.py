"""Plausible values for small results that are not computed.

Experts get equal shares, positions differ, numbers are normal, and none is NaN.
"""

from __future__ import annotations

from typing import Any

import torch

from .compute import Cpu
from .report import Report

#: Operators whose result is an index into the dimension that they reduce.
INDICES = {
    "argmax",
    "argmin",
    "argsort",
    "cummax",
    "cummin",
    "fractional_max_pool2d",
    "kthvalue",
    "max",
    "median",
    "min",
    "mode",
    "multinomial",
    "nanmedian",
    "sort",
    "topk",
}
#: Of those, the ones whose indices differ along the dimension.
DISTINCT = {"argsort", "sort", "topk"}
#: Operators whose result is positive.
POSITIVE = {
    "_foreach_norm",
    "_log_softmax_backward_data",
    "abs",
    "amax",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "exp",
    "linalg_vector_norm",
    "logsumexp",
    "mse_loss",
    "native_group_norm",
    "native_layer_norm",
    "nll_loss2d_forward",
    "nll_loss_forward",
    "norm",
    "std",
    "std_mean",
    "var",
    "var_mean",
}
#: Operators whose result is nearly always the same.
USUAL = {
    "all": 1,
    "any": 0,
    "eq": 0,
    "isfinite": 1,
    "isinf": 0,
    "isnan": 0,
    "logical_not": 0,
    "ne": 1,
}
#: Numbers that are drawn once, and how far a draw moves on in them.
_DRAWN = 1 << 18
_STEP = 977
_FEWEST_POSITIVE = 0.1


class Maker:
    """Makes values up."""

    def __init__(self, cpu: Cpu, report: Report) -> None:
        self._cpu = cpu
        self._report = report
        self._drawn: Any = None
        self._at = 0

    def fill(self, name: str, tensor: Any, args: Any = ()) -> None:
        """Fills a result of an operator with plausible values."""
        try:
            target = self._cpu.view(tensor)
            if not target.numel():
                return
            if target.dtype.is_floating_point or target.dtype.is_complex:
                noise = self._noise(target.numel()).view(target.shape)
                target.copy_(noise.abs() + _FEWEST_POSITIVE if name in POSITIVE else noise)
            elif name in INDICES and args:
                self._fill_indices(name, target, args)
            elif name in USUAL:
                # A tensor equals itself: nothing is made up that is no number.
                is_same = name in ("eq", "ne") and len(args) > 1 and args[0] is args[1]
                target.fill_(USUAL[name] ^ is_same)
            elif target.dtype == torch.bool:
                target.copy_(self._noise(target.numel()).view(target.shape) > 0)
            else:
                target.zero_()
        except Exception as error:
            self._report.fail(name, f"cannot make values up: {error}")

    def _noise(self, count: int) -> Any:
        if self._drawn is None:
            self._drawn = torch.randn(
                _DRAWN, generator=self._cpu.generator, dtype=torch.float32, device="cpu"
            )
        if count > _DRAWN:
            return torch.randn(
                count, generator=self._cpu.generator, dtype=torch.float32, device="cpu"
            )
        at = self._at = (self._at + _STEP) % (_DRAWN - count + 1)
        return self._drawn[at : at + count]

    def _fill_indices(self, name: str, target: Any, args: Any) -> None:
        source = args[0]
        dim: int | None = -1
        if name == "topk":
            dim = args[2] if len(args) > 2 else -1
        elif name in ("argmax", "argmin", "max", "min", "median", "nanmedian"):
            dim = args[1] if len(args) > 1 and args[1].__class__ is int else None
        elif name == "kthvalue":
            dim = args[2] if len(args) > 2 else -1
        elif name != "multinomial" and len(args) > 1 and args[1].__class__ is int:
            dim = args[1]
        size = source.numel() if dim is None or not source.dim() else source.size(dim)
        size = max(size, 1)
        generator = self._cpu.generator
        if name in DISTINCT and target.dim() and dim is not None:
            count = target.size(dim)
            along = [1] * target.dim()
            along[dim] = count
            starts = list(target.shape)
            starts[dim] = 1
            start = torch.randint(0, size, starts, generator=generator, device="cpu")
            target.copy_((start + torch.arange(count, device="cpu").view(along)) % size)
        else:
            target.copy_(torch.randint(0, size, target.shape, generator=generator, device="cpu"))
