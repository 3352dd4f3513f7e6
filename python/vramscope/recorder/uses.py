"""Which operations read and write the memory of one step: ``trace_use`` and ``use_step=``.

A snapshot shows when memory is allocated and freed, not when it is used. For one step a
``TorchDispatchMode`` notes of each operation when it begins and ends, and which storages it reads
and writes. The program joins this with the snapshot: see ``SIDECAR.md``.

The mode calls each operation with its own arguments and returns its result. It keeps no tensor,
reads addresses only, and runs no code of the program.
"""

from __future__ import annotations

import functools
import json
import logging
import os
import threading
import time
from collections.abc import Callable
from typing import Any, ClassVar

from . import threads

log = logging.getLogger("vramscope")

#: How an operation uses a storage. A storage that is written but not read has lost what it held.
READ, WRITE = 1, 2
#: The storage is no argument of the operation: it is there when the operation ends.
RESULT = 4

#: Why a trace cannot begin within another one.
ANOTHER = "another trace_use is running, or the step of use_step"

#: The most operations that are noted: each takes about 300 bytes of the host's memory.
MAX_OPERATIONS = 400_000
#: The most bytes of the field in the file beside a snapshot.
MAX_BYTES = 1 << 20
#: Storages below these sizes are left out, one size after the other, until the rest fits.
LEAST_BYTES = (0, 4 << 10, 64 << 10, 1 << 20)
#: Characters of the name of an operation.
NAME_CHARACTERS = 100

#: Operations that write all of an argument, and do not read it.
OVERWRITES = {
    "copy_",
    "zero_",
    "fill_",
    "normal_",
    "uniform_",
    "random_",
    "bernoulli_",
    "exponential_",
    "_foreach_copy_",
    "_foreach_zero_",
}
#: Views that their schema does not show as such.
VIEWS = {"_unsafe_view", "detach", "alias", "lift_fresh", "_reshape_alias", "set_"}


class NotTraced(Exception):
    """Why a trace cannot begin, in words."""


class Uses:
    """The uses of the last trace of a recording. One trace runs at a time."""

    #: When the first trace of the process began: older events have no frames of this module.
    since_us: ClassVar[int | None] = None
    #: Modes that are not left. PyTorch frees one that nothing else holds while it moves it.
    _entered: ClassVar[set[Any]] = set()

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        #: The mode of the trace that runs, by its owner. Without a lock, which a finalizer that
        #: ends a trace could wait for in the thread that holds it: each change is one call.
        self._running: dict[object, Any] = {}
        #: What is in the file beside a snapshot; ``None`` before a trace has ended.
        self.facts: dict[str, Any] | None = None

    def begin(self, owner: object) -> None:
        """Starts a trace in this thread, which its owner ends.

        Raises:
            NotTraced: Another trace runs, or a mode cannot be entered here.
        """
        self.leave()
        mode = _mode_class()()
        self._running[owner] = mode
        try:
            if len(self._running) > 1:
                raise NotTraced(ANOTHER)
            _expect_outermost(self._torch)
            Uses.since_us = Uses.since_us or time.time_ns() // 1000
            Uses._entered.add(mode)
            mode.__enter__()
        except BaseException:
            self._running.pop(owner, None)
            raise

    def end(self, owner: object, step: int | None, is_whole: bool) -> None:
        """Ends the trace of an owner, if it runs.

        The trace is complete if the traced code ran to its end, in the thread that began it.
        """
        mode = self._running.get(owner)
        if mode is not None and mode.ending.acquire(blocking=False):
            mode.is_open = False
            is_here = any(one is mode for one in _modes(self._torch))
            self.facts = mode.facts(step, is_whole and is_here)
        self.leave()
        self._running.pop(owner, None)

    def cut(self, step: int | None) -> None:
        """Ends the trace that runs before its owner does."""
        for owner in list(self._running):
            self.end(owner, step, is_whole=False)

    def forget(self) -> None:
        """Ends tracing in a forked process."""
        for mode in self._running.values():
            mode.is_open = False
        self._running.clear()
        self.facts = None
        self.leave()

    def leave(self) -> None:
        """Leaves modes of this thread whose trace has ended.

        A mode of the program above them is left first: PyTorch always removes the innermost.
        """
        modes = _modes(self._torch)
        while modes and _is_own(modes[-1]) and not modes[-1].is_open:
            modes[-1].__exit__(None, None, None)
            Uses._entered.discard(modes.pop())


