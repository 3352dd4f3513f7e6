"""Attention on the CPU, in the places of the kernels that CUDA has for it."""

from __future__ import annotations

from typing import Any, Callable

import torch


def _probabilities(query: Any, key: Any, bias: Any, is_causal: bool, scale: float | None) -> Any:
    scale = query.size(-1) ** -0.5 if scale is None else scale
    weights = (query.float() @ key.float().transpose(-2, -1)) * scale
    if bias is not None:
        weights = weights + bias.float()
    if is_causal:
        seen = torch.ones(query.size(-2), key.size(-2), dtype=torch.bool, device="cpu").tril()
        weights = weights.masked_fill(~seen, float("-inf"))
    return weights.softmax(-1)


def _of_each_head(query: Any, shared: Any) -> Any:
    """Keys or values for each head of the query: groups of heads may share them."""
    groups = query.size(-3) // shared.size(-3)
    return shared if groups == 1 else shared.repeat_interleave(groups, -3)


def _attention(query: Any, key: Any, value: Any, bias: Any, causal: bool, scale: Any) -> Any:
    key, value = _of_each_head(query, key), _of_each_head(query, value)
    weights = _probabilities(query, key, bias, causal, scale)
    return ((weights @ value.float()).to(query.dtype),)


def _attention_backward(
    grad: Any, query: Any, key: Any, value: Any, bias: Any, causal: bool, scale: float | None
) -> Any:
    heads = key.size(-3)
    wide_key, wide_value = _of_each_head(query, key).float(), _of_each_head(query, value).float()
    weights = _probabilities(query, wide_key, bias, causal, scale)
    scale = query.size(-1) ** -0.5 if scale is None else scale
    grad = grad.float()
    of_weights = grad @ wide_value.transpose(-2, -1)
    of_scores = weights * (of_weights - (of_weights * weights).sum(-1, keepdim=True))
    of_key = of_scores.transpose(-2, -1) @ query.float() * scale
    of_value = weights.transpose(-2, -1) @ grad
    if heads != query.size(-3):
        of_key, of_value = (one.unflatten(-3, (heads, -1)).sum(-3) for one in (of_key, of_value))
    of_query = of_scores @ wide_key * scale
    return of_query.to(query.dtype), of_key.to(key.dtype), of_value.to(value.dtype)


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


ATTENTION: dict[str, Callable[..., Any]] = {
    "_cudnn_attention_backward": _cudnn_backward,
    "_cudnn_attention_forward": _cudnn_forward,
    "_scaled_dot_product_cudnn_attention": _efficient,
    "_scaled_dot_product_cudnn_attention_backward": _cudnn_backward,
    "_scaled_dot_product_efficient_attention": _efficient,
    "_scaled_dot_product_efficient_attention_backward": _efficient_backward,
    "_scaled_dot_product_flash_attention": _flash,
    "_scaled_dot_product_flash_attention_backward": _flash_backward,
}
