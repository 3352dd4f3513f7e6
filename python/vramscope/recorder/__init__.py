"""Records the memory of a training program: see :func:`record`."""

from __future__ import annotations

import atexit
import collections
import json
import logging
import os
import pathlib
import pickle
import re
import signal as signals
import threading
import time
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, ClassVar, Literal

from . import allocator, backend, failure, forks, sidecar, sources, threads, uses
from . import holders as holders_
from .entry import Entry
from .files import SUFFIX, Kept, Recordings, remove_left_over, write_beside, write_snapshot
from .guards import never_raise, whole
from .interrupts import Uninterrupted, natively_handled, pass_on
from .looks import NOTE_SIGNAL, Looks
from .ranks import is_first_of_machine, rank_and_world
from .refusals import WORDS as REFUSED_EARLY
from .refusals import Refusals, on_uncaught
from .states import States
from .teller import teller
from .watched import Reference, Watched, reference

__all__ = ["Recorder", "record"]

log = logging.getLogger("vramscope")

#: The signal on which a process writes a snapshot; ``None`` where the system has none to spare.
DUMP_SIGNAL: int | None = getattr(signals, "SIGUSR2", None)

#: Steps whose tensors are described in a sidecar: the last ones.
DESCRIBED_STEPS = 2
#: The share of the time that listing tensors may take. Steps are left out for it.
DESCRIBING_SHARE = 0.01
#: Steps whose end is in a sidecar: the last ones.
TOLD_STEPS = 10_000
#: Seconds that a signal waits for the snapshot of another thread. That thread may need a lock that
#: the interrupted thread holds.
SIGNAL_PATIENCE = 20.0


def record(
    folder: str | os.PathLike[str],
    *,
    every: int | None = None,
    states_every: int | None = None,
    keep: int | None = 3,
    stacks: Literal["python", "all"] = "python",
    max_entries: int | None = None,
    source: bool = True,
    holders: bool | Literal["every"] = True,
    model: Any = None,
    optimizer: Any = None,
    dump_signal: int | None = DUMP_SIGNAL,
    use_step: int | None = None,
) -> Recorder:
    """Records the memory history of this process into a folder.

    Use it around the program's work, or call :meth:`Recorder.start` and :meth:`Recorder.stop`::

        with vramscope.record("runs/42"):
            train()

    A snapshot is written when memory runs out, from inside the allocator, at the end, on a signal,
    and after every ``every`` steps. Beside each lies a JSON file with what a snapshot lacks. When
    memory runs out for the first time, two lines on standard error say where, and what was written.
    Errors of the program pass untouched, and the exit status stays what it would be. Where
    recording cannot start, dump or stop, one line is logged and the program goes on. A forked
    process records nothing unless it calls this itself.

    Args:
        folder: Where files go. All ranks of a job may share it. Further recordings of this process
            into the folder go to ``recording_2``, ``recording_3`` and so on below it.
        every: Steps between two snapshots; ``None`` for none between. A step ends with
            ``optimizer.step()``, or where the program calls :meth:`Recorder.step`.
        states_every: Steps between two lines of a series of states, which are cheap: the sums of
            the allocator and its segments, without blocks and history. ``None`` for no series.
        keep: How many snapshots of each kind (steps, out of memory, signals) to keep; ``None`` for
            all.
        stacks: ``"python"``, or ``"all"`` for C++ frames too, which make files much larger.
        max_entries: Events to keep; ``None`` to choose by the host's free memory.
        source: Whether source lines go into the file beside a snapshot.
        holders: Whether the file beside a snapshot says who holds the large live blocks: chains of
            references with the names of variables, in at most two seconds. ``"every"``: also at the
            snapshots of ``every``, where it costs this time again and again.
        model: A ``torch.nn.Module``, whose tensors get names; later see :meth:`Recorder.watch`.
        optimizer: Its optimizer, whose state gets names.
        dump_signal: The signal that asks for a snapshot; ``None`` for none.
        use_step: The step, from 1, of which is noted what its operations read and write: see
            :meth:`Recorder.trace_use`. ``None`` for none.

    Raises:
        ValueError: An argument is out of range.
        TypeError: The model or the optimizer is none.
    """
    if every is not None and every < 1:
        raise ValueError(f"every is {every}, expected at least 1")
    if states_every is not None and states_every < 1:
        raise ValueError(f"states_every is {states_every}, expected at least 1")
    if keep is not None and keep < 1:
        raise ValueError(f"keep is {keep}, expected at least 1")
    if stacks not in ("python", "all"):
        raise ValueError(f"stacks is {stacks!r}, expected 'python' or 'all'")
    if max_entries is not None and max_entries < 1:
        raise ValueError(f"max_entries is {max_entries}, expected at least 1")
    if holders not in (True, False, "every"):
        raise ValueError(f"holders is {holders!r}, expected True, False or 'every'")
    if use_step is not None and use_step < 1:
        raise ValueError(f"use_step is {use_step}, expected at least 1")
    return Recorder(
        pathlib.Path(folder),
        every=every,
        states_every=states_every,
        keep=keep,
        stacks=stacks,
        max_entries=max_entries,
        source=source,
        holders=holders,
        model=model,
        optimizer=optimizer,
        dump_signal=dump_signal,
        use_step=use_step,
    )


