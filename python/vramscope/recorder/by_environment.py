"""Records a process because its environment asks for it.

``vramscope record -- COMMAND`` sets the variables for all processes below it, and a hook at their
start calls :func:`wait` (``vramscope/hook.py``). A user sets :data:`VARIABLE` for vLLM and SGLang,
which call :func:`plugin` in each of their processes.
"""

from __future__ import annotations

import json
import os
from types import ModuleType
from typing import Any, ClassVar

from ..hook import when_imported
from . import process, record
from .guards import never_raise
from .teller import teller

#: The folder for recordings.
VARIABLE = "VRAMSCOPE_RECORD"
#: Arguments of :func:`vramscope.record` as a JSON object.
OPTIONS_VARIABLE = "VRAMSCOPE_RECORD_OPTIONS"


def plugin() -> None:
    """Records this process if the environment asks for it: the entry point of servers."""
    if VARIABLE in os.environ:
        when_imported("torch", wait)


def wait(torch: ModuleType) -> None:
    """Records this process from its first use of a GPU on, and each process forked from it."""
    _Waiting().wait(torch)


class _Waiting:
    """Waits for the first use of a GPU, and does not ask for one.

    Asking would start the driver, and then no forked process could use it. A forked process has a
    copy of PyTorch's queue, so it begins its own recording.
    """

    #: The process that is recorded. Hook and plugin may both have asked.
    _recorded: ClassVar[int | None] = None

    @never_raise
    def wait(self, torch: Any) -> None:
        """Wait for the first use of a GPU."""
        for module in (torch.cuda, getattr(torch, "xpu", None)):
            self._queue(module)
        when_imported("torch_npu", lambda npu: self._queue(getattr(npu, "npu", None)))

    @never_raise
    def _queue(self, module: Any) -> None:
        """Wait for the first use of a GPU."""
        memory, lazily = getattr(module, "memory", None), getattr(module, "_lazy_call", None)
        if lazily is not None and hasattr(memory, "_record_memory_history"):
            lazily(self._begin)

    @never_raise
    def _begin(self) -> None:
        """Start recording."""
        if _Waiting._recorded == os.getpid():
            return
        _Waiting._recorded = os.getpid()
        options = json.loads(os.environ.get(OPTIONS_VARIABLE) or "{}")
        if not isinstance(options, dict):
            raise ValueError(f"{OPTIONS_VARIABLE} is {options!r}, expected a JSON object")
        recorder = record(os.environ[VARIABLE], **options)
        recorder.place = process.place()
        teller.is_below = process.PARENT_VARIABLE in os.environ
        recorder.start()
        process.at_end(recorder.stop)
