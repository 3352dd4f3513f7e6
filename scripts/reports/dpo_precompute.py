"""huggingface/trl#5542

Truth: with precompute_ref_log_probs the reference model only gives the log probabilities that are
computed before training, but it is loaded as a second model and stays on the GPU all through it.
Cure: no reference model then; the policy itself gives the log probabilities before it is trained.
"""

# CAP=24000
import os
import torch
import torch.nn as nn
import torch.nn.functional as F
import vramscope

CURE = bool(os.environ.get("CURE"))


class DecoderLayer(nn.Module):
    def __init__(self, d=1024, heads=16):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.c_attn, self.c_proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        (B, T, D), qkv = x.shape, self.c_attn(self.ln_1(x)).chunk(3, -1)
        q, k, v = (
            t.view(B, T, self.heads, -1).transpose(1, 2) for t in qkv
        )
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.c_proj(a.transpose(1, 2).reshape(B, T, D))
        return x + self.mlp(self.ln_2(x))


class CausalLM(nn.Module):
    def __init__(self, vocab=8000, d=1024, layers=12):
        super().__init__()
        self.wte = nn.Embedding(vocab, d)
        self.h = nn.ModuleList(DecoderLayer(d) for _ in range(layers))
        self.lm_head = nn.Linear(d, vocab, bias=False)

    def forward(self, input_ids):
        x = self.wte(input_ids)
        for layer in self.h:
            x = layer(x)
        return self.lm_head(x)


def create_model_from_path():
    return CausalLM().to("cuda")


class DPOTrainer:
    def __init__(self, model, train_dataset, precompute_ref_log_probs=True, beta=0.1):
        self.model, self.train_dataset, self.beta = model, train_dataset, beta
        self.precompute_ref_log_probs = precompute_ref_log_probs
        if precompute_ref_log_probs and CURE:
            self.ref_model = None
        else:
            self.ref_model = create_model_from_path().eval()
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6)
        if precompute_ref_log_probs:
            self._precompute_ref_logps()

    def _logps(self, model, input_ids):
        logits = model(input_ids)[:, :-1]
        logps = torch.gather(logits.log_softmax(-1), 2, input_ids[:, 1:, None]).squeeze(2).sum(-1)
        return logps.chunk(2)

    @torch.no_grad()
    def _precompute_ref_logps(self):
        for example in self.train_dataset:
            chosen, rejected = self._logps(
                self.ref_model or self.model, example["input_ids"].to("cuda")
            )
            example["ref_logps"] = (chosen - rejected).cpu()

    def train(self):
        for example in self.train_dataset:
            chosen, rejected = self._logps(self.model, example["input_ids"].to("cuda"))
            ref_logratios = example["ref_logps"].to("cuda")
            loss = -F.logsigmoid(self.beta * (chosen - rejected - ref_logratios)).mean()
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()


with vramscope.record(os.environ["OUT"]):
    dataset = [{"input_ids": torch.zeros(4, 256, dtype=torch.long)} for _ in range(6)]
    trainer = DPOTrainer(create_model_from_path(), dataset)
    trainer.train()
