"""huggingface/transformers#45412

Truth: generate_anchors is decorated with lru_cache on the class; `self` is part of the cache's
key, so every model that was ever called stays alive after `del model` and gc.collect(): the
weights of every checkpoint pile up in the server.
Cure: a cache per instance.
"""

# CAP=2000
import functools
import gc
import os
import torch
import torch.nn as nn
import torch.nn.functional as F
import vramscope

CURE = bool(os.environ.get("CURE"))


def compile_compatible_method_lru_cache(*lru_args, **lru_kwargs):
    def decorator(func):
        if not CURE:
            return functools.lru_cache(*lru_args, **lru_kwargs)(func)

        @functools.wraps(func)
        def wrapped(self, *args):
            cache = self.__dict__.setdefault("_cache_" + func.__name__, {})
            if args not in cache:
                cache[args] = func(self, *args)
            return cache[args]

        return wrapped

    return decorator


class RTDetrV2Model(nn.Module):
    def __init__(self, d_model, decoder_layers, num_queries=300):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(3, 64, 8, 8), nn.ReLU(), nn.Conv2d(64, d_model, 4, 4)
        )
        self.enc_score_head = nn.Linear(d_model, 80)
        self.decoder = nn.ModuleList(
            nn.TransformerDecoderLayer(d_model, 8, 4 * d_model, batch_first=True)
            for _ in range(decoder_layers)
        )
        self.class_embed, self.bbox_embed, self.num_queries = (
            nn.Linear(d_model, 80),
            nn.Linear(d_model, 4),
            num_queries,
        )

    @compile_compatible_method_lru_cache(maxsize=32)
    def generate_anchors(self, height, width):
        gy, gx = torch.meshgrid(
            torch.arange(height, device="cuda"), torch.arange(width, device="cuda"), indexing="ij"
        )
        xy = torch.stack([gx / width, gy / height], -1)
        return torch.cat([xy, torch.full_like(xy, 0.05)], -1).view(1, -1, 4)

    def forward(self, pixel_values):
        x = self.backbone(pixel_values)
        anchors = self.generate_anchors(*x.shape[-2:])
        memory = x.flatten(2).transpose(1, 2)
        _, idx = self.enc_score_head(memory).max(-1).values.topk(self.num_queries, dim=1)
        target = torch.zeros(len(x), self.num_queries, memory.shape[-1], device="cuda")
        for layer in self.decoder:
            target = layer(target, memory)
        return self.class_embed(target), self.bbox_embed(target) + anchors[:, :1]


CHECKPOINTS = {
    "rtdetr_v2_r18vd": (512, 12),
    "rtdetr_v2_r34vd": (768, 10),
    "rtdetr_v2_r50vd": (1024, 8),
    "rtdetr_v2_r101vd": (1024, 12),
}


def detect(name, sizes):
    model = RTDetrV2Model(*CHECKPOINTS[name]).to("cuda").eval()
    results = []
    with torch.inference_mode():
        for h, w in sizes:
            logits, boxes = model(torch.rand(4, 3, h, w).to("cuda"))
            results.append((F.sigmoid(logits).cpu(), boxes.cpu()))
    del model
    gc.collect()
    torch.cuda.empty_cache()
    return results


with vramscope.record(os.environ["OUT"]):
    for name in CHECKPOINTS:
        detect(name, sizes=[(640, 640), (768, 1024)])
