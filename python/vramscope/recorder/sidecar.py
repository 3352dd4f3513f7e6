"""The file beside a snapshot: what the snapshot lacks.

Its fields are those of ``SIDECAR.md``. The program and the page read it with the snapshot.
"""

from __future__ import annotations

import ctypes
import os
import platform
import socket
import sys
import time
from typing import Any

from . import process
from .backend import Backend

#: Version of the fields. A reader refuses a larger one.
VERSION = 1


def now_us() -> int:
    """Microseconds since 1970, the clock of the events of a snapshot."""
    return time.time_ns() // 1000


def environment(backend: Backend) -> dict[str, Any]:
    """Where and with what the process runs."""
    torch, is_cuda = backend.torch, backend.name in ("cuda", "rocm")
    return {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "role": process.role(),
        "command": process.command(),
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "backend": backend.name,
        "cuda": getattr(torch.version, "cuda", None) or getattr(torch.version, "hip", None),
        "driver": _driver(torch) if is_cuda else None,
        "alloc_conf": backend.configuration(),
    }


def _driver(torch: Any) -> str | None:
    """The newest CUDA that the driver supports, such as ``12.8``."""
    version = getattr(torch._C, "_cuda_getDriverVersion", _driver_version)()
    return f"{version // 1000}.{version % 1000 // 10}" if version else None


def _driver_version() -> int:
    """The version as the driver's own library tells it, such as 12080; 0 if it does not."""
    version = ctypes.c_int(0)
    try:
        driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        failed = driver.cuDriverGetVersion(ctypes.byref(version))
    except (OSError, AttributeError):
        return 0
    return 0 if failed else version.value


def used_devices(backend: Backend) -> list[int]:
    """The devices that this process uses. Asking for the memory of another would take some."""
    module = backend.module
    current = module.current_device()
    every = range(module.device_count())
    return [one for one in every if one == current or module.memory_reserved(one) > 0]


def limit(module: Any, device: int, total: int, oom: dict[str, Any] | None) -> int | None:
    """The bytes that ``set_per_process_memory_fraction`` leaves; None if no limit is known.

    Older releases of PyTorch do not tell it. Of them, only a failed allocation does: the allocator
    takes the limit for the memory of the device.
    """
    name = "get_per_process_memory_fraction"
    told = getattr(module, name, None) or getattr(module.memory, name, None)
    if told is not None:
        fraction = told(device)
        return int(total * fraction) if fraction < 1.0 else None
    if oom is not None and oom["device"] == device and 0 < oom["total_bytes"] < total:
        return int(oom["total_bytes"])
    return None


def devices(backend: Backend, oom: dict[str, Any] | None) -> list[dict[str, Any]]:
    """The devices that this process uses, with the memory that others hold.

    ``other_bytes`` is what neither is free nor belongs to PyTorch's allocator in this process: the
    CUDA context, libraries such as NCCL, and other processes.
    """
    found, module = [], backend.module
    for device in used_devices(backend):
        reserved = module.memory_reserved(device)
        free, total = module.mem_get_info(device)
        found.append(
            {
                "device": device,
                "name": module.get_device_name(device),
                "total_bytes": total,
                "free_bytes": free,
                "reserved_bytes": reserved,
                "other_bytes": max(total - free - reserved, 0),
                "limit_bytes": limit(module, device, total, oom),
            }
        )
    return found
