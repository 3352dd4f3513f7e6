"""A process of a dry run: the libraries before PyTorch, values and recorder after it."""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import json
import os
import re
import sys
import time
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

from ..hook import when_imported
from ..recorder import Recorder, failure, record
from ..recorder.teller import teller
from . import lone_rank, weights
from . import settings as settings_
from .ending import SHOW_STACKS

if TYPE_CHECKING:
    from .values import Values


#: The first release of PyTorch whose kernels can be stood before.
VALUES_SINCE = (2, 5)
#: What else is told about values.
COUNTS = ("computed", "made_up", "failed", "exact")


class Process:
    """This process."""

    def __init__(self) -> None:
        self._settings = settings_.of_this_process()
        self._core: ctypes.CDLL | None = None
        self._values: Values | None = None
        self._torch: Any = None
        self._has_kernels = True
        self._ended: str | None = None
        #: The type of the error that has ended the program, and its line.
        self._error: str | None = None
        self._error_at: str | None = None

    def before_torch(self) -> None:
        """Loads the libraries. One that is loaded answers for its name, wherever another lies."""
        self._give_devices()
        self._core = ctypes.CDLL(self._settings.core, mode=ctypes.RTLD_GLOBAL)
        for path in self._settings.shims:
            ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)

    def after_torch(self, torch: ModuleType) -> None:
        """Gives small tensors their values, and starts the recorder."""
        self._torch = torch
        self._choose_code(torch)
        from .frames import clean_snapshots

        clean_snapshots()
        release = tuple(int(number) for number in re.findall(r"\d+", torch.__version__)[:2])
        wants_values = self._settings.values != "off" and release >= VALUES_SINCE
        if wants_values and self._core is not None:
            from . import values

            self._values = values.start(self._core, is_full=self._settings.values == "full")
        if self._settings.values != "full":
            weights.start(torch)
        if self._settings.is_without_weights:
            when_imported("transformers", weights.take_shapes_from_configurations)
        if self._settings.is_lone_rank:
            lone_rank.start(torch, self._settings)
        if self._settings.output is None:
            return
        # The parent tells what was written.
        teller.is_silent = True
        recorder = record(self._settings.output, **self._settings.record)
        recorder.beside = self._facts
        recorder.after_step = lambda: self._after_step(recorder)
        recorder.writes_empty = False
        recorder.has_survived = lambda: self._error is None
        recorder.start()
        self._watch_errors()
        self._show_stacks_when_asked()

    def _watch_errors(self) -> None:
        """Notes the error that ends the program."""
        shown = sys.excepthook

        def show(kind: type[BaseException], error: BaseException, trace: Any) -> None:
            self._error, self._error_at = kind.__name__, failure.place_of(trace, self._torch)
            self._tell_error(error)
            shown(kind, error, trace)

        sys.excepthook = show

    def _tell_error(self, error: BaseException) -> None:
        """Writes the error for the parent. That of the first process stays."""
        first = str(error).strip().partition("\n")[0]
        at = f", {self._error_at}" if self._error_at else ""
        text = f"{self._error}: {first}" if first else str(self._error)
        with (
            contextlib.suppress(OSError),
            open(self._settings.error, "x", encoding="utf-8") as file,
        ):
            file.write(text + at)

    def _choose_code(self, torch: Any) -> None:
        """Says which of the kernels in PyTorch's files the device would run."""
        major, minor = self._settings.capability
        # `torch.cuda.get_arch_list` would forbid the use of CUDA in forked processes.
        flags = torch.__config__.show()
        built = [int(number) for number in re.findall(r"code=sm_(\d+)", flags)]
        wanted = 10 * major + minor
        fitting = [one for one in built if one // 10 == major and one <= wanted]
        later = [int(number) for number in re.findall(r"code=compute_(\d+)", flags)]
        later = [one for one in later if one <= wanted]
        self._has_kernels = bool(fitting or later or not built)
        if fitting and self._core is not None and hasattr(self._core, "dry_set_code_version"):
            self._core.dry_set_code_version(max(fitting))

    def _give_devices(self) -> None:
        """One device for each process that a launcher has started on this machine."""
        wanted = os.environ.get("LOCAL_WORLD_SIZE", "")
        library = json.loads(os.environ[settings_.LIBRARY_VARIABLE])
        if wanted.isdecimal() and int(wanted) > library["devices"]:
            library["devices"] = int(wanted)
            os.environ[settings_.LIBRARY_VARIABLE] = json.dumps(library)

    def _show_stacks_when_asked(self) -> None:
        with contextlib.suppress(OSError):
            self._settings.stuck.mkdir(exist_ok=True)
            path = self._settings.stuck / str(os.getpid())
            # Open until the process ends: the handler writes into it.
            file = open(path, "w", encoding="utf-8")
            faulthandler.register(SHOW_STACKS, file=file, all_threads=True)

    def _after_step(self, recorder: Recorder) -> None:
        steps = recorder.ended_steps
        self._tell_progress(steps)
        if self._settings.steps is not None and steps >= self._settings.steps:
            self._ended = "steps"
            recorder.stop()
            self._leave()

    def _leave(self) -> NoReturn:
        # The rest of the program would go on for the steps that are not run.
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os._exit(0)

    def _tell_progress(self, steps: int) -> None:
        with contextlib.suppress(OSError):
            self._settings.progress.mkdir(exist_ok=True)
            path = self._settings.progress / str(os.getpid())
            peak = self._torch.cuda.max_memory_reserved()
            text = json.dumps({"steps": steps, "time": time.time(), "reserved_bytes": peak})
            part = path.with_suffix(".part")
            part.write_text(text, encoding="utf-8")
            part.replace(path)

    def _end(self) -> dict[str, Any]:
        """What has ended the program, and where."""
        if self._ended is not None:
            return {"ended": self._ended, "at": None}
        if self._error is not None:
            return {"ended": self._error, "at": self._error_at}
        by = _lines(self._settings.ended)
        at = failure.place(self._torch)
        return {"ended": by[0] if by else None, "at": at}

    def _loaded_runtimes(self) -> list[str]:
        """Names of the loaded files with a CUDA runtime of their own."""
        try:
            with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
                maps = file.read()
        except OSError:
            return []
        return [os.path.basename(path) for path in self._settings.own_runtimes if path in maps]

    def _facts(self) -> dict[str, Any]:
        """What the recording is of, for the file beside it."""
        notes = _lines(self._settings.notes)
        unknown = _lines(self._settings.unknown)
        facts = {} if self._values is None else self._values.facts()
        return {
            "dry": {
                "gpu": self._settings.gpu,
                "memory_bytes": self._settings.memory_bytes,
                "values": self._settings.values if facts.get("available") else "off",
                "read": facts.get("read", [])[:20],
                **{name: facts[name] for name in COUNTS if name in facts},
                "cudnn": _cudnn(notes),
                "is_searching": "cudnn_benchmark" in notes,
                "unknown": unknown[:20],
                "own_runtimes": self._loaded_runtimes(),
                "has_kernels": self._has_kernels,
                "pid": os.getpid(),
                **self._end(),
            }
        }


def _cudnn(notes: list[str]) -> str | None:
    """The version of cuDNN whose own plans were used, ``model``, or ``None`` for neither."""
    if "cudnn_model" in notes:
        return "model"
    versions = [line.partition(" ")[2] for line in notes if line.startswith("cudnn ")]
    return versions[0] if versions else None


def _lines(path: os.PathLike[str]) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return sorted(set(file.read().split("\n")) - {""})
    except OSError:
        return []