class Traced:
    """The block of :meth:`vramscope.Recorder.trace_use`. It may be entered several times."""

    def __init__(self, begin: Callable[[object], Any], end: Callable[[object, bool], Any]) -> None:
        self._begin, self._end = begin, end
        #: One for each time that the block is entered and not left.
        self._owners: list[object] = []

    def __enter__(self) -> Traced:
        owner = object()
        try:
            self._begin(owner)
        except BaseException:
            # A handler of the program has raised: Python does not leave the block.
            self._end(owner, False)
            raise
        self._owners.append(owner)
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if self._owners:
            self._end(self._owners.pop(), kind is None)


def _is_own(mode: Any) -> bool:
    return getattr(type(mode), "__module__", None) == __name__


def _is_backward(torch: Any) -> bool:
    return bool(getattr(torch._C, "_current_graph_task_id", lambda: -1)() != -1)


def _modes(torch: Any) -> list[Any]:
    """The dispatch modes that can be left in this thread, the outermost first.

    None in backward: autograd restores the modes of its threads.
    """
    if _is_backward(torch):
        return []
    depth = torch._C._len_torch_dispatch_stack()
    return [torch._C._get_dispatch_stack_at(at) for at in range(depth)]


def _expect_outermost(torch: Any) -> None:
    """Expects that a mode that is entered here stays entered when the caller returns.

    A mode of the program that is left later would leave this one in its place.

    Raises:
        NotTraced: It does not.
    """
    if _is_backward(torch):
        raise NotTraced("a backward pass is on")
    if threads.is_foreign():
        raise NotTraced("Python has not started this thread")
    modes = _modes(torch)
    if modes:
        raise NotTraced(ANOTHER if _is_own(modes[-1]) else "a dispatch mode is on")


def _address_of(torch: Any) -> Callable[[Any], int]:
    """Finds the address of a tensor's storage, without a copy of a lazily cloned one."""
    address: Callable[[Any], int] | None = getattr(torch._C, "_data_address", None)
    return address or (lambda tensor: int(tensor.untyped_storage().data_ptr()))


class _Plan:
    """What the schema of an operation tells."""

    __slots__ = ("is_view", "name", "overwrites", "writes")

    def __init__(self, func: Any) -> None:
        schema = getattr(func, "_schema", None)
        #: The arguments that are written, by position and by name.
        self.writes: frozenset[int | str] | None = frozenset()
        self.is_view = self.overwrites = False
        if schema is None:
            # An operation of higher order may do anything with its arguments.
            self.name, self.writes = str(func)[:NAME_CHARACTERS], None
            return
        self.name = schema.name.replace("::", ".")[:NAME_CHARACTERS]
        short = schema.name.split("::")[-1]
        written = [
            argument.name if argument.kwarg_only else at
            for at, argument in enumerate(schema.arguments)
            if argument.alias_info is not None and argument.alias_info.is_write
        ]
        self.writes = frozenset(written)
        aliases = [result.alias_info for result in schema.returns]
        is_alias = bool(aliases) and all(
            alias is not None and not alias.is_write for alias in aliases
        )
        self.is_view = short in VIEWS or (is_alias and not written)
        # An argument `out=` is a result.
        self.overwrites = short in OVERWRITES or any(
            getattr(argument, "is_out", False) for argument in schema.arguments
        )


