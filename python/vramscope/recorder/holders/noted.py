"""Adds what was noted while the program ran to who holds memory at its end."""

from __future__ import annotations

from typing import Any, NamedTuple


class Note(NamedTuple):
    """Who held memory at an earlier time."""

    #: What :func:`holders.find` found.
    holders: dict[str, Any]
    #: When: the clock of the events of a snapshot.
    time_us: int
    #: The step that had ended; ``None`` if none was counted.
    step: int | None


def with_noted(held: dict[str, Any] | None, note: Note) -> dict[str, Any]:
    """Who holds memory at the end, ``None`` if that is not known, and who held it earlier."""
    noted = note.holders
    held = held or {**noted, "links": [], "blocks": [], "drops": []}
    links, drops = len(held["links"]), len(held["drops"])

    def later(place: int | None, first: int) -> int | None:
        return None if place is None else place + first

    def block(one: dict[str, Any]) -> dict[str, Any]:
        moved = {**one, "noted": True}
        for name, first in (("link", links), ("drop", drops)):
            if name in one:
                moved[name] = one[name] + first
        return moved

    return {
        "complete": held["complete"] and noted["complete"],
        "graph": held["graph"] and noted["graph"],
        "opaque": max(held["opaque"], noted["opaque"]),
        "objects": held["objects"],
        "seconds": held["seconds"],
        "noted": {"time_us": note.time_us, "step": note.step},
        "links": held["links"]
        + [{**one, "from": later(one["from"], links)} for one in noted["links"]],
        "blocks": held["blocks"] + [block(one) for one in noted["blocks"]],
        "drops": held["drops"]
        + [
            {
                **row,
                "within": later(row["within"], drops),
                "links": [link + links for link in row["links"]],
            }
            for row in noted["drops"]
        ],
    }
