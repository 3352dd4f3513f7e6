"""What the operations of a traced step read and write, and what follows, in real programs.

Needs a PyTorch with CUDA, or one over the stand-in libraries of ``scripts/standin``:
``VRAMSCOPE_TORCH`` names its Python, ``VRAMSCOPE`` the program. Each program is recorded twice: as
it is, and with what is never read again dropped after its last use.
"""

import json
import os
import pathlib
import pickle
import subprocess

import pytest

PYTHON = os.environ.get("VRAMSCOPE_TORCH")
pytestmark = pytest.mark.skipif(PYTHON is None, reason="VRAMSCOPE_TORCH names no Python")

PACKAGE = pathlib.Path(__file__).parent.parent
PROGRAM = pathlib.Path(__file__).parent / "programs" / "uses.py"
MIB = 1 << 20
SNAPSHOT = "exit/rank0_memory_snapshot.pickle"
#: The dead bytes at the peak in MiB, by the mark of the line that makes them, and the operation
#: that uses them for the last time. The programs have 1,024 tokens and 8,192 words: logits of
#: 32 MiB in 32 bits, and 16 MiB of scores in each of four layers.
CASES = {
    # Those of this step and of the one before.
    "logits": {"logits": (64, "aten._log_softmax")},
    "copies": {
        "logits": (16, "aten._to_copy"),
        "wide": (32, "aten._log_softmax"),
        "copy": (32, "aten.clone"),
    },
    "attention": {"attention": (64, "aten._softmax")},
    "buffer": {"buffer": (32, "aten.mean")},
    "output": {"output": (64, "aten.clone")},
}


def run(*arguments: object, **environ: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [PYTHON, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(PACKAGE), "FAKECUDA_CAPACITY_MB": "4000", **environ},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )


def record(folder: pathlib.Path, *arguments: str) -> pathlib.Path:
    run("-m", "vramscope", "record", "-o", folder, "--use-step", 3, PROGRAM, *arguments)
    return folder / SNAPSHOT


def told(*arguments: object) -> dict:
    """What the program answers."""
    command = [os.environ["VRAMSCOPE"], *map(str, arguments), "--format", "json"]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)


def active_peak(snapshot: pathlib.Path) -> int:
    return told("peak", snapshot, "--band", "active_bytes")["total"]


def dead_of(uses: dict) -> int:
    return sum(share["bytes"] for share in uses["groups"] if share["group"] == "dead")


def line_of(mark: str) -> str:
    lines = PROGRAM.read_text().splitlines()
    (number,) = [n for n, line in enumerate(lines, 1) if line.endswith(f"# {mark}")]
    return f"uses.py:{number}"


