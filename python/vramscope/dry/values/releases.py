"""How a function of Python takes the place of a kernel, by the release of PyTorch."""

from __future__ import annotations

import functools
import warnings
from typing import Any, Callable

import torch

Kernel = Callable[..., Any]


class NoInterception(Exception):
    """This release of PyTorch has no way to call the kernel that a function replaces."""


class Registry:
    """Replaces kernels. The replacements stay as long as this does."""

    def __init__(self) -> None:
        if not hasattr(torch.library, "get_kernel"):
            raise NoInterception(
                f"PyTorch {torch.__version__} cannot compute values, 2.9 and later can"
            )
        self._libraries: dict[str, Any] = {}

    def names(self, key: str) -> list[str]:
        """The operators that have a kernel of a dispatch key."""
        return list(torch._C._dispatch_get_registrations_for_dispatch_key(key))

    def original(self, name: str, key: str) -> Kernel:
        """PyTorch's own kernel."""
        call = torch.library.get_kernel(name, key).call_boxed
        return functools.partial(call, torch._C.DispatchKeySet(getattr(torch.DispatchKey, key)))

    def replace(self, name: str, key: str, kernel: Kernel) -> None:
        """Puts a function in the place of a kernel."""
        namespace, _, rest = name.partition("::")
        library = self._libraries.get(namespace)
        if library is None:
            library = self._libraries[namespace] = torch.library.Library(namespace, "IMPL")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            library.impl(rest, kernel, key, allow_override=True)
