"""What the processes of a dry run are told: a file that an environment variable names."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
from typing import Any

#: Names the file with the :class:`Settings`, in every process of the run.
VARIABLE = "VRAMSCOPE_DRY_RUN"
#: The settings of the library that answers for the driver, as JSON: ``settings.rs`` of
#: ``vramscope-dry``.
LIBRARY_VARIABLE = "VRAMSCOPE_DRY"
#: Names the file for remarks of that library.
NOTES_VARIABLE = "VRAMSCOPE_DRY_NOTES"


@dataclasses.dataclass
class Settings:
    """A dry run, for its processes."""

    #: The folder of this run's own files. It is removed at the end.
    folder: str
    #: Where recordings go; ``None`` if the program records itself.
    output: str | None
    #: The library that answers for the driver, and the files with the names of Nvidia's libraries.
    core: str
    shims: list[str]
    #: Files with a CUDA runtime of their own, which a dry run does not reach.
    own_runtimes: list[str]
    #: The GPU, as the user named it, and the memory of the device in bytes.
    gpu: str
    memory_bytes: int
    #: Its compute capability.
    capability: list[int]
    #: The version of CUDA that PyTorch was built for, such as 12080.
    cuda: int | None
    #: ``off``, ``small`` or ``full``.
    values: str
    #: Whether one rank runs alone, for all of its job.
    is_lone_rank: bool
    #: Whether models of transformers are made without their files of weights.
    is_without_weights: bool
    #: Optimizer steps after which a process ends.
    steps: int | None
    #: Arguments of :func:`vramscope.record`.
    record: dict[str, Any]

    def write(self) -> str:
        """Writes the file, and returns its path."""
        path = pathlib.Path(self.folder, "settings.json")
        path.write_text(json.dumps(dataclasses.asdict(self)), encoding="utf-8")
        return str(path)

    @property
    def unknown(self) -> pathlib.Path:
        """The names of functions that the library does not have, a line each."""
        return pathlib.Path(self.folder, "unknown")

    @property
    def notes(self) -> pathlib.Path:
        """Remarks of the library, a line each."""
        return pathlib.Path(self.folder, "notes")

    @property
    def ended(self) -> pathlib.Path:
        """What ends the program from outside, once something does: ``limit`` or ``interrupt``."""
        return pathlib.Path(self.folder, "ended")

    @property
    def error(self) -> pathlib.Path:
        """The error that ended a process of the program, with its line."""
        return pathlib.Path(self.folder, "error")

    @property
    def joined(self) -> pathlib.Path:
        """An empty file, once a process that runs alone begins a process group."""
        return pathlib.Path(self.folder, "joined")

    @property
    def sent(self) -> pathlib.Path:
        """What the first rank sends to others in a search, pickled one after the other."""
        return pathlib.Path(self.folder, "sent")

    @property
    def received(self) -> pathlib.Path:
        """The same of the run before, for this rank. Only searches have it."""
        return pathlib.Path(self.folder, "received")

    @property
    def progress(self) -> pathlib.Path:
        """A file for each process, with its progress."""
        return pathlib.Path(self.folder, "progress")

    @property
    def stuck(self) -> pathlib.Path:
        """A file for each process: its stacks when it did not end by itself."""
        return pathlib.Path(self.folder, "stuck")


def of_this_process() -> Settings:
    """The settings of the run that this process belongs to."""
    with open(os.environ[VARIABLE], encoding="utf-8") as file:
        return Settings(**json.load(file))
