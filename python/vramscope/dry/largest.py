"""The largest value of an option with which a program fits: each is really run."""

from __future__ import annotations

import dataclasses
import re
from typing import Callable


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
