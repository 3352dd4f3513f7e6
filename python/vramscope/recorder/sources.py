"""Source lines of the frames that occur in a snapshot."""

from __future__ import annotations

import linecache
from collections.abc import Iterable
from typing import Any


def frames_of(snapshot: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """All frames of a snapshot. PyTorch shares the objects of equal frames: each occurs once."""
    found: dict[int, dict[str, Any]] = {}
    for stack in _stacks(snapshot):
        # Without a loop in Python: a history has millions of frames.
        found.update(zip(map(id, stack), stack))
    return found.values()


def _stacks(snapshot: dict[str, Any]) -> Iterable[list[dict[str, Any]]]:
    """All stacks. PyTorch shares the objects of some equal stacks: each object occurs once."""
    found: dict[int, list[dict[str, Any]]] = {}
    lists = [snapshot.get("segments", ()), *snapshot.get("device_traces", ())]
    lists += [segment.get("blocks", ()) for segment in snapshot.get("segments", ())]
    for entries in lists:
        stacks = [entry.get("frames", []) for entry in entries]
        found.update(zip(map(id, stacks), stacks))
    return found.values()


def source_lines(snapshot: dict[str, Any]) -> dict[str, dict[str, str]]:
    """The text of each line that a Python frame names: file, then line number, then text.

    Lines of C++ frames and of code that is in no file, such as a notebook's of an ended kernel, are
    left out.
    """
    wanted: dict[str, set[int]] = {}
    for frame in frames_of(snapshot):
        file, line = frame.get("filename"), frame.get("line")
        if isinstance(file, str) and isinstance(line, int) and line > 0 and file.endswith(".py"):
            wanted.setdefault(file, set()).add(line)
        elif isinstance(file, str) and file.startswith(("<ipython-input", "/tmp/ipykernel_")):
            wanted.setdefault(file, set()).add(int(line or 0))
    found: dict[str, dict[str, str]] = {}
    for file, lines in sorted(wanted.items()):
        texts = {line: linecache.getline(file, line).rstrip() for line in sorted(lines)}
        kept = {str(line): text for line, text in texts.items() if text.strip()}
        if kept:
            found[file] = kept
    return found
