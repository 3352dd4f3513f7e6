"""Names, shapes and types of a model's tensors, by their address on the device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .backend import DEVICE_TYPES

#: Parts of a parameter's name that wrappers add: ``torch.compile``, FSDP, activation checkpointing.
WRAPPERS = ("_orig_mod.", "_fsdp_wrapped_module.", "_checkpoint_wrapped_module.")
#: Wrappers that hold the model as ``module``.
PARALLEL = ("DataParallel", "DistributedDataParallel")


def tensors_of(models: Sequence[Any], optimizers: Sequence[Any]) -> list[dict[str, Any]]:
    """The parameters, buffers, gradients and optimizer state that are on a device now.

    Each has ``kind``, ``name``, ``device``, ``address``, ``bytes``, ``shape`` and ``dtype``.
    Tensors that share memory occur once per name.
    """
    models = [_without_wrapper(model) for model in models]
    entries = [entry for model in models for entry in _of_model(model)]
    names = {id(each): name for model in models for name, each in _named_parameters(model)}
    entries += [entry for optimizer in optimizers for entry in _of_optimizer(optimizer, names)]
    return entries


def _without_wrapper(model: Any) -> Any:
    return model.module if type(model).__name__ in PARALLEL else model


def _named_parameters(model: Any) -> Iterator[tuple[str, Any]]:
    for name, parameter in model.named_parameters():
        yield _plain(name), parameter


def _plain(name: str) -> str:
    for wrapper in WRAPPERS:
        name = name.replace(wrapper, "")
    return name


def _of_model(model: Any) -> Iterator[dict[str, Any]]:
    for name, parameter in _named_parameters(model):
        yield from _entry("parameter", name, parameter)
        gradient = parameter.grad
        if gradient is not None:
            yield from _entry("gradient", name, gradient)
    for name, buffer in model.named_buffers():
        yield from _entry("buffer", _plain(name), buffer)


def _of_optimizer(optimizer: Any, names: dict[int, str]) -> Iterator[dict[str, Any]]:
    for parameter, state in getattr(optimizer, "state", {}).items():
        # A shard of a parameter has no name of its own.
        name = names.get(id(parameter), "")
        for key, value in state.items() if isinstance(state, dict) else ():
            yield from _entry("optimizer_state", f"{name}.{key}" if name else str(key), value)


def _entry(kind: str, name: str, value: Any) -> Iterator[dict[str, Any]]:
    tensor = _local(value)
    device = getattr(getattr(tensor, "device", None), "type", None)
    if device not in DEVICE_TYPES:
        return
    try:
        # The storage is what the allocator has handed out: a view may begin inside of it.
        address = tensor.untyped_storage().data_ptr()
        size = tensor.untyped_storage().nbytes()
    except RuntimeError:
        # A tensor without memory, such as one of FakeTensorMode.
        return
    if address == 0:
        return
    yield {
        "kind": kind,
        "name": name,
        "device": tensor.device.index,
        "address": address,
        "bytes": size,
        "shape": list(tensor.shape),
        "dtype": str(tensor.dtype).replace("torch.", ""),
    }


def _local(value: Any) -> Any:
    """The tensor on this rank: that of a ``DTensor`` is inside of it."""
    inner = getattr(value, "_local_tensor", None)
    tensor = value if inner is None else inner
    return tensor if hasattr(tensor, "untyped_storage") else None
