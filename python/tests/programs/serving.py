"""An inference engine with the flags of vLLM and SGLang, which sizes its KV cache as they do.

``serving.py [--gpu-memory-utilization U | --kv-cache-memory-bytes N | --mem-fraction-static F]
[--max-num-seqs N] [--max-model-len N]`` loads weights, gives the KV cache what the flag leaves,
captures CUDA graphs of decoding, and serves as many of the longest sequences as it may. As vLLM it
runs the model once before, with the longest batch. It writes how many tokens its cache has, and how
many sequences it served.
"""

from __future__ import annotations

import argparse

import torch
from torch import nn

LAYERS, WIDTH, VOCABULARY = 8, 2048, 32000
BLOCK_SIZE = 16
#: Tokens of one forward pass, of the profile run and of prefill.
MAX_BATCHED_TOKENS = 8192
CAPTURED = (64, 32, 16, 8, 4, 2, 1)
#: Bytes of a token in the cache of one layer: key and value in half precision.
TOKEN_BYTES = 2 * WIDTH * 2


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, hidden: torch.Tensor, cache: torch.Tensor | None) -> torch.Tensor:
        query, key, value = self.qkv(self.norm(hidden)).chunk(3, dim=-1)
        if cache is not None:
            cache[0].view(-1, WIDTH)[: len(key)].copy_(key)
            cache[1].view(-1, WIDTH)[: len(value)].copy_(value)
        hidden = hidden + self.out(query * key + value)
        return hidden + self.down(nn.functional.gelu(self.up(hidden)))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(
        self, tokens: torch.Tensor, caches: list[torch.Tensor | None], sequences: int
    ) -> torch.Tensor:
        hidden = self.embed(tokens)
        for layer, cache in zip(self.layers, caches):
            hidden = layer(hidden, cache)
        return self.head(hidden[:sequences])


class Engine:
    def __init__(self, flags: argparse.Namespace) -> None:
        self.flags = flags
        self.caches: list[torch.Tensor | None] = [None] * LAYERS
        self.graphs: dict[int, torch.cuda.CUDAGraph] = {}
        self.blocks = 0

    def load_model(self) -> None:
        self.free_at_start, self.total = torch.cuda.mem_get_info()
        torch.set_default_dtype(torch.float16)
        with torch.device("cuda"):
            self.model = Model()
        torch.set_default_dtype(torch.float32)

    def forward(self, tokens: torch.Tensor, sequences: int) -> torch.Tensor:
        logits = self.model(tokens, self.caches, sequences)
        return torch.softmax(logits.float(), dim=-1).argmax(dim=-1)

    def run(self, tokens: int, sequences: int) -> None:
        self.forward(torch.zeros(tokens, dtype=torch.int64, device="cuda"), sequences)

    def determine_available_memory(self) -> int:
        """What the KV cache may have, by the flags."""
        if self.flags.mem_fraction_static is not None:
            free, _ = torch.cuda.mem_get_info()
            return int(free - self.free_at_start * (1 - self.flags.mem_fraction_static))
        torch.cuda.reset_peak_memory_stats()
        self.run(MAX_BATCHED_TOKENS, min(self.flags.max_num_seqs, MAX_BATCHED_TOKENS))
        peak = torch.cuda.max_memory_allocated()
        torch.cuda.empty_cache()
        if self.flags.kv_cache_memory_bytes is not None:
            return int(self.flags.kv_cache_memory_bytes)
        free, _ = torch.cuda.mem_get_info()
        outside = self.free_at_start - free - torch.cuda.memory_reserved()
        return int(self.total * self.flags.gpu_memory_utilization) - peak - outside

    def initialize_kv_cache(self, available: int) -> None:
        self.blocks = available // (LAYERS * BLOCK_SIZE * TOKEN_BYTES)
        print(f"GPU KV cache size: {self.blocks * BLOCK_SIZE:,} tokens", flush=True)
        shape = (2, self.blocks, BLOCK_SIZE, WIDTH)
        self.caches = [
            torch.zeros(shape, dtype=torch.float16, device="cuda") for _ in range(LAYERS)
        ]

    def capture_model(self) -> None:
        pool = torch.cuda.graph_pool_handle()
        tokens = torch.zeros(max(CAPTURED), dtype=torch.int64, device="cuda")
        self.forward(tokens, len(tokens))
        for size in CAPTURED:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=pool):
                self.forward(tokens[:size], size)
            self.graphs[size] = graph

    def serve(self) -> int:
        """Serves the longest sequences: their tokens in chunks, then one more token for each."""
        length, most = self.flags.max_model_len, self.flags.max_num_seqs
        needs = -(-length // BLOCK_SIZE)
        sequences = min(most, self.blocks // needs)
        left = sequences * length
        while left > 0:
            self.run(min(left, MAX_BATCHED_TOKENS), sequences)
            left -= MAX_BATCHED_TOKENS
        size = next(size for size in (*CAPTURED, 1) if size <= max(sequences, 1))
        for _ in range(3):
            self.graphs[size].replay()
            self.run(sequences, sequences)
        return sequences


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpu-memory-utilization", type=float, default=0.9)
    parser.add_argument("--kv-cache-memory-bytes", type=int)
    parser.add_argument("--mem-fraction-static", type=float)
    parser.add_argument("--max-num-seqs", "--max-running-requests", type=int, default=256)
    parser.add_argument("--max-model-len", "--context-length", type=int, default=4096)
    engine = Engine(parser.parse_args())
    with torch.inference_mode():
        engine.load_model()
        engine.initialize_kv_cache(engine.determine_available_memory())
        engine.capture_model()
        print(f"served {engine.serve()} sequences", flush=True)


if __name__ == "__main__":
    main()
