import torch
from torch import nn
import torch.nn.functional as F
from torchvision.models import mobilenet_v3_small, resnet18

torch.backends.cudnn.enabled = False
device = torch.device("cuda")
T, ALPHA = 4.0, 0.7

teacher = resnet18(num_classes=100).to(device).eval().requires_grad_(False)
student = mobilenet_v3_small(num_classes=100).to(device)
optimizer = torch.optim.SGD(student.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=20)


def distillation_loss(s, t, y):
    soft = F.kl_div(F.log_softmax(s / T, dim=1), F.softmax(t / T, dim=1), reduction="batchmean") * T * T
    return ALPHA * soft + (1 - ALPHA) * F.cross_entropy(s, y)


losses = []
for step in range(20):
    images = torch.rand(32, 3, 128, 128).to(device)
    labels = torch.randint(0, 100, (32,)).to(device)
    with torch.no_grad():
        targets = teacher(images)
    loss = distillation_loss(student(images), targets, labels)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    scheduler.step()
    losses.append(loss.item())
print("loss", sum(losses) / len(losses), "lr", scheduler.get_last_lr()[0])
