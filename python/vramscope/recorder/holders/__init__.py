"""Who holds the large live blocks: chains of references, and what dropping one frees.

The walk itself is native: ``vramscope._vramscope.walk``. What is here says where it begins
(:mod:`.roots`) and how references are called (:mod:`.links`). ``SIDECAR.md`` describes the
result. No code of the program runs, and nothing is allocated on a device.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
import types
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ..allocator import Collector
from .links import Links
from .noted import Note, with_noted
from .roots import Roots

__all__ = ["Block", "Note", "find", "is_possible", "live_blocks", "with_noted"]

#: Seconds that a walk may take.
SECONDS = 2.0
#: Objects that a walk may meet. Each takes about 50 bytes.
MAX_OBJECTS = 10_000_000
#: Blocks that are told: the largest.
MAX_BLOCKS = 500
#: Blocks below this size are told only if there are few larger ones.
LARGE, FEW = 1 << 20, 200
#: The most rows of dropped references, and the least share of the bytes of a row.
MAX_ROWS, LEAST_SHARE = 60, 0.001
#: The largest result, in bytes of JSON.
MAX_BYTES = 1 << 20
#: A slice is told if the block has this many times its bytes.
SLICE = 4
#: The program's code is followed last: classes and functions lead to all of its libraries.
CODE = (
    type,
    types.FunctionType,
    types.BuiltinFunctionType,
    property,
    staticmethod,
    classmethod,
)
#: Objects that are only parts of others.
PARTS = (types.CellType, types.FrameType, types.TracebackType)


class Block(NamedTuple):
    """A live block of memory."""

    device: int
    address: int
    bytes: int


def is_possible() -> str | None:
    """Why nothing can be told of who holds memory; None if it can."""
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return "this Python has no interpreter lock, so other threads may change what is read"
    if sys.version_info < (3, 10):
        return "it needs Python 3.10"
    try:
        from vramscope import _vramscope  # noqa: F401
    except ImportError as error:
        return f"the package has no native part: {error}"
    return None


def live_blocks(segments: Sequence[dict[str, Any]]) -> list[Block]:
    """The live blocks of the segments of a snapshot of which holders are told."""
    found = []
    for segment in segments:
        address = segment["address"]
        for block in segment["blocks"]:
            if block["state"] == "active_allocated":
                at = block.get("address", address)
                found.append(Block(segment["device"], at, block["size"]))
            address += block["size"]
    found.sort(key=lambda block: (-block.bytes, block.device, block.address))
    large = sum(block.bytes >= LARGE for block in found)
    return sorted(found[: min(max(large, FEW), MAX_BLOCKS)])


@contextlib.contextmanager
def _undisturbed(torch: Any) -> Iterator[None]:
    """Keeps the collector, and the program's tensor types and modes, from running."""
    with Collector.paused():
        # A mode of dispatch may be active. The guard ends with the object.
        guard = torch._C._DisableTorchDispatch()
        try:
            with torch._C.DisableTorchFunction():
                yield
        finally:
            del guard


def _hollow() -> list[type]:
    """Types of tensors that have no memory."""
    module = sys.modules.get("torch._subclasses.fake_tensor")
    fake = getattr(module, "FakeTensor", None)
    return [fake] if isinstance(fake, type) else []


def find(
    torch: Any,
    blocks: Sequence[Block],
    *,
    hidden: Sequence[Any] = (),
    seconds: float = SECONDS,
) -> dict[str, Any]:
    """Who holds these blocks, which are sorted.

    Args:
        torch: The module.
        blocks: The blocks, sorted.
        hidden: Objects that hold nothing for the program, with what they lead to.
        seconds: The time that it may take.
    """
    from vramscope._vramscope import walk

    begin = time.perf_counter()
    until = begin + seconds
    with _undisturbed(torch):
        # Most of the time is left where modules have very many variables.
        roots = Roots(begin + seconds * 0.3)
        found = walk(
            torch,
            {
                "blocks": list(blocks),
                "values": roots.values,
                "passing": roots.passing,
                "own": roots.own,
                "skipped": roots.skipped,
                "hidden": [*hidden, roots, roots.__dict__],
                "parts": list(PARTS),
                "late": [torch.optim.Optimizer, *CODE],
                "hollow": _hollow(),
                "seconds": max(until - time.perf_counter(), 0.0),
                "objects": MAX_OBJECTS,
                "rows": MAX_ROWS,
                "devices": len({block.device for block in blocks}),
                "least": max(int(sum(block.bytes for block in blocks) * LEAST_SHARE), 1),
            },
        )
        roots.skipped.clear()
        links = Links(roots.links, found, until)
        found["complete"] &= not roots.cut
        told = {
            "complete": found["complete"],
            "graph": found["graph"],
            "opaque": found["opaque"],
            "objects": found["seen"],
            "seconds": 0.0,
            "links": links.links,
            "blocks": _blocks(blocks, found, links),
            "drops": [
                {
                    "within": within,
                    "links": sorted({links.of_chain(chain) for chain in chains}),
                    "bytes": size,
                    "blocks": count,
                }
                for within, chains, size, count in found["rows"]
            ],
        }
    told["seconds"] = round(time.perf_counter() - begin, 3)
    return _fitting(told)


def _blocks(blocks: Sequence[Block], found: dict[str, Any], links: Links) -> list[dict[str, Any]]:
    is_whole = found["complete"] and found["graph"] and not found["opaque"]
    told = []
    for block, (chain, label, view, cycle, row) in zip(blocks, found["blocks"]):
        entry: dict[str, Any] = {"device": block.device, "address": block.address}
        if chain is not None:
            entry["link"] = links.of_chain(chain)
            if label is not None:
                entry["link"] = links.of_label(entry["link"], label)
            if view is not None and view * SLICE <= block.bytes:
                entry["view_bytes"] = view
            if row is not None:
                entry["drop"] = row
        elif cycle is not None:
            by = {"by": "cycle", "length": cycle} if cycle else {"by": "expression"}
            entry["link"] = links.root(by)
        else:
            entry["none"] = "below_python" if is_whole else "unread"
        told.append(entry)
    return told


def _fitting(told: dict[str, Any]) -> dict[str, Any]:
    """The result without its smallest blocks and its last drops, if it is too large."""
    while _size(told) > MAX_BYTES and told["links"]:
        blocks, drops = told["blocks"], told["drops"]
        drops = drops if blocks else drops[: len(drops) // 2]
        blocks = blocks[: len(blocks) // 2]
        told = {**told, "complete": False, **_with_used_links(told["links"], blocks, drops)}
    return told


def _size(told: dict[str, Any]) -> int:
    # A name of a file may have bytes that are no UTF-8.
    return len(json.dumps(told, ensure_ascii=False).encode(errors="replace"))


def _with_used_links(
    links: list[dict[str, Any]], blocks: list[dict[str, Any]], drops: list[dict[str, Any]]
) -> dict[str, Any]:
    """These blocks and drops, and the links that they need."""
    used: set[int] = set()
    ends = [block["link"] for block in blocks if "link" in block]
    for end in ends + [link for row in drops for link in row["links"]]:
        at: int | None = end
        while at is not None and at not in used:
            used.add(at)
            at = links[at]["from"]
    order = sorted(used)
    place: dict[int | None, int | None] = {old: new for new, old in enumerate(order)}
    place[None] = None
    return {
        "links": [{**links[old], "from": place[links[old]["from"]]} for old in order],
        "blocks": [
            {**block, "link": place[block["link"]]} if "link" in block else block
            for block in blocks
        ],
        "drops": [{**row, "links": [place[link] for link in row["links"]]} for row in drops],
    }
