"""One rank of a job, alone: a store that answers for the other ranks.

The collectives of the device's library return at once, with results as if all ranks had the values
of this one (``nccl.rs`` of ``vramscope-dry``). What remains are the meetings of processes before
them: the rendezvous, barriers over the store, and groups on the CPU.
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlparse

from .handover import Handover
from .settings import Settings

#: Processes of a machine, if a job has more.
PER_MACHINE = 8
#: The size of ``ncclUniqueId``. Its content means nothing here.
_UNIQUE_ID = bytes(128)


def environment(rank: int, ranks: int) -> dict[str, str]:
    """The variables that a launcher sets for this rank."""
    local = min(ranks, PER_MACHINE)
    return {
        "RANK": str(rank),
        "WORLD_SIZE": str(ranks),
        "LOCAL_RANK": str(rank % local),
        "LOCAL_WORLD_SIZE": str(local),
        "GROUP_RANK": str(rank // local),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "29500",
        # Its thread would ask the store, while the process ends.
        "TORCH_NCCL_ENABLE_MONITORING": "0",
    }


def start(torch: Any, settings: Settings) -> None:
    """Lets process groups of this process begin without the other ranks."""
    distributed = torch.distributed
    if not distributed.is_available():
        return
    # By their full names: the package has functions of these names.
    rendezvous = importlib.import_module("torch.distributed.rendezvous")
    distributed_c10d: Any = importlib.import_module("torch.distributed.distributed_c10d")
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    store = _store(distributed, ranks)

    def meet(url: str, **_: Any) -> Iterator[tuple[Any, int, int]]:
        settings.joined.touch()
        asked = int(parse_qs(urlparse(url).query).get("world_size", ["-1"])[0])
        if asked not in (-1, ranks):
            raise ValueError(f"the program asks for {asked} ranks, and the job has {ranks}")
        yield store, rank, ranks

    for scheme in ("env", "tcp", "file"):
        rendezvous._rendezvous_handlers[scheme] = meet
    distributed_c10d.ProcessGroupGloo = _alone_on_the_cpu()
    for call in Handover(torch, rank, ranks, settings).calls(distributed_c10d.broadcast):
        for module in (distributed, distributed_c10d):
            if hasattr(module, call.__name__):
                setattr(module, call.__name__, call)


def _store(distributed: Any, ranks: int) -> Any:
    class Store(distributed.Store):
        """Answers as if all ranks did what this one does."""

        def __init__(self) -> None:
            super().__init__()
            self._values: dict[str, bytes] = {}
            self._counts: dict[str, int] = {}
            #: The last value that was set, by the key without its numbers.
            self._alike: dict[str, bytes] = {}

        def set(self, key: str, value: bytes | str) -> None:
            value = value.encode() if isinstance(value, str) else bytes(value)
            self._values[key] = self._alike[_without_numbers(key)] = value

        def get(self, key: str) -> bytes:
            # Another rank's value is like that of this one.
            alike = self._alike.get(_without_numbers(key), _UNIQUE_ID)
            return self._values.get(key, alike)

        def add(self, key: str, amount: int) -> int:
            self._counts[key] = self._counts.get(key, 0) + amount * ranks
            return self._counts[key]

        def compare_set(self, key: str, expected: Any, desired: Any) -> bytes:
            if key not in self._values:
                self.set(key, desired)
            return self._values[key]

        def check(self, keys: list[str]) -> bool:
            return all(key in self._values or key in self._counts for key in keys)

        def wait(self, keys: list[str], timeout: timedelta | None = None) -> None:
            return None

        def delete_key(self, key: str) -> bool:
            return self._values.pop(key, None) is not None

        def num_keys(self) -> int:
            return len(self._values) + len(self._counts)

        def append(self, key: str, value: bytes) -> None:
            self.set(key, self._values.get(key, b"") + bytes(value))

        def multi_get(self, keys: list[str]) -> list[bytes]:
            return [self.get(key) for key in keys]

        def multi_set(self, keys: list[str], values: list[bytes]) -> None:
            for key, value in zip(keys, values):
                self.set(key, value)

        def has_extended_api(self) -> bool:
            return True

        def set_timeout(self, timeout: timedelta) -> None:
            return None

        def clone(self) -> Any:
            return self

    return Store()


def _without_numbers(key: str) -> str:
    return re.sub(r"\d+", "#", key)


def _alone_on_the_cpu() -> type:
    """In the place of gloo, which would wait for the other ranks."""
    try:
        from torch._C._distributed_c10d import FakeProcessGroup as fake
    except ImportError:
        # Before PyTorch 2.5.
        from torch.testing._internal.distributed.fake_pg import FakeProcessGroup as fake

    class ProcessGroupGloo:
        def __new__(cls, store: Any, rank: int, size: int, *_: Any, **__: Any) -> Any:
            make = getattr(fake, "_create_internal", fake)
            return make(rank, size)

    return ProcessGroupGloo
