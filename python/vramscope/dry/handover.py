"""What the first rank of a job sends to others, for a rank that runs alone after it."""

from __future__ import annotations

import functools
import pickle
from collections import defaultdict, deque
from typing import Any

from .settings import Settings

#: Integers of a tensor that are handed over, at most: lengths and numbers, no data.
MOST = 4096


class Handover:
    """Takes the calls that pass on values of one rank in the place of PyTorch's."""

    def __init__(self, torch: Any, rank: int, ranks: int, settings: Settings) -> None:
        self._torch = torch
        self._rank = rank
        self._ranks = ranks
        self._settings = settings
        self._is_search = settings.received.exists()
        self._received: defaultdict[Any, deque[Any]] | None = None

    def calls(self, broadcast: Any) -> list[Any]:
        """The calls by their names. ``broadcast`` is PyTorch's own."""

        def broadcast_object_list(objects: list[Any], src: Any = None, *_: Any, **__: Any) -> None:
            """The objects stay what they are: those of this rank stand for all."""

        def send_object_list(object_list: list[Any], dst: Any = None, *_: Any, **__: Any) -> None:
            self._send("objects", object_list)

        def recv_object_list(object_list: list[Any], src: Any = None, *_: Any, **__: Any) -> Any:
            objects = self._receive("objects")
            if objects is None:
                raise RuntimeError(self._why_nothing())
            object_list[:] = objects
            return 0 if src is None else src

        @functools.wraps(broadcast)
        def from_the_first(tensor: Any, *arguments: Any, **options: Any) -> Any:
            work = broadcast(tensor, *arguments, **options)
            if self._is_search and (arguments[0] if arguments else options.get("src")) == 0:
                self._pass_on(tensor)
            return work

        return [broadcast_object_list, send_object_list, recv_object_list, from_the_first]

    def _why_nothing(self) -> str:
        what = f"rank {self._rank} alone cannot receive objects of other ranks"
        if self._is_search:
            return f"{what}, of which rank 0 has sent none"
        return f"{what}: --gpus {self._ranks}..{self._ranks} runs rank 0 before it, and hands over"

    def _pass_on(self, tensor: Any) -> None:
        """Hands over lengths and numbers of the first rank, which others compare with their own."""
        if tensor.dtype not in (self._torch.int64, self._torch.int32) or tensor.numel() > MOST:
            return
        kind = (str(tensor.dtype), tuple(tensor.shape))
        if self._rank == 0:
            self._send(kind, tensor.tolist())
            return
        values = self._receive(kind)
        if values is not None:
            tensor.copy_(self._torch.tensor(values, dtype=tensor.dtype))

    def _send(self, kind: Any, value: Any) -> None:
        if not self._is_search:
            return
        with self._settings.sent.open("ab") as file:
            pickle.dump((kind, value), file)

    def _receive(self, kind: Any) -> Any:
        """The next value of a kind; ``None`` if there is none."""
        if self._received is None:
            # Read once it is asked for: the modules of its objects are imported then.
            self._received = defaultdict(deque)
            if self._is_search:
                with self._settings.received.open("rb") as file:
                    while file.peek(1):
                        own, value = pickle.load(file)
                        self._received[own].append(value)
        values = self._received[kind]
        return values.popleft() if values else None
