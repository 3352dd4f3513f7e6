"""How many bytes are allocated on the devices of this process."""

from __future__ import annotations

from . import sidecar
from .backend import Backend

#: Reads after which the devices in use are asked for again.
SAME_DEVICES = 256


class Levels:
    """Reads the level and the peak of each device. This takes about 15 microseconds a device."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._devices: list[int] = []
        self._reads = 0

    def read(self) -> dict[int, tuple[int, int]]:
        """The bytes that are allocated now, and their peak, by device."""
        reads = self._reads
        # Early on often: a program may use further devices.
        if reads & (reads - 1) == 0 or reads % SAME_DEVICES == 0:
            self._devices = sidecar.used_devices(self._backend)
        self._reads += 1
        return {device: self._backend.allocated(device) for device in self._devices}
