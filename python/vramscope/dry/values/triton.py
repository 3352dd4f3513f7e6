"""Kernels of Triton: what they write is not known."""

from __future__ import annotations

import functools
import re
import weakref
from types import ModuleType
from typing import Any

import torch

from ..frames import drop_own_frames
from .grades import ABSENT, LARGEST_MADE_UP, MADE_UP, UNWRITTEN, first_address
from .kernels import Kernels
from .made_up import Maker
from .stored import stored_arguments

#: How Inductor names the arguments that its kernels write.
_WRITTEN = re.compile(r"(in_)?out_ptr\d*$|ws_ptr\d*$")
#: By compiled kernel, the arguments that it writes.
_stored: weakref.WeakKeyDictionary[Any, set[str] | None] = weakref.WeakKeyDictionary()


def watch_triton(module: ModuleType, kernels: Kernels, maker: Maker) -> None:
    """Marks the tensors that a kernel of the program writes: all, if its code does not tell."""
    function: Any = module.JITFunction
    run = function.run

    @functools.wraps(run)
    def marked(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            compiled = run(self, *args, **kwargs)
        except BaseException as error:
            drop_own_frames(error)
            raise
        if not kwargs.get("warmup"):
            stored = _stored_by(compiled)
            for name, one in (*zip(self.arg_names, args), *kwargs.items()):
                if stored is None or name in stored:
                    _mark(one, kernels, maker)
        return compiled

    function.run = marked


def watch_inductor(module: ModuleType, kernels: Kernels, maker: Maker) -> None:
    """Marks the tensors that a kernel of Inductor writes, by the names of its arguments."""
    tuner: Any = module.CachingAutotuner
    run = tuner.run

    @functools.wraps(run)
    def marked(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            result = run(self, *args, **kwargs)
        except BaseException as error:
            drop_own_frames(error)
            raise
        for name, one in zip(getattr(self.fn, "arg_names", ()), args):
            if _WRITTEN.match(name):
                _mark(one, kernels, maker, is_whole=name.startswith("out"))
        return result

    tuner.run = marked


def _stored_by(compiled: Any) -> set[str] | None:
    try:
        return _stored[compiled]
    except (KeyError, TypeError):
        code = getattr(compiled, "asm", {}).get("ttir")
        stored = stored_arguments(code) if isinstance(code, str) else None
        try:
            _stored[compiled] = stored
        except TypeError:
            # A hook of Triton's has made something else: it is asked again each time.
            return stored
        return stored


def _mark(value: Any, kernels: Kernels, maker: Maker, is_whole: bool = False) -> None:
    """Notes that a tensor was written, the whole storage or not."""
    if not isinstance(value, torch.Tensor) or not value.is_cuda:
        return
    base = first_address(value)
    entry = kernels.grades.get(base)
    # Inductor allocates without the operators that would be seen.
    nbytes = value.nbytes if entry is None or is_whole else entry[1]
    is_small = nbytes <= LARGEST_MADE_UP
    kernels.grades[base] = (MADE_UP if is_small else ABSENT, nbytes)
    if is_small and (is_whole or (entry is not None and entry[0] == UNWRITTEN)):
        maker.fill("triton", value)
