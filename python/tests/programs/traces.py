"""Traces uses of memory into RUN in programs that do not trace one step after the other.

Prints for each trace the operations that it has noted, and whether it is complete.
"""

import asyncio
import gc
import json
import os
import pathlib
import signal
import sys
import threading

import torch
from torch.utils._python_dispatch import TorchDispatchMode

import vramscope

RUN = os.environ["RUN"]
tensor = torch.ones(8, device="cuda") if hasattr(torch, "ones") else torch.Tensor()
held = torch.empty(512, device="cuda")


class Mode(TorchDispatchMode):
    """A mode of the program, which counts operations."""

    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += 1
        return func(*args, **(kwargs or {}))


def do(*names):
    for name in names:
        getattr(torch, name)(tensor)


def tell_of(snapshot):
    beside = snapshot.with_name("rank0_memory_snapshot.vramscope.json")
    uses = json.loads(beside.read_text()).get("uses")
    names = uses and [uses["names"][at].split(".")[1] for at in uses["operations"][::4]]
    print(*(["none"] if uses is None else [*names, uses["complete"]]), flush=True)
    beside.unlink()
    snapshot.unlink()


def tell(recorder):
    tell_of(recorder.dump())


def tell_last():
    """Of the snapshot at the end of the recording."""
    tell_of(pathlib.Path(RUN) / "exit" / "rank0_memory_snapshot.pickle")


