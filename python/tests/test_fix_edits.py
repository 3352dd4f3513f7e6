"""Edits of sources: the forms that people write."""

from __future__ import annotations

import pathlib
import subprocess
from typing import Any

import pytest

pytest.importorskip("libcst")

from vramscope.fix.edits import edit
from vramscope.fix.lever import Lever
from vramscope.fix.rewrite import Declined
from vramscope.fix.sources import Sources, write


def lever(name: str, path: pathlib.Path, line: int = 0, **fields: Any) -> Lever:
    recipe, _, value = name.partition(":")
    given: dict[str, Any] = {
        "name": name,
        "text": name,
        "recipe": recipe,
        "value": value,
        "conf": None,
        "file": str(path) if line else None,
        "line": line,
        "cures": None,
        "holders": (),
        "needs_bytes": 0,
        "outcome": None,
        "record": {"edit": None},
    }
    return Lever(**{**given, **fields})


def edited(path: pathlib.Path, text: str, name: str, line: int = 0, **fields: Any) -> str:
    """The text of a script after an edit."""
    path.write_text(text, encoding="utf-8")
    sources = Sources(path, [])
    edit(lever(name, path, line, **fields), sources)
    changes = sources.changes()
    assert [change.path for change in changes] == [path.resolve()]
    return changes[0].after


def difference(before: str, after: str) -> list[str]:
    """The lines that are gone, then those that are new, without blank ones."""
    old, new = before.splitlines(), after.splitlines()
    gone = [f"-{one}" for one in old if one and one not in new]
    return gone + [f"+{one}" for one in new if one and one not in old]


