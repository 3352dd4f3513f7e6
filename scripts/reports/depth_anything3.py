"""ByteDance-Seed/Depth-Anything-3#268

Truth: the attention mask [B, N, N] is repeated for every head before the attention, a copy of
[B, heads, N, N] that grows with the square of the number of views.
Cure: attn_mask[:, None], scaled_dot_product_attention broadcasts it.
"""

# CAP=2200
import os
import torch
import torch.nn as nn
import torch.nn.functional as F
import vramscope

CURE = bool(os.environ.get("CURE"))


class Attention(nn.Module):
    def __init__(self, dim, num_heads=12):
        super().__init__()
        self.num_heads = num_heads
        self.qkv, self.proj = nn.Linear(dim, dim * 3), nn.Linear(dim, dim)

    def forward(self, x, attn_mask=None):
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        if attn_mask is not None:
            attn_mask = attn_mask[:, None]
            if not CURE:
                attn_mask = attn_mask.repeat(1, self.num_heads, 1, 1)
        x = F.scaled_dot_product_attention(q, k, v, attn_mask=attn_mask)
        return self.proj(x.transpose(1, 2).reshape(B, N, C))


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = Attention(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x, attn_mask=None):
        x = x + self.attn(self.norm1(x), attn_mask)
        return x + self.mlp(self.norm2(x))


class DinoVisionTransformer(nn.Module):
    def __init__(self, embed_dim=768, depth=8, alt_start=4):
        super().__init__()
        self.patch_embed, self.alt_start = nn.Conv2d(3, embed_dim, 14, 14), alt_start
        self.blocks = nn.ModuleList(Block(embed_dim) for _ in range(depth))

    def forward(self, images, attn_mask):
        B, S = images.shape[:2]
        x = self.patch_embed(images.flatten(0, 1)).flatten(2).transpose(1, 2)
        for i, block in enumerate(self.blocks):
            if i >= self.alt_start and i % 2 == 1:
                x = block(x.reshape(B, -1, x.shape[-1]), attn_mask).reshape(B * S, -1, x.shape[-1])
            else:
                x = block(x)
        return x.view(B, S, *x.shape[1:])


class DepthAnything3(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = DinoVisionTransformer()
        self.head = nn.Linear(768, 14 * 14)

    @torch.inference_mode()
    def inference(self, images, view_mask):
        tokens = (images.shape[-2] // 14) * (images.shape[-1] // 14)
        mask = view_mask.float().repeat_interleave(tokens, 1).repeat_interleave(tokens, 2)
        return self.head(self.backbone(images, mask)).cpu()


with vramscope.record(os.environ["OUT"]):
    model = DepthAnything3().cuda().eval()
    for views in [2, 3, 4, 3, 6, 5]:
        images = torch.rand(1, views, 3, 392, 504).cuda()
        model.inference(images, torch.ones(1, views, views).cuda())