class Recorder:
    """A recording of this process. Made by :func:`record`."""

    #: The recorders that are started. Observers of the allocator cannot be detached.
    _active: ClassVar[list[Recorder]] = []
    _is_observed: ClassVar[bool] = False
    _recordings: ClassVar[Recordings] = Recordings()

    def __init__(self, folder: pathlib.Path, **options: Any) -> None:
        self.folder = folder
        self._options = options
        #: The folder now: the program may change the working folder.
        self._base = _absolute(folder)
        #: The folder of the dumps of this recording.
        self._own_folder = self._base
        self._watched = Watched()
        self._watched.add(options.pop("model"), options.pop("optimizer"))
        self._torch: Any = None
        self._backend: Any = None
        self._pid = os.getpid()
        self._is_recording = False
        #: Whether a signal asks for a snapshot, and for a note.
        self._is_asked = self._is_note_asked = False
        self._arguments: dict[str, Any] = {}
        self._dumping = threading.RLock()
        self._is_dumping = False
        self._steps: collections.deque[tuple[int, int]] = collections.deque(maxlen=TOLD_STEPS)
        self._step = 0
        #: The optimizer whose steps count. Not kept alive: that would hold its memory.
        self._counted: Reference | None = None
        self._counts_itself = True
        self._described: list[dict[str, Any]] = []
        self._describe_after = 0.0
        self._numbers: dict[str, int] = {}
        self._kept: dict[str, Kept] = {}
        self._written = 0
        self._states: States | None = None
        self._uses: uses.Uses | None = None
        self._looks: Looks | None = None
        #: Steps that have ended since the recording began.
        self._ended = 0
        self._undo: list[Callable[[], None]] = []
        self._oom_at_step: int | None = None
        self._refusals: Refusals | None = None
        self._written_in: Uninterrupted | None = None
        #: Where dumps go within the folder, by the state of the process.
        self.place: Callable[[], str] | None = None
        self._entry: Entry | None = None
        #: Signals whose handler is this recorder's.
        self._handled: set[int] = set()
        #: More fields of the file beside a snapshot.
        self.beside: Callable[[], dict[str, Any]] | None = None
        #: Called after each step.
        self.after_step: Callable[[], None] | None = None
        #: Whether a snapshot without any memory is written.
        self.writes_empty = True
        #: Whether the program has gone on after memory ran out; ``None`` if that is not known.
        self.has_survived: Callable[[], bool] | None = None

    # -- The program's side ------------------------------------------------------------------------

    def __repr__(self) -> str:
        if not self._is_active():
            state = "ended" if self._written else "not recording"
        elif self._is_recording:
            state = f"recording the last {self._arguments['max_entries']:,} events of each device"
        else:
            state = "records as soon as CUDA is used"
        every = self._options["every"]
        steps = f", a snapshot every {every} steps" if every else ""
        snapshots = f"{self._written} snapshot{'' if self._written == 1 else 's'}"
        folder = os.fspath(self._as_given(self._own_folder))
        return f"<vramscope.Recorder into {folder!r}: {state}{steps}, {snapshots} so far>"

    def __enter__(self) -> Recorder:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # The frames of the error still hold what they held.
        self._show_refusal(error)
        self.stop()

    def start(self) -> Recorder:
        """Start recording."""
        if self not in Recorder._active:
            self._pid = os.getpid()
            Recorder._active.append(self)
            self._begin()
        return self

    def stop(self) -> None:
        """Write the last snapshot and stop recording."""
        if not self._is_active():
            return
        self._end_looks()
        self._cut_uses()
        self._tell_unseen()
        self._at_end()
        Recorder._active.remove(self)
        self._run_undo()
        self._end()
        teller.end()

    def watch(self, model: Any, optimizer: Any = None) -> None:
        """Name the tensors of a model, and those of its optimizer, from now on.

        At any time, and for several models: each call adds to the former ones. Lists are taken
        too. Steps of the first optimizer end the steps of training. Neither is kept alive.

        Raises:
            TypeError: The model or the optimizer is none.
        """
        before = self._watched.first_optimizer()
        self._watched.add(model, optimizer)
        if self._watched.first_optimizer() is not before:
            self._counted = None

    def step(self) -> None:
        """End a step.

        Without a call of this, a step ends with ``optimizer.step()``.
        """
        was_counted = self._counts_itself and bool(self._steps)
        self._counts_itself = False
        # The step that ends with the first call: its optimizer has stepped, and counted it.
        if not was_counted:
            self._end_step()

    def begin_at(self, step: int) -> None:
        """Count steps from here, for a training that is resumed."""
        self._step = step

    def dump(self, name: str = "call") -> pathlib.Path | None:
        """Write a snapshot into the subfolder ``name``. Returns its path; None if it failed."""
        return self._write(re.sub(r"[^\w.-]+", "_", str(name)).lstrip(".") or "call", kind="call")

    def trace_use(self) -> uses.Traced:
        """Note which operations of a step read and write which memory.

        Use it around one step, in the thread that trains::

            with recorder.trace_use():
                train_step()

        The file beside each later snapshot then tells what is never read again. A later use
        replaces an earlier one. One trace runs at a time: a block within another does nothing. A
        block that an error leaves tells nothing. ``use_step`` of :func:`record` does this for a
        step by its number.
        """
        return uses.Traced(self._begin_uses, self._end_uses)

    @property
    def ended_steps(self) -> int:
        """Steps that have ended since the recording began."""
        return self._ended

    def _as_given(self, path: pathlib.Path) -> pathlib.Path:
        """A path below the folder, as the program has named the folder."""
        return self.folder / path.relative_to(self._base)

    def _is_active(self) -> bool:
        """Whether this process records with it. A forked one does not."""
        return self in Recorder._active and os.getpid() == self._pid

    # -- Starting and ending -----------------------------------------------------------------------

    @never_raise
    def _begin(self) -> None:
        """Start recording."""
        import torch

        if not self._base.is_absolute():
            raise FileNotFoundError(f"the working folder is gone, and {self.folder} is below it")
        self._own_folder = Recorder._recordings.next_folder(self._base)
        every = self._options["states_every"]
        self._states = None if every is None else States(self._own_folder)
        self._torch = torch
        self._backend = backend.choose(torch)
        if not self._backend.is_available():
            log.warning("nothing is recorded: PyTorch sees no CUDA device, XPU or NPU")
            return
        self._on_exit()
        self._undo.append(on_uncaught(self._show_refusal))
        self._on_signals()
        self._on_optimizer_steps()
        self._remove_left_over()
        self._uses = uses.Uses(torch)
        if self._options["use_step"] == 1:
            self._begin_uses(self)
        self._backend.when_initialized(self._start_history)

    @never_raise
    def _start_history(self) -> None:
        """Start recording."""
        if not self._is_active():
            return
        options = self._options
        length = options["max_entries"] or allocator.history_length(
            allocator.free_host_bytes(), int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
        )
        self._arguments = allocator.start_history(self._backend, length, options["stacks"])
        self._is_recording = True
        if "context" in self._arguments and not teller.is_silent:
            log.warning(
                "frees show the stack of their allocation: PyTorch %s loses errors at the stack of "
                "a free",
                self._torch.__version__,
            )
        self._refusals = Refusals(self._backend)
        takes_notes = self._wants_holders("end") and holders_.is_possible() is None
        self._looks = Looks(
            self._backend,
            self._say_growth,
            self._note if takes_notes else None,
            self._is_note_asked,
        )
        if not Recorder._is_observed:
            Recorder._is_observed = allocator.attach_oom_observer(self._backend, _ran_out)
        self._open_entry()

    @never_raise
    def _end(self) -> None:
        """Stop recording."""
        was_recording, self._is_recording = self._is_recording, False
        if was_recording and not any(other._is_recording for other in Recorder._active):
            allocator.stop_history(self._backend)

    def _run_undo(self) -> None:
        while self._undo:
            self._undo_one(self._undo.pop())

    @never_raise
    def _undo_one(self, undo: Callable[[], None]) -> None:
        """Detach the recorder from the program."""
        undo()

    @never_raise
    def _remove_left_over(self) -> None:
        """Remove unfinished files of ended processes."""
        if is_first_of_machine():
            for path in remove_left_over(self._own_folder):
                log.info("removed %s, which an ended process has not finished", path)

    def _forget(self) -> None:
        """Leaves a forked process as if it were not recorded."""
        # Another thread of the parent may have held it.
        self._dumping, self._is_dumping = threading.RLock(), False
        self._is_recording = False
        self._looks = None
        if self._uses is not None:
            self._uses.forget()
        self._run_undo()

    def _on_exit(self) -> None:
        atexit.register(self.stop)
        self._undo.append(lambda: atexit.unregister(self.stop))

    # -- Signals -----------------------------------------------------------------------------------

    @never_raise
    def _on_signals(self) -> None:
        """Handle signals."""
        if not threads.is_main():
            log.warning("no snapshot on signals: recording was started outside the main thread")
            return
        wanted = self._options["dump_signal"]
        if wanted is not None:
            self._is_asked = self._handle(wanted, self._dump_on_signal)
        if NOTE_SIGNAL is not None and self._wants_holders("end"):
            self._is_note_asked = self._handle(NOTE_SIGNAL, self._take_due)
        # A launcher ends the other ranks with this signal when one rank fails.
        self._handle(signals.SIGTERM, self._dump_and_terminate)

    def _handle(self, number: int, handler: Callable[[int, FrameType | None, Any], None]) -> bool:
        before = signals.getsignal(number)
        if before is None or number in natively_handled():
            log.warning("signal %d is left alone: its handler is not Python's", number)
            return False

        def handle(received: int, frame: FrameType | None) -> None:
            if self._is_active():
                handler(received, frame, before)
            else:
                pass_on(before, received, frame)

        signals.signal(number, handle)
        self._handled.add(number)

        def undo() -> None:
            # A handler that was set later stays, and calls this one. Another thread cannot set any.
            if threads.is_main() and signals.getsignal(number) is handle:
                signals.signal(number, before)

        self._undo.append(undo)
        return True

    @never_raise
    def _open_entry(self) -> None:
        """Let `vramscope record --dump` find this process."""
        number = self._options["dump_signal"]
        if number in self._handled:
            self._entry = entry = Entry.open(number, self._base)
            self._undo += [] if entry is None else [entry.close]

    def _dump_on_signal(self, number: int, frame: FrameType | None, before: Any) -> None:
        path = self._write(self._numbered("signal"), kind="signal", patience=SIGNAL_PATIENCE)
        if self._entry is not None:
            self._entry.answer(path)
        if callable(before):
            before(number, frame)

    def _dump_and_terminate(self, number: int, frame: FrameType | None, before: Any) -> None:
        if before is signals.SIG_IGN:
            return
        # The signal may have arrived during a snapshot, which then shows the state at its arrival.
        if self._written_in is None or self._written_in is not Uninterrupted.delivering():
            self._write("terminated", kind="end", patience=SIGNAL_PATIENCE)
        teller.go_on()
        pass_on(before, number, frame)

    # -- Steps -------------------------------------------------------------------------------------

    @never_raise
    def _on_optimizer_steps(self) -> None:
        """Count steps of optimizers."""
        from torch.optim import optimizer as optimizers

        register = getattr(optimizers, "register_optimizer_step_post_hook", None)
        if register is not None:
            self._undo.append(register(self._optimizer_stepped).remove)

    def _optimizer_stepped(self, stepped: Any, args: Any, kwargs: Any) -> None:
        if not self._counts_itself:
            return
        # Several optimizers may step in one step of training: the first one counts.
        counted = self._counted() if self._counted is not None else None
        if counted is None:
            counted = self._watched.first_optimizer()
            counted = stepped if counted is None else counted
            self._counted = reference(counted)
        if stepped is counted or self._is_in(counted, stepped):
            self._end_step()

    @never_raise
    def _is_in(self, wrapper: Any, stepped: Any) -> bool:
        """Find the optimizer in its wrapper."""
        return stepped is getattr(wrapper, "optimizer", None)

    def _end_step(self) -> None:
        self._step += 1
        self._ended += 1
        self._steps.append((self._step, sidecar.now_us()))
        teller.go_on()
        wanted = self._options["use_step"]
        if self._ended == wanted:
            self._end_uses(self, True)
        self._leave_uses()
        begin = time.perf_counter()
        if self._watched and begin >= self._describe_after:
            self._describe()
            end = time.perf_counter()
            self._describe_after = end + (end - begin) / DESCRIBING_SHARE
        every = self._options["states_every"]
        if every is not None and self._step % every == 0:
            self._add_state()
        every = self._options["every"]
        if every is not None and self._step % every == 0:
            self._write(f"step_{self._step}", kind="step")
        if wanted is not None and self._ended == wanted - 1:
            self._begin_uses(self)
        if self._looks is not None and self._is_recording and self._is_active():
            self._looks.after_step(self._step)
        if self.after_step is not None:
            self.after_step()

    @whole
    def _end_looks(self) -> None:
        """End the looks at the memory."""
        if self._looks is not None:
            self._looks.end()

    def _take_due(self, number: int, frame: FrameType | None, before: Any) -> None:
        if (self._looks is None or not self._looks.take_due(frame)) and callable(before):
            before(number, frame)

    def _say_growth(self, words: str) -> None:
        # The ranks of a machine mostly grow alike.
        if Recorder._active[0] is self and is_first_of_machine():
            ask = f"vramscope record --dump {self._pid}" if self._is_asked else None
            teller.growth(words, ask)

    @whole
    def _note(self) -> dict[str, Any] | None:
        """Note who holds memory."""
        # Another thread may write a snapshot, which tells more.
        if not self._dumping.acquire(blocking=False):
            return None
        try:
            if self._is_dumping:
                return None
            self._is_dumping = True
            listed = allocator.segments_alone(self._backend)
            if listed is None:
                segments = self._backend.module.memory._snapshot()["segments"]
            else:
                segments = listed()
            return self._find_holders(segments)
        finally:
            self._is_dumping = False
            self._dumping.release()

    @whole
    def _begin_uses(self, owner: object) -> None:
        """Trace the uses of memory."""
        if self._uses is None or not self._is_active():
            return
        try:
            self._uses.begin(owner)
        except uses.NotTraced as why:
            log.warning("uses of memory are not traced: %s", why)

    @whole
    def _end_uses(self, owner: object, is_whole: bool) -> None:
        """End the trace of uses of memory."""
        if self._uses is not None:
            self._uses.end(owner, self._step, is_whole)

    @whole
    def _cut_uses(self) -> None:
        """End the trace of uses of memory."""
        if self._uses is not None:
            self._uses.cut(self._step)

    @never_raise
    def _leave_uses(self) -> None:
        """Leave the mode that has traced."""
        if self._uses is not None:
            self._uses.leave()

    @whole
    def _add_state(self) -> None:
        """Write the allocator's state."""
        if self._states is not None and self._is_recording and self._is_active():
            self._states.add(self._backend, self._step)

    @whole
    def _describe(self) -> None:
        """List the tensors of the model."""
        described = {
            "step": self._step,
            "time_us": sidecar.now_us(),
            "tensors": self._watched.tensors(),
        }
        self._described = [*self._described, described][-DESCRIBED_STEPS:]

    # -- Snapshots ---------------------------------------------------------------------------------

    def _out_of_memory(
        self, device: int, requested: int, total: int, free: int, words: str | None
    ) -> None:
        if not self._is_active():
            return
        self._oom_at_step = self._step
        oom = {
            "device": device,
            "requested_bytes": requested,
            "total_bytes": total,
            "free_bytes": free,
        }
        path = self._write(self._numbered("oom"), kind="oom", oom=oom)
        # Of several recorders, the first one tells.
        if words is not None and self._is_recording:
            teller.out_of_memory(words, path is not None)

    @never_raise
    def _show_refusal(self, error: BaseException | None) -> None:
        """Write a snapshot of a request that was refused early."""
        if not self._is_active() or self._refusals is None or not self._refusals.is_new(error):
            return
        self._oom_at_step = self._step
        path = self._write(self._numbered("oom"), kind="oom")
        if Recorder._active[0] is self:
            teller.out_of_memory(REFUSED_EARLY, path is not None)

    @never_raise
    def _tell_unseen(self) -> None:
        """Tell of requests that were refused early."""
        if self._refusals is None:
            return
        self._refusals.count()
        if self._refusals.unseen > 0 and Recorder._active[0] is self:
            log.warning(
                "PyTorch refused requests early (throw_on_cudamalloc_oom), and the program went "
                "on: %d, which no snapshot shows",
                self._refusals.unseen,
            )

    @never_raise
    def _describe_error(self, device: int, requested: int, total: int, free: int) -> str:
        """Describe the error."""
        reserved = self._backend.module.memory_reserved(device)
        short = failure.lacking(requested, free, total, reserved)
        return failure.described(self._torch, requested, short)

    def _at_end(self) -> None:
        # The snapshot from inside the allocator shows more than one after the error has unwound.
        has_survived = self.has_survived is not None and self.has_survived()
        if self._oom_at_step is None or self._oom_at_step != self._step or has_survived:
            self._write("exit", kind="end")

    def _numbered(self, kind: str) -> str:
        self._numbers[kind] = self._numbers.get(kind, 0) + 1
        return f"{kind}_{self._numbers[kind]}"

    @whole
    def _write(
        self,
        name: str,
        *,
        kind: str,
        oom: dict[str, Any] | None = None,
        patience: float = -1,
    ) -> pathlib.Path | None:
        """Write a snapshot."""
        if not self._is_recording or os.getpid() != self._pid:
            return None
        # No limit if it is -1.
        if not self._dumping.acquire(timeout=patience):
            return None
        try:
            # A finalizer may ask for a snapshot while this thread writes one.
            if self._is_dumping:
                return None
            self._is_dumping = True
            try:
                with allocator.Collector.paused():
                    return self._write_now(name, kind, oom)
            finally:
                self._is_dumping = False
        finally:
            self._dumping.release()

    def _write_now(self, name: str, kind: str, oom: dict[str, Any] | None) -> pathlib.Path | None:
        rank, _ = rank_and_world()
        snapshot = self._backend.module.memory._snapshot()
        held = (
            self._find_holders(snapshot["segments"], snapshot)
            if self._wants_holders(kind)
            else None
        )
        notes = self._looks.notes if self._looks is not None and kind == "end" else None
        if notes is not None and notes.last is not None:
            held = holders_.with_noted(held, notes.last)
        if uses.Uses.since_us is not None:
            uses.without_own_frames(snapshot, uses.Uses.since_us)
        if not any(snapshot.get("device_traces", ())):
            if not self.writes_empty and not snapshot.get("segments"):
                return None
            log.warning("the snapshot has no history: other code has stopped the recording")
        is_described = self._described and self._described[-1]["step"] == self._step
        if self._watched and not is_described:
            self._describe()
        own_folder = self._own_folder / (self.place() if self.place is not None else "")
        wanted = own_folder / name / f"rank{rank}{SUFFIX}"
        path = write_snapshot(wanted, lambda file: pickle.dump(snapshot, file))
        self._written_in = Uninterrupted.current()
        self._written += 1
        teller.wrote(self._as_given(path.parent), self._as_given(self._own_folder))
        if path != wanted and not (teller.is_silent or teller.is_below):
            log.warning("%s exists: wrote %s", wanted, path.name)
        self._remove_older(kind, path)
        self._write_beside(path, snapshot, kind, oom, held)
        log.info("wrote %s", path)
        return path

    @never_raise
    def _remove_older(self, kind: str, path: pathlib.Path) -> None:
        """Remove older snapshots."""
        self._kept.setdefault(kind, Kept(self._options["keep"])).add(path)

    @never_raise
    def _write_beside(
        self,
        path: pathlib.Path,
        snapshot: dict[str, Any],
        kind: str,
        oom: dict[str, Any] | None,
        held: dict[str, Any] | None,
    ) -> None:
        """Write the file beside a snapshot."""
        rank, world = rank_and_world()
        facts = {
            "version": sidecar.VERSION,
            "reason": kind,
            "time_us": sidecar.now_us(),
            "rank": rank,
            "world_size": world,
            **sidecar.environment(self._backend),
            "recording": self._arguments,
            "devices": sidecar.devices(self._backend, oom),
            "oom": oom,
            "steps": [{"step": step, "time_us": time} for step, time in self._steps],
            "tensors": self._described,
            "sources": sources.source_lines(snapshot) if self._options["source"] else {},
            **({} if held is None else {"holders": held}),
        }
        if self._uses is not None and self._uses.facts is not None:
            facts["uses"] = self._uses.facts
        if self.beside is not None:
            facts.update(self.beside())
        text = json.dumps(facts, ensure_ascii=False, separators=(",", ":"))
        # A name of a file may have bytes that are no text.
        write_beside(path, lambda file: file.write(text.encode(errors="replace")))

    def _wants_holders(self, kind: str) -> bool:
        wanted = self._options["holders"]
        return wanted == "every" if kind == "step" else bool(wanted)

    @never_raise
    def _find_holders(
        self, segments: list[dict[str, Any]], snapshot: Any = None
    ) -> dict[str, Any] | None:
        """Find who holds memory."""
        reason = holders_.is_possible()
        if reason is not None:
            log.info("holders are not recorded: %s", reason)
            return None
        blocks = holders_.live_blocks(segments)
        # The millions of objects of the snapshot hold nothing.
        hidden = [segments, snapshot, *Recorder._active]
        return holders_.find(self._torch, blocks, hidden=hidden)


def _absolute(folder: pathlib.Path) -> pathlib.Path:
    try:
        return pathlib.Path(os.path.abspath(folder))
    except OSError:
        # The working folder is gone. The start says so, and the program goes on.
        return folder


def _ran_out(device: int, requested: int, total: int, free: int) -> None:
    """Called inside the allocator. It then raises the error that the program sees."""
    with Uninterrupted():
        active = [one for one in Recorder._active if one._is_recording and one._is_active()]
        words = active[0]._describe_error(device, requested, total, free) if active else None
        for recorder in active:
            recorder._out_of_memory(device, requested, total, free, words)
            words = None


def _in_child() -> None:
    """Ends what is recorded: a forked process does not record."""
    active = list(Recorder._active)
    Recorder._active.clear()
    Recorder._recordings.forget()
    allocator.Collector.end_in_child()
    teller.forget()
    for recorder in reversed(active):
        recorder._forget()


def _pause() -> None:
    for one in Recorder._active:
        if one._looks is not None:
            one._looks.pause()


def _go_on() -> None:
    for one in Recorder._active:
        if one._looks is not None:
            one._looks.go_on()


forks.handle(lambda: bool(Recorder._active), _pause, _go_on, _in_child)
