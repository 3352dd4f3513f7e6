"""huggingface/diffusers#1150 (merged pull request)

Truth: the pipeline decodes the latents of the whole batch in one VAE call; the decoder's
activations at full resolution scale with the number of images and are the peak.
Cure: decode the latents one image at a time (enable_vae_slicing).
"""

# CAP=2000
import os
import torch
import torch.nn as nn
import torch.nn.functional as F
import vramscope

CURE = bool(os.environ.get("CURE"))


class ResnetBlock2D(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(32, cin), nn.Conv2d(cin, cout, 3, padding=1)
        self.norm2, self.conv2 = nn.GroupNorm(32, cout), nn.Conv2d(cout, cout, 3, padding=1)
        self.conv_shortcut = nn.Conv2d(cin, cout, 1) if cin != cout else nn.Identity()

    def forward(self, x):
        h = self.conv1(F.silu(self.norm1(x)))
        h = self.conv2(F.silu(self.norm2(h)))
        return self.conv_shortcut(x) + h


class Upsample2D(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.conv = nn.Conv2d(c, c, 3, padding=1)

    def forward(self, x):
        return self.conv(F.interpolate(x, scale_factor=2.0, mode="nearest"))


class AutoencoderKL(nn.Module):
    def __init__(self, chans=(256, 256, 128, 64)):
        super().__init__()
        self.conv_in = nn.Conv2d(4, chans[0], 3, padding=1)
        self.mid_block = nn.Sequential(
            ResnetBlock2D(chans[0], chans[0]), ResnetBlock2D(chans[0], chans[0])
        )
        blocks, c = [], chans[0]
        for i, o in enumerate(chans):
            blocks += [ResnetBlock2D(c, o), ResnetBlock2D(o, o)] + (
                [Upsample2D(o)] if i < 3 else []
            )
            c = o
        self.up_blocks = nn.ModuleList(blocks)
        self.conv_norm_out, self.conv_out = nn.GroupNorm(32, c), nn.Conv2d(c, 3, 3, padding=1)

    def decode(self, z):
        x = self.mid_block(self.conv_in(z))
        for block in self.up_blocks:
            x = block(x)
        return self.conv_out(F.silu(self.conv_norm_out(x)))


class UNet2DConditionModel(nn.Module):
    def __init__(self, c=640):
        super().__init__()
        self.conv_in, self.conv_out = nn.Conv2d(4, c, 3, padding=1), nn.Conv2d(c, 4, 3, padding=1)
        self.blocks = nn.Sequential(*(ResnetBlock2D(c, c) for _ in range(10)))

    def forward(self, x):
        return self.conv_out(self.blocks(self.conv_in(x)))


class StableDiffusionPipeline:
    def __init__(self):
        self.unet, self.vae = UNet2DConditionModel().half().cuda(), AutoencoderKL().half().cuda()

    def decode_latents(self, latents):
        latents = latents / 0.18215
        image = (
            torch.cat([self.vae.decode(z) for z in latents.split(1)])
            if CURE
            else self.vae.decode(latents)
        )
        return (image / 2 + 0.5).clamp(0, 1).cpu().permute(0, 2, 3, 1).float().numpy()

    @torch.no_grad()
    def __call__(self, num_images, num_inference_steps=4):
        latents = torch.randn(num_images, 4, 32, 32, device="cuda", dtype=torch.float16)
        for t in range(num_inference_steps):
            noise_pred = self.unet(torch.cat([latents] * 2))
            uncond, text = noise_pred.chunk(2)
            latents = latents - 0.1 * (uncond + 7.5 * (text - uncond))
        return self.decode_latents(latents)


with vramscope.record(os.environ["OUT"]):
    pipe = StableDiffusionPipeline()
    for prompt in range(3):
        pipe(num_images=32)
