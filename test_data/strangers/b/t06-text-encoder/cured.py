import torch
from torch import nn
from transformers import T5Config, T5EncoderModel

torch.backends.cudnn.enabled = False
device = "cuda"
prompts = torch.randint(0, 32128, (8, 64))

text_encoder = T5EncoderModel(T5Config(d_model=768, d_kv=64, d_ff=2048, num_layers=8, num_heads=12)).to(device).eval()
with torch.no_grad():
    prompt_embeds = text_encoder(input_ids=prompts.to(device)).last_hidden_state
text_encoder.to("cpu")


class CrossBlock(nn.Module):
    def __init__(self, dim=512):
        super().__init__()
        self.attend = nn.MultiheadAttention(dim, 8, kdim=768, vdim=768, batch_first=True)
        self.mlp = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x, context):
        x = x + self.attend(x, context, context, need_weights=False)[0]
        return x + self.mlp(x)


blocks = nn.ModuleList(CrossBlock() for _ in range(4)).to(device)
patch_in, patch_out = nn.Linear(48, 512).to(device), nn.Linear(512, 48).to(device)
parameters = [p for m in (blocks, patch_in, patch_out) for p in m.parameters()]
optimizer = torch.optim.AdamW(parameters, lr=1e-4)

for step in range(8):
    latents, noise = torch.randn(2, 8, 256, 48, device=device).unbind(0)
    x = patch_in(latents + noise)
    for block in blocks:
        x = block(x, prompt_embeds)
    loss = (patch_out(x) - noise).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
