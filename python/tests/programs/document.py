"""Runs blocks of Python from a document, which standard input has as JSON, with what they name."""

import json
import pathlib
import sys

import torch

#: What a reader of the document has.
MODEL = """
import itertools, os, torch, vramscope

def build():
    model = torch.nn.Linear(64, 64).cuda()
    return model, torch.optim.AdamW(model.parameters())

def train(*built):
    model, optimizer = built[:2] or build()
    for _ in range(4):
        model(torch.randn(8, 64, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

rank, step = 0, 10
layer, optimizer = build()
model = torch.nn.Sequential(layer, torch.nn.Linear(64, 1)).cuda()
batch = torch.randn(1, 64, device="cuda")
"""
LIGHTNING = """
import functools, torch, vramscope
import lightning.pytorch as trainers
from lightning.pytorch import LightningModule
from vramscope.integrations.lightning import VramscopeCallback

class Model(LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(64, 64)

    def training_step(self, batch, index):
        return self.layer(batch[0]).square().mean()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())

rows = torch.utils.data.TensorDataset(torch.randn(32, 64))
data = torch.utils.data.DataLoader(rows, batch_size=8)
quiet = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False)
Trainer = functools.partial(
    trainers.Trainer,
    accelerator="gpu",
    devices=1,
    max_epochs=1,
    enable_model_summary=False,
    **quiet,
)
"""
TRANSFORMERS = """
import functools, torch, transformers, vramscope

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(64, 64)

    def forward(self, x, labels=None):
        return {"loss": self.layer(x).square().mean()}

model = Model()
rows = [{"x": torch.randn(64), "labels": torch.zeros(1)} for _ in range(32)]
arguments = transformers.TrainingArguments(
    output_dir="output", num_train_epochs=1, save_strategy="no", report_to=[], max_grad_norm=0.0,
    dataloader_pin_memory=False, disable_tqdm=True,
)
Trainer = functools.partial(transformers.Trainer, train_dataset=rows)
"""
ACCELERATE = """
from accelerate import Accelerator

accelerator, data = Accelerator(), None
"""
TITAN = """
def train_step(batch):
    train(layer, optimizer)

model_parts, optimizers, batches = [layer], [optimizer], [1, 2]
"""


def around(block: str) -> tuple[str, str]:
    """What a block needs before it, and the code that uses what it defines."""
    if "lightning" in block or "trainer.fit" in block:
        last = "trainer.fit(Model(), data)" if "trainer = " in block else ""
        if "class MemorySnapshot" in block:
            last = "Trainer(callbacks=[MemorySnapshot(1)]).fit(Model(), data)"
        return LIGHTNING, "" if "trainer.fit" in block else last
    if "transformers" in block:
        if "class MemorySnapshot" in block:
            return TRANSFORMERS, "Trainer(model, arguments, callbacks=[MemorySnapshot(1)]).train()"
        return TRANSFORMERS, "trainer.train()"
    if "accelerate" in block:
        return MODEL + ACCELERATE, ""
    if "torchtitan" in block:
        return MODEL + TITAN, ""
    if "def dump(" in block:
        return MODEL, "dump(3)"
    if "def dump_on_oom" in block:
        last = """
try:
    torch.empty(1 << 45, device="cuda")
except torch.OutOfMemoryError:
    print("out of memory", list(pathlib.Path().glob("oom*.pickle")))
"""
        return MODEL + "import pathlib\n", last
    return MODEL, ""


for number, block in enumerate(json.load(sys.stdin)):
    prelude, last = around(block)
    before = {path for path in pathlib.Path().rglob("*.pickle*")}
    names = {"__name__": "__main__"}
    exec(compile(prelude, f"prelude {number}", "exec"), names)
    exec(compile(block, f"block {number}", "exec"), names)
    exec(compile(last, f"use of {number}", "exec"), names)
    torch.cuda.memory._record_memory_history(enabled=None)
    print(len({path for path in pathlib.Path().rglob("*.pickle*")} - before))
