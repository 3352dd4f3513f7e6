"""How a function of Python takes the place of a kernel, by the release of PyTorch.

From 2.9 on PyTorch gives out the kernel that a function replaces. Before, the function stands in
front of all kernels instead, at the key that chooses a device for new tensors, and passes on what
is not for CUDA.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any, Callable

import torch

from ..frames import drop_own_frames
from .numbers import with_tensors

Kernel = Callable[..., Any]

#: The key that every call has, below those of autograd.
_FRONT = "BackendSelect"
_KeySet: Any = torch._C.DispatchKeySet
_Key: Any = torch._C.DispatchKey


class NoInterception(Exception):
    """This release of PyTorch has no way to call the kernel that a function replaces."""


class Registry:
    """Replaces kernels. The replacements stay as long as this does."""

    def __init__(self) -> None:
        self._libraries: dict[str, Any] = {}

    def names(self, key: str) -> list[str]:
        """The operators that have a kernel of a dispatch key."""
        return list(torch._C._dispatch_get_registrations_for_dispatch_key(key))

    def original(self, name: str, operator: Any, key: str) -> Kernel:
        """PyTorch's own kernel."""
        call = torch.library.get_kernel(name, key).call_boxed
        return functools.partial(call, _KeySet(getattr(_Key, key)))

    def replace(self, name: str, operator: Any, key: str, kernel: Kernel) -> None:
        """Puts a function in the place of a kernel."""
        self._put(name, kernel, key, {"allow_override": True})

    def _put(self, name: str, kernel: Kernel, key: str, options: dict[str, Any]) -> None:
        namespace, _, rest = name.partition("::")
        library = self._libraries.get(namespace)
        if library is None:
            library = self._libraries[namespace] = torch.library.Library(namespace, "IMPL")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            library.impl(rest, kernel, key, **options)


class Front(Registry):
    """Stands in front of the kernels of all devices. Operators of the CPU take longer."""

    def __init__(self) -> None:
        super().__init__()
        if "with_keyset" not in _parameters(torch.library.Library.impl):
            raise NoInterception(
                f"values need PyTorch 2.5 or later, this is {torch.__version__.partition('+')[0]}"
            )
        self._below = torch._C._dispatch_keyset_full_after(getattr(_Key, _FRONT))
        self._choosing = set(self.names(_FRONT))
        self._kernels: dict[str, dict[str, Kernel]] = {}

    def original(self, name: str, operator: Any, key: str) -> Kernel:
        return functools.partial(_redispatch(operator), _KeySet(getattr(_Key, key)))

    def replace(self, name: str, operator: Any, key: str, kernel: Kernel) -> None:
        chooses = name in self._choosing
        if chooses and any("Tensor" in str(one.type) for one in operator._schema.arguments):
            # It copies by operators that are replaced, and its kernel cannot be had.
            return
        replaced = self._kernels.setdefault(name, {})
        replaced[key] = kernel
        if len(replaced) > 1:
            return
        front = self._choosing_front if chooses else self._front
        self._put(name, _without_frame(front(operator, replaced)), _FRONT, {"with_keyset": True})

    def _front(self, operator: Any, replaced: dict[str, Kernel]) -> Kernel:
        redispatch, below = _redispatch(operator), self._below
        keys: dict[int, Kernel | None] = {}

        def front(keyset: Any, *args: Any, **kwargs: Any) -> Any:
            kernel = keys.get(keyset.raw_repr(), keys)
            if kernel is keys:
                name = str((keyset & below).highestPriorityTypeId()).rpartition(".")[2]
                kernel = keys[keyset.raw_repr()] = replaced.get(name)
            if kernel is not None:
                return kernel(*args, **kwargs)  # type: ignore[operator]
            return redispatch(keyset & below, *with_tensors(operator, args), **kwargs)

        return front

    def _choosing_front(self, operator: Any, replaced: dict[str, Kernel]) -> Kernel:
        """In the place of the kernel that chooses a key by the device and layout asked for."""
        redispatch = _redispatch(operator)

        def front(keyset: Any, *args: Any, **kwargs: Any) -> Any:
            device = kwargs.get("device") or torch.device("cpu")
            layout = kwargs.get("layout") or torch.strided
            name = _LAYOUTS[layout] + _DEVICES.get(device.type, device.type.upper())
            kernel = replaced.get(name)
            if kernel is not None:
                return kernel(*args, **kwargs)
            return redispatch(_KeySet(getattr(_Key, name)), *args, **kwargs)

        return front


def _redispatch(operator: Any) -> Kernel:
    """Calls a kernel by its key, without the frame of a method of ``torch/_ops.py``."""
    call: Kernel = operator._handle.redispatch_boxed
    return call


def _without_frame(front: Kernel) -> Kernel:
    @functools.wraps(front)
    def cleaned(*args: Any, **kwargs: Any) -> Any:
        try:
            return front(*args, **kwargs)
        except BaseException as error:
            drop_own_frames(error)
            raise

    return cleaned


_DEVICES = {"meta": "Meta"}
_LAYOUTS = {
    torch.strided: "",
    torch.sparse_coo: "Sparse",
    torch.sparse_csr: "SparseCsr",
    torch.sparse_csc: "SparseCsr",
    torch.sparse_bsr: "SparseCsr",
    torch.sparse_bsc: "SparseCsr",
    torch._mkldnn: "Mkldnn",
    torch.jagged: "NestedTensor",
}


def _parameters(function: Any) -> tuple[str, ...]:
    return tuple(function.__code__.co_varnames[: function.__code__.co_argcount + 4])


def registry() -> Registry:
    """The way that this release has."""
    return Registry() if hasattr(torch.library, "get_kernel") else Front()
