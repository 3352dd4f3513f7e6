"""When growth is foretold, by levels that are made up here."""

import random

import pytest

from vramscope.recorder import notes
from vramscope.recorder.growth import Forecast, Foreteller, Growth

MIB = 1 << 20
GIB = 1 << 30
CAPACITY = 80 * GIB


def foretold(levels: list[int], excess: list[int], seconds: float = 0.5) -> tuple[int, int] | None:
    """The step after which memory is foretold to be full, and in how many more steps."""
    growth, peak = Growth(), 0
    for step, (level, above) in enumerate(zip(levels, excess)):
        peak = max(peak, level + above)
        found = growth.add(level, peak, step * seconds)
        left = found.steps_left(level, CAPACITY) if found else None
        if left is not None:
            return step, left
    return None


@pytest.mark.parametrize("mib", [3, 49, 700])
@pytest.mark.parametrize("every", [1, 10])
def test_a_leak_is_foretold(mib: int, every: int) -> None:
    step_bytes = mib * MIB / every
    full = int((CAPACITY - 30 * GIB) / step_bytes)
    levels = [20 * GIB + mib * MIB * (step // every) for step in range(full)]
    found = foretold(levels, [10 * GIB] * full)
    assert found is not None
    step, left = found
    # Long before it is full, by what was seen.
    assert 30 <= step < full * 0.5
    assert step + left == pytest.approx(full, rel=0.1)


def test_the_slope_and_time_are_those_of_a_step() -> None:
    growth = Growth()
    found = None
    for step in range(100):
        noise = random.Random(step).randrange(20 * MIB)
        level = 5 * GIB + 49 * MIB * step + noise
        found = growth.add(level, level + GIB, 2.0 * step) or found
    assert found is not None
    assert found.bytes == pytest.approx(49 * MIB, rel=0.1)
    assert found.seconds == pytest.approx(2.0)


def test_a_leak_that_begins_late_is_foretold() -> None:
    late = 2000
    levels = [20 * GIB + 40 * MIB * max(step - late, 0) for step in range(late + 1200)]
    found = foretold(levels, [10 * GIB] * len(levels))
    assert found is not None
    step, left = found
    assert step + left == pytest.approx(late + 50 * GIB / (40 * MIB), rel=0.1)


def healthy() -> dict[str, list[tuple[int, int]]]:
    """Levels after steps, and peaks within them above those."""
    rng = random.Random(7)
    count, model, most = 3000, 20 * GIB, 30 * GIB

    def cache(entry: int, entries: int) -> list[tuple[int, int]]:
        return [(model + entry * min(step, entries), most) for step in range(count)]

    return {
        "flat": [(model, most)] * count,
        "states come in the first step": [(model // 4, most)] + [(model, most)] * count,
        "lengths vary": [(model + rng.randrange(2 * GIB), rng.randrange(most))
                         for _ in range(count)],
        "sizes alternate": [(model + GIB * (step % 2), most) for step in range(count)],
        "sorted lengths": [(model + 3 * GIB * (step % 250) // 250, most) for step in range(count)],
        "evaluation": [(model, most + 15 * GIB * (step % 100 == 0)) for step in range(count)],
        "a cache fills in 20 steps": cache(200 * MIB, 20),
        "a cache fills in 400 steps": cache(20 * MIB, 400),
        "a cache slows down": [(model + int(8 * GIB * (1 - 0.99**step)), most)
                               for step in range(count)],
        "a growing memory of results": [(model + 4096 * step, most) for step in range(count)],
        "drift of the libraries": [(model + 512 * rng.randrange(4), most) for _ in range(count)],
        "lengths grow by a schedule": [(model + GIB * min(step // 500, 4), most)
                                       for step in range(count)],
    }  # fmt: skip


@pytest.mark.parametrize("kind", healthy())
def test_nothing_is_foretold_of_healthy_runs(kind: str) -> None:
    levels, excess = zip(*healthy()[kind])
    assert foretold(list(levels), list(excess)) is None


def test_nothing_is_foretold_while_no_step_sets_a_peak() -> None:
    """Loading the model took more than the steps do, so it is not known what a step needs."""
    assert Forecast(bytes=MIB, seconds=1, seen=1000, excess=None).steps_left(0, GIB) is None


class Device:
    """A backend with one device of 8 GiB, of which others have 1 GiB."""

    torch = None

    def __init__(self) -> None:
        self.module = self
        self.memory = self

    def mem_get_info(self, device: int) -> tuple[int, int]:
        return 6 * GIB, 8 * GIB

    def memory_reserved(self, device: int) -> int:
        return GIB


def test_words_are_said_once() -> None:
    said: list[str] = []
    teller = Foreteller(Device(), said.append)  # type: ignore[arg-type]
    for step in range(140):
        level = GIB + 49 * MIB * step
        teller.look({0: (level, level + MIB)})
    (words,) = said
    assert words.startswith("memory grows by 49.00 MiB a step: full in about ")
    # 7 GiB are left of 8: the others have 1 GiB.
    left = int(words.split("about ")[1].split()[0])
    step = next(one for one in range(35, 140, 4) if 6 * GIB / (49 * MIB) - one <= 4 * 28)
    assert left == pytest.approx(6 * GIB / (49 * MIB) - step, rel=0.15)


class Clock:
    """Half a second for each look."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


def taken(
    levels: list[int], monkeypatch: pytest.MonkeyPatch, has_steps: bool = True
) -> tuple[list[int], float]:
    """The looks at which notes were taken, each in 0.4 seconds, and the share of the time."""
    looks: list[int] = []
    clock, at = Clock(), 0
    monkeypatch.setattr(notes, "time", clock)

    def take() -> dict[str, object]:
        looks.append(at)
        clock.now += 0.4
        return {"seconds": 0.3}

    taker = notes.Notes(take)
    for at, level in enumerate(levels):
        clock.now += 0.5
        if taker.wants({0: (level, level)}, at if has_steps else None):
            taker.take(0, None)
    return looks, len(looks) * 0.4 / clock.now


def test_notes_of_growth_take_a_hundredth_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    looks, share = taken([GIB + 10 * MIB * step for step in range(10000)], monkeypatch)
    assert 3 <= looks[0] <= 8
    # The last one sees most of what has grown.
    assert looks[-1] > 9000
    assert share < 0.011


def test_the_notes_of_a_short_run_see_most_of_what_has_grown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks, _ = taken([GIB + 10 * MIB * step for step in range(40)], monkeypatch)
    assert looks[-1] >= 20
    assert len(looks) <= 6


def test_no_notes_are_taken_of_healthy_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind, steps in healthy().items():
        if kind.startswith(("a cache", "a growing", "lengths grow", "sorted")):
            continue
        assert taken([level for level, _ in steps], monkeypatch)[0] == [], kind


def test_a_model_that_is_loaded_in_few_looks_is_not_noted_without_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded = [0, 0, 2 * GIB, 5 * GIB, *[9 * GIB] * 100]
    assert taken(loaded, monkeypatch, has_steps=False)[0] == []
    assert taken([MIB * 50 * look for look in range(100)], monkeypatch, has_steps=False)[0]