FORMS: list[tuple[str, str, int, dict[str, Any], str, list[str]]] = [
    (
        "an optimizer",
        "optimizer:fused",
        0,
        {},
        "import torch\nopt = torch.optim.AdamW(model.parameters(), lr=1e-3)\n",
        [
            "-opt = torch.optim.AdamW(model.parameters(), lr=1e-3)",
            "+opt = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)",
        ],
    ),
    (
        "an optimizer of another name, on several lines with a comma at the end",
        "foreach:off",
        0,
        {},
        "from torch import optim\nopt = optim.SGD(\n    model.parameters(),\n    lr=0.1,\n)\n",
        ["+    foreach=False,"],
    ),
    (
        "arguments of a dictionary stay last",
        "foreach:off",
        0,
        {},
        "from torch.optim import Adam as Best\nopt = Best(params, **options)\n",
        [
            "-opt = Best(params, **options)",
            "+opt = Best(params, foreach=False, **options)",
        ],
    ),
    (
        "states of 8 bits, without what bitsandbytes lacks",
        "optimizer:8bit",
        0,
        {},
        "import torch.optim as optim\nopt = optim.AdamW(p, lr=1e-3, fused=True, amsgrad=True)\n",
        [
            "-opt = optim.AdamW(p, lr=1e-3, fused=True, amsgrad=True)",
            "+import bitsandbytes",
            "+opt = bitsandbytes.optim.AdamW8bit(p, lr=1e-3, amsgrad=True)",
        ],
    ),
    (
        "the arguments of transformers' trainer",
        "optimizer:8bit",
        0,
        {},
        "from transformers import TrainingArguments\nargs = TrainingArguments('o', optim='sgd')\n",
        [
            "-args = TrainingArguments('o', optim='sgd')",
            "+args = TrainingArguments('o', optim=\"adamw_bnb_8bit\")",
        ],
    ),
    (
        "checkpoints by transformers' trainer",
        "checkpoint:all",
        0,
        {},
        "import transformers as tf\nargs = tf.TrainingArguments(output_dir='out')\n",
        [
            "-args = tf.TrainingArguments(output_dir='out')",
            "+args = tf.TrainingArguments(output_dir='out', gradient_checkpointing=True, "
            'gradient_checkpointing_kwargs={"use_reentrant": False})',
        ],
    ),
    (
        "half batches by transformers' trainer",
        "accumulate:2",
        0,
        {},
        "from trl import SFTConfig\nc = SFTConfig(per_device_train_batch_size=4)\n",
        [
            "-c = SFTConfig(per_device_train_batch_size=4)",
            "+c = SFTConfig(per_device_train_batch_size=2, gradient_accumulation_steps=2)",
        ],
    ),
    (
        "half batches by Lightning",
        "accumulate:2",
        0,
        {},
        "import lightning as L\nfrom torch.utils.data import DataLoader\n"
        "loader = DataLoader(data, batch_size=64, shuffle=True)\n"
        "trainer = L.Trainer(max_epochs=3)\n",
        [
            "-loader = DataLoader(data, batch_size=64, shuffle=True)",
            "-trainer = L.Trainer(max_epochs=3)",
            "+loader = DataLoader(data, batch_size=32, shuffle=True)",
            "+trainer = L.Trainer(max_epochs=3, accumulate_grad_batches=2)",
        ],
    ),
    (
        "half batches by accelerate",
        "accumulate:2",
        0,
        {},
        "from accelerate import Accelerator\nfrom torch.utils.data import DataLoader\n"
        "acc = Accelerator(gradient_accumulation_steps=2)\n"
        "loader = DataLoader(data, 8, shuffle=True, batch_size=16)\n"
        "for x in loader:\n    with acc.accumulate(model):\n        pass\n",
        [
            "-acc = Accelerator(gradient_accumulation_steps=2)",
            "-loader = DataLoader(data, 8, shuffle=True, batch_size=16)",
            "+acc = Accelerator(gradient_accumulation_steps=4)",
            "+loader = DataLoader(data, 8, shuffle=True, batch_size=8)",
        ],
    ),
    (
        "half batches by hand, with zero_grad() between and a scaler",
        "accumulate:2",
        4,
        {},
        "for x, y in loader:\n    x = x.cuda()\n    y = y.cuda()\n    out = model(x)\n"
        "    opt.zero_grad()\n    loss = crit(out, y)  # a comment\n"
        "    scaler.scale(loss).backward()\n    scaler.step(opt)\n",
        [
            "-    out = model(x)",
            "-    loss = crit(out, y)  # a comment",
            "-    scaler.scale(loss).backward()",
            "+    for x_part, y_part in zip(x.chunk(2), y.chunk(2)):",
            "+        out = model(x_part)",
            "+        loss = crit(out, y_part)",
            "+        scaler.scale((loss / 2)).backward()",
        ],
    ),
    (
        "a smaller batch of the loader that is shuffled",
        "batch:0.5",
        0,
        {},
        "from torch.utils.data import DataLoader\n"
        "train = DataLoader(a, batch_size=32, shuffle=True)\n"
        "test = DataLoader(b, batch_size=128)\n",
        [
            "-train = DataLoader(a, batch_size=32, shuffle=True)",
            "+train = DataLoader(a, batch_size=16, shuffle=True)",
        ],
    ),
    (
        "a smaller batch by the default of an option",
        "batch:0.5",
        0,
        {},
        "p.add_argument('-b', '--batch-size', type=int, default=64)\n",
        [
            "-p.add_argument('-b', '--batch-size', type=int, default=64)",
            "+p.add_argument('-b', '--batch-size', type=int, default=32)",
        ],
    ),
    (
        "a smaller batch by the shapes of what a loop makes",
        "batch:0.5",
        4,
        {},
        "import torch\nfor step in range(9):\n    x, y = torch.rand(8, 3), torch.randint(5, (8,))\n"
        "    loss = f(m(x), y)\n",
        [
            "-    x, y = torch.rand(8, 3), torch.randint(5, (8,))",
            "+    x, y = torch.rand(4, 3), torch.randint(5, (4,))",
        ],
    ),
    (
        "blocks in a loop, with arguments by name",
        "checkpoint:all",
        3,
        {},
        "import torch\nfor i, block in enumerate(self.blocks):\n    x = block(x, mask=mask)\n",
        [
            "-    x = block(x, mask=mask)",
            "+from torch.utils.checkpoint import checkpoint",
            "+    x = checkpoint(block, x, mask=mask, use_reentrant=False)",
        ],
    ),
    (
        "every other block",
        "checkpoint:half",
        2,
        {},
        "for layer in layers:\n    x = layer(x)\n",
        [
            "-for layer in layers:",
            "-    x = layer(x)",
            "+from torch.utils.checkpoint import checkpoint",
            "+for block_index, layer in enumerate(layers):",
            "+    x = (checkpoint(layer, x, use_reentrant=False) if block_index % 2 == 0 "
            "else layer(x))",
        ],
    ),
    (
        "blocks of a Sequential: their class",
        "checkpoint:all",
        4,
        {},
        "from torch import nn\nclass Block(nn.Module):\n    def forward(self, x):\n"
        "        return x + self.mlp(x)\n",
        [
            "+from torch.utils.checkpoint import checkpoint",
            "+        return checkpoint(self._forward, x, use_reentrant=False)",
            "+    def _forward(self, x):",
        ],
    ),
    (
        "saved activations, on a line with others",
        "offload_activations",
        3,
        {},
        "import torch\nfor x in data:\n    loss = model(x).mean(); loss.backward(); opt.step()\n",
        [
            "-    loss = model(x).mean(); loss.backward(); opt.step()",
            "+    with torch.autograd.graph.save_on_cpu(pin_memory=True):",
            "+        loss = model(x).mean()",
            "+    loss.backward()",
            "+    opt.step()",
        ],
    ),
    (
        "an evaluation in a loop without a block of its own",
        "eval:no_grad",
        2,
        {},
        "import torch\nfor x in data: losses.append(model(x).item())\n",
        [
            "-for x in data: losses.append(model(x).item())",
            "+for x in data:",
            "+    with torch.no_grad():",
            "+        losses.append(model(x).item())",
        ],
    ),
    (
        "gradients that are zeroed before backward",
        "zero_grad:early",
        0,
        {},
        "for x in data:\n    loss = model(x)\n    opt.zero_grad(set_to_none=False)\n"
        "    loss.backward()\n    opt.step()\n    sched.step()\n",
        [
            "-    opt.zero_grad(set_to_none=False)",
            "+    opt.zero_grad(set_to_none=True)",
        ],
    ),
    (
        "a queue without a bound",
        "",
        0,
        {"recipe": None, "cures": "peak_cause", "holders": ("ready.queue",)},
        "import queue\nready = queue.Queue()\n",
        ["-ready = queue.Queue()", "+ready = queue.Queue(maxsize=2)"],
    ),
    (
        "views of buckets",
        "",
        0,
        {"recipe": None, "cures": "buckets"},
        "from torch.nn.parallel import DistributedDataParallel as DDP\nm = DDP(m, static=1)\n",
        [
            "-m = DDP(m, static=1)",
            "+m = DDP(m, static=1, gradient_as_bucket_view=True)",
        ],
    ),
    (
        "a list that keeps a tensor of a tuple",
        "del:a.py:3",
        0,
        {"holders": ("log.kept",)},
        "class Log:\n    def add(self, step, value):\n"
        "        self.kept[step].append((step, value.detach().clone()))\n",
        [
            "-        self.kept[step].append((step, value.detach().clone()))",
            "+        self.kept[step].append((step, value.detach().clone().cpu()))",
        ],
    ),
    (
        "lists that one block fills",
        "del:a.py:2",
        0,
        {"holders": ("outs",)},
        "for x, y in data:\n    outs.append(model(x))\n    targets.append(y)\n    n.append(1)\n",
        [
            "-    outs.append(model(x))",
            "-    targets.append(y)",
            "+    outs.append(model(x).detach().cpu())",
            "+    targets.append(y.detach().cpu())",
        ],
    ),
    (
        "a running sum",
        "del:a.py:2",
        0,
        {"holders": ("total",)},
        "for x in data:\n    total += model(x) / 2\n    loss.backward()\n",
        ["-    total += model(x) / 2", "+    total += (model(x) / 2).detach()"],
    ),
    (
        "a cache that only grows",
        "drop",
        0,
        {"recipe": None, "holders": ("masks",)},
        "def mask(n):\n    if n not in masks:\n        masks[n] = make(n)\n    return masks[n]\n",
        ["+        if len(masks) >= 8:", "+            masks.clear()"],
    ),
    (
        "a function of rows",
        "in_parts:4",
        3,
        {},
        "import torch\ndef scores(logits, ids):\n    p = torch.exp(logits - logits.amax(-1))\n"
        "    return p.gather(-1, ids[..., None])[..., 0]\n",
        [
            "+def scores_of_part(logits, ids):",
            "+    parts = [scores_of_part(logits_part, ids_part) for logits_part, ids_part in "
            "zip(logits.chunk(4), ids.chunk(4))]",
            "+    return torch.cat(parts)",
        ],
    ),
]


