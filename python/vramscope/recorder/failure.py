"""Where an allocation has failed, in words: read from the stacks of Python."""

from __future__ import annotations

import os
import sys
import sysconfig
import threading
from types import FrameType, TracebackType
from typing import Any

from . import threads

#: The folder of this package, whose frames are above those of the program.
OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
#: Folders of Python's standard library.
LIBRARIES = tuple(
    {
        os.path.realpath(sysconfig.get_path(name)) + os.sep
        for name in ("stdlib", "platstdlib")
        if sysconfig.get_path(name)
    }
)
UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def described(torch: Any, requested: int, short: int | None) -> str:
    """An allocation that fails now, in words."""
    phase, place = _where(os.path.dirname(os.path.abspath(torch.__file__)) + os.sep)
    during = f" in {phase}" if phase else ""
    at = f" at {place}" if place else ""
    lacking = f", {in_words(short)} short" if short else ""
    return f"out of memory{during}{at}, asked for {in_words(requested)}{lacking}"


def place(torch: Any) -> str | None:
    """The line of the program that runs now in this thread, or that has called the backward pass
    which runs in it; ``None`` if none is known."""
    return _where(os.path.dirname(os.path.abspath(torch.__file__)) + os.sep)[1]


def place_of(trace: TracebackType | None, torch: Any) -> str | None:
    """The line of the program that an exception came from."""
    folder = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
    frames = []
    while trace is not None:
        code = trace.tb_frame.f_code
        frames.append((code.co_filename, trace.tb_lineno or 0, code.co_name))
        trace = trace.tb_next
    return _place(_without_own(frames[::-1]), folder)


def in_words(size: int) -> str:
    """Bytes in three significant digits: ``0.98 GiB``, ``216 MiB``."""
    unit, value = 0, float(size)
    # From 0.95 of the next unit on, as the program writes bytes.
    while unit + 1 < len(UNITS) and value >= (1024 if unit == 0 else 0.95 * 1024):
        unit, value = unit + 1, value / 1024
    if unit == 0:
        return f"{size} B"
    return f"{value:.0f} {UNITS[unit]}" if value >= 99.995 else f"{value:.2f} {UNITS[unit]}"


def lacking(requested: int, free: int, total: int, reserved: int) -> int | None:
    """The bytes that a request lacked; ``None`` if they do not follow from these numbers.

    Args:
        requested: What the allocator asked the driver for.
        free: What the driver had.
        total: The memory of the device, or the limit of the process.
        reserved: What the allocator had.
    """
    short = requested - min(free, max(total - reserved, 0))
    return short if short > 0 else None


def _where(torch_folder: str) -> tuple[str | None, str | None]:
    """The phase of the step and the innermost line of the program, as far as they are known."""
    stack = _without_own(_frames(sys._getframe()))
    # The engine runs backward in threads of its own, which Python did not start.
    is_engine = threads.is_foreign()
    callers = _callers_of_backward(torch_folder) if is_engine else []
    if is_engine and not callers:
        # Another library's thread.
        return _phase(stack, torch_folder), _place(stack, torch_folder)
    if is_engine:
        # A function of the program that runs in backward, else the line that called backward.
        place = _place(stack, torch_folder)
        return "backward", place or (
            _place(callers[0], torch_folder) if len(callers) == 1 else None
        )
    return _phase(stack, torch_folder), _place(stack, torch_folder)


def _frames(frame: FrameType | None) -> list[tuple[str, int, str]]:
    """File, line and function of each frame, the innermost first."""
    found = []
    while frame is not None:
        found.append((frame.f_code.co_filename, frame.f_lineno or 0, frame.f_code.co_name))
        frame = frame.f_back
    return found


def _without_own(stack: list[tuple[str, int, str]]) -> list[tuple[str, int, str]]:
    return [frame for frame in stack if not frame[0].startswith(OWN)]


def _callers_of_backward(torch_folder: str) -> list[list[tuple[str, int, str]]]:
    own = threading.get_ident()
    stacks = [_frames(frame) for ident, frame in sys._current_frames().items() if ident != own]
    return [stack for stack in stacks if any(_is_backward(frame, torch_folder) for frame in stack)]


def _phase(stack: list[tuple[str, int, str]], torch_folder: str) -> str | None:
    is_forward = False
    for frame in stack:
        if _is_backward(frame, torch_folder):
            return "backward"
        if is_forward:
            # What encloses a forward may only be backward, which computes it again.
            continue
        file, _, name = frame
        if name == "step" and file.startswith(os.path.join(torch_folder, "optim")):
            return "optimizer.step()"
        is_forward = file.startswith(torch_folder) and name == "_call_impl"
    return "forward" if is_forward else None


def _is_backward(frame: tuple[str, int, str], torch_folder: str) -> bool:
    file, _, name = frame
    return file.startswith(torch_folder) and (
        name == "_engine_run_backward"
        or (name == "backward" and file.endswith(os.path.join("autograd", "__init__.py")))
    )


def _place(stack: list[tuple[str, int, str]], torch_folder: str) -> str | None:
    """The innermost line of the user's code; without any, of a package that builds on PyTorch."""
    above = [
        frame
        for frame in _without_own(stack)
        if not frame[0].startswith(torch_folder) and not _is_library(frame[0])
    ]
    users = [frame for frame in above if not _is_package(frame[0])]
    for file, line, _ in (users or above)[:1]:
        return f"{_shown(file)}:{line}"
    return None


def _is_library(file: str) -> bool:
    is_below = os.path.realpath(file).startswith(LIBRARIES) and not _is_package(file)
    return is_below or (file.startswith("<") and not file.startswith("<ipython"))


def _is_package(file: str) -> bool:
    # A console script, such as `bin/vramscope`, is of a package too.
    is_script = os.path.dirname(file) == sysconfig.get_path("scripts")
    return is_script or "site-packages" in file or "dist-packages" in file


def _shown(file: str) -> str:
    """A path below the working folder from there, another one by its name."""
    below = os.path.join(os.getcwd(), "")
    path = os.path.abspath(file)
    return path[len(below) :] if path.startswith(below) else os.path.basename(path)
