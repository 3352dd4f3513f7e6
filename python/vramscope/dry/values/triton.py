"""Kernels of Triton: what they write is not known."""

from __future__ import annotations

import functools
import re
from types import ModuleType
from typing import Any

import torch

from .grades import ABSENT, LARGEST_MADE_UP, MADE_UP, first_address
from .kernels import Kernels
from .made_up import Maker

#: How Inductor names the arguments that its kernels write.
_WRITTEN = re.compile(r"(in_)?out_ptr\d*$|ws_ptr\d*$")


def watch_triton(module: ModuleType, kernels: Kernels, maker: Maker) -> None:
    """Marks the tensors that a kernel of the program gets: all, since any may be written."""
    function: Any = module.JITFunction
    run = function.run

    @functools.wraps(run)
    def marked(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = run(self, *args, **kwargs)
        if not kwargs.get("warmup"):
            for one in (*args, *kwargs.values()):
                _mark(one, kernels, maker, False)
        return result

    function.run = marked


def watch_inductor(module: ModuleType, kernels: Kernels, maker: Maker) -> None:
    """Marks the tensors that a kernel of Inductor writes, by the names of its arguments."""
    tuner: Any = module.CachingAutotuner
    run = tuner.run

    @functools.wraps(run)
    def marked(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = run(self, *args, **kwargs)
        names = getattr(self.fn, "arg_names", ())
        for name, one in zip(names, args):
            if _WRITTEN.match(name):
                _mark(one, kernels, maker, name.startswith("out"))
        return result

    tuner.run = marked


def _mark(value: Any, kernels: Kernels, maker: Maker, is_output: bool) -> None:
    if not isinstance(value, torch.Tensor) or not value.is_cuda:
        return
    base = first_address(value)
    entry = kernels.grades.get(base)
    nbytes = value.nbytes if entry is None or is_output else entry[1]
    is_small = nbytes <= LARGEST_MADE_UP
    kernels.grades[base] = (MADE_UP if is_small else ABSENT, nbytes)
    if is_output and is_small:
        maker.fill("triton", value)
