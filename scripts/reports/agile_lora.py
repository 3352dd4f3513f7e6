"""AgileRL/AgileRL#623

Truth: the LoRA adapters are float32 and the base bfloat16, so `_cast_input_dtype` makes a float32
copy of the input of every wrapped linear (twice the size of the original); under autocast it is
cast back at once and every linear keeps its own copy until backward.
Cure: no cast of the input while autocast is on.
"""

# CAP=24000
import os
import torch
import torch.nn as nn
import torch.nn.functional as F
import vramscope

CURE = bool(os.environ.get("CURE"))


class LoraLinear(nn.Module):
    def __init__(self, base_layer, r=64, lora_alpha=64):
        super().__init__()
        self.base_layer = base_layer.requires_grad_(False)
        self.lora_A = nn.Linear(base_layer.in_features, r, bias=False)
        self.lora_B = nn.Linear(r, base_layer.out_features, bias=False)
        self.scaling = lora_alpha / r

    def _cast_input_dtype(self, x, dtype):
        if CURE and torch.is_autocast_enabled():
            return x
        return x.to(dtype)

    def forward(self, x):
        result = self.base_layer(x)
        x = self._cast_input_dtype(x, self.lora_A.weight.dtype)
        return result + self.lora_B(self.lora_A(x)) * self.scaling


class Qwen2DecoderLayer(nn.Module):
    def __init__(self, d=896, ff=4864, heads=14):
        super().__init__()
        lora = lambda i, o: LoraLinear(nn.Linear(i, o, bias=False).to(torch.bfloat16))
        self.heads = heads
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (
            lora(d, d),
            lora(d, d),
            lora(d, d),
            lora(d, d),
        )
        self.gate_proj, self.up_proj, self.down_proj = lora(d, ff), lora(d, ff), lora(ff, d)
        self.input_layernorm, self.post_attention_layernorm = (
            nn.RMSNorm(d, dtype=torch.bfloat16).requires_grad_(False) for _ in range(2)
        )

    def forward(self, x):
        B, T, D = x.shape
        h = self.input_layernorm(x)
        q, k, v = (
            p(h).view(B, T, self.heads, -1).transpose(1, 2)
            for p in (self.q_proj, self.k_proj, self.v_proj)
        )
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o_proj(a.transpose(1, 2).reshape(B, T, D))
        h = self.post_attention_layernorm(x)
        return x + self.down_proj(F.silu(self.gate_proj(h)) * self.up_proj(h))


class GRPO:
    def __init__(self, layers=10, vocab=16000, d=896):
        self.embed = nn.Embedding(vocab, d, dtype=torch.bfloat16, device="cuda").requires_grad_(
            False
        )
        self.actor = nn.ModuleList(Qwen2DecoderLayer() for _ in range(layers)).to("cuda")
        self.lm_head = nn.Linear(
            d, vocab, bias=False, dtype=torch.bfloat16, device="cuda"
        ).requires_grad_(False)
        self.optimizer = torch.optim.AdamW(
            [p for p in self.actor.parameters() if p.requires_grad], lr=5e-6
        )

    def learn(self, ids, advantages):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            x = self.embed(ids)
            for layer in self.actor:
                x = layer(x)
            logp = torch.gather(
                F.log_softmax(self.lm_head(x[:, -256:]), -1), -1, ids[:, -256:, None]
            )
            loss = -(logp.squeeze(-1) * advantages).mean()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.item()


with vramscope.record(os.environ["OUT"]):
    agent = GRPO()
    for _ in range(4):
        agent.learn(
            torch.zeros(2, 2048, dtype=torch.long, device="cuda"), torch.ones(2, 1, device="cuda")
        )
