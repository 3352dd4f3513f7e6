import torch
from torch import nn

# sensitivity of an EEG classifier to its input channels
device = torch.device("cuda")
recordings = torch.randn(2048, 64, 512)
labels = torch.randint(0, 4, (2048,))


class EEGNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.spatial = nn.Linear(64, 24)
        self.temporal = nn.Linear(512, 96)
        self.out = nn.Linear(24 * 96, 4)

    def forward(self, x):
        x = torch.tanh(self.spatial(x.transpose(1, 2)))
        x = torch.tanh(self.temporal(x.transpose(1, 2)))
        return self.out(x.flatten(1))


net = EEGNet().to(device)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
recordings, labels = recordings.to(device), labels.to(device)
channel_importance = torch.zeros(64, device=device)

for epoch in range(2):
    for start in range(0, 2048, 128):
        x, y = recordings[start : start + 128].clone().requires_grad_(), labels[start : start + 128]
        loss = nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        channel_importance += x.grad.abs().mean(dim=(0, 2))
    print(epoch, loss.item(), channel_importance.argmax().item())
