"""Records into RUN, where that may not be possible. Says what it does, and ends with status 3."""

import os
import shutil
import sys

import torch

import vramscope

RUN = os.environ["RUN"]
held = []


def work(count):
    held.extend(torch.empty(1024 + len(held), device="cuda") for _ in range(count))


def run_out():
    try:
        torch.empty(1 << 45, device="cuda")
    except torch.cuda.OutOfMemoryError:
        print("survived")


def ends():
    with vramscope.record(RUN):
        work(1000)


def runs_out():
    with vramscope.record(RUN):
        work(1000)
        run_out()


def steps():
    """The disk gets full while older snapshots are removed."""
    with vramscope.record(RUN, every=1, keep=1, states_every=1) as recorder:
        for _ in range(12):
            work(100)
            recorder.step()


def states():
    """The disk is full at some states, and then it is not."""
    filler = f"{RUN}/filler"
    with vramscope.record(RUN, states_every=1) as recorder:
        work(10)
        recorder.step()
        with open(filler, "wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(64))
            except OSError as error:
                print(error.strerror)
        for _ in range(100):
            recorder.step()
        os.unlink(filler)
        recorder.step()
        shutil.copy(f"{RUN}/states/rank0_memory_states.jsonl", f"{RUN}/kept.jsonl")
        shutil.rmtree(f"{RUN}/states")
        recorder.step()


def moves():
    """Goes to another folder, and removes the one of its snapshots."""
    with vramscope.record("run") as recorder:
        work(10)
        os.chdir("/")
        recorder.dump("one")
        shutil.rmtree(RUN)
        recorder.dump("two")


def gone():
    """Is in a folder that is gone."""
    os.mkdir(RUN)
    os.chdir(RUN)
    os.rmdir(RUN)
    ends_in = vramscope.record("run")
    with ends_in:
        work(10)
        print(ends_in.dump())


globals()[sys.argv[1]](*sys.argv[2:])
print("done")
sys.exit(3)
