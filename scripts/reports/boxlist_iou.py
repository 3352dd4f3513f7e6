"""facebookresearch/maskrcnn-benchmark#18

Truth: the IoU of every ground-truth box with every anchor is computed at once; the broadcast
corners `lt`, `rb` and `wh` are [gt, anchors, 2], so an image with hundreds of boxes needs GiB.
Cure: the IoU in slices of 50 ground-truth boxes.
"""

# CAP=1700
import os
import torch
import torch.nn as nn
import torch.nn.functional as F
import vramscope

CURE = bool(os.environ.get("CURE"))


def boxlist_iou(boxlist1, boxlist2):
    area1 = (boxlist1[:, 2:] - boxlist1[:, :2] + 1).prod(1)
    area2 = (boxlist2[:, 2:] - boxlist2[:, :2] + 1).prod(1)
    lt = torch.max(boxlist1[:, None, :2], boxlist2[:, :2])
    rb = torch.min(boxlist1[:, None, 2:], boxlist2[:, 2:])
    wh = (rb - lt + 1).clamp(min=0)
    inter = wh[:, :, 0] * wh[:, :, 1]
    return inter / (area1[:, None] + area2 - inter)


class Matcher:
    def __call__(self, match_quality_matrix):
        matched_vals, matches = match_quality_matrix.max(dim=0)
        return torch.where(matched_vals < 0.3, -1, matches)


class RPNHead(nn.Module):
    def __init__(self, channels=128, num_anchors=3):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)
        self.cls_logits = nn.Conv2d(channels, num_anchors, 1)
        self.bbox_pred = nn.Conv2d(channels, num_anchors * 4, 1)

    def forward(self, features):
        ts = [F.relu(self.conv(f)) for f in features]
        flat = lambda x, c: x.flatten(2).transpose(1, 2).reshape(x.shape[0], -1, c)
        return (
            torch.cat([flat(self.cls_logits(t), 1) for t in ts], 1),
            torch.cat([flat(self.bbox_pred(t), 4) for t in ts], 1),
        )


class GeneralizedRCNN(nn.Module):
    def __init__(self, channels=128):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 7, 4, 3), nn.ReLU())
        self.stages = nn.ModuleList(
            nn.Conv2d(64 if i == 0 else channels, channels, 3, 1 if i == 0 else 2, 1)
            for i in range(4)
        )
        self.rpn, self.proposal_matcher = RPNHead(channels), Matcher()

    def prepare_targets(self, anchors, targets):
        labels = []
        for target in targets:
            if CURE:
                match_quality_matrix = torch.cat(
                    [boxlist_iou(t, anchors) for t in target.split(50)]
                )
            else:
                match_quality_matrix = boxlist_iou(target, anchors)
            labels.append((self.proposal_matcher(match_quality_matrix) >= 0).float())
        return torch.stack(labels)

    def forward(self, images, targets):
        x, features = self.stem(images), []
        for stage in self.stages:
            x = F.relu(stage(x))
            features.append(x)
        objectness, box_regression = self.rpn(features)
        anchors = torch.rand(objectness.shape[1], 4, device="cuda")
        labels = self.prepare_targets(anchors, targets)
        return (
            F.binary_cross_entropy_with_logits(objectness.squeeze(-1), labels)
            + box_regression.abs().mean()
        )


with vramscope.record(os.environ["OUT"]):
    model = GeneralizedRCNN().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    for h, w, num_gt in [(640, 800, 12), (672, 960, 40), (640, 896, 25), (704, 960, 90),
                         (640, 800, 7), (704, 960, 420), (672, 896, 30)]:
        images = torch.rand(2, 3, h, w).cuda()
        loss = model(images, [torch.rand(num_gt, 4).cuda(), torch.rand(10, 4).cuda()])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
