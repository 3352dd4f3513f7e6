"""modelscope/ms-swift#10214

Truth: the vision tower is fully frozen, but the hook of enable_input_require_grads makes its
patch embeddings differentiable, so the tower's activations are kept for a backward of no use.
Cure: the forward of the frozen vision tower without autograd.
"""

# CAP=2600
import os
import torch
import torch.nn as nn
import torch.nn.functional as F
import vramscope

CURE = bool(os.environ.get("CURE"))


class LoraLinear(nn.Module):
    def __init__(self, i, o, r=8):
        super().__init__()
        self.base_layer = nn.Linear(i, o, bias=False)
        self.base_layer.requires_grad_(False)
        self.lora_A, self.lora_B = nn.Linear(i, r, bias=False), nn.Linear(r, o, bias=False)

    def forward(self, x):
        return self.base_layer(x) + self.lora_B(self.lora_A(x))


class Layer(nn.Module):
    def __init__(self, d, heads, linear, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.proj = linear(d, 3 * d), linear(d, d)
        self.fc1, self.fc2 = linear(d, 4 * d), linear(4 * d, d)

    def forward(self, x):
        B, T, D = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(B, T, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.proj(a.transpose(1, 2).reshape(B, T, D))
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x))))


class VisionModel(nn.Module):
    def __init__(self, d=768, depth=12):
        super().__init__()
        self.patch_embed = nn.Linear(3 * 2 * 16 * 16, d)
        self.blocks = nn.ModuleList(Layer(d, 12, nn.Linear, False) for _ in range(depth))
        self.merger = nn.Linear(4 * d, 1024)

    def forward(self, pixel_values):
        x = self.patch_embed(pixel_values)
        for blk in self.blocks:
            x = blk(x)
        return self.merger(x.reshape(x.shape[0], -1, 4 * x.shape[-1]))


class Qwen3VL(nn.Module):
    def __init__(self, d=1024, layers=8, vocab=8000):
        super().__init__()
        self.visual = VisionModel()
        self.embed_tokens = nn.Embedding(vocab, d)
        self.layers = nn.ModuleList(Layer(d, 16, LoraLinear, True) for _ in range(layers))
        self.lm_head = nn.Linear(d, vocab, bias=False)
        for name, p in self.named_parameters():
            p.requires_grad_("lora_" in name)

    def enable_input_require_grads(self):
        hook = lambda module, args, output: output.requires_grad_(True)
        self.embed_tokens.register_forward_hook(hook)
        self.visual.patch_embed.register_forward_hook(hook)

    def forward(self, pixel_values, input_ids):
        with torch.set_grad_enabled(not CURE):
            image_embeds = self.visual(pixel_values)
        text = self.embed_tokens(input_ids)
        x = torch.cat([image_embeds.reshape(text.shape[0], -1, text.shape[-1]), text], 1)
        for layer in self.layers:
            x = layer(x)
        return self.lm_head(x[:, -text.shape[1] :])


def sft(model, steps=5):
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)
    for step in range(steps):
        images = [2, 4, 3, 8, 5][step]
        pixel_values = torch.randn(images, 1024, 1536, dtype=torch.bfloat16).cuda()
        input_ids = torch.zeros(1, 256, dtype=torch.long).cuda()
        logits = model(pixel_values, input_ids)
        loss = F.cross_entropy(logits[0, :-1].float(), input_ids[0, 1:])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


with vramscope.record(os.environ["OUT"]):
    model = Qwen3VL().to(torch.bfloat16).cuda()
    model.enable_input_require_grads()
    sft(model)
