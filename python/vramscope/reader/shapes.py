"""The shapes of tensors, as recorded or as far as sizes tell."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..answer import Answer
from .names import Category, ShapeSource
from .records import Json
from .shown import Grid, Part, Shown, device, percent, size


@dataclass(frozen=True)
class Dims:
    """The dimensions of a model."""

    #: Bytes of an element of the parameters.
    element_bytes: int
    #: The width that most parameters have, in elements.
    hidden: int
    #: All widths, ascending.
    widths: tuple[int, ...]
    #: The number of ranks that share each parameter.
    ranks: int

    @classmethod
    def of(cls, json: Json) -> Dims:
        """From the program's JSON."""
        return cls(json["element_bytes"], json["hidden"], tuple(json["widths"]), json["ranks"])


@dataclass(frozen=True)
class Shape:
    """A shape."""

    #: Of two widths the larger comes first: their order does not show in a size.
    dims: tuple[int, ...]
    #: Bytes of an element.
    element_bytes: int
    #: ``[4,096, 1,536] of 4 bytes``.
    text: str
    #: The dimensions by short names, ``[N, 4h]``; ``None`` if they have none.
    symbols: str | None

    @classmethod
    def of(cls, json: Json) -> Shape:
        """From the program's JSON."""
        dims = tuple(json["dims"])
        return cls(dims, json["element_bytes"], json["text"], json.get("symbols"))


@dataclass(frozen=True, repr=False)
class ShapeRow(Shown):
    """Blocks of one category, call site and shape."""

    category: Category
    site: str
    #: The shapes that fit; empty if none does.
    shapes: tuple[Shape, ...]
    #: Whether no other shape is plausible.
    is_certain: bool
    #: What tells the shape; ``None`` without one.
    source: ShapeSource | None
    blocks: int
    live_bytes: int

    @classmethod
    def of(cls, json: Json) -> ShapeRow:
        """From the program's JSON."""
        return cls(
            category=json["category"],
            site=json["site"],
            shapes=tuple(map(Shape.of, json["shapes"])),
            is_certain=json["is_certain"],
            source=json["source"],
            blocks=json["blocks"],
            live_bytes=json["bytes"],
        )

    def _parts(self) -> Iterable[Part]:
        shapes = " or ".join(shape.text for shape in self.shapes) or "no shape"
        yield f"{size(self.live_bytes)} {self.category} at {self.site}: {shapes}"


@dataclass(frozen=True, repr=False)
class ShapeSum(Shown):
    """All blocks of one shape."""

    shape: Shape
    blocks: int
    live_bytes: int

    @classmethod
    def of(cls, json: Json) -> ShapeSum:
        """From the program's JSON."""
        return cls(Shape.of(json["shape"]), json["blocks"], json["bytes"])

    def _parts(self) -> Iterable[Part]:
        yield f"{self.shape.text}: {size(self.live_bytes)} in {self.blocks:,} blocks"


@dataclass(frozen=True, repr=False)
class Shapes(Answer, Shown):
    """The shapes of the blocks that are live at the peak of requested bytes."""

    path: str
    rank: int | None
    device: int
    event: int
    peak_bytes: int
    #: Two readings where sizes do not tell the size of elements. Empty if sizes tell none.
    dims: tuple[Dims, ...]
    #: Batch x sequence of the live activations; ``None`` if no input fits them.
    tokens: int | None
    #: Short names of dimensions: ``4h = 3,072``.
    legend: tuple[str, ...]
    #: Why there are no shapes; ``None`` if there are.
    refused: str | None
    #: Bytes of blocks with one shape.
    shaped_bytes: int
    #: Those whose shape is recorded.
    recorded_bytes: int
    #: Bytes of blocks that several shapes fit, or one that is in doubt.
    doubtful_bytes: int
    #: Bytes of blocks without a shape.
    other_bytes: int
    #: By category, call site and shape, most bytes first.
    rows: tuple[ShapeRow, ...]
    #: By shape, most bytes first.
    by_shape: tuple[ShapeSum, ...]
    #: What follows, in sentences.
    text: tuple[str, ...]

    @classmethod
    def of(cls, json: Json) -> Shapes:
        """From the program's JSON."""
        return cls(
            path=json["path"],
            rank=json["rank"],
            device=json["device"],
            event=json["event"],
            peak_bytes=json["bytes"],
            dims=tuple(map(Dims.of, json["dims"])),
            tokens=json["tokens"],
            legend=tuple(entry["text"] for entry in json["legend"]),
            refused=json["refused"],
            shaped_bytes=json["shaped_bytes"],
            recorded_bytes=json["recorded_bytes"],
            doubtful_bytes=json["doubtful_bytes"],
            other_bytes=json["other_bytes"],
            rows=tuple(map(ShapeRow.of, json["rows"])),
            by_shape=tuple(map(ShapeSum.of, json["by_shape"])),
            text=tuple(json["text"]),
        )

    def _line(self) -> str:
        return self.text[0]

    def _parts(self) -> Iterable[Part]:
        yield f"{self.path}  {device(self.device)}"
        yield from self.text
        if self.legend:
            yield f"Shapes: {', '.join(self.legend)}."
        if self.by_shape:
            rows = [
                (
                    size(of.live_bytes),
                    percent(of.live_bytes, self.peak_bytes),
                    f"{of.blocks:,}",
                    of.shape.text,
                    of.shape.symbols or "",
                )
                for of in self.by_shape
            ]
            head = ("bytes", "share", "blocks", "shape", "dims")
            yield Grid(head, rows, ">>><<", "shapes")
