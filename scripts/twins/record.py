"""Records programs of many kinds, unchanged and with one change each.

    LD_LIBRARY_PATH=FOLDER/fake CUDA_MODULE_LOADING=LAZY FOLDER/venv/bin/python \
        scripts/twins/record.py OUT [PROGRAM ...]

FOLDER is what `scripts/standin/setup.sh` made. README.md says what OUT holds.
"""

import gzip
import json
import os
import pickle
import sys
import traceback

import torch

import train

MIB = 1 << 20
CONTEXT_MB = 500
CHANGES = {
    "batch:0.5": {"batch": 0.5},
    "batch:2": {"batch": 2.0},
    "sequence:2": {"sequence": 2.0},
    "accumulate:2": {"accumulate": 2},
    "checkpoint:all": {"checkpoint": "all"},
    "checkpoint:half": {"checkpoint": "half"},
    "chunked_loss:8": {"chunks": 8},
    "foreach:off": {"foreach": False},
    "optimizer:fused": {"optimizer": "fused"},
    "optimizer:sgd": {"optimizer": "sgd"},
    "optimizer:8bit": {"optimizer": "8bit"},
    "zero_grad:early": {"zero_grad": "early"},
    "zero_grad:late": {"zero_grad": "late"},
    "optimizer_in_backward": {"optimizer": "in_backward"},
    "params:bf16": {"dtype": "bfloat16", "autocast": False},
    "autocast:bf16": {"autocast": True},
    "autocast:off": {"autocast": False},
    "offload_activations": {"offload": True},
    "freeze:embedding": {"freeze": "embedding"},
    "freeze:lower": {"freeze": "lower"},
    "shard:2": {"shard": 2},
    "attention:flash": {"flash": True},
    "eval:no_grad": {"no_grad": True},
    "del:LOGITS": {"drop": True},
    "checkpoint:all,chunked_loss:8": {"checkpoint": "all", "chunks": 8},
    "set:expandable_segments:True": {},
}
COMMON = "batch:0.5 batch:2 sequence:2 accumulate:2 checkpoint:all checkpoint:half foreach:off " + (
    "optimizer:sgd offload_activations set:expandable_segments:True "
)
MORE = {
    "moe": "chunked_loss:8 optimizer:8bit optimizer_in_backward autocast:bf16 attention:flash "
    "zero_grad:early zero_grad:late shard:2 del:LOGITS params:bf16 checkpoint:all,chunked_loss:8",
    "vit": "optimizer:8bit optimizer:fused attention:flash eval:no_grad autocast:bf16 freeze:lower "
    "params:bf16 zero_grad:late",
    "mamba": "chunked_loss:8 optimizer:8bit optimizer_in_backward del:LOGITS freeze:embedding "
    "zero_grad:early",
    "seq2seq": "chunked_loss:8 optimizer:8bit attention:flash del:LOGITS params:bf16 "
    "freeze:embedding zero_grad:late checkpoint:all,chunked_loss:8",
    "multitask": "chunked_loss:8 optimizer:8bit eval:no_grad optimizer:fused freeze:lower "
    "zero_grad:early del:LOGITS attention:flash checkpoint:all,chunked_loss:8",
    "ddp": "chunked_loss:8 optimizer:8bit autocast:off zero_grad:early del:LOGITS attention:flash",
    "fsdp": "chunked_loss:8 optimizer:fused zero_grad:late del:LOGITS attention:flash "
    "checkpoint:all,chunked_loss:8",
}
ORDER_OF_COST = (
    "set:expandable_segments:True del:LOGITS zero_grad:early eval:no_grad foreach:off "
    "optimizer:fused accumulate:2 checkpoint:half chunked_loss:8 checkpoint:all "
    "optimizer_in_backward checkpoint:all,chunked_loss:8 offload_activations optimizer:8bit "
    "batch:0.75 batch:0.5"
).split()
CHANGES["batch:0.75"] = {"batch": 0.75}
# The phases for which a program's memory is made too small. Pieces that do not fit together can
# make it fail earlier.
FAILURES = {
    "moe": ["backward 0"],
    "vit": ["forward 2", "forward 0"],
    "mamba": ["backward 1"],
    "seq2seq": ["forward 1", "backward 0"],
    "multitask": ["backward 0"],
    "ddp": ["forward 1"],
    "fsdp": ["backward 1"],
}


