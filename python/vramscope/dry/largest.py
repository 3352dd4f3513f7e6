"""The largest value of an option with which a program fits: each is really run."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import re
from typing import Any, Callable

from .run import Program
from .tries import Table, attempt


@dataclasses.dataclass(frozen=True)
class Search:
    """An option of the program, and the range in which its value is looked for."""

    name: str
    least: int
    most: int

    @staticmethod
    def parse(text: str) -> Search:
        """Reads ``batch_size=1..256``.

        Raises:
            ValueError: The text is no range.
        """
        found = re.fullmatch(r"-{0,2}([A-Za-z][\w.-]*)=(\d+)\.\.(\d+)", text)
        if found is None or not 1 <= int(found[2]) <= int(found[3]):
            raise ValueError(f"{text!r}, expected an option and its range: batch_size=1..256")
        return Search(found[1], int(found[2]), int(found[3]))

    def words(self, words: list[str], value: int) -> list[str]:
        """The command line with this value: in the place of the option's own, else at the end."""
        plain = self.name.replace("-", "_")
        # The last one counts.
        for at, word in reversed(list(enumerate(words))):
            name, equals, _ = word.partition("=")
            if name.lstrip("-").replace("-", "_") != plain:
                continue
            if equals:
                return [*words[:at], f"{name}={value}", *words[at + 1 :]]
            if name.startswith("-") and at + 1 < len(words):
                return [*words[: at + 1], str(value), *words[at + 2 :]]
        return [*words, f"--{self.name}", str(value)]

    def run(self, fits: Callable[[int], bool]) -> int | None:
        """The largest value that fits, by bisection; ``None`` if the least does not.

        A larger value is taken to need no less memory.
        """
        if not fits(self.least):
            return None
        good, bad = self.least, self.most + 1
        # Doubling first: a step with a small value is quick.
        while bad - good > 1:
            middle = min(good * 2, (good + bad) // 2) if bad > self.most else (good + bad) // 2
            middle = max(middle, good + 1)
            if fits(middle):
                good = middle
            else:
                bad = middle
        return good


def find_largest(search: Search, program: Program, folder: pathlib.Path, is_json: bool) -> int:
    """Runs the program with several values of an option, and tells the largest that fits.

    Returns the exit status.
    """
    tries: list[dict[str, Any]] = []

    def fits(value: int) -> bool:
        own = dataclasses.replace(program, words=search.words(program.words, value))
        found = attempt(own, folder / f"{search.name}_{value}")
        tries.append({"value": value, "active_bytes": found.active_bytes, "text": found.text})
        if found.fits:
            table.fitting(value, found, "fits")
        else:
            table.other(value, found.text)
        return found.fits

    table = Table(f"{search.name} on {program.gpu}, each value run:", "value", not is_json)
    largest = search.run(fits)
    is_ignored = len(tries) > 1 and len({one["active_bytes"] for one in tries}) == 1
    if is_json:
        found = {"schema": "vramscope.largest/1", "name": search.name, "largest": largest}
        print(json.dumps({**found, "changes_peak": not is_ignored, "tries": tries}, indent=2))
    elif largest is None:
        table.tell(f"no {search.name} from {search.least} on fits")
    else:
        bound = ", the end of the range" if largest == search.most else ""
        table.tell(f"largest {search.name} that fits: {largest}{bound}")
    if is_ignored:
        table.tell(f"each value has the same peak: the program may not use {search.name}")
    return 1 if largest is None else 0
