"""The processes below a process, on Linux."""

from __future__ import annotations

import pathlib


def descendants(pid: int) -> list[int]:
    """The processes below this one that have not ended, parents first."""
    children: dict[int, list[int]] = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            text = (folder / "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        # After the name, which may have any characters: the state, and the parent.
        state, parent = text.rpartition(")")[2].split()[:2]
        if state != "Z":
            children.setdefault(int(parent), []).append(int(folder.name))
    found, waiting = [], [pid]
    while waiting:
        below = children.get(waiting.pop(0), [])
        found += below
        waiting += below
    return found