def in_thread(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def nested():
    with vramscope.record(RUN) as recorder:
        with recorder.trace_use():
            do("neg")
            with recorder.trace_use():
                do("exp")
            do("abs")
        tell(recorder)


def one_object():
    """Enters one block within itself, and after itself."""
    with vramscope.record(RUN) as recorder:
        traced = recorder.trace_use()
        with traced:
            do("neg")
            with traced:
                do("exp")
            do("abs")
        tell(recorder)
        with traced:
            do("abs")
        tell(recorder)
        # A block that is left without being entered.
        traced.__exit__(None, None, None)


def in_use_step():
    with vramscope.record(RUN, use_step=1) as recorder:
        do("neg")
        with recorder.trace_use():
            do("exp")
        do("abs")
        recorder.step()
        tell(recorder)


def around_use_step():
    with vramscope.record(RUN, use_step=2) as recorder:
        with recorder.trace_use():
            do("neg")
            recorder.step()
            do("exp")
            recorder.step()
            do("abs")
        tell(recorder)


def two_recorders():
    with vramscope.record(RUN) as recorder, vramscope.record(f"{RUN}/other") as other:
        with recorder.trace_use():
            do("neg")
            with other.trace_use():
                do("exp")
        tell(recorder)
        tell(other)


def error():
    with vramscope.record(RUN) as recorder:
        try:
            with recorder.trace_use():
                do("neg")
                raise ValueError("the program's own")
        except ValueError as raised:
            print(raised)
        tell(recorder)
        # An error that does not leave the block.
        with recorder.trace_use():
            try:
                raise ValueError("another")
            except ValueError:
                do("exp")
        tell(recorder)


def failing_operation():
    """An operation fails in the block. It may have read its arguments."""
    with vramscope.record(RUN) as recorder:
        with recorder.trace_use():
            do("neg")
            try:
                torch.mm(tensor, tensor)
            except RuntimeError:
                print("failed")
        tell(recorder)


def unfinished_step():
    """The program ends in the step that is traced, which its last snapshot tells."""
    with vramscope.record(RUN, use_step=2) as recorder:
        recorder.step()
        do("neg")
    tell_last()


def stopped():
    """The recording ends in the block, and begins again."""
    recorder = vramscope.record(RUN).start()
    with recorder.trace_use():
        do("neg")
        recorder.stop()
        tell_last()
        recorder.start()
        torch.empty(512, device="cuda")
        do("exp")
    tell(recorder)
    recorder.stop()


def generator(how):
    def steps():
        with recorder.trace_use():
            do("neg")
            yield
            do("exp")

    with vramscope.record(RUN) as recorder:
        running = steps()
        next(running)
        do("abs")
        if how == "finished":
            next(running, None)
        elif how == "closed":
            running.close()
        elif how == "dropped":
            del running
        elif how == "elsewhere":
            in_thread(lambda: next(running, None))
        elif how == "collected":
            held = [running]
            held.append(held)
            del running, held
            in_thread(gc.collect)
        tell(recorder)
        # What is traced next.
        with recorder.trace_use():
            do("abs")
        tell(recorder)
        if how == "suspended":
            recorder.stop()
            tell_last()


def threads():
    """Two threads trace at once."""
    with vramscope.record(RUN) as recorder:

        def other():
            with recorder.trace_use():
                do("exp")

        with recorder.trace_use():
            do("neg")
            in_thread(other)
            do("abs")
        tell(recorder)


def many_threads():
    """Threads trace one after the other, and at once. At most one trace runs."""
    with vramscope.record(RUN) as recorder:

        def work():
            for _ in range(200):
                with recorder.trace_use():
                    do("neg")
                assert torch._C._len_torch_dispatch_stack() == 0

        each = [threading.Thread(target=work) for _ in range(4)]
        for thread in each:
            thread.start()
        for thread in each:
            thread.join()
        tell(recorder)


def tasks():
    """Two tasks of one loop trace at once, and one counts with a mode of the program."""
    mode = Mode()

    async def trace(recorder, name, turns):
        with recorder.trace_use():
            for _ in range(turns):
                do(name)
                await asyncio.sleep(0)

    async def count():
        await asyncio.sleep(0)
        with mode:
            for _ in range(6):
                await asyncio.sleep(0)
                do("abs")

    async def main(recorder):
        await asyncio.gather(trace(recorder, "neg", 2), trace(recorder, "exp", 4), count())
        tell(recorder)

    with vramscope.record(RUN) as recorder:
        asyncio.run(main(recorder))
        print(mode.count >= 6)
        recorder.step()


def cancelled():
    async def work(recorder):
        with recorder.trace_use():
            do("neg")
            await asyncio.sleep(60)

    async def main(recorder):
        task = asyncio.create_task(work(recorder))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        tell(recorder)

    with vramscope.record(RUN) as recorder:
        asyncio.run(main(recorder))


def crossing_mode():
    """A mode of the program is entered in the block, and left after it."""
    with vramscope.record(RUN) as recorder:
        traced, mode = recorder.trace_use(), Mode()
        traced.__enter__()
        do("neg")
        mode.__enter__()
        do("exp")
        traced.__exit__(None, None, None)
        do("abs")
        assert torch._C._get_dispatch_stack_at(1) is mode
        with recorder.trace_use():
            do("abs")
        mode.__exit__(None, None, None)
        print(mode.count)
        tell(recorder)
        with recorder.trace_use():
            do("abs")
        tell(recorder)


def forked():
    with vramscope.record(RUN) as recorder:
        with recorder.trace_use():
            do("neg")
            if (pid := os.fork()) == 0:
                os._exit(torch._C._len_torch_dispatch_stack())
            print(os.waitpid(pid, 0)[1])
            if (pid := os.fork()) == 0:
                with recorder.trace_use():
                    do("exp")
        if pid == 0:
            os._exit(torch._C._len_torch_dispatch_stack())
        print(os.waitpid(pid, 0)[1])
        tell(recorder)


def interrupted():
    """A handler of the program raises while the block is entered."""

    def handle(number, frame):
        raise TimeoutError("the program's own")

    signal.signal(signal.SIGALRM, handle)
    with vramscope.record(RUN) as recorder:
        begin = recorder._uses.begin

        def acting(owner):
            os.kill(os.getpid(), signal.SIGALRM)
            begin(owner)

        recorder._uses.begin = acting
        try:
            with recorder.trace_use():
                do("neg")
        except TimeoutError as raised:
            print(raised)
        do("exp")
        tell(recorder)


globals()[sys.argv[1]](*sys.argv[2:])
assert torch._C._len_torch_dispatch_stack() == 0
