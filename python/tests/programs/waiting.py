"""Uses a device, then waits for signals."""

import signal
import sys

import torch

if "--no-device" in sys.argv:
    print("no device")
    sys.exit(0)

held = torch.ones(1 << 20, device="cuda")
print("waiting", flush=True)
while True:
    signal.pause()
    print("handled", flush=True)
