import random

import torch
from torch import nn

torch.manual_seed(3)
torch.backends.cudnn.enabled = False
DEVICE, ACCUMULATE = torch.device("cuda"), 4


def block(i, o, transpose=False):
    conv = nn.ConvTranspose2d(i, o, 4, 2, 1) if transpose else nn.Conv2d(i, o, 4, 2, 1)
    return [conv, nn.BatchNorm2d(o), nn.ReLU()]


autoencoder = nn.Sequential(*block(1, 32), *block(32, 64), *block(64, 128), *block(128, 64, True), *block(64, 32, True), nn.ConvTranspose2d(32, 1, 4, 2, 1), nn.Sigmoid()).to(DEVICE)
optimizer = torch.optim.Adam(autoencoder.parameters(), lr=1e-3)
train_images, val_images = torch.rand(512, 1, 128, 128), torch.rand(96, 1, 128, 128)


@torch.no_grad()
def validate():
    autoencoder.eval()
    losses = []
    for part in val_images.split(32):
        part = part.to(DEVICE)
        losses.append(nn.functional.binary_cross_entropy(autoencoder(part), part).item())
    return sum(losses) / len(losses)


history = []
for epoch in range(2):
    autoencoder.train()
    batches = list(train_images.split(32))
    random.shuffle(batches)
    for i, images in enumerate(batches):
        images = images.to(DEVICE)
        noisy = (images + 0.1 * torch.randn_like(images)).clamp_(0, 1)
        loss = nn.functional.binary_cross_entropy(autoencoder(noisy), images) / ACCUMULATE
        loss.backward()
        if (i + 1) % ACCUMULATE == 0:
            optimizer.step()
            optimizer.zero_grad()
    history.append(validate())
print(history)
