"""The fewest GPUs that hold a program: ranks of jobs of several sizes are run, each alone."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import re
from collections.abc import Iterator
from typing import Any

from .run import NOT_RUN, NotRun, Program
from .tries import PARTS, NotWhole, Table, Try, attempt, in_bytes

#: The memory of a device that holds a rank which the own device does not: almost all addresses that
#: ``vramscope-dry`` has for a device.
LARGE = 480 << 30
#: The part of a peak that is a difference: between ranks, and between a number and its double.
SMALL = 0.01
#: What each rank has as often as the job has ranks, if nothing shards it.
MODEL = ("parameter", "gradient", "optimizer_state")
#: Words of the program that stand for the number of GPUs.
PLACEHOLDER = "{gpus}"
#: Measured by others: 544 and 688 MB for a group on A100 (https://github.com/NVIDIA/nccl/issues/964),
#: 388 MiB on a GPU with fewer links (https://github.com/sgl-project/sglang/pull/35538), and 3.3 GB
#: more after all-to-all on 8 H100 (https://github.com/NVIDIA/nccl/issues/1685).
NOT_INCLUDED = (
    "not included: the buffers of NCCL itself, outside of PyTorch: often 0.4 to 0.7 GiB for each "
    "process group, some GiB with all-to-all"
)


class NoJob(NotRun):
    """The program begins no process group: it does not use more than one GPU."""


@dataclasses.dataclass(frozen=True)
class Range:
    """Numbers of GPUs."""

    least: int
    most: int

    @staticmethod
    def parse(text: str) -> Range:
        """Reads ``1..512``.

        Raises:
            ValueError: The text is no range.
        """
        found = re.fullmatch(r"(\d+)\.\.(\d+)", text)
        if found is None or not 1 <= int(found[1]) <= int(found[2]):
            raise ValueError(f"{text!r}, expected a range: 1..512")
        return Range(int(found[1]), int(found[2]))

    def numbers(self) -> list[int]:
        """The bounds, and the powers of two between them."""
        powers = (1 << n for n in range(self.most.bit_length()))
        between = {power for power in powers if self.least < power < self.most}
        return sorted({self.least, self.most, *between})


@dataclasses.dataclass(frozen=True)
class Row:
    """A number of GPUs, whose ranks were run."""

    gpus: int
    #: Whether each rank that was run fits on the device.
    fits: bool
    #: By rank. If one does not fit, all with as much memory as they need.
    tries: dict[int, Try]
    memory_bytes: int

    @property
    def rank(self) -> int:
        """The rank that needs most."""
        return max(self.tries, key=lambda rank: self.tries[rank].reserved_bytes)

    @property
    def worst(self) -> Try:
        """The run of that rank, with the memory of the device."""
        return dataclasses.replace(self.tries[self.rank], memory_bytes=self.memory_bytes)

    @property
    def is_whole(self) -> bool:
        """Whether the peak is known: not if even :data:`LARGE` was too little."""
        return all(one.fits for one in self.tries.values())

    def outcome(self) -> str:
        """The outcome in words, with the rank if ranks differ."""
        if not self.is_whole:
            return f"runs out, > {LARGE >> 30} GiB"
        of = f" on rank {self.rank}" if _differ(self.tries) else ""
        return f"{'fits' if self.fits else 'runs out'}{of}"

    def record(self) -> dict[str, Any]:
        """What JSON has of it."""
        worst = self.worst
        return {
            "gpus": self.gpus,
            "outcome": "fits" if self.fits else "runs_out",
            "rank": self.rank,
            "active_bytes": worst.active_bytes,
            "reserved_bytes": worst.reserved_bytes,
            "left_bytes": worst.left_bytes,
            "is_whole": self.is_whole,
            "parts": worst.parts,
            "largest_part": worst.largest_part,
            "memory_bytes": self.memory_bytes,
            "ranks": [
                {
                    "rank": rank,
                    "active_bytes": one.active_bytes,
                    "reserved_bytes": one.reserved_bytes,
                }
                for rank, one in self.tries.items()
            ],
        }


def find_fewest(numbers: Range, program: Program, folder: pathlib.Path, is_json: bool) -> int:
    """Runs ranks of jobs of several sizes, and tells the fewest GPUs that hold the program.

    Returns the exit status.

    Raises:
        NotRun: Something that a dry run needs is missing.
    """
    records: list[dict[str, Any]] = []
    rows: list[Row] = []
    reason = None
    title = f"{program.gpu}, ranks of each number of GPUs run alone:"
    table = Table(title, "GPUs", not is_json)
    for gpus in numbers.numbers():
        try:
            row = _row(gpus, program, folder)
        except NoJob as error:
            rows, reason = [], str(error)
            break
        except NotWhole as error:
            records.append({"gpus": gpus, "outcome": "cannot_run", "text": str(error)})
            table.other(gpus, f"cannot run: {error}")
            continue
        rows.append(row)
        records.append(row.record())
        table.fitting(gpus, row.worst, row.outcome())
        reason = _why_no_more(rows)
        if row.fits or reason:
            break
    text = reason or _conclusion(rows)
    table.tell(text)
    if rows and rows[-1].worst.is_job:
        table.tell(NOT_INCLUDED)
    fits = bool(rows) and rows[-1].fits
    if is_json:
        found = {
            "schema": "vramscope.cluster/1",
            "gpu": program.gpu,
            "fewest": rows[-1].gpus if fits else None,
            "text": text,
            "rows": records,
        }
        print(json.dumps(found, indent=2))
    return 0 if fits else 1 if rows else NOT_RUN


def _row(gpus: int, program: Program, folder: pathlib.Path) -> Row:
    """Runs ranks of a job: with the memory of the device, and once one runs out with more."""
    words = [word.replace(PLACEHOLDER, str(gpus)) for word in program.words]
    tries: dict[int, Try] = {}
    memory, fits = None, True
    for rank in _ranks(gpus, tries):
        own = dataclasses.replace(program, words=words, ranks=gpus, rank=rank)
        # The shapes that the first stage of a pipeline sends stand for those of all others.
        own.received = tries[0].sent if rank else b""
        output = folder / f"gpus_{gpus}" / f"rank_{rank}"
        if fits:
            tries[rank] = attempt(own, output)
            memory = memory or tries[rank].memory_bytes
            fits = tries[rank].fits
        if not fits:
            large = dataclasses.replace(own, memory=LARGE)
            tries[rank] = attempt(large, output.with_name(f"rank_{rank}_large_memory"))
        if gpus > 1 and tries[rank].fits and not tries[rank].is_job:
            raise NoJob(
                "the program does not use torch.distributed: each of its processes needs what one "
                "alone needs, with any number of GPUs"
            )
    assert memory is not None
    return Row(gpus, fits, tries, memory)


def _ranks(gpus: int, tries: dict[int, Try]) -> Iterator[int]:
    """The first rank and the last, which are the ends of a pipeline, and one between if these
    differ."""
    yield 0
    if gpus > 1:
        yield gpus - 1
    if gpus > 2 and _differ(tries):
        yield gpus // 2


def _differ(tries: dict[int, Try]) -> bool:
    peaks = [one.active_bytes for one in tries.values()]
    return max(peaks) - min(peaks) > SMALL * max(peaks)


def _why_no_more(rows: list[Row]) -> str | None:
    """Why more GPUs than those of the last row will not help; ``None`` if they may."""
    if len(rows) < 2 or rows[-1].fits or not all(row.is_whole for row in rows[-2:]):
        return None
    before, after = (row.worst for row in rows[-2:])
    # A peak at another moment has other parts: while one of them falls, something shards.
    used = [name for name in PARTS if name not in ("idle", "outside")]
    falls = [before.parts.get(name, 0) - after.parts.get(name, 0) for name in used]
    fall = before.active_bytes - after.active_bytes
    fewer, more = (row.gpus for row in rows[-2:])
    # Of a number that is doubled, half of what shards goes.
    if max(fall, *falls) < 2 * (1 - fewer / more) * SMALL * before.active_bytes:
        no_less = "more GPUs do not lower the peak of a rank: "
        if sum(after.parts.get(name, 0) for name in MODEL) > after.active_bytes // 10:
            return f"{no_less}the program replicates its model"
        return f"{no_less}{after.largest_in_words} stay the same"
    # One process alone is often another program: without FSDP, or with nothing to shard.
    if fewer == 1:
        return None
    kept = after.active_bytes - int(fall / (1 / fewer - 1 / more) / more)
    room = after.memory_bytes - after.parts["outside"]
    if kept <= room:
        return None
    return (
        f"more GPUs are not enough: from {fewer} to {more} the peak of a rank fell from "
        f"{in_bytes(before.active_bytes)} to {in_bytes(after.active_bytes)}. At that rate "
        f"{in_bytes(kept)} stay with any number, and there are {in_bytes(room)}. Largest part: "
        f"{after.largest_in_words}"
    )


def _conclusion(rows: list[Row]) -> str:
    if not rows:
        return "the program can be run with none of these numbers of GPUs"
    last = rows[-1]
    if last.fits:
        left = in_bytes(last.worst.left_bytes)
        return (
            f"fewest GPUs that hold it, of those run: {last.gpus}. The fullest rank has {left} left"
        )
    return f"none of these numbers of GPUs holds it. Largest part: {last.worst.largest_in_words}"