@pytest.mark.parametrize(
    ("name", "line", "fields", "text", "expected"),
    [form[1:] for form in FORMS],
    ids=[form[0] for form in FORMS],
)
def test_a_form_is_edited(
    tmp_path: pathlib.Path,
    name: str,
    line: int,
    fields: dict[str, Any],
    text: str,
    expected: list[str],
) -> None:
    after = edited(tmp_path / "a.py", text, name, line, **fields)
    assert difference(text, after) == expected


REFUSED = [
    (
        "two optimizers",
        "foreach:off",
        0,
        {},
        "import torch\na = torch.optim.SGD(p)\nb = torch.optim.SGD(q)\n",
    ),
    ("another optimizer", "optimizer:sgd", 0, {}, "import torch\na = torch.optim.AdamW(p)\n"),
    (
        "gradients that are read",
        "zero_grad:early",
        0,
        {},
        "for x in d:\n    o.zero_grad()\n    l.backward()\n    o.step()\n    print(p.grad)\n",
    ),
    (
        "a sum of losses",
        "accumulate:2",
        2,
        {},
        "for x in d:\n    loss = model(x.cuda()).sum()\n    loss.backward()\n",
    ),
    (
        "a kept loss that backward needs",
        "del:a.py:2",
        0,
        {"holders": ("kept",)},
        "for x in d:\n    kept.append(m(x))\nloss = sum(kept)\nloss.backward()\n",
    ),
    (
        "a list of skip connections",
        "drop",
        0,
        {"recipe": None, "holders": ("hs",)},
        "class Net:\n    def forward(self, x):\n        hs = []\n        hs.append(x)\n"
        "        return torch.cat([x, hs.pop()])\n",
    ),
    (
        "a function of all rows",
        "in_parts:2",
        3,
        {},
        "import torch\ndef f(x):\n    y = x - x.mean(0)\n    return y\n",
    ),
    (
        "a line of a package",
        "offload_activations",
        2,
        {"file": "/usr/lib/other.py"},
        "loss = f(x)\nloss.backward()\n",
    ),
    (
        "no number",
        "batch:0.5",
        0,
        {},
        "from torch.utils.data import DataLoader\nl = DataLoader(d, batch_size=n)\n",
    ),
]


