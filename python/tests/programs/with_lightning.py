"""Trains with the ``Trainer`` of Lightning."""

import os
import sys

import torch
from lightning.pytorch import LightningModule, Trainer

import vramscope
from vramscope.integrations.lightning import VramscopeCallback


class Model(LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(256, 256)

    def training_step(self, batch, index):
        if index == 2 and "--fail" in sys.argv:
            raise RuntimeError("the model fails")
        return self.layer(batch[0]).square().mean()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())


data = torch.utils.data.TensorDataset(torch.randn(32, 256))
into = os.environ["RUN"]
options = {"every": 2}
if "--outside" in sys.argv:
    # The program begins to record before the model exists, and ends it.
    into, options = vramscope.record(into, every=2).start(), {}
trainer = Trainer(
    accelerator="gpu",
    devices=1,
    max_epochs=1,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    callbacks=[VramscopeCallback(into, **options)],
)
trainer.fit(Model(), torch.utils.data.DataLoader(data, batch_size=8))
