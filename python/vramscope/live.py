"""Who holds memory in this process, now: :func:`holders`."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Sequence
from typing import Any, Literal

from .answer import Answer, told
from .errors import VramscopeError

__all__ = ["DroppedReferences", "HeldBlock", "Holders", "holders"]


@dataclasses.dataclass(frozen=True)
class HeldBlock:
    """A live block, and what holds it."""

    device: int
    address: str
    kind: Literal["reference", "cycle", "below_python", "unread"]
    #: Where the chain of references begins: a variable.
    text: str
    #: The way from there; empty if the variable itself holds the block.
    path: str
    #: What dropping references frees, in words; empty if that is not known.
    drop: str
    #: What else is known, such as that a slice keeps the block.
    note: str
    bytes: int
    #: What the drop frees; None if that is not known.
    frees_bytes: int | None


@dataclasses.dataclass(frozen=True)
class DroppedReferences:
    """What dropping some references frees."""

    text: str
    #: The number of references that are dropped.
    references: int
    bytes: int
    blocks: int
    #: The number of rows that it lies within.
    depth: int


@dataclasses.dataclass(frozen=True)
class Holders(Answer):
    """Who holds blocks. Its text is the answer."""

    bytes: int
    #: The blocks, the largest first.
    blocks: Sequence[HeldBlock]
    #: What drops free, as a tree: a row is followed by those within it.
    drops: Sequence[DroppedReferences]
    #: False where time has cut the walk, or tensors could not be read: bytes are upper bounds then.
    complete: bool
    #: False where graphs and gradients were not read, because another thread may change them.
    graph: bool
    #: What limits the answer, in sentences.
    limits: Sequence[str]
    text: str

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        first = self.text.split("\n", 1)[0]
        return f"<vramscope.Holders: {first}>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        # A notebook shows it as text.
        printer.text(self.text)


def holders(what: Any = None, *, seconds: float = 2.0) -> Holders:
    """Who holds GPU memory in this process: the variables that lead to it, and what a drop frees.

    No code of the program runs, and nothing is allocated on a device::

        >>> vramscope.holders()
        1.17 GiB in 178 blocks. Dropping frees
          1.00 GiB  trainer.losses (list of 32) of main(), keeps.py:24

    Args:
        what: A tensor, for the block that it lies in; a number, for all live blocks of at least so
            many bytes; None for the largest 500 blocks.
        seconds: The time that it may take.

    Raises:
        VramscopeError: PyTorch is not loaded, no holders can be told in this Python, or the tensor
            is in no live block of PyTorch's allocator.
    """
    from .recorder import holders as walks

    torch = sys.modules.get("torch")
    if torch is None:
        raise VramscopeError("PyTorch is not imported, so there is nothing to hold")
    reason = walks.is_possible()
    if reason is not None:
        raise VramscopeError(f"no holders: {reason}")
    blocks = walks.live_blocks(torch.cuda.memory_snapshot()) if torch.cuda.is_available() else []
    if isinstance(what, torch.Tensor):
        try:
            place = (what.get_device(), what.data_ptr())
        except RuntimeError as error:
            raise VramscopeError(f"the tensor has no address of its own: {error}") from error
        blocks = [
            block
            for block in blocks
            if block.device == place[0] and 0 <= place[1] - block.address < block.bytes
        ]
        if not blocks:
            raise VramscopeError("the tensor is in no live block of PyTorch's allocator")
    elif what is not None:
        blocks = [block for block in blocks if block.bytes >= int(what)]
    # The caller's variables count, and what this function was called with does not.
    del what
    return _answer(walks.find(torch, blocks, seconds=seconds), blocks)


def _answer(found: dict[str, Any], blocks: Sequence[tuple[int, int, int]]) -> Holders:
    """What a walk found, in words."""
    from . import _vramscope

    record = _vramscope.holders_told(json.dumps(found).encode(), blocks)
    words = json.loads(record)
    fields = [field.name for field in dataclasses.fields(HeldBlock)]
    words["blocks"] = [
        HeldBlock(**{name: block.get(name, "") for name in fields}) for block in words["blocks"]
    ]
    words["drops"] = [DroppedReferences(**row) for row in words["drops"]]
    return told(Holders(**words), record.encode())
