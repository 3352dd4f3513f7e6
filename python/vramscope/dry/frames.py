"""Keeps the frames of dry runs out of stacks and tracebacks."""

from __future__ import annotations

import os
import sys
import types
from typing import Any

import torch

#: The folder of dry runs, with a separator at its end.
OWN = os.path.dirname(os.path.abspath(__file__)) + os.sep


#: What PyTorch calls in C++ between a function of this package and the kernel, and around it.
_CALL = ("SafeKernelFunction", "initDispatchBindings", "redispatch_boxed")
_CALLER = ("PythonKernelHolder",)
#: Frames of C++ and of Python's interpreter between those, at most.
_FAR = 40


def drop_own_frames(error: BaseException) -> None:
    """Removes the frames of dry runs from where an error begins.

    A bare ``raise`` after it adds none. Python 3.10 and earlier keep the traceback elsewhere, and
    show one frame.
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(OWN):
        trace = trace.tb_next
    error.__traceback__ = trace


def clean(snapshot: dict[str, Any]) -> None:
    """Removes the frames of dry runs from the stacks of a snapshot."""
    for events in snapshot.get("device_traces", ()):
        for event in events:
            _clean(event.get("frames"))
    for segment in snapshot.get("segments", ()):
        _clean(segment.get("frames"))
        for block in segment.get("blocks", ()):
            _clean(block.get("frames"))
            for one in block.get("history", ()):
                _clean(one.get("frames"))


def _clean(frames: list[dict[str, Any]] | None) -> None:
    if not frames or not any(one["filename"].startswith(OWN) for one in frames):
        return
    at = len(frames)
    while at:
        at -= 1
        if not frames[at]["filename"].startswith(OWN):
            continue
        inner, outer = at, at + 1
        # Stacks with frames of C++ also show how that kernel and its function are called.
        called = _nearest(frames, at, -1, _CALL)
        caller = _nearest(frames, at, 1, _CALLER)
        inner = inner if called is None else called
        outer = outer if caller is None else caller + 1
        del frames[inner:outer]
        at = min(inner, len(frames))


def _nearest(
    frames: list[dict[str, Any]], at: int, step: int, names: tuple[str, ...]
) -> int | None:
    """The frame of C++ next to one of this package, past others of Python's own code."""
    for _ in range(_FAR):
        at += step
        if not 0 <= at < len(frames):
            return None
        if any(name in frames[at]["name"] for name in names):
            return at
        if frames[at]["filename"].endswith(".py") and not frames[at]["filename"].startswith(OWN):
            return None
    return None


def clean_snapshots() -> None:
    """Lets every snapshot of PyTorch come without frames of this package."""
    taken = torch._C._cuda_memorySnapshot

    def _cuda_memorySnapshot(*args: Any) -> Any:
        snapshot = taken(*args)
        clean(snapshot)
        return snapshot

    torch._C._cuda_memorySnapshot = _cuda_memorySnapshot


def not_compiled() -> None:
    """Lets ``torch.compile`` pass over functions that run inside of a compiled program."""
    skip: Any = getattr(getattr(torch._C._dynamo, "eval_frame", None), "skip_code", None)
    if skip is None:
        return
    package = __name__.rpartition(".")[0]
    for name, module in list(sys.modules.items()):
        if name.startswith(package):
            for value in list(vars(module).values()):
                _skip(value, skip)


def _skip(value: Any, skip: Any) -> None:
    if isinstance(value, type) and value.__module__.startswith(__name__.rpartition(".")[0]):
        for one in vars(value).values():
            _skip(one, skip)
        return
    value = getattr(value, "__func__", value)
    if isinstance(value, types.FunctionType):
        codes = [value.__code__]
        while codes:
            code = codes.pop()
            if code.co_filename.startswith(OWN):
                skip(code)
                codes += [one for one in code.co_consts if isinstance(one, types.CodeType)]
