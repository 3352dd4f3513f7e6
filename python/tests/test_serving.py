"""The flags that are said of an inference engine start it, and it serves what they say. With two
percent more it runs out of memory.

Needs the installed package, and in ``VRAMSCOPE_TORCH`` a Python whose PyTorch is built for CUDA,
such as that of ``scripts/standin``.
"""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
import sys
from typing import Any

import pytest
from dry import PROGRAMS, TORCH, dry_run

pytestmark = pytest.mark.skipif(TORCH is None, reason="VRAMSCOPE_TORCH names no Python")

PROGRAM = str(PROGRAMS / "serving.py")
#: Flags of the first run: a guess.
GUESS, LENGTH, MOST = "0.7", 4096, 512
#: An engine that asks for more than the GPU has.
MORE = 1.02


class Run:
    """A dry run of the engine."""

    def __init__(self, folder: pathlib.Path, *flags: str, gpu: str = "H100") -> None:
        self.ended = dry_run("--gpu", gpu, "--no-holders", "-o", str(folder), PROGRAM, *flags)
        self.folder = folder

    def told(self, pattern: str) -> int | None:
        """A number that the engine wrote."""
        found = re.search(pattern, self.ended.stdout)
        return int(found[1].replace(",", "")) if found else None

    @property
    def tokens(self) -> int | None:
        return self.told(r"GPU KV cache size: ([\d,]+) tokens")

    @property
    def served(self) -> int | None:
        return self.told(r"served (\d+) sequences")

    def ask(self, *words: str) -> dict[str, Any]:
        """An answer about its recording, as the program prints it."""
        (path,) = self.folder.rglob("*.pickle")
        command = [sys.executable, "-m", "vramscope", words[0], str(path), "--format", "json"]
        ended = subprocess.run([*command, *words[1:]], capture_output=True, check=True)
        answer: dict[str, Any] = json.loads(ended.stdout)
        return answer


def first_run(folder: pathlib.Path, *flags: str) -> Run:
    run = Run(folder, *flags)
    assert run.ended.returncode == 0, run.ended.stderr
    assert run.served is not None and run.served < MOST, "its cache was the limit"
    return run


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Run:
    flags = ("--max-model-len", str(LENGTH), "--max-num-seqs", str(MOST))
    folder = tmp_path_factory.mktemp("recorded")
    return first_run(folder, "--gpu-memory-utilization", GUESS, *flags)


def serving(run: Run, *words: str) -> dict[str, Any]:
    said: dict[str, Any] = run.ask("what-if", "--cache-tokens", str(run.tokens), *words)["serving"]
    assert said["declined"] is None
    parts = sum(part["bytes"] for part in said["parts"])
    assert parts + said["kv_cache"] == said["device_memory"]
    return said


def more(flags: str) -> list[str]:
    """The flags with the first value larger."""
    name, value, *rest = flags.split()
    larger = float(value) * MORE
    return [name, f"{larger:.4f}" if larger < 2 else str(int(larger)), *rest]


def check(said: dict[str, Any], flags: str, folder: pathlib.Path) -> None:
    """The flags start the engine, which serves what is said. With more it runs out of memory."""
    run = Run(folder / "said", *flags.split())
    assert run.ended.returncode == 0, run.ended.stderr
    # A part of the GPU has three digits.
    is_exact = flags.startswith("--kv-cache-memory-bytes")
    assert run.served == pytest.approx(said["sequences"], abs=0 if is_exact else 1)
    run = Run(folder / "more", *more(flags))
    assert run.ended.returncode != 0
    assert "OutOfMemoryError" in run.ended.stderr


@pytest.mark.parametrize("name", ["--kv-cache-memory-bytes", "--gpu-memory-utilization"])
def test_the_flags_of_vllm_start_and_serve(
    recorded: Run, name: str, tmp_path: pathlib.Path
) -> None:
    said = serving(recorded)
    (flags,) = (flag["text"] for flag in said["flags"] if flag["text"].startswith(name))
    assert flags.endswith(f" --max-num-seqs {said['sequences']} --max-model-len {LENGTH}")
    check(said, flags, tmp_path)


def test_the_flags_of_sglang_start_and_serve(tmp_path: pathlib.Path) -> None:
    flags = ("--context-length", str(LENGTH), "--max-running-requests", str(MOST))
    run = first_run(tmp_path / "recorded", "--mem-fraction-static", GUESS, *flags)
    said = serving(run)
    assert said["recorded_flag"] == f"--mem-fraction-static {GUESS}"
    (flag,) = said["flags"]
    assert flag["text"].startswith("--mem-fraction-static ")
    check(said, flag["text"], tmp_path)


def test_the_flags_of_another_gpu_start_and_serve_there(
    recorded: Run, tmp_path: pathlib.Path
) -> None:
    said = serving(recorded, "--device-memory", "A100-40GB", "--length", "2048")
    flags = said["flags"][0]["text"].split()
    run = Run(tmp_path / "a", *flags, gpu="A100-40GB")
    assert run.ended.returncode == 0, run.ended.stderr
    assert run.served == said["sequences"]
    run = Run(tmp_path / "b", *more(said["flags"][0]["text"]), gpu="A100-40GB")
    assert "OutOfMemoryError" in run.ended.stderr


def test_the_first_words_are_the_share_and_the_flag(recorded: Run) -> None:
    device = json.loads(next(recorded.folder.rglob("*.vramscope.json")).read_text())["devices"][0]
    ledger = recorded.ask("peak", "--by", "pool")["ledger"]
    cache = sum(of["bytes"] for of in ledger["caches"])
    percent = round(100 * cache / device["total_bytes"])
    (headline,) = recorded.ask("diagnose")["headlines"]
    asked = f"as `--gpu-memory-utilization {GUESS}` asks"
    assert headline["text"].startswith(f"KV cache has {percent} % of the GPU, {asked}")
    assert ledger["serving"]["recorded_flag"] == f"--gpu-memory-utilization {GUESS}"


def test_python_answers_the_same(recorded: Run) -> None:
    import vramscope  # needs the part in Rust, which a skipped test has not

    (path,) = recorded.folder.rglob("*.pickle")
    answer = vramscope.open(path).what_if(cache_tokens=recorded.tokens, length=2048).serving
    said = serving(recorded, "--length", "2048")
    assert answer is not None
    assert (answer.kv_cache_bytes, answer.sequences) == (said["kv_cache"], said["sequences"])
    assert answer.flags == tuple(flag["text"] for flag in said["flags"])


def test_a_run_that_ran_out_has_no_flag(tmp_path: pathlib.Path) -> None:
    run = Run(tmp_path, "--gpu-memory-utilization", "0.999")
    assert "OutOfMemoryError" in run.ended.stderr
    said = run.ask("what-if")["serving"]
    assert said["flags"] == [] and "smaller cache" in said["declined"]
