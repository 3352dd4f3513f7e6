"""A program below ``vramscope record --``, which knows nothing of it. The arguments say what it
does: each is the name of a function, and may have an argument after ``=``."""

import multiprocessing
import os
import signal
import sys
import threading
import time

import torch

held = []


def use():
    """Uses the GPU."""
    held.append(torch.empty(1 << 20, device="cuda"))


def nothing():
    """Uses no GPU."""


def run_out():
    torch.empty(1 << 45, device="cuda")


def rename():
    """Takes another name between two dumps."""
    try:
        run_out()
    except torch.cuda.OutOfMemoryError:
        sys.argv[0] = "renamed"
    use()
    # The state of the end is another step's than that of the error.
    import vramscope.recorder

    vramscope.recorder.Recorder._active[0].step()


def child(method):
    """A child uses the GPU, and this process none."""
    started = multiprocessing.get_context(method).Process(target=use, name="Engine core")
    started.start()
    started.join()
    print("child", started.exitcode, flush=True)


def helpers(method):
    """Children that use no GPU, as those of a DataLoader."""
    with multiprocessing.get_context(method).Pool(2) as pool:
        print(sum(pool.map(abs, [-1, -2])), flush=True)


def fork():
    """A child without ``multiprocessing`` uses the GPU."""
    pid = os.fork()
    if pid == 0:
        use()
        sys.exit(0)
    print("child", os.waitpid(pid, 0)[1], flush=True)


def thread():
    """Another thread is the first to use the GPU."""
    other = threading.Thread(target=use)
    other.start()
    other.join()


def end(status):
    sys.exit(int(status))


def kill(number):
    os.kill(os.getpid(), int(number))
    time.sleep(10)


def count(number):
    """Says when it is ready, and how many of these signals have arrived when it ends."""
    arrived = []
    signal.signal(int(number), lambda *_: arrived.append(1))
    signal.signal(signal.SIGALRM, lambda *_: (print("arrived", len(arrived)), sys.exit(0)))
    print("ready", os.getpid(), flush=True)
    while not arrived:
        time.sleep(0.02)
    time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGALRM)
    time.sleep(10)


def wait():
    """Waits until it is ended."""
    # At once: others write, too.
    os.write(1, b"ready %d\n" % os.getpid())
    while True:
        time.sleep(0.02)


def replace():
    """Takes the signal that asks for a snapshot away from its recorder."""
    signal.signal(signal.SIGUSR2, signal.SIG_DFL)


def leave_when_asked():
    """Ends when it is asked for a snapshot, before it is written."""
    torch.cuda.memory._snapshot = lambda: os._exit(7)


def fail_when_asked():
    """PyTorch fails to take a snapshot."""
    torch.cuda.memory._snapshot = None


def close_all():
    """Closes all files, and opens another in the place of each."""
    os.closerange(3, 64)
    for _ in range(3, 64):
        os.open("other", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


if __name__ == "__main__":
    for word in sys.argv[1:]:
        name, _, argument = word.partition("=")
        globals()[name](*([argument] if argument else []))