@functools.cache
def _mode_class() -> type:
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    tensor_type = torch.Tensor
    address_of = _address_of(torch)
    depth = torch._C._len_torch_dispatch_stack
    functions_off = torch._C.DisableTorchFunction
    now = time.time_ns
    no_dispatch = tensor_type.__torch_dispatch__

    class UseMode(TorchDispatchMode):
        """Notes the storages of each operation."""

        # Without it, operations such as flex_attention would refuse to run.
        supports_higher_order_operators = True

        def __init__(self) -> None:
            super().__init__()
            self.is_open = True
            #: Of those who end the trace at once, the first one takes it.
            self.ending = threading.Lock()
            self._plans: dict[Any, _Plan] = {}
            #: The operations. One append each: backward adds from its own threads.
            self._operations: list[tuple[_Plan, int, int, dict[int, int]]] = []
            #: The largest bytes of the storages that were seen at an address.
            self._bytes: dict[int, int] = {}
            self._is_complete = True
            self._own = 0
            self._begin = now()

        @classmethod
        def ignore_compile_internals(cls) -> bool:
            # What torch.compile traces are no operations of the step.
            return True

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            # PyTorch would call the mode through a wrapper, which costs time: see `_not_compiled`.
            return False

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if types and self.is_open:
                for one in types:
                    if one is not tensor_type and one.__torch_dispatch__ is not no_dispatch:
                        if not depth():
                            # What a tensor of such a class is made of comes here next.
                            return NotImplemented
                        # A mode of PyTorch below this one knows the class. A fake tensor has no
                        # memory; what another is made of is not seen.
                        self._is_complete &= one.__name__ == "FakeTensor"
            result: Any = NotImplemented
            begin = now()
            try:
                result = func(*args, **kwargs) if kwargs else func(*args)
                return result
            finally:
                # An operation that fails, or is interrupted, may have read its arguments.
                if self.is_open:
                    end = now()
                    self._note_or_cut(func, begin, end, args, kwargs, result)
                    self._own += now() - end

        def _note_or_cut(self, func: Any, *noted: Any) -> None:
            try:
                self._note(func, *noted)
            except BaseException as error:
                self._is_complete = False
                if not isinstance(error, Exception):
                    raise
                log.debug("cannot note a use", exc_info=True)

        def _note(
            self, func: Any, begin: int, end: int, args: Any, kwargs: Any, result: Any
        ) -> None:
            plan = self._plans.get(func)
            if plan is None:
                plan = self._plans[func] = _Plan(func)
            if plan.is_view:
                return
            if len(self._operations) >= MAX_OPERATIONS:
                self._is_complete = False
                return
            found: dict[int, int] = {}
            # An operation that has failed may have left what was there.
            writes, overwrites = plan.writes, plan.overwrites and result is not NotImplemented
            with functions_off():
                for at, value in enumerate(args):
                    how = READ | WRITE if writes is None or at in writes else READ
                    self._see(found, value, how, overwrites)
                if kwargs:
                    for name, value in kwargs.items():
                        how = READ | WRITE if writes is None or name in writes else READ
                        self._see(found, value, how, overwrites)
                self._see(found, result, WRITE | RESULT, False)
            if found:
                self._operations.append((plan, begin, end, found))

        def _see(self, found: dict[int, int], value: Any, how: int, overwrites: bool) -> None:
            if isinstance(value, tensor_type):
                device = value.get_device()
                if device < 0:
                    return
                try:
                    address = address_of(value)
                except (RuntimeError, NotImplementedError):
                    # A tensor without a storage, such as a sparse one.
                    return
                if not address:
                    return
                key = address << 8 | device
                if how & RESULT:
                    if key in found:
                        return
                    # Another storage may have had the address.
                    size = value.untyped_storage().nbytes()
                    if size > self._bytes.get(key, -1):
                        self._bytes[key] = size
                elif key not in self._bytes:
                    self._bytes[key] = value.untyped_storage().nbytes()
                if overwrites and how & WRITE and _covers(value):
                    how = WRITE
                found[key] = found.get(key, 0) | how
            elif isinstance(value, (list, tuple)):
                for one in value:
                    self._see(found, one, how, overwrites)

        def facts(self, step: int | None, is_whole: bool) -> dict[str, Any]:
            """What goes into the file beside a snapshot."""
            operations = sorted(self._operations, key=lambda of: of[1])
            self._operations = []
            self._plans = {}
            end = now()
            facts: dict[str, Any] = {}
            for least in LEAST_BYTES:
                facts = _packed(operations, self._bytes, least, self._begin)
                if len(json.dumps(facts, separators=(",", ":"))) <= MAX_BYTES:
                    break
            else:
                self._is_complete = False
                share = MAX_BYTES / len(json.dumps(facts, separators=(",", ":")))
                kept = operations[: int(len(operations) * share * 0.9)]
                facts = _packed(kept, self._bytes, LEAST_BYTES[-1], self._begin)
            return {
                "step": step,
                "begin_us": self._begin // 1000,
                "end_us": end // 1000,
                "complete": is_whole and self._is_complete,
                "seconds": round(self._own * 1e-9, 6),
                **facts,
            }

    _not_compiled(torch, [*vars(UseMode).values(), _Plan.__init__, _covers])
    return UseMode


