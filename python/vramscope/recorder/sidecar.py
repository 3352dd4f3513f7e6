"""The file beside a snapshot: what the snapshot lacks.

Its fields are those of ``docs/sidecar.md``. The program and the page read it with the snapshot.
"""

from __future__ import annotations

import ctypes
import os
import platform
import socket
import sys
import time
from typing import Any

#: Version of the fields. A reader refuses a larger one.
VERSION = 1


def now_us() -> int:
    """Microseconds since 1970, the clock of the events of a snapshot."""
    return time.time_ns() // 1000


def environment(torch: Any) -> dict[str, Any]:
    """Where and with what the process runs."""
    return {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "cuda": getattr(torch.version, "cuda", None) or getattr(torch.version, "hip", None),
        "driver": _driver(torch),
        "alloc_conf": os.environ.get("PYTORCH_CUDA_ALLOC_CONF")
        or os.environ.get("PYTORCH_ALLOC_CONF"),
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


def _limit(torch: Any, device: int, total: int) -> int | None:
    """The bytes that ``set_per_process_memory_fraction`` leaves; None without a limit."""
    fraction = getattr(torch.cuda, "get_per_process_memory_fraction", lambda _: 1.0)(device)
    return int(total * fraction) if fraction < 1.0 else None


def devices(torch: Any) -> list[dict[str, Any]]:
    """The devices that this process uses, with the memory that others hold.

    ``other_bytes`` is what neither is free nor belongs to PyTorch's allocator in this process: the
    CUDA context, libraries such as NCCL, and other processes. A device that this process has not
    used is left out: asking for its memory would take some of it.
    """
    found = []
    for device in range(torch.cuda.device_count()):
        reserved = torch.cuda.memory_reserved(device)
        if reserved == 0 and device != torch.cuda.current_device():
            continue
        free, total = torch.cuda.mem_get_info(device)
        found.append(
            {
                "device": device,
                "name": torch.cuda.get_device_name(device),
                "total_bytes": total,
                "free_bytes": free,
                "reserved_bytes": reserved,
                "other_bytes": max(total - free - reserved, 0),
                "limit_bytes": _limit(torch, device, total),
            }
        )
    return found
