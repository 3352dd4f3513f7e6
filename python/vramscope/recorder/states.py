"""A series of the allocator's states without the history, which is cheap: ``states_every=``."""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any

from . import allocator, sidecar
from .backend import Backend
from .files import write_new
from .ranks import rank_and_world

#: The version of the lines.
VERSION = 1
#: The folder of the series, and what their names end with.
FOLDER, SUFFIX = "states", "_memory_states.jsonl"

#: Names of the numbers in a line, and those of ``torch.cuda.memory_stats``.
NUMBERS = {
    "requested_bytes": "requested_bytes.all.current",
    "allocated_bytes": "allocated_bytes.all.current",
    "active_bytes": "active_bytes.all.current",
    "reserved_bytes": "reserved_bytes.all.current",
    "allocated_peak_bytes": "allocated_bytes.all.peak",
    "reserved_peak_bytes": "reserved_bytes.all.peak",
    "retries": "num_alloc_retries",
    "out_of_memory_errors": "num_ooms",
}


class States:
    """Appends a line per state to a file of its own."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder
        self._path: pathlib.Path | None = None

    def add(self, backend: Backend, step: int) -> None:
        """Writes the state after a step."""
        module = backend.module
        found = [_of_device(module, device) for device in sidecar.used_devices(backend)]
        segments = _segments(backend)
        for one in found:
            of_device = segments.get(one["device"], []) if segments is not None else None
            one["segments"] = of_device
        self._append({"step": step, "time_us": sidecar.now_us(), "devices": found}, backend)

    def _append(self, state: dict[str, Any], backend: Backend) -> None:
        if self._path is None or not os.path.lexists(self._path):
            rank, world = rank_and_world()
            head = {"version": VERSION, "rank": rank, "world_size": world}
            line = _line({**head, **sidecar.environment(backend)})
            wanted = self._folder / FOLDER / f"rank{rank}{SUFFIX}"
            self._path = write_new(wanted, lambda file: file.write(line))
        line = _line(state)
        with open(os.open(self._path, os.O_WRONLY | os.O_APPEND), "ab", buffering=0) as file:
            end = file.tell()
            try:
                while line:
                    line = line[file.write(line) :]
            except BaseException:
                # A line is whole or absent: a later one would continue half of one.
                file.truncate(end)
                raise


def _line(facts: dict[str, Any]) -> bytes:
    return json.dumps(facts, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _of_device(module: Any, device: int) -> dict[str, Any]:
    stats = module.memory_stats(device)
    free, _ = module.mem_get_info(device)
    numbers = {name: stats.get(key) for name, key in NUMBERS.items()}
    return {"device": device, "free_bytes": free, **numbers}


def _segments(backend: Backend) -> dict[int, list[dict[str, Any]]] | None:
    """The segments by device; ``None`` where PyTorch cannot list them without the history."""
    listed = allocator.segments_alone(backend)
    if listed is None:
        return None
    found: dict[int, list[dict[str, Any]]] = {}
    for segment in listed():
        free = [block["size"] for block in segment["blocks"] if block["state"] == "inactive"]
        found.setdefault(segment["device"], []).append(
            {
                "address": segment["address"],
                "total_bytes": segment["total_size"],
                "allocated_bytes": segment["allocated_size"],
                "active_bytes": segment["active_size"],
                "largest_free_bytes": max(free, default=0),
                "blocks": len(segment["blocks"]) - len(free),
                "stream": segment["stream"],
                "type": segment["segment_type"],
                "pool": segment.get("segment_pool_id"),
                "is_expandable": segment.get("is_expandable", False),
            }
        )
    return found
