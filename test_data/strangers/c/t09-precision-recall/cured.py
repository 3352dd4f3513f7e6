import torch
from torch import nn

torch.backends.cudnn.enabled = False


class BinnedPrecisionRecall:
    def __init__(self, bins=100, device="cuda"):
        self.thresholds = torch.linspace(0, 1, bins, device=device)
        self.tp = torch.zeros(bins, device=device)
        self.fp = torch.zeros(bins, device=device)
        self.fn = torch.zeros(bins, device=device)

    def update(self, probs, target):
        probs, target = probs.flatten(), target.flatten()
        truth = target.float()
        for i, threshold in enumerate(self.thresholds):
            positive = (probs >= threshold).float()
            self.tp[i] += (positive * truth).sum()
            self.fp[i] += (positive * (1 - truth)).sum()
            self.fn[i] += ((1 - positive) * truth).sum()

    def compute(self):
        precision = self.tp / (self.tp + self.fp).clamp(min=1)
        recall = self.tp / (self.tp + self.fn).clamp(min=1)
        return torch.trapezoid(precision, recall.flip(0))


net = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 1, 1)).cuda()
sgd = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
for epoch in range(2):
    for _ in range(6):
        x, cracks = torch.rand(8, 3, 192, 192).cuda(), (torch.rand(8, 1, 192, 192) > 0.97).float().cuda()
        loss = nn.functional.binary_cross_entropy_with_logits(net(x), cracks)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
    curve = BinnedPrecisionRecall()
    with torch.no_grad():
        for _ in range(4):
            x, cracks = torch.rand(16, 3, 192, 192).cuda(), torch.rand(16, 1, 192, 192).cuda() > 0.97
            curve.update(net(x).sigmoid(), cracks)
    print(f"epoch {epoch} loss {loss.item():.4f} AP {curve.compute().item():.4f}")
