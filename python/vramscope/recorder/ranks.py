"""Which process of a job this is."""

from __future__ import annotations

import os
import sys

#: Environment variables with the rank and the number of processes, by launcher: torchrun, Slurm,
#: Open MPI, MPICH and its relatives.
LAUNCHERS = (
    ("RANK", "WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
)

#: Environment variables with the number of a process on its machine.
LOCAL_RANKS = ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID")


def rank_and_world(environ: dict[str, str] | None = None) -> tuple[int, int]:
    """The rank of this process and the number of ranks.

    ``torch.distributed`` knows best, once it is initialized. Before, the launcher's variables do.
    A process of no job is rank 0 of 1.
    """
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    environ = dict(os.environ) if environ is None else environ
    for rank_name, world_name in LAUNCHERS:
        rank = _number(environ.get(rank_name))
        if rank is not None:
            world = _number(environ.get(world_name))
            return rank, max(world or 1, rank + 1)
    return 0, 1


def is_first_of_machine(environ: dict[str, str] | None = None) -> bool:
    """Whether this is the first of the processes that a launcher has started on this machine."""
    environ = dict(os.environ) if environ is None else environ
    return all(_number(environ.get(name)) in (None, 0) for name in LOCAL_RANKS)


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None