def _not_compiled(torch: Any, functions: list[Any]) -> None:
    """Lets ``torch.compile`` pass over functions that run inside of a compiled program."""
    skip: Any = getattr(getattr(torch._C._dynamo, "eval_frame", None), "skip_code", None)
    if skip is None:
        return
    for function in functions:
        code = getattr(getattr(function, "__func__", function), "__code__", None)
        if code is not None:
            skip(code)


def _covers(tensor: Any) -> bool:
    """Whether a tensor covers its storage: a write into a part of it keeps the rest."""
    return bool(tensor.numel() * tensor.element_size() >= tensor.untyped_storage().nbytes())


def _packed(
    operations: list[tuple[_Plan, int, int, dict[int, int]]],
    sizes: dict[int, int],
    least: int,
    begin_ns: int,
) -> dict[str, Any]:
    """Operations and uses as lists of numbers, without storages of fewer than ``least`` bytes."""
    names: dict[str, int] = {}
    storages: dict[int, int] = {}
    packed: list[int] = []
    uses: list[int] = []
    last = begin_ns // 1000
    for plan, begin_ns, end_ns, found in operations:
        kept = [(key, how) for key, how in found.items() if sizes.get(key, least) >= least]
        if not kept:
            continue
        begin, end = begin_ns // 1000, end_ns // 1000
        name = names.setdefault(plan.name, len(names))
        packed += (name, begin - last, end - begin, len(kept))
        last = begin
        uses += (storages.setdefault(key, len(storages)) << 3 | how for key, how in kept)
    return {
        "least_bytes": least,
        "names": list(names),
        "storages": [number for key in storages for number in (key & 0xFF, key >> 8)],
        "operations": packed,
        "uses": uses,
    }


def without_own_frames(snapshot: dict[str, Any], since_us: int) -> None:
    """Removes the frames of the mode from the stacks of a snapshot.

    A stack is then what it is in a step that is not traced.
    """
    for events in snapshot.get("device_traces", ()):
        for event in reversed(events):
            # Events are in the order of time, with a margin for other threads.
            if event.get("time_us", since_us) < since_us - 1_000_000:
                break
            _clean(event.get("frames"))
    for segment in snapshot.get("segments", ()):
        for block in segment["blocks"]:
            _clean(block.get("frames"))


def _clean(frames: list[dict[str, Any]] | None) -> None:
    if not frames:
        return
    own = [at for at, frame in enumerate(frames) if frame.get("filename") == __file__]
    for at in reversed(own):
        # Inside of the mode's frame is PyTorch's call of the operation, outside is its call of the
        # mode.
        begins, ends = at, at + 1
        while begins and frames[begins - 1].get("filename", "").endswith(_CALL):
            begins -= 1
        while ends < len(frames) and frames[ends].get("filename", "").endswith(_CALLERS):
            ends += 1
        del frames[begins:ends]


#: The ends of the names of PyTorch's files that call operations, and that call a mode.
_CALL = os.path.join("torch", "_ops.py")
_CALLERS = (os.path.join("torch", "_compile.py"), os.path.join("torch", "_dynamo", "eval_frame.py"))
