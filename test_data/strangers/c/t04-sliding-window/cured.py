import torch
from torch import nn

torch.backends.cudnn.enabled = False
ROI, STRIDE, SW_BATCH = 48, 12, 4


class TinyVNet(nn.Module):
    def __init__(self, classes=2):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv3d(1, 8, 3, padding=1), nn.InstanceNorm3d(8), nn.LeakyReLU(),
            nn.Conv3d(8, 8, 3, stride=2, padding=1), nn.InstanceNorm3d(8), nn.LeakyReLU(),
            nn.ConvTranspose3d(8, classes, 2, stride=2),
        )

    def forward(self, x):
        return self.body(x)


@torch.no_grad()
def sliding_window_inference(scan, net):
    w = scan.unfold(0, ROI, STRIDE).unfold(1, ROI, STRIDE).unfold(2, ROI, STRIDE)
    nz, ny, nx = w.shape[:3]
    corners = [(z * STRIDE, y * STRIDE, x * STRIDE) for z in range(nz) for y in range(ny) for x in range(nx)]
    score = torch.zeros(2, *scan.shape, device=scan.device)
    weight = torch.zeros(scan.shape, device=scan.device)
    for start in range(0, len(corners), SW_BATCH):
        out = net(torch.stack([scan[z : z + ROI, y : y + ROI, x : x + ROI] for z, y, x in corners[start : start + SW_BATCH]])[:, None])
        for o, (z, y, x) in zip(out, corners[start:]):
            score[:, z : z + ROI, y : y + ROI, x : x + ROI] += o
            weight[z : z + ROI, y : y + ROI, x : x + ROI] += 1
    return (score / weight).argmax(0).to(torch.uint8).cpu()


if __name__ == "__main__":
    net = TinyVNet().cuda().eval()
    for patient in ("case_001", "case_002"):
        scan = torch.randn(156, 156, 156).cuda()
        print(patient, sliding_window_inference(scan, net).shape)