class Meter:
    """Reads the peaks of each phase from PyTorch's statistics."""

    def __init__(self):
        self.phases, self.now = [], ("setup", 0)

    def close(self):
        """Ends the present phase."""
        s = torch.cuda.memory_stats()
        kinds = ("requested", "active", "allocated", "reserved")
        peak = {k: s[f"{k}_bytes.all.peak"] for k in kinds}
        self.phases.append({"phase": self.now[0], "step": self.now[1], **peak})
        torch.cuda.reset_peak_memory_stats()

    def __call__(self, phase, step):
        self.close()
        self.now = (phase, step)


def dump(path):
    """Writes a snapshot."""
    with gzip.GzipFile(path, "wb", 9, mtime=0) as f:
        f.write(pickle.dumps(torch.cuda.memory._snapshot()))


def child(o, path, settings):
    """Runs one program in this process. Returns what it measured."""
    torch.cuda.init()
    if settings:
        torch.cuda.memory._set_allocator_settings(settings)
    torch.cuda.memory._record_memory_history(max_entries=1_000_000, stacks="python")
    meter, failed, held = Meter(), None, []

    def out_of_memory(*_):
        if path and not held:
            held.append(True)
            dump(path)

    torch._C._cuda_attach_out_of_memory_observer(out_of_memory)
    try:
        train.train(o, meter)
    except torch.OutOfMemoryError as e:
        failed = {"phase": meter.now[0], "step": meter.now[1], "message": str(e)[:180]}
    else:
        if path:
            dump(path)
    if failed:
        meter.close()
    kinds = ("requested", "active", "allocated", "reserved")
    top = max(meter.phases, key=lambda p: p["active"])
    peak = {k: max(p[k] for p in meter.phases) for k in kinds}
    peak |= {"phase": top["phase"], "step": top["step"]}
    retries = torch.cuda.memory_stats()["num_alloc_retries"]
    return {"peak": peak, "failed": failed, "phases": meter.phases, "retries": retries}


def in_a_process(work):
    """Calls a function in a process of its own, which has not used the device yet. Returns what it
    returns, or None if it fails.
    """
    read, write = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(read)
            os.write(write, json.dumps(work()).encode())
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as f:
        text = f.read()
    os.waitpid(pid, 0)
    return json.loads(text) if text else None


def options_of(program, recipe):
    """Returns the options and the settings of a change: recipes, and settings after `set:`, with
    commas between them.
    """
    options, settings = dict(train.PROGRAMS[program][1]), []
    for part in filter(None, recipe.split(",")):
        if part.startswith("set:"):
            settings.append(part.removeprefix("set:"))
        else:
            options |= option(part)
    return options, ",".join(settings)


def option(recipe):
    """Returns the option of one recipe."""
    name, _, value = recipe.partition(":")
    if name in ("batch", "sequence"):
        return {name: float(value)}
    if name == "accumulate":
        return {name: int(value)}
    if name == "chunked_loss":
        return {"chunks": int(value)}
    return CHANGES["del:LOGITS" if name == "del" else recipe]


def run(program, recipe, path=None, memory_mb=None):
    """Runs a program with a change: recipes with commas between them, or settings after `set:`."""
    options, settings = options_of(program, recipe)

    def work():
        if memory_mb:
            os.environ["FAKECUDA_CAPACITY_MB"] = str(memory_mb + CONTEXT_MB)
        return child(train.Options(program=program, **options), path, settings)

    return in_a_process(work)


def named(recipe):
    """Returns the recipe and the settings of a change, as vramscope takes them."""
    if recipe.startswith("set:"):
        return "", recipe.removeprefix("set:")
    return recipe.replace("LOGITS", f"train.py:{train.logits_line()}"), ""


