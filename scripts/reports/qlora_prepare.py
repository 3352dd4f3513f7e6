"""huggingface/peft#1149

Truth: prepare_model_for_kbit_training casts every parameter of the float16 base model to float32,
which doubles the weights; the model isn't quantized, so the call isn't needed.
Cure: don't call prepare_model_for_kbit_training (freeze the base only).
"""

# CAP=3000
import os
import torch
import torch.nn as nn
import torch.nn.functional as F
import vramscope

CURE = bool(os.environ.get("CURE"))


def prepare_model_for_kbit_training(model):
    for name, param in model.named_parameters():
        param.requires_grad = False
    for param in model.parameters():
        if param.dtype in (torch.float16, torch.bfloat16):
            param.data = param.data.to(torch.float32)
    return model


class LoraLayer(nn.Module):
    def __init__(self, base_layer, r=16):
        super().__init__()
        self.base_layer = base_layer
        kw = dict(bias=False, device="cuda", dtype=base_layer.weight.dtype)
        self.lora_A, self.lora_B = (
            nn.Linear(base_layer.in_features, r, **kw),
            nn.Linear(r, base_layer.out_features, **kw),
        )

    def forward(self, x):
        return self.base_layer(x) + self.lora_B(self.lora_A(x))


def get_peft_model(model, target_modules):
    for module in list(model.modules()):
        for name in target_modules:
            if hasattr(module, name):
                setattr(module, name, LoraLayer(getattr(module, name)))
    return model


class LlamaDecoderLayer(nn.Module):
    def __init__(self, d, ff):
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (
            nn.Linear(d, d, bias=False) for _ in range(4)
        )
        self.gate_proj, self.up_proj, self.down_proj = (
            nn.Linear(d, ff, bias=False),
            nn.Linear(d, ff, bias=False),
            nn.Linear(ff, d, bias=False),
        )
        self.input_layernorm, self.post_attention_layernorm = nn.RMSNorm(d), nn.RMSNorm(d)

    def forward(self, x):
        B, T, D = x.shape
        h = self.input_layernorm(x)
        q, k, v = (
            p(h).view(B, T, 16, -1).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj)
        )
        x = x + self.o_proj(
            F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(B, T, D)
        )
        h = self.post_attention_layernorm(x)
        return x + self.down_proj(F.silu(self.gate_proj(h)) * self.up_proj(h))


class LlamaForCausalLM(nn.Module):
    def __init__(self, vocab=32000, d=2048, ff=5632, layers=12):
        super().__init__()
        self.embed_tokens, self.layers = (
            nn.Embedding(vocab, d),
            nn.Sequential(*[LlamaDecoderLayer(d, ff) for _ in range(layers)]),
        )
        self.norm, self.lm_head = nn.RMSNorm(d), nn.Linear(d, vocab, bias=False)

    def forward(self, input_ids, labels):
        logits = self.lm_head(self.norm(self.layers(self.embed_tokens(input_ids))))
        return F.cross_entropy(logits.float().flatten(0, 1), labels.flatten())


with vramscope.record(os.environ["OUT"]):
    torch.set_default_dtype(torch.float16)
    with torch.device("cuda"):
        model = LlamaForCausalLM()
    if CURE:
        model.requires_grad_(False)
    else:
        model = prepare_model_for_kbit_training(model)
    model = get_peft_model(model, target_modules=("q_proj", "v_proj"))
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=2e-4)
    for step in range(4):
        batch = torch.zeros(1, 512, dtype=torch.long, device="cuda")
        model(batch, batch).backward()
        optimizer.step()
        optimizer.zero_grad()
