"""Puts functions in the place of all kernels of CUDA, those of later imports, too."""

from __future__ import annotations

from typing import Any

import torch

from ...hook import when_imported
from .kernels import Kernels
from .made_up import Maker
from .plans import plan_of
from .releases import Registry
from .report import Report
from .special import SPECIAL
from .triton import watch_inductor, watch_triton

#: The dispatch keys of CUDA; of the others only what their kernels write is noted.
_KEY = "CUDA"
_FOREIGN_KEYS = ("SparseCUDA", "SparseCsrCUDA", "NestedTensorCUDA", "QuantizedCUDA")
#: Collectives copy small values themselves, as if all ranks had equal ones.
_LEFT_ALONE = ("c10d", "symm_mem", "_c10d_functional", "prims", "profiler")
#: Operators of all devices that copy and compute by kernels of CUDA.
_OF_ALL_DEVICES = ("aten::copy_", "aten::convolution_backward")


class Installer:
    """Replaces kernels."""

    def __init__(self, registry: Registry, kernels: Kernels, maker: Maker, report: Report) -> None:
        self._registry = registry
        self._kernels = kernels
        self._maker = maker
        self._report = report
        self._done: set[tuple[str, str]] = set()

    def install(self) -> None:
        """Replaces the kernels that are there, and watches for libraries that bring others."""
        for name in _OF_ALL_DEVICES:
            self._replace(name, _KEY)
        self._replace_new()
        load = torch.ops.load_library

        def load_library(path: Any) -> None:
            load(path)
            self._replace_new()

        torch.ops.load_library = load_library
        when_imported("torchvision.extension", lambda _: self._replace_new())
        when_imported(
            "triton.runtime.jit", lambda found: watch_triton(found, self._kernels, self._maker)
        )
        when_imported(
            "torch._inductor.runtime.triton_heuristics",
            lambda found: watch_inductor(found, self._kernels, self._maker),
        )

    def _replace_new(self) -> None:
        for key in (_KEY, *_FOREIGN_KEYS):
            for name in self._registry.names(key):
                if (name, key) not in self._done:
                    self._replace(name, key)

    def _replace(self, name: str, key: str) -> None:
        self._done.add((name, key))
        namespace, _, rest = name.partition("::")
        if namespace in _LEFT_ALONE:
            return
        base, _, overload = rest.partition(".")
        try:
            operator = getattr(getattr(getattr(torch.ops, namespace), base), overload or "default")
            plan = plan_of(operator, namespace, base, key != _KEY)
            if plan is None:
                return
            special = SPECIAL.get(name)
            original = special or self._registry.original(name, operator, key)
            self._registry.replace(name, operator, key, self._kernels.around(plan, original))
        except Exception as error:
            self._report.fail(name, f"cannot replace the kernel: {error}")
