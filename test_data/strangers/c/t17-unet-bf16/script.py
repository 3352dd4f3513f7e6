import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.backends.cudnn.enabled = False


class Cells(Dataset):
    def __len__(self):
        return 48

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        return torch.rand(1, 128, 128, generator=g), (torch.rand(1, 128, 128, generator=g) > 0.5).float()


def double(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(True), nn.Conv2d(o, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(True))


class UNet(nn.Module):
    def __init__(self, w=32):
        super().__init__()
        self.d1, self.d2, self.mid = double(1, w), double(w, 2 * w), double(2 * w, 4 * w)
        self.u2, self.u1 = nn.ConvTranspose2d(4 * w, 2 * w, 2, 2), nn.ConvTranspose2d(2 * w, w, 2, 2)
        self.c2, self.c1, self.out = double(4 * w, 2 * w), double(2 * w, w), nn.Conv2d(w, 1, 1)
        self.pool = nn.MaxPool2d(2)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(self.pool(a))
        x = self.c2(torch.cat([self.u2(self.mid(self.pool(b))), b], 1))
        return self.out(self.c1(torch.cat([self.u1(x), a], 1)))


unet = UNet().cuda()
adam = torch.optim.AdamW(unet.parameters(), lr=1e-3)
for epoch in range(3):
    total = 0.0
    for images, masks in DataLoader(Cells(), batch_size=8, shuffle=True):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = nn.functional.binary_cross_entropy_with_logits(unet(images.cuda()), masks.cuda())
        adam.zero_grad(set_to_none=True), loss.backward(), adam.step()
        total += loss.item()
    print(f"epoch {epoch} bce {total / 6:.4f}")
