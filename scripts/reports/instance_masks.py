"""roboflow/inference#2682

Truth: align_instance_segmentation_results upscales the masks of all detections to the original
resolution in one float32 batch (detections x H x W) before the threshold; with a large image that
batch is the peak.
Cure: upscale and threshold the masks in slices of a fixed number of detections.
"""

# CAP=2700
import os
import torch
import torch.nn as nn
import torch.nn.functional as F
import vramscope

CURE = bool(os.environ.get("CURE"))
INFERENCE_MODELS_INSTANCE_SEG_MASK_PROCESSING_CHUNK_SIZE = 8


class RFDETRSeg(nn.Module):
    def __init__(self, dim=384, queries=200, classes=90):
        super().__init__()
        self.patch_embed = nn.Conv2d(3, dim, 16, 16)
        self.encoder = nn.ModuleList(
            nn.TransformerEncoderLayer(dim, 6, 4 * dim, batch_first=True) for _ in range(8)
        )
        self.query_feat, self.class_embed, self.bbox_embed = (
            nn.Embedding(queries, dim),
            nn.Linear(dim, classes),
            nn.Linear(dim, 4),
        )
        self.pixel_up = nn.ConvTranspose2d(dim, dim, 4, 4)

    def forward(self, images):
        x = self.patch_embed(images)
        h, w = x.shape[-2:]
        tokens = torch.cat(
            [x.flatten(2).transpose(1, 2), self.query_feat.weight.expand(len(x), -1, -1)], 1
        )
        for block in self.encoder:
            tokens = block(tokens)
        pixels = self.pixel_up(tokens[:, : h * w].transpose(1, 2).unflatten(2, (h, w)))
        query = tokens[:, h * w :]
        return (
            self.class_embed(query),
            self.bbox_embed(query),
            torch.einsum("bqc,bchw->bqhw", query, pixels),
        )


def align_instance_segmentation_results(masks, size):
    if not CURE:
        masks = F.interpolate(masks[:, None], size=size, mode="bilinear", align_corners=False)[:, 0]
        return masks.gt(0.0)
    step = INFERENCE_MODELS_INSTANCE_SEG_MASK_PROCESSING_CHUNK_SIZE
    aligned = torch.empty(len(masks), *size, dtype=torch.bool, device=masks.device)
    for i in range(0, len(masks), step):
        part = F.interpolate(
            masks[i : i + step, None], size=size, mode="bilinear", align_corners=False
        )[:, 0]
        torch.gt(part, 0.0, out=aligned[i : i + step])
    return aligned


def post_process(logits, boxes, masks, size, max_detections):
    scores, keep = logits[0].sigmoid().max(-1).values.topk(max_detections)
    mask = align_instance_segmentation_results(masks[0].narrow(0, 0, max_detections), size)
    return boxes[0].narrow(0, 0, max_detections).cpu(), scores.cpu(), [m.cpu() for m in mask]


with vramscope.record(os.environ["OUT"]):
    model = RFDETRSeg().cuda().eval()
    requests = [
        ((720, 1280), 40),
        ((1080, 1920), 60),
        ((480, 640), 20),
        ((3000, 4000), 60),
        ((1080, 1920), 50),
    ]
    with torch.inference_mode():
        for size, max_detections in requests:
            image = torch.rand(1, 3, *size).cuda()
            image = F.interpolate(image, size=(432, 432), mode="bilinear", align_corners=False)
            post_process(*model(image), size, max_detections)
