"""verl-project/verl#6699

Truth: forward_step returns model_output (log_probs, entropy) with its grad_fn, and
forward_backward_batch keeps it in output_lst until the whole batch is done: per micro-batch the
embedding output (a leaf that requires grad under LoRA) and its gradient stay alive after backward.
Cure: detach the tensors of model_output.
"""

# CAP=2400
import os
import torch
import torch.nn as nn
import torch.nn.functional as F
import vramscope
from torch.utils.checkpoint import checkpoint

CURE = bool(os.environ.get("CURE"))


class LoraLinear(nn.Module):
    def __init__(self, i, o, r=32):
        super().__init__()
        self.base_layer = nn.Linear(i, o, bias=False).requires_grad_(False)
        self.lora_A, self.lora_B = nn.Linear(i, r, bias=False), nn.Linear(r, o, bias=False)

    def forward(self, x):
        return self.base_layer(x) + self.lora_B(self.lora_A(x))


class Qwen3DecoderLayer(nn.Module):
    def __init__(self, d, heads=16):
        super().__init__()
        self.heads, self.q_proj, self.k_proj, self.v_proj, self.o_proj = (
            heads,
            *(LoraLinear(d, d) for _ in range(4)),
        )
        self.up_proj, self.down_proj, self.norm = (
            LoraLinear(d, 3 * d),
            LoraLinear(3 * d, d),
            nn.RMSNorm(d).requires_grad_(False),
        )

    def forward(self, x):
        B, T, D = x.shape
        h = self.norm(x)
        q, k, v = (
            p(h).view(B, T, self.heads, -1).transpose(1, 2)
            for p in (self.q_proj, self.k_proj, self.v_proj)
        )
        x = x + self.o_proj(
            F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(B, T, D)
        )
        return x + self.down_proj(F.silu(self.up_proj(x)))


class Qwen3ForCausalLM(nn.Module):
    def __init__(self, d=2048, layers=4, vocab=8000):
        super().__init__()
        self.embed_tokens = nn.Embedding(vocab, d).requires_grad_(False)
        self.layers = nn.ModuleList(Qwen3DecoderLayer(d) for _ in range(layers))
        self.lm_head = nn.Linear(d, vocab, bias=False).requires_grad_(False)

    def forward(self, input_ids):
        x = self.embed_tokens(input_ids).requires_grad_(True)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False)
        return self.lm_head(x)


class FSDPEngineWithLMHead:
    def __init__(self):
        self.module = Qwen3ForCausalLM().to("cuda", torch.bfloat16)
        self.optimizer = torch.optim.AdamW(
            [p for p in self.module.parameters() if p.requires_grad], lr=1e-6
        )

    def forward_step(self, micro_batch):
        logp = F.log_softmax(self.module(micro_batch["input_ids"]), -1)
        log_probs = logp.gather(-1, micro_batch["input_ids"][..., None]).squeeze(-1)
        entropy = -(logp.exp() * logp).sum(-1)
        loss = -(log_probs * micro_batch["advantages"]).mean() - 0.001 * entropy.mean()
        model_output = {"log_probs": log_probs, "entropy": entropy}
        if CURE:
            model_output = {k: v.detach() for k, v in model_output.items()}
        return loss, {"model_output": model_output, "loss": loss.item()}

    def forward_backward_batch(self, micro_batches):
        output_lst = []
        for micro_batch in micro_batches:
            loss, output = self.forward_step(micro_batch)
            (loss / len(micro_batches)).backward()
            output_lst.append(output)
        return torch.cat([o["model_output"]["log_probs"] for o in output_lst]).detach().cpu()

    def update_actor(self, data):
        self.forward_backward_batch(data)
        self.optimizer.step()
        self.optimizer.zero_grad()


with vramscope.record(os.environ["OUT"]):
    engine = FSDPEngineWithLMHead()
    for step in range(2):
        data = [
            {
                "input_ids": torch.zeros(1, 6144, dtype=torch.long, device="cuda"),
                "advantages": torch.ones(1, 1, device="cuda"),
            }
            for _ in range(24)
        ]
        engine.update_actor(data)
