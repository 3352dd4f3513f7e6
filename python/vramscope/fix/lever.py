"""What a diagnosis says can be changed, in its order."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

#: The expression at the start of a holder's way: ``logger.histograms`` of
#: ``logger.histograms[grad/2.weight][0..79][1]``.
_HEAD = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")


@dataclasses.dataclass(frozen=True)
class Lever:
    """A change that was replayed, with what an edit of the source needs."""

    #: What ``--apply`` calls it: ``checkpoint:all``, ``expandable_segments:True``, or its kind.
    name: str
    text: str
    #: The change without its value, ``checkpoint`` or ``accumulate``; ``None`` for a setting.
    recipe: str | None
    #: ``half`` of ``checkpoint:half``, ``2`` of ``accumulate:2``; empty if it has none.
    value: str
    #: The allocator's settings.
    conf: str | None
    #: The line that it is about: the recorded path of the file, and the line from 1.
    file: str | None
    line: int
    #: The kind of the finding that it cures; ``None`` if it cures none.
    cures: str | None
    #: Expressions that hold the memory: ``val_losses``, ``s.attns``.
    holders: tuple[str, ...]
    #: What a replay says that the run needs; ``None`` where it was not replayed.
    needs_bytes: int | None
    outcome: str | None
    #: The record.
    record: dict[str, Any]

    def parts(self) -> list[Lever]:
        """The single changes of a set: ``accumulate:2`` and ``batch:0.5``."""
        if self.recipe is None:
            return [self]
        forms = (form.partition(":") for form in self.name.split(","))
        return [
            dataclasses.replace(self, name=recipe + colon + value, recipe=recipe, value=value)
            for recipe, colon, value in forms
        ]


def levers(diagnosis: dict[str, Any]) -> list[Lever]:
    """What can be changed, best first: the levers of the answer, then those of its findings."""
    findings = {finding["id"]: finding for finding in diagnosis["findings"]}
    found = [
        _lever(record, findings.get(record["cures"] or ""), diagnosis)
        for record in diagnosis["levers"]
    ]
    for finding in findings.values():
        found += [_lever(record, finding, diagnosis) for record in finding.get("fixes", [])]
    cured = {lever.record["cures"] for lever in found}
    # What a finding advises was not always replayed. It can be run.
    found += [
        _of_finding(finding)
        for finding in findings.values()
        if finding["kind"] != "oom" and finding["id"] not in cured and not finding.get("fixes")
    ]
    # One change may be told by two findings.
    known: set[tuple[object, ...]] = set()
    once = []
    for lever in found:
        key = (lever.name, lever.text)
        if key not in known and lever.outcome != "short":
            known.add(key)
            once.append(lever)
    return once


def _heads(findings: list[dict[str, Any]]) -> tuple[str, ...]:
    """The expressions that hold the memory of findings."""
    holders = [holder for one in findings for holder in one.get("holders", [])]
    heads = [_HEAD.match(holder.get("path", "")) for holder in holders]
    return tuple(dict.fromkeys(head.group() for head in heads if head))


def _of_finding(finding: dict[str, Any]) -> Lever:
    place = finding["place"] or {}
    return Lever(
        name=finding["kind"],
        text=finding["action"],
        recipe=None,
        value="",
        conf=None,
        file=place.get("file"),
        line=place.get("line") or 0,
        cures=finding["kind"],
        holders=_heads([finding]),
        needs_bytes=None,
        outcome=None,
        record={"edit": None, "cures": finding["id"]},
    )


def _lever(
    record: dict[str, Any], finding: dict[str, Any] | None, diagnosis: dict[str, Any]
) -> Lever:
    form = record["recipe"] or ""
    recipe, _, value = form.partition(":")
    place = record["place"] or {}
    cures = (record["cures"] or "").partition("-")[0]
    if finding is None or not finding.get("holders"):
        # What fails is held by what grows.
        grown = [one for one in diagnosis["findings"] if one.get("holders")]
        holding = grown if finding is None or finding["kind"] == "oom" else []
    else:
        holding = [finding]
    if not place and finding is not None and finding["kind"] != "oom":
        place = {key: finding["place"][key] for key in ("file", "line")} if finding["place"] else {}
    return Lever(
        name=form or record["conf"] or cures or record["kind"],
        text=record["text"],
        recipe=recipe or None,
        value=value,
        conf=record["conf"],
        file=place.get("file"),
        line=place.get("line") or 0,
        cures=cures or None,
        holders=_heads(holding),
        needs_bytes=record["needs_bytes"],
        outcome=record["outcome"],
        record=record,
    )
