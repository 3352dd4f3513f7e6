"""Trains with the ``Trainer`` of Transformers."""

import os
import sys

import torch
from transformers import Trainer, TrainingArguments

import vramscope
from vramscope.integrations.transformers import VramscopeCallback


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(256, 256)

    def forward(self, x, labels=None):
        return {"loss": self.layer(x).square().mean()}


class Data(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 32

    def __getitem__(self, index: int):
        return {"x": torch.randn(256), "labels": torch.zeros(1)}


class Fails(Exception):
    pass


class Model2(Model):
    calls = 0

    def forward(self, x, labels=None):
        Model2.calls += 1
        if Model2.calls == 3:
            raise Fails("the model fails")
        return super().forward(x, labels)


arguments = TrainingArguments(
    output_dir=os.environ["RUN"] + "/output",
    per_device_train_batch_size=8,
    num_train_epochs=1,
    save_strategy="no",
    report_to=[],
    max_grad_norm=0.0,
    dataloader_pin_memory=False,
    disable_tqdm=True,
)
into = os.environ["RUN"]
options = {"every": 2}
if "--outside" in sys.argv:
    # The program begins to record before the model exists, and ends it.
    into, options = vramscope.record(into, every=2).start(), {}
trainer = Trainer(
    model=Model2() if "--fail" in sys.argv else Model(),
    args=arguments,
    train_dataset=Data(),
    callbacks=[VramscopeCallback(into, **options)],
)
trainer.train()