@pytest.mark.parametrize("case", CASES)
def test_dead_bytes_are_those_that_were_planted(case: str, tmp_path: pathlib.Path) -> None:
    before = record(tmp_path / "before", case)
    uses = told("peak", before, "--by", "use")
    assert (uses["refused"], uses["step"], uses["exact"]) == (None, 3, True)
    dead = {
        row["site"].split()[0]: (row["bytes"] // MIB, row["last_operation"])
        for row in uses["rows"]
        if row["group"] == "dead" and row["bytes"] >= MIB
    }
    assert dead == {line_of(mark): planted for mark, planted in CASES[case].items()}
    assert uses["early_bytes"] == (24 * MIB if case == "buffer" else 0)
    assert sum(share["bytes"] for share in uses["groups"]) == uses["bytes"]

    # The program that drops them after their last use has exactly the peak that was predicted.
    after = record(tmp_path / "after", case, "del")
    apply = ",".join(f"last_use:{line_of(mark)}" for mark in CASES[case])
    (scenario,) = told("what-if", before, "--apply", apply)["scenarios"]
    assert scenario["declined"] is None
    assert scenario["active_peak"] == active_peak(after)
    changed = told("peak", after, "--by", "use")
    assert changed["floor"] == uses["floor"]
    assert dead_of(changed) == changed["bytes"] - changed["floor"] < 1024

    found = told("diagnose", before, "--all")["findings"]
    (finding,) = [one for one in found if one["kind"] == "dead_at_peak"]
    planted = sum(mib for mib, _ in CASES[case].values())
    assert finding["bytes"] // MIB == finding["saving_bytes"] // MIB == planted
    found = told("diagnose", after, "--all")["findings"]
    assert "dead_at_peak" not in {one["kind"] for one in found}


CODE = """
import gc, json, sys, torch, vramscope

def results(traced):
    torch.manual_seed(0)
    with vramscope.record(sys.argv[1]) as recorder:
        model = torch.nn.Linear(64, 64).cuda()
        before = torch.cuda.memory_allocated()
        if traced:
            with recorder.trace_use():
                body(model)
        else:
            body(model)
        model.weight.grad = model.bias.grad = None
        return torch.cuda.memory_allocated() - before, torch.cuda.max_memory_allocated()

def body(model):
    x = torch.randn(32, 64, device="cuda")
    y = model(x)
    with torch.no_grad():
        torch.add(y, 1, out=torch.empty_like(y))
    y.split(8)[0].square().sum().backward()
    try:
        y @ y
    except RuntimeError as error:
        assert "shapes cannot be multiplied" in str(error)

class Mine(torch.Tensor):
    calls = 0
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls += 1
        return super().__torch_function__(func, types, args, kwargs or {})

results(False)
torch.cuda.reset_peak_memory_stats()
plain = results(False)
torch.cuda.reset_peak_memory_stats()
assert results(True) == plain == (0, plain[1]), "tracing allocates nothing and keeps nothing"

with vramscope.record(sys.argv[1]) as recorder:
    mine = torch.randn(8, device="cuda").as_subclass(Mine)
    mine + 1
    one = Mine.calls
    with recorder.trace_use():
        mine + 1
    assert Mine.calls == 2 * one, "the code of the program runs as often as without"
    compiled = torch.compile(lambda x: (x * 2).relu(), backend="aot_eager")
    with recorder.trace_use():
        compiled(torch.randn(8, device="cuda", requires_grad=True)).sum().backward()
    # A mode of the program that is left later stays as it is.
    from torch.utils.flop_counter import FlopCounterMode
    counter = FlopCounterMode(display=False)
    counter.__enter__()
    with recorder.trace_use():
        torch.ones(8, 8, device="cuda") @ torch.ones(8, 8, device="cuda")
    counter.__exit__(None, None, None)
    assert counter.get_total_flops() == 2 * 8 * 8 * 8
    traced = recorder.trace_use()
    traced.__enter__()
    counter = FlopCounterMode(display=False)
    counter.__enter__()
    traced.__exit__(None, None, None)
    torch.ones(8, 8, device="cuda") @ torch.ones(8, 8, device="cuda")
    counter.__exit__(None, None, None)
    assert counter.get_total_flops() == 2 * 8 * 8 * 8
print("passed")
"""


def test_tracing_changes_nothing(tmp_path: pathlib.Path) -> None:
    ran = run("-c", CODE, tmp_path)
    assert ran.stdout == "passed\n", ran.stderr


STACKS = """
import sys, torch, vramscope

model = torch.nn.Linear(512, 512).cuda()
optimizer = torch.optim.AdamW(model.parameters())
with vramscope.record(sys.argv[1], use_step=2):
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(64, 512, device="cuda")).square().mean().backward()
        optimizer.step()
"""


def test_stacks_of_the_traced_step_are_those_of_other_steps(tmp_path: pathlib.Path) -> None:
    run("-c", STACKS, tmp_path)
    with (tmp_path / SNAPSHOT).open("rb") as file:
        events = pickle.load(file)["device_traces"][0]
    beside = json.loads((tmp_path / SNAPSHOT.replace(".pickle", ".vramscope.json")).read_text())
    begin, end = beside["uses"]["begin_us"], beside["uses"]["end_us"]

    def stacks(inside: bool) -> set:
        return {
            (event["size"], tuple((f["filename"], f["line"]) for f in event.get("frames", ())))
            for event in events
            if event["action"] == "alloc" and (begin <= event["time_us"] <= end) == inside
        }

    assert stacks(True)
    assert stacks(True) <= stacks(False)
    assert beside["uses"]["complete"] and beside["uses"]["step"] == 2


def test_a_long_trace_is_cut_and_says_nothing(tmp_path: pathlib.Path) -> None:
    code = f"from vramscope.recorder import uses; uses.MAX_OPERATIONS = 10\n{STACKS}"
    run("-c", code, tmp_path)
    uses = told("peak", tmp_path / SNAPSHOT, "--by", "use")
    assert uses["refused"] is not None and not uses["groups"]
    (scenario,) = told("what-if", tmp_path / SNAPSHOT, "--apply", "last_use:a.py:1")["scenarios"]
    assert scenario["declined"] == "no step was traced: record with --use-step"
