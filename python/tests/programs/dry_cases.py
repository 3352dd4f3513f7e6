"""Programs for dry runs: ``dry_cases.py NAME``."""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess
import sys
import time

import torch
from torch import nn


def small_model() -> tuple[nn.Module, torch.optim.Optimizer]:
    model = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(4)]).cuda()
    return model, torch.optim.AdamW(model.parameters())


def step(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    model(torch.randn(256, 1024, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()


def train(steps: int = 3) -> None:
    model, optimizer = small_model()
    for _ in range(steps):
        step(model, optimizer)


def values() -> None:
    train()
    x = torch.arange(10, device="cuda")
    assert (x > 6).nonzero().flatten().tolist() == [7, 8, 9]
    assert x.unique().numel() == 10 and (x * 2).sum().item() == 90


def made_up() -> None:
    x = torch.randn(2048, 2048, device="cuda")
    print((x @ x > 0).nonzero().shape)


def endless() -> None:
    train(10**9)


def stuck() -> None:
    train(1)
    # In native code, with the interpreter's lock: no signal handler of Python can run.
    native = ctypes.PyDLL(None)
    lock = ctypes.create_string_buffer(256)
    native.pthread_mutex_lock(lock)
    native.pthread_mutex_lock(lock)


def catches() -> None:
    for size in (1 << 40, 1 << 20):
        try:
            torch.empty(size, dtype=torch.uint8, device="cuda")
        except torch.cuda.OutOfMemoryError:
            continue


def fails() -> None:
    train(1)
    raise ValueError("of the program")


def together() -> None:
    held = torch.empty(50 << 30, dtype=torch.uint8, device="cuda")
    asks = (
        "import torch\n"
        "try: torch.empty(50 << 30, dtype=torch.uint8, device='cuda')\n"
        "except torch.cuda.OutOfMemoryError:\n"
        "    print('child', torch.cuda.mem_get_info()[0] < 30 << 30)\n"
    )
    subprocess.run([sys.executable, "-c", asks], check=True)
    print(held.numel())


def without_weights() -> None:
    import transformers

    folder = os.path.join(sys.argv[2], "model")
    configuration = transformers.LlamaConfig(
        hidden_size=64, intermediate_size=128, num_hidden_layers=1, num_attention_heads=4
    )
    configuration.architectures = ["LlamaForCausalLM"]
    configuration.save_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.bfloat16, device_map="cuda"
    )
    print("made", model.dtype, model.device)


def jit() -> None:
    ones = torch.ones(4, dtype=torch.int64, device="cuda")
    torch.lcm(ones, ones)


def children() -> None:
    train(1)
    asks = "import torch; print('child', torch.zeros(3, device='cuda').device)"
    subprocess.run([sys.executable, "-c", asks], check=True)
    shell = subprocess.run(["sh", "-c", "echo [$LD_PRELOAD]"], capture_output=True, text=True)
    print("preload", shell.stdout.strip())
    plain = "print('plain', any('vs-cudart' in line for line in open('/proc/self/maps')))"
    subprocess.run([sys.executable, "-c", plain], check=True)


def left() -> None:
    train(1)
    subprocess.Popen(["sleep", "1000"], start_new_session=True)


def ends() -> None:
    train(1)
    sys.exit(3)


def on_cpu() -> None:
    nn.Linear(4, 4)


def slow() -> None:
    model, optimizer = small_model()
    while True:
        step(model, optimizer)
        time.sleep(0.1)


def job() -> None:
    from torch import distributed
    from torch.nn.parallel import DistributedDataParallel

    distributed.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    model = DistributedDataParallel(
        nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(4)]).cuda()
    )
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        step(model, optimizer)
    distributed.barrier()
    distributed.destroy_process_group()


def large() -> None:
    # 4 GiB on the CPU, then 2 GiB there, then on the device.
    layers = nn.Sequential(*[nn.Linear(16384, 16384, bias=False) for _ in range(4)])
    layers.to(torch.bfloat16).cuda()
    print("memory", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)


def batch() -> None:
    size = int(sys.argv[sys.argv.index("--batch-size") + 1])
    # 1 GiB for each.
    print(torch.empty(size << 30, dtype=torch.uint8, device="cuda").numel())


if __name__ == "__main__":
    globals()[sys.argv[1]]()
