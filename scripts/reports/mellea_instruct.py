"""generative-computing/mellea#544

Truth: each instruct() makes four generate() calls; every output with its KV cache
(past_key_values) and scores is stored in `mot._meta["hf_output"]` and the thunks stay in the
session's context, so one KV cache a call is kept for ever.
Cure: clear past_key_values and scores from hf_output after the output was processed.
"""

# CAP=1900
import os
import torch
import torch.nn as nn
import torch.nn.functional as F
import vramscope
from types import SimpleNamespace

CURE = bool(os.environ.get("CURE"))


class GraniteLayer(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads, self.norm1, self.norm2 = heads, nn.RMSNorm(d), nn.RMSNorm(d)
        self.qkv_proj, self.o_proj = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False)
        self.up_proj, self.down_proj = (
            nn.Linear(d, 4 * d, bias=False),
            nn.Linear(4 * d, d, bias=False),
        )

    def forward(self, x, past):
        B, T, D = x.shape
        q, k, v = (
            self.qkv_proj(self.norm1(x))
            .view(B, T, 3, self.heads, D // self.heads)
            .permute(2, 0, 3, 1, 4)
        )
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=past is None)
        x = x + self.o_proj(a.transpose(1, 2).reshape(B, T, D))
        return x + self.down_proj(F.silu(self.up_proj(self.norm2(x)))), (
            k.contiguous(),
            v.contiguous(),
        )


class GraniteForCausalLM(nn.Module):
    def __init__(self, vocab=32000, d=1024, layers=12):
        super().__init__()
        self.embed_tokens, self.layers = (
            nn.Embedding(vocab, d),
            nn.ModuleList(GraniteLayer(d, 16) for _ in range(layers)),
        )
        self.lm_head = nn.Linear(d, vocab, bias=False)

    @torch.no_grad()
    def generate(self, input_ids, max_new_tokens):
        past_key_values, scores, ids = [None] * len(self.layers), [], input_ids
        for _ in range(max_new_tokens):
            x = self.embed_tokens(ids)
            for i, layer in enumerate(self.layers):
                x, past_key_values[i] = layer(x, past_key_values[i])
            scores.append(self.lm_head(x[:, -1]).float())
            ids = scores[-1].argmax(-1, keepdim=True)
            input_ids = torch.cat([input_ids, ids], 1)
        return SimpleNamespace(sequences=input_ids, scores=scores, past_key_values=past_key_values)


class LocalHFBackend:
    def __init__(self, model):
        self._model = model

    def generate_from_context(self, prompt, max_new_tokens=6):
        mot = SimpleNamespace(value=None, _meta={})
        mot._meta["hf_output"] = self._model.generate(
            torch.zeros(1, prompt, dtype=torch.long, device="cuda"), max_new_tokens
        )
        return self.processing(mot)

    def processing(self, mot):
        mot.value = mot._meta["hf_output"].sequences[0].tolist()
        if CURE:
            mot._meta["hf_output"].past_key_values = mot._meta["hf_output"].scores = None
        return mot


class MelleaSession:
    def __init__(self, backend):
        self.backend, self.ctx = backend, []

    def instruct(self, prompt, requirements):
        self.ctx.append(self.backend.generate_from_context(prompt))
        for requirement in requirements:
            self.ctx.append(self.backend.generate_from_context(prompt + requirement))
        return self.ctx[-1].value


with vramscope.record(os.environ["OUT"]):
    m = MelleaSession(LocalHFBackend(GraniteForCausalLM().to("cuda", torch.bfloat16).eval()))
    for email in (1500, 1720, 1610, 1580, 1850):
        m.instruct(email, requirements=(90, 140, 60))
