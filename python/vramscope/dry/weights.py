"""Large weights stay without pages: what only the device's kernels would read.

A model of 7 billion parameters takes 28 GB of the host's memory if it is made on the CPU, and its
first values are drawn there one by one. In a dry run nothing reads them.
"""

from __future__ import annotations

import functools
import os
from typing import Any, Callable

#: Tensors of at least this many bytes keep the zeros that new memory has.
LARGE = 1 << 20
_FILLING = ("normal_", "uniform_", "constant_", "ones_", "zeros_")


def start(torch: Any) -> None:
    """Leaves out the first values of large weights on the CPU, and what large files hold."""
    init = torch.nn.init
    for name in dir(init):
        call = getattr(init, name)
        # Those that only fill their argument, not `orthogonal_` or `eye_`.
        if name.endswith(_FILLING) and callable(call):
            setattr(init, name, _of_small(torch, call))
    apply = torch.nn.Module._apply

    def of_small(module: Any, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return apply(module, _converted(torch, call), *args, **kwargs)

    torch.nn.Module._apply = of_small
    torch.load = torch.serialization.load = _mapped(torch.load)


def _is_large(torch: Any, tensor: Any) -> bool:
    return (
        isinstance(tensor, torch.Tensor)
        and tensor.device.type == "cpu"
        and tensor.numel() * tensor.element_size() >= LARGE
    )


def _of_small(torch: Any, call: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(call)
    def draw(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        return tensor if _is_large(torch, tensor) else call(tensor, *args, **kwargs)

    return draw


def _converted(torch: Any, call: Callable[..., Any]) -> Callable[..., Any]:
    """A conversion of a module's tensors that does not copy large ones to another type."""

    def convert(tensor: Any) -> Any:
        # A memory format is for tensors with more dimensions.
        if not _is_large(torch, tensor) or tensor.dim() > 3:
            return call(tensor)
        kind = call(tensor.new_empty(0))
        is_copied = isinstance(kind, torch.Tensor) and kind.device.type == "cpu"
        if not is_copied or kind.dtype == tensor.dtype:
            return call(tensor)
        return torch.empty_like(tensor, dtype=kind.dtype)

    return convert


def _mapped(load: Callable[..., Any]) -> Callable[..., Any]:
    """``torch.load`` that maps large files: pages that nothing reads are never there."""

    @functools.wraps(load)
    def load_mapped(file: Any, *args: Any, **kwargs: Any) -> Any:
        is_path = isinstance(file, (str, os.PathLike))
        if is_path and kwargs.get("mmap") is None and os.path.getsize(file) >= LARGE:
            try:
                return load(file, *args, **{**kwargs, "mmap": True})
            except (RuntimeError, ValueError):
                # A file of an old form cannot be mapped.
                pass
        return load(file, *args, **kwargs)

    return load_mapped


def take_shapes_from_configurations(transformers: Any) -> None:
    """Makes models of transformers without their files of weights."""
    original = transformers.PreTrainedModel.from_pretrained.__func__

    def from_pretrained(cls: Any, name: Any, *args: Any, **kwargs: Any) -> Any:
        configuration = kwargs.pop("config", None)
        own = {key: kwargs.pop(key) for key in _OF_CONFIGURATION if key in kwargs}
        if configuration is None:
            configuration = transformers.AutoConfig.from_pretrained(name, **own)
        kind = kwargs.get("dtype", kwargs.get("torch_dtype"))
        if kind in (None, "auto"):
            kind = getattr(configuration, "dtype", None) or getattr(
                configuration, "torch_dtype", None
            )
        made = {key: kwargs[key] for key in _OF_MODEL if key in kwargs}
        model = cls._from_config(configuration, **({"dtype": kind} if kind else {}), **made)
        model.eval()
        device = _device(kwargs.get("device_map"))
        return model if device is None else model.to(device)

    from_pretrained.__doc__ = original.__doc__
    transformers.PreTrainedModel.from_pretrained = classmethod(from_pretrained)


#: Arguments of ``from_pretrained`` that the configuration takes, too.
_OF_CONFIGURATION = (
    "cache_dir",
    "force_download",
    "local_files_only",
    "token",
    "revision",
    "subfolder",
    "trust_remote_code",
)
#: Those that a model takes.
_OF_MODEL = ("attn_implementation", "experts_implementation")


def _device(placement: Any) -> Any:
    """The device of a ``device_map``; ``None`` for the CPU. One that spreads goes to the first."""
    if placement is None or placement == "cpu":
        return None
    if isinstance(placement, dict):
        first = next(iter(placement.values()), None)
        return first if first not in ("cpu", "disk") else None
    return "cuda" if placement in ("auto", "balanced", "sequential") else placement
