"""An inference engine in small: weights, profile run, KV cache, captured decode steps, requests.

``engine.py OUT`` writes ``OUT.pickle`` and ``OUT.stats.json``: what PyTorch itself says after each
phase and each capture. ``engine.py OUT own`` captures each graph into a pool of its own,
``engine.py OUT ascending`` the smallest batch first.
"""

import json
import sys

import torch
from torch import nn

LAYERS, WIDTH, HEADS, VOCABULARY = 4, 1024, 8, 16000
BATCH_SIZES = [64, 48, 32, 24, 16, 8, 4, 1]
BLOCKS, BLOCK_SIZE = 1024, 16


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, hidden, cache):
        query, key, value = self.qkv(self.norm(hidden)).chunk(3, dim=-1)
        if cache is not None:
            tokens = hidden.shape[0]
            cache[0].view(-1, WIDTH)[:tokens].copy_(key)
            cache[1].view(-1, WIDTH)[:tokens].copy_(value)
        scores = torch.softmax(query @ key.T, dim=-1)
        hidden = hidden + self.out(scores @ value)
        return hidden + self.down(nn.functional.gelu(self.up(hidden)))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens, caches):
        hidden = self.embed(tokens)
        for layer, cache in zip(self.layers, caches, strict=True):
            hidden = layer(hidden, cache)
        return self.head(hidden)


class Engine:
    def __init__(self, shares_pool, sizes):
        self.shares_pool = shares_pool
        self.sizes = sizes
        self.caches = [None] * LAYERS
        self.graphs = {}
        self.told = []

    def tell(self, phase):
        """Notes what PyTorch says now."""
        pools = {}
        for segment in torch.cuda.memory_snapshot():
            of_pool = pools.setdefault(str(tuple(segment["segment_pool_id"])), [0, 0])
            of_pool[0] += segment["total_size"]
            of_pool[1] += segment["active_size"]
        stats = torch.cuda.memory_stats()
        names = ("reserved", "active", "allocated", "requested")
        self.told.append(
            {
                "phase": phase,
                "pools": {name: {"reserved": r, "active": a} for name, (r, a) in pools.items()},
                **{f"{name}_bytes": stats[f"{name}_bytes.all.current"] for name in names},
            }
        )

    def load_model(self):
        self.model = Model().half().cuda()

    def profile_run(self):
        self.model(torch.zeros(2048, dtype=torch.int64, device="cuda"), self.caches)

    def initialize_kv_cache(self):
        shape = (2, BLOCKS, BLOCK_SIZE, WIDTH)
        self.caches = [
            torch.zeros(shape, dtype=torch.float16, device="cuda") for _ in range(LAYERS)
        ]

    def capture(self, size, pool):
        graph = torch.cuda.CUDAGraph()
        tokens = self.tokens[:size]
        self.model(tokens, self.caches)
        with torch.cuda.graph(graph, pool=pool):
            logits = self.model(tokens, self.caches)
        self.graphs[size] = (graph, logits)

    def capture_model(self):
        self.tokens = torch.zeros(max(BATCH_SIZES), dtype=torch.int64, device="cuda")
        pool = torch.cuda.graph_pool_handle() if self.shares_pool else None
        for size in self.sizes:
            self.capture(size, pool)
            self.tell(f"capture {size}")

    def execute_model(self, size):
        graph, logits = self.graphs[size]
        graph.replay()
        return torch.argmax(logits, dim=-1)

    def serve(self):
        for request in range(6):
            prompt = torch.zeros(256 + 64 * request, dtype=torch.int64, device="cuda")
            self.model(prompt, self.caches)
            for _ in range(4):
                self.execute_model(BATCH_SIZES[request])


def main(out, *options):
    torch.cuda.memory._record_memory_history(stacks="python")
    sizes = sorted(BATCH_SIZES) if "ascending" in options else BATCH_SIZES
    engine = Engine("own" not in options, sizes)
    with torch.inference_mode():
        for phase in ("load_model", "profile_run"):
            getattr(engine, phase)()
            engine.tell(phase)
        torch.cuda.empty_cache()
        engine.tell("empty_cache")
        for phase in ("initialize_kv_cache", "capture_model", "serve"):
            getattr(engine, phase)()
            engine.tell(phase)
    torch.cuda.memory._dump_snapshot(f"{out}.pickle")
    stats = torch.cuda.memory_stats()
    with open(f"{out}.stats.json", "w") as file:
        json.dump({"torch": torch.__version__, "phases": engine.told, "at_dump": stats}, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
