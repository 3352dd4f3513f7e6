#!/usr/bin/env python3
"""What a dry run costs: its start, and a step of a model of 7 billion parameters.

dry_run.py --python PYTHON [--rounds N]

PYTHON has a PyTorch for CUDA. The package vramscope is imported from where Python finds it. Prints
the median of the rounds: the seconds of `import torch` alone and in a dry run, and the seconds and
the host's memory of a dry run of two training steps.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time

IMPORT = "import torch"
#: A Llama of 7 B, in bf16, with AdamW, on 2,048 tokens.
MODEL = """
import time, torch
from torch import nn
from torch.nn import functional as F
class Block(nn.Module):
    def __init__(self, d=4096, f=11008):
        super().__init__()
        self.a, self.b = nn.RMSNorm(d), nn.RMSNorm(d)
        self.qkv, self.o = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False)
        self.gate, self.up = nn.Linear(d, f, bias=False), nn.Linear(d, f, bias=False)
        self.down = nn.Linear(f, d, bias=False)
    def forward(self, x):
        n, t, d = x.shape
        parts = self.qkv(self.a(x)).split(d, 2)
        q, k, v = (p.view(n, t, 32, d // 32).transpose(1, 2) for p in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).reshape(n, t, d))
        h = self.b(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))
class Llama(nn.Module):
    def __init__(self, d=4096):
        super().__init__()
        self.e, self.n = nn.Embedding(32000, d), nn.RMSNorm(d)
        self.blocks = nn.ModuleList(Block() for _ in range(32))
        self.head = nn.Linear(d, 32000, bias=False)
    def forward(self, x):
        h = self.e(x)
        for block in self.blocks:
            h = block(h)
        return self.head(self.n(h))
model = Llama().to(torch.bfloat16).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(2):
    begin = time.time()
    x = torch.randint(0, 32000, (1, 2048), device="cuda")
    F.cross_entropy(model(x).float().view(-1, 32000), x.view(-1)).backward()
    optimizer.step()
    optimizer.zero_grad()
    print("step", time.time() - begin)
"""


def seconds(command, text):
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/program.py"
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        begin = time.perf_counter()
        ended = subprocess.run([*command, path], capture_output=True, text=True, check=False)
        if ended.returncode:
            sys.exit(ended.stderr)
        return time.perf_counter() - begin, ended.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        own = [sys.executable, "-m", "vramscope", "dry-run", "--python", options.python]
        own += ["-o", folder]
        alone, dry, whole, steps = [], [], [], []
        for _ in range(options.rounds):
            alone.append(seconds([options.python], IMPORT)[0])
            dry.append(seconds(own, IMPORT)[0])
            took, out = seconds(own, MODEL)
            whole.append(took)
            steps += [float(line.split()[1]) for line in out.splitlines() if line[:5] == "step "]
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    first, last = out.index("dry run of"), out.index("\n", out.index("dry run of"))
    print(f"import torch          {statistics.median(alone):6.2f} s")
    print(f"the same, dry         {statistics.median(dry):6.2f} s")
    print(f"two steps of 7 B      {statistics.median(whole):6.2f} s with the start and the answer")
    print(f"a step                {statistics.median(steps):6.2f} s")
    print(f"the host's memory     {most:6.2f} GiB at most")
    print(out[first:last])


if __name__ == "__main__":
    main()
