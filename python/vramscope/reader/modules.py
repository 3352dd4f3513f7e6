"""Memory by module, as names or call stacks tell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ..answer import Answer
from .names import PhaseName
from .records import Json
from .shown import Grid, Part, Shown, device, event, percent, size

#: Levels of modules that are shown, and modules below one.
_DEPTH = 3
_WIDTH = 6


@dataclass(frozen=True)
class SiteBytes:
    """The blocks of a call site."""

    site: str
    live_bytes: int
    blocks: int

    @classmethod
    def of(cls, json: Json) -> SiteBytes:
        """From the program's JSON."""
        return cls(json["site"], json["bytes"], json["blocks"])


@dataclass(frozen=True, repr=False)
class Module(Shown):
    """A module, a layer of it, or what is outside of modules."""

    #: ``mlp``, ``gpt.py:31-32 forward``, ``[3]``.
    name: str
    #: The names from the outermost module, separated by ``/``; empty for all blocks.
    path: str
    #: ``recorded`` or ``inferred``; ``None`` for what is no module.
    basis: str | None
    #: The lines that call and build the module; ``None`` if they are not known.
    called_at: str | None
    built_at: str | None
    #: ``None`` if the module is not split into layers.
    layers: int | None
    #: Requested bytes at the peak, those of ``children`` included.
    live_bytes: int
    blocks: int
    categories_bytes: Mapping[str, int]
    #: Bytes at the highest peak of a phase; ``None`` if the window does not have it.
    forward_bytes: int | None
    backward_bytes: int | None
    optimizer_bytes: int | None
    #: Call sites of blocks that are in none of the children, most bytes first.
    sites: tuple[SiteBytes, ...]
    #: Most bytes first.
    children: tuple[Module, ...]

    @classmethod
    def of(cls, json: Json) -> Module:
        """From the program's JSON."""
        return cls(
            name=json["name"],
            path=json["path"],
            basis=json["basis"],
            called_at=json.get("called_at"),
            built_at=json.get("built_at"),
            layers=json.get("layers"),
            live_bytes=json["bytes"],
            blocks=json["blocks"],
            categories_bytes=json["categories"],
            forward_bytes=json["forward_bytes"],
            backward_bytes=json["backward_bytes"],
            optimizer_bytes=json["optimizer_bytes"],
            sites=tuple(map(SiteBytes.of, json["sites"])),
            children=tuple(map(Module.of, json["children"])),
        )

    def __iter__(self) -> Iterator[Module]:
        """This module and all modules in it, depth first."""
        yield self
        for child in self.children:
            yield from child

    def _label(self) -> str:
        layers = "" if self.layers is None else f" x{self.layers:,}"
        called, built = self.called_at, self.built_at
        at = f"  called at {called}" if called else f"  built at {built}" if built else ""
        return f"{self.name}{layers}{at}"

    def _parts(self) -> Iterable[Part]:
        yield f"{self._label()}: {size(self.live_bytes)} in {self.blocks:,} blocks"
        yield self._grid()

    def _grid(self) -> Grid:
        phases = ("forward", "backward", "optimizer")
        known = [name for name in phases if getattr(self, f"{name}_bytes") is not None]
        rows: list[tuple[str, ...]] = []
        omitted = 0

        def add(module: Module, depth: int) -> None:
            of_phases = (size(getattr(module, f"{name}_bytes")) for name in known)
            share = percent(module.live_bytes, self.live_bytes)
            name = "  " * depth + module._label()
            rows.append((size(module.live_bytes), share, f"{module.blocks:,}", *of_phases, name))
            # Layers are alike: the largest shows what is in each.
            width = 0 if depth == _DEPTH else _WIDTH if module.layers is None else 1
            for child in module.children[:width]:
                add(child, depth + 1)
            nonlocal omitted
            omitted += len(module.children[width:])

        add(self, 0)
        head = ("at peak", "share", "blocks", *known, "module")
        return Grid(head, rows, ">" * (len(head) - 1) + "<", "modules", omitted)


@dataclass(frozen=True)
class PhaseMoment:
    """The highest peak of a phase."""

    phase: PhaseName
    event: int
    live_bytes: int

    @classmethod
    def of(cls, json: Json) -> PhaseMoment:
        """From the program's JSON."""
        return cls(json["phase"], json["event"], json["bytes"])


@dataclass(frozen=True, repr=False)
class Modules(Answer, Shown):
    """The modules at the peak of requested bytes, as a tree. It iterates over all of them."""

    path: str
    rank: int | None
    device: int
    peak_event: int
    #: The moments of ``forward_bytes`` and the like.
    phases: tuple[PhaseMoment, ...]
    #: How modules are known, in sentences.
    text: tuple[str, ...]
    #: All blocks, with the modules below.
    root: Module

    @classmethod
    def of(cls, json: Json) -> Modules:
        """From the program's JSON."""
        return cls(
            path=json["path"],
            rank=json["rank"],
            device=json["device"],
            peak_event=json["peak_event"],
            phases=tuple(map(PhaseMoment.of, json["phases"])),
            text=tuple(json["text"]),
            root=Module.of(json["root"]),
        )

    def __iter__(self) -> Iterator[Module]:
        """All modules, depth first."""
        for child in self.root.children:
            yield from child

    def _line(self) -> str:
        peak = f"requested_bytes peaks at {size(self.root.live_bytes)}, {event(self.peak_event)}"
        return f"{peak}, in {self.root.blocks:,} blocks"

    def _parts(self) -> Iterable[Part]:
        yield f"{self.path}  {device(self.device)}"
        yield self._line()
        yield from self.text
        yield self.root._grid()
