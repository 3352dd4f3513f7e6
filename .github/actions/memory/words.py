"""The Markdown of a comparison. Names come from the pull request, so they are escaped."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

from runs import Run

#: The lines of base and branch in a chart, and the size of that.
CHART = """\
```mermaid
---
config:
  xyChart: {{ width: 720, height: 260 }}
  themeVariables: {{ xyChart: {{ plotColorPalette: "{colors}" }} }}
---
xychart-beta
    title "Peak of each phase in {unit}, {legend}"
    x-axis "step" 0 --> {steps}
    y-axis "{unit}" 0 --> {top}
{lines}
```"""
COLORS = {"base": "#8f98a5", "branch": "#c4432c"}
#: What a lever costs, in words.
COSTS = {"none": "no cost", "edit": "an edit"}


@dataclasses.dataclass
class Compared:
    """A script of both sides. Without a base, only the branch has its file."""

    name: str
    base: Run | None
    branch: Run
    #: Records of the expressions that hold.
    holding: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    #: Expressions that need a base, which has no peak.
    unchecked: list[str] = dataclasses.field(default_factory=list)
    #: Markdown of what changed.
    changes: str = ""
    #: The peaks of the phases of each step: of the base, if it has any, and of the branch.
    phases: list[list[list[int]]] = dataclasses.field(default_factory=list)

    @property
    def change(self) -> int | None:
        """How much the peak grew, in bytes; ``None`` where it cannot be compared."""
        if self.base is None or self.base.dry is None or self.branch.dry is None:
            return None
        if self.base.runs_out or self.branch.runs_out:
            return None
        return int(self.branch.dry["active_bytes"] - self.base.dry["active_bytes"])

    def failures(self) -> list[str]:
        """Why the script fails the action, as Markdown."""
        found = [] if self.branch.failure is None else [f"fails: {escape(self.branch.failure)}"]
        for check in self.holding:
            texts = "; ".join(check["texts"])
            found.append(f"{code(check['expression'])} holds: {escape(texts)}")
        return found

    def row(self) -> str:
        """The row of the table."""
        base = "new" if self.base is None else peak(self.base)
        cells = [code(self.name), base, peak(self.branch), self.change_text(), fits(self.branch)]
        return f"| {' | '.join(cells)} |"

    def change_text(self) -> str:
        """The growth of the peak, with its share of the base's."""
        if self.change is None or self.base is None or self.base.dry is None:
            return ""
        if self.change == 0:
            return "0"
        before = self.base.dry["active_bytes"]
        share = f", {100 * self.change / before:+.1f} %" if before else ""
        return f"**{'+' if self.change > 0 else '-'}{size(abs(self.change))}{share}**"

    def details(self) -> str:
        """What changed and what to do, folded; nothing where nothing changed."""
        answer = self.branch.answer
        if answer is None or (self.change == 0 and not self.failures()):
            return ""
        lines = [line for line in self.headlines() if line]
        summary = f"<details><summary>{code_html(self.name)}: what holds the peak</summary>"
        if self.changes:
            summary = f"<details><summary>{code_html(self.name)}: what changed</summary>"
        parts = [summary, *lines, chart(self.phases), self.changes, "</details>"]
        return "\n\n".join(part for part in parts if part)

    def headlines(self) -> list[str]:
        """What the branch's recording says first, its first lever, and what was made up."""
        assert self.branch.answer is not None and self.branch.dry is not None
        first = self.branch.answer["headlines"][:1]
        levers = self.branch.answer["levers"][:1]
        notes = [f"Note: {note}." for note in self.branch.dry["notes"]]
        return [escape(line["text"]) + "." for line in first] + [
            *map(lever, levers),
            *map(escape, notes),
        ]


def head(title: str, found: Sequence[Compared], base: str) -> str:
    """The heading, what fails, and the table."""
    failing = [one for one in found if one.failures()]
    changed = [one for one in found if one.change]
    if failing:
        verdict = f"{of_scripts(failing, found)} {'fails' if len(failing) == 1 else 'fail'}"
    elif out := [one for one in found if one.branch.runs_out]:
        verdict = f"{of_scripts(out, found)} without enough memory"
    elif not changed:
        verdict = (
            "no peak changed" if any(one.change == 0 for one in found) else "nothing to compare"
        )
    else:
        most = max(changed, key=lambda one: abs(one.change or 0))
        verdict = f"{code(most.name)} {most.change_text().strip('*')}"
    failures = [
        f"- :x: {code(one.name)}: {failure}" for one in failing for failure in one.failures()
    ]
    unchecked = [
        f"- {code(one.name)}: the base has no peak for {', '.join(map(code, one.unchecked))}"
        for one in found
        if one.unchecked
    ]
    broken = [
        f"- {code(one.name)} fails on the base: {escape(one.base.failure)}"
        for one in found
        if one.base is not None and one.base.failure is not None
    ]
    rows = ["| script | base | branch | change | fits |", "|:--|--:|--:|--:|:--|"]
    rows += [one.row() for one in found]
    notes = "\n".join([*failures, *broken, *unchecked])
    footer = f"Dry runs without a GPU, compared with {base[:10]}: peaks of `active_bytes`."
    parts = [f"### {title}: {verdict}", notes, "\n".join(rows), footer]
    return "\n\n".join(part for part in parts if part)


