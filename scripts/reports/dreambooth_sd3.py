"""huggingface/diffusers#8511

Truth: the script deletes the lists `tokenizers` and `text_encoders`, but
text_encoder_one/two/three still reference the models: all three text encoders stay on the GPU
during the training loop.
Cure: also `del text_encoder_one, text_encoder_two, text_encoder_three`.
"""

# CAP=24000
import gc
import os
import torch
import torch.nn as nn
import torch.nn.functional as F
from transformers import CLIPTextConfig, CLIPTextModelWithProjection, T5Config, T5EncoderModel
import vramscope

CURE = bool(os.environ.get("CURE"))


def load_text_encoders(dtype):
    with torch.device("cuda"):
        one = CLIPTextModelWithProjection(
            CLIPTextConfig(
                hidden_size=768,
                intermediate_size=3072,
                num_hidden_layers=12,
                num_attention_heads=12,
                projection_dim=768,
            )
        )
        two = CLIPTextModelWithProjection(
            CLIPTextConfig(
                hidden_size=1280,
                intermediate_size=5120,
                num_hidden_layers=16,
                num_attention_heads=20,
                projection_dim=1280,
            )
        )
        three = T5EncoderModel(
            T5Config(
                d_model=2048, d_ff=5120, num_layers=10, num_heads=32, feed_forward_proj="gated-gelu"
            )
        )
    return tuple(m.requires_grad_(False).to(dtype) for m in (one, two, three))


class JointTransformerBlock(nn.Module):
    def __init__(self, dim, heads=16):
        super().__init__()
        self.norm1, self.norm2, self.heads = nn.LayerNorm(dim), nn.LayerNorm(dim), heads
        self.to_qkv, self.to_out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.ff = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.to_qkv(self.norm1(x)).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        x = x + self.to_out(
            F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d)
        )
        return x + self.ff(self.norm2(x))


class SD3Transformer2DModel(nn.Module):
    def __init__(self, dim=1024, layers=8):
        super().__init__()
        self.pos_embed, self.context_embedder = nn.Linear(64, dim), nn.Linear(2048, dim)
        self.transformer_blocks = nn.ModuleList(JointTransformerBlock(dim) for _ in range(layers))
        self.proj_out = nn.Linear(dim, 64)

    def forward(self, latents, context):
        n = latents.shape[1]
        x = torch.cat([self.pos_embed(latents), self.context_embedder(context)], 1)
        for block in self.transformer_blocks:
            x = block(x)
        return self.proj_out(x[:, :n])


@torch.no_grad()
def encode_prompt(text_encoders, input_ids):
    clip = torch.cat([enc(input_ids[:, :77]).last_hidden_state for enc in text_encoders[:2]], -1)
    t5 = text_encoders[2](input_ids).last_hidden_state
    return torch.cat(
        [
            F.pad(clip, (0, t5.shape[-1] - clip.shape[-1]))
            if clip.shape[-1] <= t5.shape[-1]
            else clip[..., : t5.shape[-1]],
            t5,
        ],
        1,
    )


def main():
    weight_dtype = torch.float16
    text_encoder_one, text_encoder_two, text_encoder_three = load_text_encoders(weight_dtype)
    transformer = SD3Transformer2DModel().cuda()
    optimizer = torch.optim.AdamW(transformer.parameters(), lr=1e-5)
    text_encoders = [text_encoder_one, text_encoder_two, text_encoder_three]
    prompt_embeds = encode_prompt(
        text_encoders, torch.randint(0, 32000, (1, 128), device="cuda")
    ).float()
    del text_encoders
    if CURE:
        del text_encoder_one, text_encoder_two, text_encoder_three
    gc.collect()
    torch.cuda.empty_cache()
    for step in range(6):
        model_input = torch.randn(4, 1024, 64, device="cuda")
        noise = torch.randn_like(model_input)
        with torch.autocast("cuda", dtype=torch.float16):
            model_pred = transformer(0.5 * model_input + 0.5 * noise, prompt_embeds.repeat(4, 1, 1))
        loss = F.mse_loss(model_pred.float(), noise - model_input)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


with vramscope.record(os.environ["OUT"]):
    main()
