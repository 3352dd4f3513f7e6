import torch
from torch import nn
import torch.nn.functional as F

torch.backends.cudnn.enabled = False


class Involution(nn.Module):
    def __init__(self, channels, kernel_size=7, groups=4):
        super().__init__()
        self.k, self.groups = kernel_size, groups
        self.kernel = nn.Conv2d(channels, groups * kernel_size**2, 1)

    def forward(self, x):
        b, c, h, w = x.shape
        weight = self.kernel(x).view(b, self.groups, 1, self.k**2, h, w)
        patches = F.unfold(x, self.k, padding=self.k // 2).view(b, self.groups, c // self.groups, self.k**2, h, w)
        return (weight * patches).sum(dim=3).view(b, c, h, w)


class Net(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.stem = nn.Conv2d(3, 32, 3, padding=1)
        self.mix = Involution(32)
        self.norm = nn.BatchNorm2d(32)
        self.head = nn.Linear(32, classes)

    def forward(self, x):
        x = self.stem(x)
        x = F.relu(self.norm(self.mix(x)) + x)
        return self.head(x.mean(dim=(2, 3)))


net = Net().to("cuda")
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
for step in range(6):
    images, labels = torch.rand(4, 3, 128, 128).to("cuda"), torch.randint(0, 10, (4,)).to("cuda")
    loss = F.cross_entropy(net(images), labels)
    optimizer.zero_grad(), loss.backward(), optimizer.step()
print("ok", loss.item())
