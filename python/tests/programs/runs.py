"""A program that knows nothing of its recorder. The arguments say what it does."""

import os
import signal
import sys

import torch


def run_out(size=1 << 45):
    torch.empty(size, device="cuda")


def plain(*arguments):
    """Prints what a program can see of how it is run."""
    print(__name__, sys.argv[0] == __file__, sys.argv[2:], sys.path[0] == os.path.dirname(__file__))


def status(number):
    sys.exit(int(number))


def fails():
    try:
        {}["first"]
    except KeyError:
        raise ValueError("second") from None


def runs_out():
    run_out()


def catches(times):
    for _ in range(int(times)):
        try:
            run_out()
        except torch.cuda.OutOfMemoryError:
            pass
    print("survived")


def interrupted():
    os.kill(os.getpid(), signal.SIGINT)
    signal.pause()


def terminated():
    try:
        run_out()
    except torch.cuda.OutOfMemoryError:
        os.kill(os.getpid(), signal.SIGTERM)
        signal.pause()


def forks():
    if (pid := os.fork()) == 0:
        sys.exit(5)
    print(os.WEXITSTATUS(os.waitpid(pid, 0)[1]))


def moves():
    """Changes its working folder, as some frameworks do."""
    os.chdir("/")


def own_hook():
    """Has its own way to show errors."""
    sys.excepthook = lambda kind, error, trace: print("hook", trace.tb_frame.f_code.co_name)
    raise ValueError("shown by the hook")


held = torch.empty(1024, device="cuda")
globals()[sys.argv[1]](*sys.argv[2:])