def changes_of(program):
    """Returns the changes that a program has, the cheapest first."""
    every = (COMMON + MORE[program]).split()
    if train.PROGRAMS[program][0].batch % 4 == 0:
        every.append("batch:0.75")
    return [c for c in ORDER_OF_COST if c in every], [c for c in every if c != "batch:0.75"]


def memory_for(base, failures):
    """Yields a memory in MiB for each phase that can be made to fail, from the peaks of `base`."""
    for want in failures:
        phase, step = want.split()
        before = 0
        for p in base["phases"]:
            if (p["phase"], p["step"]) == (phase, int(step)):
                if p["active"] > 1.04 * before:
                    share = 0.9 if want == "forward 0" else 0.5
                    yield int((before + share * (p["active"] - before)) / MIB) + 2
                break
            before = max(before, p["active"])


def record(out, program, manifest):
    """Records the program with all its changes, and out of memory."""
    os.makedirs(f"{out}/{program}", exist_ok=True)
    base_file = f"{program}/base.pickle.gz"
    base = run(program, "", f"{out}/{base_file}")
    costs, every = changes_of(program)
    for change in every:
        recipe, settings = named(change)
        name = change.replace("set:", "").replace(":True", "").replace(":", "_").replace(",", "+")
        file = f"{program}/{name}.pickle.gz"
        got = run(program, change, f"{out}/{file}")
        if got is None:
            print("cannot run", program, change)
            continue
        pair = {"program": program, "change": name, "recipe": recipe, "settings": settings}
        pair |= {"base": base_file, "file": file, "torch": torch.__version__}
        pair |= {"peak": got["peak"], "base_peak": base["peak"], "phases": got["phases"]}
        manifest["pairs"].append(pair | {"base_phases": base["phases"]})
    failures = 0
    for memory_mb in memory_for(base, FAILURES[program]):
        case = f"oom_{program}" + (f"_{failures + 1}" if failures else "")
        os.makedirs(f"{out}/{case}", exist_ok=True)
        got = run(program, "", f"{out}/{case}/base.pickle.gz", memory_mb)
        if got and got["failed"]:
            failures += 1
            manifest["oom"].append(failure(program, case, memory_mb, got["failed"], costs))
    if not failures:
        print("cannot fail", program)


def failure(program, case, memory_mb, failed, changes):
    """Returns a case of out of memory: which changes go through with that memory."""
    entry = {"case": case, "program": program, "base": f"{case}/base.pickle.gz"}
    entry |= {"torch": torch.__version__, "pytorch_memory": memory_mb * MIB}
    entry |= {"failed": failed, "smallest": None, "changes": []}
    for change in changes:
        recipe, settings = named(change)
        got = run(program, change, None, memory_mb)
        if got is None:
            continue
        fits = got["failed"] is None
        if fits and entry["smallest"] is None:
            entry["smallest"] = recipe or f"set:{settings}"
        row = {"recipe": recipe, "settings": settings, "cost": ORDER_OF_COST.index(change)}
        row |= {"fits": fits, "failed": got["failed"], "peak": got["peak"]}
        entry["changes"].append(row | {"retries": got["retries"]})
    return entry


def main():
    out, programs = sys.argv[1], sys.argv[2:] or list(train.PROGRAMS)
    os.makedirs(out, exist_ok=True)
    # Small copies to the host come back, as distributed data parallel needs.
    os.environ.setdefault("FAKECUDA_SHADOW", "1")
    path = f"{out}/manifest.json"
    manifest = {"pairs": [], "oom": []}
    if os.path.exists(path):
        with open(path) as f:
            manifest = json.load(f)
    for program in programs:
        for key in ("pairs", "oom"):
            manifest[key] = [x for x in manifest[key] if x["program"] != program]
        record(out, program, manifest)
        with open(path, "w") as f:
            json.dump(manifest | {"order_of_cost": ORDER_OF_COST}, f, indent=1)


if __name__ == "__main__":
    main()
