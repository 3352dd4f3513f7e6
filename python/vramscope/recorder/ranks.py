"""Which process of a job this is."""

from __future__ import annotations

import os
import re
import sys
import time
from typing import Any

#: Environment variables with the rank and the number of processes, by launcher: torchrun, Slurm,
#: Open MPI, MPICH and its relatives. The script of a batch job of Slurm is one process, of which
#: ``SLURM_PROCID`` is 0 and ``SLURM_NTASKS`` the number that the job may start. Only a step of
#: ``srun`` has ``SLURM_STEP_NUM_TASKS`` (``src/common/env.c`` of Slurm).
LAUNCHERS = (
    ("RANK", "WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
)

#: Environment variables with the number of a process on its machine.
LOCAL_RANKS = ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID")


UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def rank_and_world(environ: dict[str, str] | None = None) -> tuple[int, int]:
    """The rank of this process and the number of ranks.

    ``torch.distributed`` knows best, once it is initialized. Before, the launcher's variables do.
    A process of no job is rank 0 of 1.
    """
    distributed = _distributed()
    if distributed is not None:
        return distributed.get_rank(), distributed.get_world_size()
    environ = dict(os.environ) if environ is None else environ
    for rank_name, world_name in LAUNCHERS:
        rank = _number(environ.get(rank_name))
        if rank is not None:
            world = _number(environ.get(world_name))
            return rank, max(world or 1, rank + 1)
    return 0, 1


def is_in_job() -> bool:
    """Whether this process is a rank of a job, be it the only one."""
    return _distributed() is not None or any(
        all(os.environ.get(name, "").isdecimal() for name in names) for names in LAUNCHERS
    )


def _distributed() -> Any:
    """``torch.distributed``, if it is initialized."""
    found = sys.modules.get("torch.distributed")
    return found if found and found.is_available() and found.is_initialized() else None


def is_first_of_machine(environ: dict[str, str] | None = None) -> bool:
    """Whether this is the first of the processes that a launcher has started on this machine."""
    environ = dict(os.environ) if environ is None else environ
    return all(_number(environ.get(name)) in (None, 0) for name in LOCAL_RANKS)


def job_name(environ: dict[str, str] | None = None) -> tuple[str, bool]:
    """A name for the job of this process, and whether all of its processes find this name.

    The launcher's number of the job, else the time in a form that sorts. A launcher without
    numbers has one time at least: processes that it started on a machine have one parent.
    """
    environ = dict(os.environ) if environ is None else environ
    run = environ.get("TORCHELASTIC_RUN_ID", "none")
    # Without a number, torchrun names a job on one machine `none` or by a UUID, which do not sort.
    is_unnamed = run == "none" or (UUID.fullmatch(run) and environ.get("GROUP_WORLD_SIZE") == "1")
    if not is_unnamed:
        return _named("run", run, environ.get("TORCHELASTIC_RESTART_COUNT")), True
    job = environ.get("SLURM_JOB_ID")
    if job:
        step = environ.get("SLURM_STEP_ID")
        job = f"{job}.{step}" if step else job
        return _named("job", job, environ.get("SLURM_RESTART_COUNT")), True
    space = environ.get("PMIX_NAMESPACE")
    if space:
        return _named("run", space, None), True
    is_of_job = any(environ.get(name) is not None for name, _ in LAUNCHERS)
    started = _start_of(os.getppid()) if is_of_job else time.time()
    restarts = environ.get("TORCHELASTIC_RESTART_COUNT")
    text = time.strftime("%Y-%m-%d_%H-%M-%S", time.localtime(started))
    return _restarted(text, restarts), is_of_job


def _named(kind: str, name: str, restarts: str | None) -> str:
    return _restarted(f"{kind}_{re.sub(r'[^a-zA-Z0-9.-]+', '-', name)}", restarts)


def _restarted(name: str, restarts: str | None) -> str:
    return f"{name}_restart_{restarts}" if _number(restarts) else name


def _start_of(pid: int) -> float:
    """When a process started, in seconds since 1970. Now, if the system does not tell."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            # After the name, which may have any characters.
            ticks = int(file.read().rpartition(")")[2].split()[19])
        with open("/proc/stat", encoding="ascii") as file:
            boot = next(int(line.split()[1]) for line in file if line.startswith("btime "))
    except (OSError, ValueError, IndexError, StopIteration):
        return time.time()
    return boot + ticks / os.sysconf("SC_CLK_TCK")


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None