def of_scripts(some: Sequence[Compared], found: Sequence[Compared]) -> str:
    """How many of the scripts: ``1 of 3 scripts``."""
    return f"{len(some)} of {len(found)} script{'' if len(found) == 1 else 's'}"


def comment(parts: Sequence[str], longest: int) -> str:
    """The parts with as many details as there is room for."""
    kept = list(parts)
    note = "The summary of the job has more details."
    while len("\n\n".join([*kept, note])) > longest and len(kept) > 2:
        kept.pop()
    return "\n\n".join(kept if len(kept) == len(parts) else [*kept, note]) + "\n"


def peak(run: Run) -> str:
    """The peak of a run, or how it ended."""
    if run.runs_out:
        return "runs out"
    if run.dry is None or run.failure is not None:
        return "fails"
    return size(run.dry["active_bytes"])


def fits(run: Run) -> str:
    """Whether a run fits on its GPU."""
    if run.dry is None or run.failure is not None:
        return ""
    gpu = f"{size(run.dry['memory_bytes'])} of {escape(run.dry['gpu'])}"
    if run.runs_out:
        return f":x: no, {gpu}:{escape(run.dry['text'].partition(': runs out')[2])}"
    word = "yes" if run.dry["outcome"] == "fits" else "so far"
    return f"{word}, {size(run.dry['reserved_bytes'])} reserved in {gpu}"


def lever(record: dict[str, Any]) -> str:
    """What can be changed, and what is needed then."""
    site = record["place"] and record["place"]["site"]
    place = f" at {code(site)}" if site and site not in record["text"] else ""
    cost = COSTS.get(record["cost"], f"costs {record['cost']}")
    needs = f"needs {size(record['needs_bytes'])} in place of {size(record['now_bytes'])}"
    return f"First lever: {escape(record['text'])}{place}, {needs}, {cost}."


def chart(phases: Sequence[Sequence[Sequence[int]]]) -> str:
    """The peaks over the phases as a chart of Mermaid, which GitHub draws."""
    steps = max((len(side) for side in phases), default=0)
    # Every step is as wide in both lines, which are then below each other.
    width = max((len(step) for side in phases for step in side), default=0)
    if not steps or not width:
        return ""
    most = max(max(step) for side in phases for step in side if step)
    unit, scale = ("GiB", 1 << 30) if most >= 10 << 30 else ("MiB", 1 << 20)
    lines = []
    for side in phases:
        # A line at 0 is the end of a side that has run fewer steps.
        padded = [*side, *[[0]] * (steps - len(side))]
        points = [step[at * len(step) // width] for step in padded if step for at in range(width)]
        lines.append(f"    line [{', '.join(f'{point / scale:.6g}' for point in points)}]")
    names = ["base", "branch"][-len(phases) :]
    legend = "base gray, branch red" if len(names) == 2 else "branch red"
    colors = ", ".join(COLORS[name] for name in names)
    top = f"{most * 1.05 / scale:.6g}"
    return CHART.format(
        colors=colors, unit=unit, legend=legend, steps=steps, top=top, lines="\n".join(lines)
    )


def size(amount: int) -> str:
    """Bytes in words, with at most four digits: ``61.20 GiB``."""
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if amount >= scale:
            value = amount / scale
            return f"{value:.{2 if value < 100 else 1}f} {unit}"
    return f"{amount} B"


def escape(text: str) -> str:
    """A sentence in which nothing is Markdown, a link, or a mention."""
    text = re.sub(r"\s+", " ", text).replace("&", "&amp;")
    text = re.sub(r"([\\$`*_\[\]<>|#~])", r"\\\1", text)
    return text.replace("://", ":\u200b//").replace("www.", "www\u200b.").replace("@", "@\u200b")


def code(text: str) -> str:
    """Inline code for a cell of a table."""
    text = re.sub(r"\s+", " ", text)
    fence = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    gap = " " if "`" in text else ""
    return f"{fence}{gap}{text}{gap}{fence}".replace("|", "\\|")


def code_html(text: str) -> str:
    """Inline code inside of an element, where Markdown is not read."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return f"<code>{escaped}</code>"
