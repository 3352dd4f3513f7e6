"""Operators whose kernels of CUDA have no equal on the CPU.

A substitute may return fewer results than the operator: the others are made up.
"""

from __future__ import annotations

from typing import Any, Callable

import torch

from .attention import ATTENTION
from .cudnn import CUDNN

_aten = torch.ops.aten


def _layer_norm_backward(
    grad: Any, x: Any, shape: Any, mean: Any, rstd: Any, weight: Any, bias: Any, mask: Any
) -> Any:
    """The CPU wants mean and deviation in the type of the input; CUDA has them in float32."""
    grad, wide, mean, rstd, weight, bias = (
        None if one is None else one.float() for one in (grad, x, mean, rstd, weight, bias)
    )
    results = _aten.native_layer_norm_backward(grad, wide, shape, mean, rstd, weight, bias, mask)
    return [None if one is None else one.to(x.dtype) for one in results]


def _rms_norm_backward(grad: Any, x: Any, shape: Any, rstd: Any, weight: Any, mask: Any) -> Any:
    dims = list(range(-len(shape), 0))
    wide, scaled = x.float(), grad.float() if weight is None else grad.float() * weight.float()
    normal = wide * rstd
    of_x = rstd * (scaled - normal * (scaled * normal).mean(dims, keepdim=True))
    of_weight = None
    if weight is not None:
        batch = list(range(x.dim() - len(shape)))
        of_weight = grad.float() * normal
        # An empty list would stand for all dimensions.
        of_weight = (of_weight.sum(batch) if batch else of_weight).to(weight.dtype)
    wanted = zip((of_x.to(x.dtype), of_weight), mask)
    return [one if is_wanted else None for one, is_wanted in wanted]


def _log_sigmoid_backward(grad: Any, x: Any, buffer: Any) -> Any:
    """The CPU wants a buffer of its own forward kernel."""
    return grad * torch.sigmoid(-x)


def _histogram(x: Any, *options: Any, **named: Any) -> Any:
    """The CPU counts no integers."""
    wide = x if x.dtype.is_floating_point else x.double()
    return _aten.histc(wide, *options, **named).to(x.dtype)


def _embedding_bag(weight: Any, indices: Any, offsets: Any, *options: Any, **named: Any) -> Any:
    """The output alone: the others differ in shape between the devices."""
    return _aten._embedding_bag(weight, indices, offsets, *options, **named)[:1]


def _dropout(x: Any, p: float, generator: Any = None) -> Any:
    """``p`` is the share that is kept."""
    mask = torch.empty(x.shape, dtype=torch.uint8, device="cpu").bernoulli_(p, generator=generator)
    return x * mask / p, mask


def _masked_scale(x: Any, mask: Any, scale: float) -> Any:
    return x * mask * scale


def _gates(of_input: Any, of_hidden: Any, biases: Any) -> Any:
    gates = of_input + of_hidden
    for one in biases:
        gates = gates if one is None else gates + one
    return gates


def _lstm_cell(of_input: Any, of_hidden: Any, cx: Any, bias: Any = None, other: Any = None) -> Any:
    taken, kept, cell, out = _gates(of_input, of_hidden, (bias, other)).chunk(4, 1)
    taken, kept, cell, out = taken.sigmoid(), kept.sigmoid(), cell.tanh(), out.sigmoid()
    cy = kept * cx + taken * cell
    return out * cy.tanh(), cy, torch.cat([taken, kept, cell, out], 1)


def _gru_cell(of_input: Any, of_hidden: Any, hx: Any, bias: Any = None, other: Any = None) -> Any:
    inputs = _gates(of_input, 0, (bias,)).chunk(3, 1)
    hidden = _gates(of_hidden, 0, (other,)).chunk(3, 1)
    reset, update = (inputs[0] + hidden[0]).sigmoid(), (inputs[1] + hidden[1]).sigmoid()
    new = (inputs[2] + reset * hidden[2]).tanh()
    return new + update * (hx - new), torch.cat([reset, update, new, hx, hidden[2]], 1)


def _mm(one: Any, other: Any, dtype: Any) -> Any:
    return one.to(dtype) @ other.to(dtype)


def _addmm(x: Any, one: Any, other: Any, dtype: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    return beta * x.to(dtype) + alpha * _mm(one, other, dtype)


def _norm_stats(x: Any, epsilon: float) -> Any:
    var, mean = torch.var_mean(x.float(), [0, *range(2, x.dim())], correction=0)
    return mean, (var + epsilon).rsqrt()


def _norm_elements(x: Any, weight: Any, bias: Any, mean: Any, invstd: Any, epsilon: float) -> Any:
    shape = [1, -1, *[1] * (x.dim() - 2)]
    result = (x.float() - mean.view(shape)) * invstd.view(shape)
    result = result if weight is None else result * weight.float().view(shape)
    return (result if bias is None else result + bias.float().view(shape)).to(x.dtype)


#: Operators whose further results only substitutes get, which compute them anew: logarithms of
#: sums, seeds, reserved space.
PRIVATE = frozenset((*ATTENTION, "_cudnn_ctc_loss", "_cudnn_rnn", "cudnn_batch_norm"))
#: By name, or by name and overload.
SUBSTITUTES: dict[str, Callable[..., Any]] = {
    **ATTENTION,
    **CUDNN,
    "_embedding_bag": _embedding_bag,
    "_embedding_bag_forward_only": _embedding_bag,
    "_fused_dropout": _dropout,
    "_fused_rms_norm_backward": _rms_norm_backward,
    "_masked_scale": _masked_scale,
    "_thnn_fused_gru_cell": _gru_cell,
    "_thnn_fused_lstm_cell": _lstm_cell,
    "addmm.dtype": _addmm,
    "addmm.dtype_out": _addmm,
    "baddbmm.dtype": _addmm,
    "baddbmm.dtype_out": _addmm,
    "batch_norm_elemt": _norm_elements,
    "batch_norm_stats": _norm_stats,
    "bmm.dtype": _mm,
    "bmm.dtype_out": _mm,
    "histc": _histogram,
    "log_sigmoid_backward": _log_sigmoid_backward,
    "mm.dtype": _mm,
    "mm.dtype_out": _mm,
    "native_layer_norm_backward": _layer_norm_backward,
}
