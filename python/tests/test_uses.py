"""What the operations of a traced step read and write, and what follows, in real programs.

Most tests need a PyTorch with CUDA, or one over the stand-in libraries of ``scripts/standin``:
``VRAMSCOPE_TORCH`` names its Python, ``VRAMSCOPE`` the program. Each program is recorded twice: as
it is, and with what is never read again dropped after its last use. The tests of blocks also run
over ``stand_in/torch.py``.
"""

import json
import os
import pathlib
import pickle
import subprocess
import sys

import pytest

PYTHON = os.environ.get("VRAMSCOPE_TORCH")
needs_torch = pytest.mark.skipif(PYTHON is None, reason="VRAMSCOPE_TORCH names no Python")

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


@needs_torch
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
    assert finding["bytes"] // MIB == planted
    # Rests of blocks that are not split may be saved with them.
    saved = active_peak(before) - active_peak(after)
    assert planted * MIB <= finding["saving_bytes"] and abs(finding["saving_bytes"] - saved) < 1024
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
    # Tensors without memory, as PyTorch makes them itself for tensors over several ranks.
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.distributed.tensor import DTensor, Replicate, init_device_mesh
    from torch.testing._internal.distributed.fake_pg import FakeStore
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
    with recorder.trace_use():
        with FakeTensorMode():
            torch.empty(8, device="cuda").exp()
        mesh = init_device_mesh("cuda", (2,))
        rows = DTensor.from_local(torch.ones(8, 8, device="cuda"), mesh, [Replicate()])
        rows @ rows
    beside = recorder.dump().with_name("rank0_memory_snapshot.vramscope.json")
    uses = json.loads(beside.read_text())["uses"]
    assert uses["complete"] and uses["names"] == ["aten.ones", "aten.mm"], uses
    # A trace that ended below a mode of the program, which is left when something is compiled.
    traced = recorder.trace_use()
    traced.__enter__()
    counter = FlopCounterMode(display=False)
    counter.__enter__()
    traced.__exit__(None, None, None)
    del traced
    counter.__exit__(None, None, None)
    compiled = torch.compile(lambda x: (x * 3).relu(), backend="aot_eager")
    compiled(torch.ones(8, device="cuda", requires_grad=True)).sum().backward()
    recorder.step()
    assert torch._C._len_torch_dispatch_stack() == 0
    # Blocks within backward, and one that ends there.
    def within(gradient):
        with recorder.trace_use():
            return gradient.neg()
    def ends(gradient):
        traced.__exit__(None, None, None)
    for hook in (within, ends):
        traced = recorder.trace_use()
        if hook is ends:
            traced.__enter__()
        x = torch.ones(8, device="cuda", requires_grad=True)
        x.register_hook(hook)
        (x * 2).sum().backward()
    recorder.step()
    assert torch._C._len_torch_dispatch_stack() == 0
print("passed")
"""


@needs_torch
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


@needs_torch
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


@needs_torch
def test_a_long_trace_is_cut_and_says_nothing(tmp_path: pathlib.Path) -> None:
    code = f"from vramscope.recorder import uses; uses.MAX_OPERATIONS = 10\n{STACKS}"
    run("-c", code, tmp_path)
    uses = told("peak", tmp_path / SNAPSHOT, "--by", "use")
    assert uses["refused"] is not None and not uses["groups"]
    (scenario,) = told("what-if", tmp_path / SNAPSHOT, "--apply", "last_use:a.py:1")["scenarios"]
    assert scenario["declined"] == "no step was traced: record with --use-step"


NOT_TRACED = "uses of memory are not traced: "
ANOTHER = f"{NOT_TRACED}another trace_use is running, or the step of use_step"
#: What programs/traces.py prints, and what is logged.
BLOCKS = {
    "nested": (["neg exp abs True"], [ANOTHER]),
    "one_object": (["neg exp abs True", "abs True"], [ANOTHER]),
    "in_use_step": (["neg exp abs True"], [ANOTHER]),
    "around_use_step": (["neg exp abs True"], [ANOTHER]),
    "two_recorders": (["neg exp True", "none"], [ANOTHER]),
    "error": (["the program's own", "neg False", "exp True"], []),
    "failing_operation": (["failed", "neg mm True"], []),
    "unfinished_step": (["neg False"], []),
    "stopped": (["neg False", "none"], []),
    "generator finished": (["neg abs exp True", "abs True"], []),
    "generator closed": (["neg abs False", "abs True"], []),
    "generator dropped": (["neg abs False", "abs True"], []),
    "generator elsewhere": (["neg abs False", "abs True"], []),
    "generator collected": (["neg abs False", "abs True"], []),
    "generator suspended": (["none", "none", "neg abs abs False"], [ANOTHER]),
    "threads": (["neg abs True"], [ANOTHER]),
    "tasks": (["neg exp neg exp True", "True"], [ANOTHER]),
    "cancelled": (["neg False"], []),
    "crossing_mode": (["3", "neg exp True", "abs True"], [f"{NOT_TRACED}a dispatch mode is on"]),
    "forked": (["0", "0", "neg True"], []),
    "interrupted": (["the program's own", "False"], []),
}


def run_block(folder: pathlib.Path, case: str) -> tuple[list[str], list[str]]:
    paths = [PACKAGE] if PYTHON else [PACKAGE, PACKAGE / "tests/stand_in"]
    ran = subprocess.run(
        [PYTHON or sys.executable, PACKAGE / "tests/programs/traces.py", *case.split()],
        env={**os.environ, "RUN": str(folder), "PYTHONPATH": os.pathsep.join(map(str, paths))},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    logged = [one for one in ran.stderr.splitlines() if not one.startswith("frees show the stack")]
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines(), logged


@pytest.mark.parametrize("case", BLOCKS)
def test_a_trace_is_complete_only_if_all_of_its_block_was_traced(
    case: str, tmp_path: pathlib.Path
) -> None:
    assert run_block(tmp_path, case) == BLOCKS[case]


def test_one_trace_runs_at_a_time_in_many_threads(tmp_path: pathlib.Path) -> None:
    told, logged = run_block(tmp_path, "many_threads")
    assert told == ["neg True"]
    assert set(logged) <= {ANOTHER}
