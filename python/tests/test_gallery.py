"""Every figure in a story of the gallery is what the program prints of the recording."""

from __future__ import annotations

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
from typing import Any

import pytest

ROOT = pathlib.Path(__file__).parents[2]
DATA = ROOT / "test_data"
PROGRAM = os.environ.get("VRAMSCOPE", "vramscope")
CASES: list[dict[str, Any]] = json.loads((ROOT / "web/site/gallery/cases.json").read_text("utf-8"))
MEASURED = json.loads((DATA / "gallery/expected.json").read_text("utf-8"))

#: The recordings of all cases, in bytes as they are stored.
MAX_BYTES = 1_300_000

#: Bytes, percentages, ratios, lines of code, events, and counts of two digits or more.
FIGURE = re.compile(
    r"\d[\d,.]* (?:[KMGT]iB|%|x)(?!\w)|\w+\.py:\d+|#[\d,]+|(?<![\w.#:-])\d[\d,]*\d(?![\w.:]|-D)"
)


def printed(case: dict[str, Any], folder: pathlib.Path) -> str:
    """What the commands of the case print in a folder with its files."""
    for name in case["files"]:
        source = DATA / name
        is_rank = len(case["files"]) > 2
        target = folder / source.parent.name if is_rank else folder
        target.mkdir(exist_ok=True)
        shutil.copy(source, target)
    texts = []
    for command in case["commands"]:
        name, *arguments = shlex.split(command)
        assert name == "vramscope"
        done = subprocess.run(
            [PROGRAM, *arguments],
            cwd=folder,
            env={**os.environ, "COLUMNS": "100"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        texts.append(done.stdout)
    # The program breaks lines between words.
    return re.sub(r"\s+", " ", " ".join(texts))


def test_there_are_ten_small_cases() -> None:
    assert len({case["name"] for case in CASES}) == len(CASES) == 10
    files = {name for case in CASES for name in case["files"]}
    assert sum((DATA / name).stat().st_size for name in files) < MAX_BYTES
    assert sum("NVIDIA" in case["recorded"] for case in CASES) >= 3


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_story_has_five_sentences_with_figures_of_the_program(
    case: dict[str, Any], tmp_path: pathlib.Path
) -> None:
    story = case["story"]
    assert len(story) == 5
    for sentence in story:
        assert sentence.endswith(".")
        assert len(sentence) <= 200
    figures = FIGURE.findall(" ".join(story))
    assert len(figures) >= 2
    assert len(set(figures)) == len(figures), "a figure stands twice"
    output = printed(case, tmp_path)
    assert [figure for figure in figures if figure not in output] == []


@pytest.mark.parametrize("name", MEASURED)
def test_peaks_are_those_that_pytorch_measured(name: str) -> None:
    command = [PROGRAM, "summary", "--format", "json", DATA / f"gallery/{name}.pickle.gz"]
    text = subprocess.run(command, capture_output=True, check=True).stdout
    (device,) = json.loads(text)["files"][0]["devices"]
    bands = [band for band in MEASURED[name] if band.endswith("_bytes")]
    assert len(bands) == 4
    for band in bands:
        assert device[band]["peak"] == MEASURED[name][band]
