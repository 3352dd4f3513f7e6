"""Records into RUN. The arguments say what happens meanwhile."""

import asyncio
import multiprocessing
import os
import signal
import sys
import threading
import time

import torch

import vramscope
import vramscope.recorder

RUN = os.environ["RUN"]
held = []


def work(count):
    held.extend(torch.empty(1024 * (1 + i % 7), device="cuda") for i in range(count))


def run_out():
    torch.empty(1 << 45, device="cuda")


def during_the_next_snapshot(act):
    memory = torch.cuda.memory
    snapshot = memory._snapshot

    def acting(*arguments, **named):
        memory._snapshot = snapshot
        act()
        return snapshot(*arguments, **named)

    memory._snapshot = acting


def send(number):
    os.kill(os.getpid(), number)


def end_of(pid):
    """How a child has ended: its exit status, or minus its signal."""
    status = os.waitpid(pid, 0)[1]
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def signal_in_oom(name):
    """Gets a signal while the snapshot of an error is written."""
    with vramscope.record(RUN):
        work(100)
        during_the_next_snapshot(lambda: send(getattr(signal, name)))
        try:
            run_out()
        except BaseException as error:
            print(type(error).__name__)


def signal_beside():
    """Gets a signal while the file beside a snapshot is written."""
    devices = vramscope.recorder.sidecar.devices

    def acting(*arguments):
        send(signal.SIGTERM)
        return devices(*arguments)

    vramscope.recorder.sidecar.devices = acting
    with vramscope.record(RUN):
        work(100)
        try:
            run_out()
        except torch.cuda.OutOfMemoryError:
            print("survived")


def own_handler():
    """Has a handler that raises, as a limit of time does."""

    def handle(number, frame):
        raise TimeoutError("the program's own")

    signal.signal(signal.SIGALRM, handle)
    with vramscope.record(RUN) as recorder:
        work(100)
        during_the_next_snapshot(lambda: send(signal.SIGALRM))
        try:
            recorder.dump("late")
        except TimeoutError as error:
            print(error)
        # Outside of a snapshot the handler is called at once.
        try:
            send(signal.SIGALRM)
            time.sleep(1)
        except TimeoutError as error:
            print(error)


def asked_twice():
    """Is asked for a snapshot while it writes one."""
    with vramscope.record(RUN):
        work(100)
        during_the_next_snapshot(lambda: send(signal.SIGUSR2))
        send(signal.SIGUSR2)


def forked():
    """Has a child that ends as programs do, and one that is terminated."""
    with vramscope.record(RUN) as recorder:
        work(100)
        if (pid := os.fork()) == 0:
            recorder.dump("child")
            recorder.step()
            sys.exit(3)
        print(end_of(pid))
        # Some signals arrive before the child runs.
        for _ in range(20):
            if (pid := os.fork()) == 0:
                time.sleep(60)
                os._exit(4)
            os.kill(pid, signal.SIGTERM)
            assert end_of(pid) == -signal.SIGTERM
        work(50)


def forked_in_dump():
    """Another thread forks while the main thread writes a snapshot."""

    def fork():
        if (pid := os.fork()) == 0:
            send(signal.SIGTERM)
            os._exit(4)
        print(end_of(pid))

    def act():
        thread = threading.Thread(target=fork)
        thread.start()
        thread.join()

    with vramscope.record(RUN):
        work(100)
        during_the_next_snapshot(act)


def child_records():
    """A child records itself."""
    with vramscope.record(RUN):
        work(100)
        if (pid := os.fork()) == 0:
            with vramscope.record(f"{RUN}/child"):
                work(10)
            sys.exit(0)
        print(end_of(pid))


def pool():
    """Uses a pool of processes."""
    with vramscope.record(RUN):
        work(100)
        with multiprocessing.get_context("fork").Pool(4) as processes:
            print(processes.map(abs, [1, -2]))


def loader(method):
    """Reads data in processes, which stay from one time to the next."""
    from torch.utils.data import DataLoader

    how = {"multiprocessing_context": method, "persistent_workers": True, "num_workers": 2}
    with vramscope.record(RUN) as recorder:
        work(100)
        batches = DataLoader(range(32), batch_size=4, **how)
        with recorder.trace_use():
            for _ in range(2):
                print(sum(len(batch) for batch in batches))


