"""facebookresearch/demucs#231 (cure: demucs#244)

Truth: apply_model splits the track into segments, but the whole mix and the whole-length results
(`out` of every model of the bag, `estimates`, the shifted copies) are on the GPU: four sources x
track length, several times.
Cure: the track and the results stay in host memory, only the segment is moved to the GPU for the
model.
"""

# CAP=1900
import os
import torch
import torch.nn as nn
import vramscope

CURE = bool(os.environ.get("CURE"))


class HDemucs(nn.Module):
    samplerate, segment = 44100, 40

    def __init__(self, sources=4, channels=24):
        super().__init__()
        self.sources = sources
        self.encoder = nn.ModuleList(
            [nn.Conv1d(2, channels, 8, 4, 2), nn.Conv1d(channels, 2 * channels, 8, 4, 2)]
        )
        self.lstm = nn.Conv1d(2 * channels, 2 * channels, 1)
        self.decoder = nn.ModuleList(
            [
                nn.ConvTranspose1d(2 * channels, channels, 8, 4, 2),
                nn.ConvTranspose1d(channels, 2 * sources, 8, 4, 2),
            ]
        )

    def forward(self, mix):
        x = mix
        for layer in self.encoder:
            x = torch.relu(layer(x))
        x = self.lstm(x)
        for layer in self.decoder:
            x = layer(x)
        return x.view(len(mix), self.sources, 2, -1)


def apply_model(model, mix, shifts=1, split=True, overlap=0.25, device="cuda"):
    if isinstance(model, list):
        estimates = 0.0
        for sub_model in model:
            estimates += apply_model(sub_model, mix, shifts, split, overlap, device)
        return estimates / len(model)
    batch, channels, length = mix.shape
    if shifts:
        max_shift = model.samplerate // 2
        padded_mix = nn.functional.pad(mix, (max_shift, max_shift))
        out = 0.0
        for _ in range(shifts):
            shifted = padded_mix[..., max_shift // 2 : max_shift // 2 + length + max_shift]
            shifted_out = apply_model(model, shifted, 0, split, overlap, device)
            out += shifted_out[..., max_shift // 2 : max_shift // 2 + length]
        return out / shifts
    if split:
        out = torch.zeros(batch, model.sources, channels, length, device=mix.device)
        sum_weight = torch.zeros(length, device=mix.device)
        segment = model.samplerate * model.segment
        weight = torch.ones(segment, device=mix.device)
        for offset in range(0, length, int((1 - overlap) * segment)):
            chunk = mix[..., offset : offset + segment]
            chunk_out = apply_model(model, chunk, 0, False, overlap, device).to(mix.device)
            n = chunk.shape[-1]
            out[..., offset : offset + n] += weight[:n] * chunk_out
            sum_weight[offset : offset + n] += weight[:n]
        out /= sum_weight
        return out
    pad = -mix.shape[-1] % 16
    with torch.no_grad():
        return model(nn.functional.pad(mix, (0, pad)).to(device))[..., : mix.shape[-1]]


def separate(track_seconds):
    models = [HDemucs().to("cuda").eval() for _ in range(4)]
    wav = torch.zeros(2, 44100 * track_seconds)
    sources = apply_model(models, wav[None] if CURE else wav[None].to("cuda"))
    return sources[0].cpu()


with vramscope.record(os.environ["OUT"]):
    separate(180)
    separate(390)
