"""Operators whose kernels of CUDA have no equal on the CPU."""

from __future__ import annotations

from typing import Any, Callable

import torch

_aten = torch.ops.aten


def _probabilities(query: Any, key: Any, bias: Any, is_causal: bool, scale: float | None) -> Any:
    scale = query.size(-1) ** -0.5 if scale is None else scale
    weights = (query.float() @ key.float().transpose(-2, -1)) * scale
    if bias is not None:
        weights = weights + bias.float()
    if is_causal:
        seen = torch.ones(query.size(-2), key.size(-2), dtype=torch.bool, device="cpu").tril()
        weights = weights.masked_fill(~seen, float("-inf"))
    return weights.softmax(-1)


def _attention(query: Any, key: Any, value: Any, bias: Any, causal: bool, scale: Any) -> Any:
    """The result, and the logarithms of the sums that the softmax divides by."""
    groups = query.size(-3) // key.size(-3)
    if groups > 1:
        key, value = (one.repeat_interleave(groups, -3) for one in (key, value))
    weights = _probabilities(query, key, bias, causal, scale)
    return ((weights @ value.float()).to(query.dtype),)


def _attention_backward(
    grad: Any, query: Any, key: Any, value: Any, bias: Any, causal: bool, scale: float | None
) -> Any:
    weights = _probabilities(query, key, bias, causal, scale)
    scale = query.size(-1) ** -0.5 if scale is None else scale
    grad = grad.float()
    of_weights = grad @ value.float().transpose(-2, -1)
    of_scores = weights * (of_weights - (of_weights * weights).sum(-1, keepdim=True))
    return (
        (of_scores @ key.float() * scale).to(query.dtype),
        (of_scores.transpose(-2, -1) @ query.float() * scale).to(key.dtype),
        (weights.transpose(-2, -1) @ grad).to(value.dtype),
    )


def _flash(
    q: Any, k: Any, v: Any, p: Any = 0, causal: Any = False, *_: Any, scale: Any = None
) -> Any:
    return _attention(q, k, v, None, causal, scale)


def _efficient(
    q: Any,
    k: Any,
    v: Any,
    bias: Any,
    lse: Any,
    p: Any = 0,
    causal: Any = False,
    *_: Any,
    scale: Any = None,
) -> Any:
    return _attention(q, k, v, bias, causal, scale)


def _cudnn_forward(
    q: Any,
    k: Any,
    v: Any,
    bias: Any,
    cq: Any,
    ck: Any,
    mq: Any,
    mk: Any,
    lse: Any,
    p: Any = 0,
    causal: Any = False,
    *_: Any,
    scale: Any = None,
) -> Any:
    return _attention(q, k, v, bias, causal, scale)


def _flash_backward(
    grad: Any,
    q: Any,
    k: Any,
    v: Any,
    out: Any,
    lse: Any,
    cq: Any,
    ck: Any,
    mq: Any,
    mk: Any,
    p: Any,
    causal: Any,
    *_: Any,
    scale: Any = None,
) -> Any:
    return _attention_backward(grad, q, k, v, None, causal, scale)


def _efficient_backward(
    grad: Any,
    q: Any,
    k: Any,
    v: Any,
    bias: Any,
    out: Any,
    lse: Any,
    seed: Any,
    offset: Any,
    p: Any,
    mask: Any,
    causal: Any = False,
    *,
    scale: Any = None,
) -> Any:
    return _attention_backward(grad, q, k, v, bias, causal, scale)


def _cudnn_backward(
    grad: Any,
    q: Any,
    k: Any,
    v: Any,
    out: Any,
    lse: Any,
    seed: Any,
    offset: Any,
    bias: Any,
    cq: Any,
    ck: Any,
    mq: Any,
    mk: Any,
    p: Any,
    causal: Any,
    *,
    scale: Any = None,
) -> Any:
    return _attention_backward(grad, q, k, v, bias, causal, scale)


def _layer_norm_backward(
    grad: Any, x: Any, shape: Any, mean: Any, rstd: Any, weight: Any, bias: Any, mask: Any
) -> Any:
    """The CPU wants mean and deviation in the type of the input; CUDA has them in float32."""
    wide = [None if one is None else one.float() for one in (grad, x, mean, rstd, weight, bias)]
    results = _aten.native_layer_norm_backward(
        wide[0], wide[1], shape, wide[2], wide[3], wide[4], wide[5], mask
    )
    return tuple(None if one is None else one.to(x.dtype) for one in results)


SUBSTITUTES: dict[str, Callable[..., Any]] = {
    "_cudnn_attention_backward": _cudnn_backward,
    "_cudnn_attention_forward": _cudnn_forward,
    "_scaled_dot_product_cudnn_attention": _efficient,
    "_scaled_dot_product_cudnn_attention_backward": _cudnn_backward,
    "_scaled_dot_product_efficient_attention": _efficient,
    "_scaled_dot_product_efficient_attention_backward": _efficient_backward,
    "_scaled_dot_product_flash_attention": _flash,
    "_scaled_dot_product_flash_attention_backward": _flash_backward,
    "native_layer_norm_backward": _layer_norm_backward,
}