def event_loop():
    """Runs an event loop, whose handler of a signal gets what arrives during a snapshot."""

    async def main(recorder):
        done = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, done.set)
        during_the_next_snapshot(lambda: send(signal.SIGTERM))
        recorder.dump("late")
        await asyncio.wait_for(done.wait(), 60)
        print("ended by its handler")

    async def other():
        work(10)
        await asyncio.sleep(0)
        print("ran in a thread")

    with vramscope.record(RUN) as recorder:
        work(100)
        asyncio.run(main(recorder))
        thread = threading.Thread(target=lambda: asyncio.run(other()))
        thread.start()
        thread.join()


def repeated():
    """Records four times."""
    for count in range(1, 5):
        with vramscope.record(RUN):
            work(count)


def too_early():
    """Is asked for a snapshot before it records."""
    send(signal.SIGUSR2)
    with vramscope.record(RUN):
        work(10)


def shown():
    """Shows its recorder before, during and after the recording."""
    recorder = vramscope.record(RUN, every=10, max_entries=5000)
    print(recorder)
    with recorder:
        work(10)
        recorder.dump("early")
        print(recorder)
    print(recorder)


def catches():
    """Runs out of memory three times, and goes on."""
    with vramscope.record(RUN):
        work(10)
        for _ in range(3):
            try:
                run_out()
            except torch.cuda.OutOfMemoryError:
                pass
        print("survived", flush=True)


def ends_by_error(how):
    """An error ends the program, or a thread: in a ``with`` block, or without one."""
    if how == "with":
        with vramscope.record(RUN):
            work(100)
            run_out()
    recorder = vramscope.record(RUN).start()
    work(100)
    if how == "thread":
        thread = threading.Thread(target=run_out)
        thread.start()
        thread.join()
        recorder.stop()
        return
    run_out()


def states():
    """Writes states every second step."""
    with vramscope.record(RUN, states_every=2) as recorder:
        for _ in range(7):
            work(10)
            recorder.step()


def collected():
    """Looks at Python's collector of garbage around snapshots, in a child too."""
    import gc

    during = []

    def act():
        during.append(gc.get_threshold()[0])
        if (pid := os.fork()) == 0:
            os._exit(gc.get_threshold()[0] == 700)
        during.append(end_of(pid))
        # What another thread of the program says meanwhile, stays.
        gc.disable()

    gc.set_threshold(700)
    with vramscope.record(RUN) as recorder:
        work(10)
        during_the_next_snapshot(act)
        recorder.dump("early")
        print(*during, gc.isenabled(), gc.get_threshold()[0])
        gc.enable()
        during_the_next_snapshot(lambda: gc.set_threshold(500))
        recorder.dump("late")
        print(gc.isenabled(), gc.get_threshold()[0], flush=True)


def foreign():
    """Runs out of memory in a thread that Python has not started, as those of autograd."""
    import _thread

    ended = threading.Lock()
    ended.acquire()

    def other():
        try:
            run_out()
        except torch.cuda.OutOfMemoryError:
            ended.release()

    with vramscope.record(RUN):
        work(10)
        _thread.start_new_thread(other, ())
        ended.acquire()
        for thread in threading.enumerate():
            print(thread.name)


def killed():
    """Is killed while it writes."""

    def dump(snapshot, file):
        file.write(b"half")
        file.flush()
        send(signal.SIGKILL)

    vramscope.recorder.pickle.dump = dump
    with vramscope.record(RUN):
        work(100)


def stopped_elsewhere():
    """Stops the recording in another thread, which cannot set handlers."""
    recorder = vramscope.record(RUN).start()
    work(100)
    thread = threading.Thread(target=recorder.stop)
    thread.start()
    thread.join()
    print("stopped", flush=True)
    send(signal.SIGTERM)


def broken():
    """Cannot write snapshots: PyTorch fails."""

    def fail():
        raise RuntimeError("no snapshot\nfor several reasons")

    with vramscope.record(RUN) as recorder:
        work(10)
        torch.cuda.memory._snapshot = fail
        print(recorder.dump("late"))
        try:
            run_out()
        except torch.cuda.OutOfMemoryError as error:
            print(str(error)[:18])


def checkpointed():
    """Trains with activation checkpointing, whose recomputation ends by an error."""
    from torch.utils.checkpoint import checkpoint

    def loss(head, rows, wanted):
        return torch.nn.functional.cross_entropy(head(rows).float(), wanted, reduction="sum")

    with vramscope.record(RUN):
        head = torch.nn.Linear(64, 1000, device="cuda")
        for _ in range(3):
            rows = torch.randn(128, 64, device="cuda", requires_grad=True)
            wanted = torch.zeros(128, dtype=torch.long, device="cuda")
            checkpoint(loss, head, rows, wanted, use_reentrant=False).backward()
    print("trained")


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
