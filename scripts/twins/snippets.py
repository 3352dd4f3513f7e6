"""Runs the snippets that vramscope shows with a change, and compares their effect with the answer.

    LD_LIBRARY_PATH=FOLDER/fake CUDA_MODULE_LOADING=LAZY FOLDER/venv/bin/python \
        scripts/twins/snippets.py OUT VRAMSCOPE [RECIPE ...]

FOLDER is what `scripts/standin/setup.sh` made. `small.py` is recorded, then vramscope is asked for
each recipe. The snippet of its answer is put into the program as it stands, in place of the line
with the recipe's mark, and the edited program is recorded. The line that vramscope names must have
a mark, too. OUT has the programs and recordings.
"""

import json
import os
import re
import subprocess
import sys
import types
from pathlib import Path

import torch
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore

import record
import train

HERE = Path(__file__).parent
BF16 = "with torch.autocast('cuda', dtype=torch.bfloat16):\n    loss = model(inputs, targets)"
# The programs that are recorded unchanged: `small.py`, and what is different in its lines.
BASES = {
    "small": ("small.py", {}),
    "autocast": ("small.py", {"forward": BF16}),
    "bf16": (
        "small.py",
        {
            "model": "model = Model().cuda().bfloat16()",
            "loss": "loss = F.cross_entropy(logits.float(), target)",
        },
    ),
    "keep": ("small.py", {"forward": "loss, result = model(inputs, targets, keep=True)"}),
    "transformers": ("small_transformers.py", {}),
}
# Recipe, program, the mark of the line that vramscope names, that of the line which the snippet
# replaces, and lines that go. `+` puts the snippet after the line, `-` before it.
EDITS = [
    ("checkpoint:all", "small", "checkpoint", "checkpoint", ""),
    ("checkpoint:half", "small", "checkpoint", "checkpoint", ""),
    ("checkpoint:all", "transformers", "forward", "+model", ""),
    ("chunked_loss:8", "small", "loss", "loss", "head"),
    ("chunked_loss:4", "autocast", "loss", "loss", "head"),
    ("upcast:off", "bf16", "loss", "loss", ""),
    ("attention:flash", "small", "attention", "attention", ""),
    ("attention:flash", "transformers", "forward", "+model", ""),
    ("foreach:off", "small", "step", "optimizer", ""),
    ("optimizer:fused", "small", "step", "optimizer", ""),
    ("optimizer:sgd", "small", "step", "optimizer", ""),
    ("optimizer:8bit", "small", "step", "optimizer", ""),
    ("optimizer:adafactor", "small", "step", "optimizer", ""),
    ("optimizer:muon", "small", "step", "optimizer", ""),
    ("zero_grad:early", "small", "step", "step", "zero_grad"),
    ("zero_grad:late", "small", "step", "backward", "zero_grad"),
    ("optimizer_in_backward", "small", "step", "optimizer", "zero_grad step"),
    ("accumulate:2", "small", "forward", "forward", "backward"),
    ("accumulate:4", "small", "forward", "forward", "backward"),
    ("batch:0.5", "small", "forward", "-data", ""),
    ("batch:2", "small", "forward", "-data", ""),
    ("sequence:0.5", "small", "forward", "-data", ""),
    ("sequence:2", "small", "forward", "-data", ""),
    ("eval_batch:0.5", "small", "eval", "eval_loader", ""),
    ("eval:no_grad", "small", "eval", "eval", ""),
    ("offload_activations", "small", "forward", "forward", ""),
    ("del:SITE", "keep", "head", "backward", ""),
    ("params:bf16", "small", "model", "+model", ""),
    ("autocast_cache:off", "autocast", "forward", "forward", ""),
    ("freeze:embedding", "small", "model", "optimizer", ""),
    ("shard:2", "small", "model", "+model", ""),
]
# Without a measured error, in percent.
NOT_MEASURED = 10
MARK = re.compile(r"# edit: (\w+)$")


class AdamW8bit(train.Adam8bit):
    """What `bitsandbytes` allocates: its kernels need a device."""

    def __init__(self, parameters, lr):
        super().__init__(parameters)


def marked(lines, mark):
    """Returns the indices of the lines with a mark."""
    of = [i for i, line in enumerate(lines) if (m := MARK.search(line)) and m[1] == mark]
    assert of, mark
    return of


