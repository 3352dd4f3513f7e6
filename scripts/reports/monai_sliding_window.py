"""Project-MONAI/MONAI#854

Truth: sliding_window_inference keeps every window's input and prediction on the GPU until all are
stitched there with a count map, so memory follows the image and overlap, not the window.
Cure: windows are cut and stitched on the host; only the batch in work is on the GPU.
"""

# CAP=1700
import itertools
import os
import torch
import torch.nn as nn
import torch.nn.functional as F
import vramscope

CURE = bool(os.environ.get("CURE"))


class HighResBlock(nn.Module):
    def __init__(self, i, o, dilation):
        super().__init__()
        self.norm, self.conv = nn.BatchNorm3d(i), nn.Conv3d(i, o, 3, 1, dilation, dilation)
        self.project = nn.Conv3d(i, o, 1) if i != o else nn.Identity()

    def forward(self, x):
        return self.project(x) + self.conv(F.relu(self.norm(x)))


def highres3dnet(in_channels=1, out_channels=9):
    return nn.Sequential(
        nn.Conv3d(in_channels, 16, 3, padding=1),
        HighResBlock(16, 16, 1),
        HighResBlock(16, 32, 2),
        HighResBlock(32, 32, 2),
        nn.Conv3d(32, out_channels, 1),
    )


def scan_intervals(size, roi, overlap):
    step = int(roi * (1 - overlap))
    return [min(i, size - roi) for i in range(0, size - roi + step, step)]


def sliding_window_inference(inputs, roi_size, sw_batch_size, predictor, overlap=0.25):
    spatial = inputs.shape[2:]
    starts = [scan_intervals(s, r, overlap) for s, r in zip(spatial, roi_size)]
    slices = [
        tuple(slice(i, i + r) for i, r in zip(start, roi_size))
        for start in itertools.product(*starts)
    ]
    device = torch.device("cpu") if CURE else inputs.device
    inputs = inputs.to(device)
    slice_batches = []
    for index in range(0, len(slices), sw_batch_size):
        input_slices = [inputs[0][(slice(None), *s)] for s in slices[index : index + sw_batch_size]]
        slice_batches.append(torch.stack(input_slices))

    output_rois = []
    for data in slice_batches:
        seg_prob = predictor(data.cuda())
        output_rois.append(seg_prob.to(device))

    output_image = torch.zeros(output_rois[0].shape[1], *spatial, device=device)
    count_map = torch.zeros(output_rois[0].shape[1], *spatial, device=device)
    for index, seg_prob in enumerate(output_rois):
        for s, prob in zip(slices[index * sw_batch_size :], seg_prob):
            output_image[(slice(None), *s)] += prob
            count_map[(slice(None), *s)] += 1
    return (output_image / count_map)[None]


def test(net, cases):
    net.eval()
    with torch.no_grad():
        for spatial in cases:
            image = torch.rand(1, 1, *spatial).cuda()
            val_outputs = sliding_window_inference(image, (64, 64, 64), 2, net)
            val_outputs.argmax(1).cpu()


with vramscope.record(os.environ["OUT"]):
    net = highres3dnet().cuda()
    test(net, ((128, 128, 96), (192, 192, 96), (160, 160, 128), (224, 224, 176), (192, 160, 96)))
