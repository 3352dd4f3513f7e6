"""What a traced step costs: a training step with and without `recorder.trace_use()`.

    PYTHONPATH=python LD_LIBRARY_PATH=FOLDER/fake FOLDER/venv/bin/python bench/uses.py

Kernels of the stand-in do nothing, so a step here is what Python and PyTorch do on the host. Steps
of both kinds take turns; the medians of their CPU time are printed, and what the recorder adds to
each operation.
"""

import json
import pathlib
import statistics
import tempfile
import time

import torch
from torch import nn

import vramscope

TURNS = 15


class Layer(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner, self.outer = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.outer(nn.functional.gelu(self.inner(self.norm(x))))


def main() -> None:
    for layers, foreach in ((12, False), (12, True), (96, True)):
        model = nn.Sequential(*(Layer(128) for _ in range(layers))).cuda()
        optimizer = torch.optim.AdamW(model.parameters(), foreach=foreach)
        inputs = torch.randn(64, 128, device="cuda")

        def step(model=model, optimizer=optimizer, inputs=inputs) -> float:
            begin = time.process_time()
            optimizer.zero_grad()
            model(inputs).square().mean().backward()
            optimizer.step()
            return time.process_time() - begin

        with tempfile.TemporaryDirectory() as folder:
            with vramscope.record(folder) as recorder:
                step()
                plain, traced = [], []
                for _ in range(TURNS):
                    plain.append(step())
                    with recorder.trace_use():
                        traced.append(step())
            (beside,) = pathlib.Path(folder).rglob("*.vramscope.json")
            text = beside.read_text()
        uses = json.loads(text)["uses"]
        operations = len(uses["operations"]) // 4
        size = len(json.dumps(uses, separators=(",", ":")))
        before, after = statistics.median(plain), statistics.median(traced)
        print(
            f"{layers} layers, foreach={foreach}: {operations:,} operations, "
            f"{before * 1e3:.1f} ms -> {after * 1e3:.1f} ms, "
            f"{(after - before) / operations * 1e6:.0f} us each, {size:,} bytes"
        )


if __name__ == "__main__":
    main()
