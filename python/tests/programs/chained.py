"""Has a handler of its own before it records."""

import os
import signal

import torch

import vramscope

signal.signal(signal.SIGUSR2, lambda number, frame: print("own handler", flush=True))
with vramscope.record(os.environ["RUN"]):
    held = torch.ones(1 << 20, device="cuda")
    os.kill(os.getpid(), signal.SIGUSR2)
os.kill(os.getpid(), signal.SIGUSR2)