@pytest.mark.parametrize(
    ("name", "line", "fields", "text"),
    [one[1:] for one in REFUSED],
    ids=[one[0] for one in REFUSED],
)
def test_what_is_not_certain_is_refused(
    tmp_path: pathlib.Path, name: str, line: int, fields: dict[str, Any], text: str
) -> None:
    path = tmp_path / "a.py"
    path.write_text(text, encoding="utf-8")
    sources = Sources(path, [])
    with pytest.raises(Declined):
        edit(lever(name, path, line, **fields), sources)


def test_an_option_of_the_program_is_no_edit(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("print()\n", encoding="utf-8")
    sources = Sources(path, ["--lr", "3", "--batch-size", "24"])
    edit(lever("batch:0.5", path), sources)
    assert sources.arguments == ["--lr", "3", "--batch-size", "12"]
    assert sources.changes() == []


def test_modules_below_the_folder_belong_to_the_program(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "run"
    (folder / "net").mkdir(parents=True)
    (tmp_path / "outside.py").write_text("import torch\no = torch.optim.SGD(p)\n")
    (folder / "net" / "__init__.py").write_text("from . import parts\n")
    (folder / "net" / "parts.py").write_text("import torch\no = torch.optim.SGD(p)\n")
    (folder / "link.py").symlink_to(tmp_path / "outside.py")
    (folder / "unused.py").write_text("import torch\no = torch.optim.SGD(p)\n")
    script = folder / "a.py"
    script.write_text("import net, link, outside, torch\n")
    sources = Sources(script, [])
    names = sorted(str(path.relative_to(folder.resolve())) for path in sources.files)
    assert names == ["a.py", "net/__init__.py", "net/parts.py"]
    edit(lever("foreach:off", script), sources)
    assert [change.path.name for change in sources.changes()] == ["parts.py"]
    # What a recording names is compared with these files, whatever its path leads to.
    assert sources.find(str(folder / "net" / ".." / "a.py")) == script.resolve()
    assert sources.find(str(folder / "link.py")) is None
    assert sources.find("/elsewhere/parts.py") is None


def test_a_diff_applies_and_keeps_line_ends(tmp_path: pathlib.Path) -> None:
    def git(*words: str) -> subprocess.CompletedProcess[bytes]:
        own = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words]
        return subprocess.run(own, cwd=tmp_path, capture_output=True, check=False)

    git("init", "-q")
    script = tmp_path / "a.py"
    text = "import torch\r\no = torch.optim.SGD(p)\r\nprint(o)"
    script.write_bytes(text.encode())
    git("add", "a.py")
    git("commit", "-qm", "first")
    sources = Sources(script, [])
    edit(lever("foreach:off", script), sources)
    changes = sources.changes()
    diff = sources.diff(changes, tmp_path.resolve())
    (tmp_path / "change.diff").write_bytes(diff.encode())
    applied = git("apply", "change.diff")
    assert applied.returncode == 0, applied.stderr
    wanted = text.replace("SGD(p)", "SGD(p, foreach=False)").encode()
    assert script.read_bytes() == wanted

    # It is not written over changes that no commit has.
    with pytest.raises(Declined, match="changed meanwhile"):
        write(changes, force=True)
    script.write_bytes(text.encode() + b"\r\n")
    sources = Sources(script, [])
    edit(lever("foreach:off", script), sources)
    with pytest.raises(Declined, match="without a commit"):
        write(sources.changes(), force=False)
    write(sources.changes(), force=True)
    assert script.read_bytes() == wanted + b"\r\n"
