"""The calls of PyTorch that record memory, for the releases that have them.

They begin with an underscore: they are internals, and change. ``docs/record.md`` has their
signatures by release.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import inspect
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from .backend import Backend

#: Bytes of host memory that an event with Python stacks takes while it is recorded, measured over
#: the recordings of training loops in ``test_data``. It only bounds the length of the history.
EVENT_BYTES = 1024
#: Share of the host's free memory that the history may take.
HISTORY_SHARE = 0.05
#: Limits of the length of the history.
MIN_ENTRIES, MAX_ENTRIES = 100_000, 5_000_000


def history_length(free_bytes: int | None, processes: int) -> int:
    """How many events to keep: more than a few steps need, in little of the host's memory.

    A multiple of 1000. So a full history can be told from a late start: see ``docs/record.md``.
    """
    if free_bytes is None:
        return 1_000_000
    fits = int(free_bytes * HISTORY_SHARE / EVENT_BYTES / max(processes, 1))
    return max(MIN_ENTRIES, min(fits, MAX_ENTRIES)) // 1000 * 1000


def free_host_bytes() -> int | None:
    """Memory that programs can still take on this host; ``None`` where it is unknown."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        return None
    return None


def start_history(backend: Backend, max_entries: int, stacks: str) -> dict[str, Any]:
    """Starts recording. Returns the arguments that were used.

    Raises:
        RuntimeError: this PyTorch, or its allocator, records no history.
    """
    torch, module = backend.torch, backend.module
    used = getattr(module, "get_allocator_backend", lambda: "native")()
    if used != "native":
        raise RuntimeError(f"PyTorch records only its native allocator, and this is {used}")
    record = getattr(module.memory, "_record_memory_history", None)
    if record is None:
        raise RuntimeError(
            f"PyTorch {torch.__version__} records no memory history: use 2.1 or later"
        )
    known = _parameters(record, module.memory)
    if "stacks" not in known:
        raise RuntimeError(
            f"PyTorch {torch.__version__} records memory in another way: use 2.1 or later"
        )
    wanted: dict[str, Any] = {
        "stacks": stacks,
        "max_entries": max_entries,
        # Annotations and the graph of a compiled program say which part of a step allocated.
        "global_record_annotations": True,
        "compile_context": True,
    }
    if loses_errors_in_frees(torch):
        wanted["context"] = "alloc"
    arguments = {name: value for name, value in wanted.items() if name in known}
    record("all", **arguments)
    return arguments


def loses_errors_in_frees(torch: Any) -> bool:
    """Whether this PyTorch loses the error that is raised while it takes the stack of a free.

    Activation checkpointing ends its recomputation by an error, so such programs would fail:
    https://github.com/pytorch/pytorch/issues/179536. Of the releases, 2.11 does.
    """
    return str(torch.__version__).startswith("2.11.")


def _parameters(record: Callable[..., Any], memory: Any) -> set[str]:
    """The names of the parameters. From 2.1 on the public function only passes them on."""
    impl = getattr(memory, "_record_memory_history_impl", record)
    return set(inspect.signature(impl).parameters)


def segments_alone(backend: Backend) -> Callable[[], list[dict[str, Any]]] | None:
    """Lists segments without the history; ``None`` where PyTorch cannot. It can from 2.11 on."""
    listed = getattr(backend.module, "memory_snapshot", None)
    if listed is None or "include_traces" not in inspect.signature(listed).parameters:
        return None
    return functools.partial(listed, include_traces=False)


def stop_history(backend: Backend) -> None:
    """Stops recording. This also clears the history."""
    backend.module.memory._record_memory_history(enabled=None)


def attach_oom_observer(backend: Backend, observer: Callable[[int, int, int, int], None]) -> bool:
    """Calls ``observer(device, requested, total, free)`` inside the allocator when memory runs out.

    An observer cannot be detached. Returns whether this PyTorch has observers.
    """
    attach = backend.oom_observers()
    if attach is None:
        return False
    attach(observer)
    return True


class Collector:
    """Python's collector of garbage, which would search the millions of objects of a snapshot.

    While a snapshot is taken and written, they only come to be and none is garbage. Without the
    searches a snapshot takes about a third less time.
    """

    _lock: ClassVar[threading.Lock] = threading.Lock()
    #: Pauses that have not ended, of all threads.
    _pauses: ClassVar[int] = 0
    #: New objects after which the collector searches the youngest. 0 is a pause: so another thread
    #: of the program may disable or enable the collector, and that stays.
    _threshold: ClassVar[int] = 0

    @classmethod
    @contextlib.contextmanager
    def paused(cls) -> Iterator[None]:
        """Pauses the collector, unless the program has."""
        pid = os.getpid()
        with cls._lock:
            if cls._pauses == 0:
                cls._threshold = gc.get_threshold()[0]
                gc.set_threshold(0)
            cls._pauses += 1
        try:
            yield
        finally:
            if os.getpid() == pid:
                with cls._lock:
                    cls._end(1)

    @classmethod
    def end_in_child(cls) -> None:
        """Ends the pauses in a forked process."""
        cls._lock = threading.Lock()
        cls._end(cls._pauses)

    @classmethod
    def _end(cls, pauses: int) -> None:
        cls._pauses -= pauses
        # What the program has set meanwhile stays.
        if pauses and cls._pauses == 0 and gc.get_threshold()[0] == 0:
            gc.set_threshold(cls._threshold)
