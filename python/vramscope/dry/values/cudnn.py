"""cuDNN's operators on the CPU."""

from __future__ import annotations

from typing import Any, Callable

import torch

_aten = torch.ops.aten
#: The modes of cuDNN's recurrent networks.
_RNN_RELU, _RNN_TANH, _LSTM, _GRU = 0, 1, 2, 3


def _convolved(
    x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    none = [0] * len(stride)
    return _aten.convolution(x, weight, bias, stride, padding, dilation, False, none, groups)


def _convolution(
    x: Any, weight: Any, padding: Any, stride: Any, dilation: Any, groups: int, *_: Any
) -> Any:
    return _convolved(x, weight, None, stride, padding, dilation, groups)


def _transposed(
    x: Any,
    weight: Any,
    padding: Any,
    output_padding: Any,
    stride: Any,
    dilation: Any,
    groups: int,
    *_: Any,
) -> Any:
    return _aten.convolution(
        x, weight, None, stride, padding, dilation, True, output_padding, groups
    )


def _convolution_relu(
    x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    return _convolved(x, weight, bias, stride, padding, dilation, groups).relu()


def _convolution_add_relu(
    x: Any,
    weight: Any,
    other: Any,
    alpha: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
) -> Any:
    convolved = _convolved(x, weight, bias, stride, padding, dilation, groups)
    return (convolved + (1 if alpha is None else alpha) * other).relu()


def _depthwise(
    x: Any, weight: Any, kernel: Any, bias: Any, stride: Any, padding: Any, dilation: Any
) -> Any:
    return _convolved(x, weight, bias, stride, padding, dilation, x.size(1))


def _batch_norm_backward(
    x: Any,
    grad: Any,
    weight: Any,
    mean: Any,
    var: Any,
    save_mean: Any,
    save_var: Any,
    epsilon: float,
    *_: Any,
) -> Any:
    return _aten.native_batch_norm_backward(
        grad, x, weight, mean, var, save_mean, save_var, True, epsilon, [True, True, True]
    )


def _rnn(
    x: Any,
    weights: Any,
    stride: int,
    buffer: Any,
    hx: Any,
    cx: Any,
    mode: int,
    hidden: int,
    projection: int,
    layers: int,
    batch_first: bool,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_sizes: Any,
    state: Any,
) -> Any:
    """The output and the last states. Sequences of different lengths come packed."""
    has_biases = stride >= 4
    options = [list(weights), has_biases, layers, 0.0, train, bidirectional]
    call: Any = {
        _RNN_RELU: torch.rnn_relu,
        _RNN_TANH: torch.rnn_tanh,
        _LSTM: torch.lstm,
        _GRU: torch.gru,
    }[mode]
    before = [hx, cx] if mode == _LSTM else hx
    if len(batch_sizes):
        sizes = torch.tensor(list(batch_sizes), device="cpu")
        return call(x, sizes, before, *options)
    return call(x, before, *options, batch_first)


def _grid_sampler(x: Any, grid: Any) -> Any:
    return _aten.grid_sampler_2d(x, grid, 0, 0, True)


def _grid_sampler_backward(x: Any, grid: Any, grad: Any) -> Any:
    return _aten.grid_sampler_2d_backward(grad, x, grid, 0, 0, True, [True, True])


def _affine_grid(theta: Any, n: int, c: int, h: int, w: int) -> Any:
    return _aten.affine_grid_generator(theta, [n, c, h, w], True)


def _ctc_loss(
    log_probs: Any,
    targets: Any,
    inputs: Any,
    lengths: Any,
    blank: int,
    deterministic: bool,
    zero_infinity: bool,
) -> Any:
    """The loss alone: the second result is cuDNN's gradient."""
    return _aten._ctc_loss(log_probs, targets, inputs, lengths, blank, zero_infinity)[:1]


CUDNN: dict[str, Callable[..., Any]] = {
    "_conv_depthwise2d": _depthwise,
    "_cudnn_ctc_loss": _ctc_loss,
    "_cudnn_rnn": _rnn,
    "conv_depthwise3d": _depthwise,
    "cudnn_affine_grid_generator": _affine_grid,
    "cudnn_batch_norm": _aten.native_batch_norm,
    "cudnn_batch_norm_backward": _batch_norm_backward,
    "cudnn_convolution": _convolution,
    "cudnn_convolution_add_relu": _convolution_add_relu,
    "cudnn_convolution_relu": _convolution_relu,
    "cudnn_convolution_transpose": _transposed,
    "cudnn_grid_sampler": _grid_sampler,
    "cudnn_grid_sampler_backward": _grid_sampler_backward,
}
