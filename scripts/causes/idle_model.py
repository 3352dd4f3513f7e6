"""A caption encoder is idle on the device while a decoder of images sets the peak.

CURE=1 moves the encoder to the host after its only use.
"""

import os

import torch
from torch import nn

CURE = bool(os.environ.get("CURE"))


def tower(width, layers, heads):
    layer = nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, batch_first=True)
    return nn.TransformerEncoder(layer, layers, enable_nested_tensor=False).half()


class Captions(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(30000, 768).half()
        self.tower = tower(768, 8, 12)

    def forward(self, tokens):
        return self.tower(self.words(tokens))


captions = Captions().cuda()
denoiser = tower(512, 6, 8).cuda()
up = [nn.Upsample(scale_factor=8), nn.Conv2d(64, 32, 3, padding=1), nn.Conv2d(32, 3, 1)]
decoder = nn.Sequential(nn.Conv2d(4, 64, 1), *up).half().cuda()
with torch.no_grad():
    text = captions(torch.zeros(1, 77, dtype=torch.long, device="cuda"))
    if CURE:
        captions.cpu()
    patches = torch.randn(1, 1024, 512, device="cuda", dtype=torch.half)
    for _ in range(3):
        patches = denoiser(patches)
    latents = torch.randn(1, 4, 128, 128, device="cuda", dtype=torch.half)
    images = decoder(latents)