def replaced(lines, mark, text):
    """Returns lines with a text in place of those with a mark, after or before the marked ones."""
    name = mark.lstrip("+-")
    at = marked(lines, name)
    # A text in place of the evaluation's call leaves the lines before it.
    at = at[-1:] if name == "eval" else at
    indent = re.match(" *", lines[at[0]])[0]
    # A variant's lines keep the mark.
    new = [indent + line if line else line for line in text.split("\n")]
    keep = [lines[i] for i in at]
    middle = keep + new if mark[0] == "+" else new + keep if mark[0] == "-" else new
    return lines[: at[0]] + middle + lines[at[-1] + 1 :]


def program_of(base):
    """Returns the lines of an unchanged program."""
    file, edits = BASES[base]
    lines = (HERE / file).read_text().splitlines()
    for mark, text in edits.items():
        text = "\n".join(f"{line}  # edit: {mark}" for line in text.split("\n"))
        lines = replaced(lines, mark, text)
    return lines


def child(path, recording, is_sharded):
    """Runs a program in this process, and writes its recording."""
    sys.modules["bitsandbytes"] = types.SimpleNamespace(
        optim=types.SimpleNamespace(AdamW8bit=AdamW8bit)
    )
    if is_sharded:
        dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
    torch.cuda.init()
    torch.cuda.memory._record_memory_history(max_entries=1_000_000, stacks="python")
    code = compile(path.read_text(), str(path), "exec")
    exec(code, {"__name__": "__main__"})
    record.dump(recording)
    return {"active": torch.cuda.memory_stats()["active_bytes.all.peak"]}


def recorded(out, name, lines, is_sharded=False):
    """Writes a program, runs it, and returns its recording and its peak."""
    folder = out / re.sub(r"\W+", "_", name)
    folder.mkdir(parents=True, exist_ok=True)
    path, recording = folder / "train.py", folder / "run.pickle.gz"
    path.write_text("\n".join(lines) + "\n")
    got = record.in_a_process(lambda: child(path, str(recording), is_sharded))
    return recording, got and got["active"]


def ask(program, recording, recipe):
    """Returns the scenario of a recipe."""
    command = [program, "what-if", str(recording), "--apply", recipe, "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["scenarios"][0]


def line_of(edit, lines):
    """Returns the mark of the line that an edit names."""
    file, _, line = (edit["place"] or "").rpartition(":")
    found = MARK.search(lines[int(line) - 1]) if file == "train.py" else None
    return found and found[1]


def main():
    out, program, only = Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    os.environ.setdefault("FAKECUDA_SHADOW", "1")
    bases, wrong = {}, []
    print(f"{'recipe':26} {'program':13} {'before':>8} {'predicted':>9} {'measured':>8}  error")
    for recipe, base, place, mark, gone in EDITS:
        if only and recipe not in only:
            continue
        lines = program_of(base)
        if base not in bases:
            bases[base] = recorded(out, base, lines)
        recording, before = bases[base]
        if recipe == "del:SITE":
            recipe = f"del:train.py:{marked(lines, 'head')[0] + 1}"
        said = ask(program, recording, recipe)
        if said["declined"]:
            wrong.append(f"{recipe} {base}: {said['declined']}")
            continue
        edit = said["edits"][0] if said["edits"] else {"snippet": "pass", "place": None}
        if line_of(edit, lines) != place:
            wrong.append(f"{recipe} {base}: names {edit['place']}, expected a line with {place}")
        # `muon` makes a second optimizer.
        for other in gone.split():
            lines = replaced(lines, other, "pass")
        lines = replaced(lines, mark, edit["snippet"])
        if recipe == "optimizer:muon":
            lines = replaced(lines, "+step", "muon.step(), muon.zero_grad()")
        _, after = recorded(out, f"{base}+{recipe}", lines, recipe.startswith("shard"))
        if after is None:
            wrong.append(f"{recipe} {base}: the edited program does not run")
            continue
        error = 100 * (said["active_peak"] / after - 1)
        allowed = said["error_percent"] or NOT_MEASURED
        mib = [f"{b / record.MIB:.1f}" for b in (before, said["active_peak"], after)]
        print(f"{recipe:26} {base:13} {mib[0]:>8} {mib[1]:>9} {mib[2]:>8} {error:+6.2f} %")
        if abs(error) > allowed:
            wrong.append(f"{recipe} {base}: {error:+.1f} %, expected at most {allowed} %")
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
