"""Which backend of PyTorch is recorded, and where its calls are.

``torch.cuda`` for GPUs of Nvidia and AMD, ``torch_npu.npu`` for Ascend NPUs, ``torch.xpu`` (2.11)
for GPUs of Intel. Their calls have one form. Those of the last two were read in their sources, and
not run on such a device.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

#: Types of devices in PyTorch, of those that are recorded.
DEVICE_TYPES = ("cuda", "xpu", "npu")

#: Variables that configure the allocator, by backend. The general one is read by all.
CONFIGURATIONS = {
    "cuda": "PYTORCH_CUDA_ALLOC_CONF",
    "rocm": "PYTORCH_HIP_ALLOC_CONF",
    "npu": "PYTORCH_NPU_ALLOC_CONF",
}


class Backend:
    """A backend of PyTorch.

    Attributes:
        torch: PyTorch.
        name: As in the file beside a snapshot: ``cuda``, ``rocm``, ``xpu`` or ``npu``.
        module: The module with the calls of ``torch.cuda``.
    """

    def __init__(self, torch: Any, name: str, module: Any) -> None:
        self.torch = torch
        self.name = name
        self.module = module

    def is_available(self) -> bool:
        """Whether PyTorch sees a device of it."""
        return bool(self.module.is_available())

    def when_initialized(self, call: Callable[[], None]) -> None:
        """Calls now if the backend is initialized, else as soon as the program uses it.

        Starting the backend would take memory on a device that the program may not choose. One
        without such a queue is started.
        """
        lazily = getattr(self.module, "_lazy_call", None)
        # Within the initialization the queue has a lock that this thread holds.
        is_initializing = hasattr(getattr(self.module, "_tls", None), "is_initializing")
        if lazily is None or is_initializing:
            call()
        else:
            lazily(call)

    def allocated(self, device: int) -> tuple[int, int]:
        """The bytes that are allocated on a device now, and their peak.

        ``memory_stats`` flattens a hundred numbers, which takes ten times as long.
        """
        nested = getattr(self.module.memory, "memory_stats_as_nested_dict", None)
        if nested is None:
            flat = self.module.memory_stats(device)
            name = "allocated_bytes.all"
            return flat.get(f"{name}.current", 0), flat.get(f"{name}.peak", 0)
        of_all = nested(device)["allocated_bytes"]["all"]
        return of_all["current"], of_all["peak"]

    def oom_observers(self) -> Callable[[Callable[..., None]], None] | None:
        """What attaches an observer of failed allocations; ``None`` without observers."""
        if self.name == "npu":
            owner = getattr(sys.modules.get("torch_npu"), "_C", None)
            return getattr(owner, "_npu_attach_out_of_memory_observer", None)
        if self.name == "xpu":
            return None
        return getattr(self.torch._C, "_cuda_attach_out_of_memory_observer", None)

    def configuration(self) -> str | None:
        """The text that configures the allocator."""
        names = (CONFIGURATIONS.get(self.name), "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
        own = names if self.name in ("cuda", "rocm") else (names[0], names[2])
        return next((os.environ[name] for name in own if name and os.environ.get(name)), None)


def choose(torch: Any) -> Backend:
    """The backend of this process: the first with a device that can record, CUDA before others."""
    cuda = Backend(torch, "rocm" if getattr(torch.version, "hip", None) else "cuda", torch.cuda)
    if cuda.is_available():
        return cuda
    # The program or PyTorch itself has imported it: importing it here would start the backend.
    npu = getattr(sys.modules.get("torch_npu"), "npu", None)
    for name, module in (("npu", npu), ("xpu", getattr(torch, "xpu", None))):
        memory = getattr(module, "memory", None)
        if hasattr(memory, "_record_memory_history") and hasattr(memory, "_snapshot"):
            other = Backend(torch, name, module)
            if other.is_available():
                return other
    return cuda
