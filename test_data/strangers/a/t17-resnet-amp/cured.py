import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchvision.models import resnet18

torch.backends.cudnn.enabled = False


def main():
    device = torch.device("cuda")
    images, labels = torch.rand(256, 3, 112, 112), torch.randint(0, 100, (256,))
    loader = DataLoader(TensorDataset(images, labels), batch_size=32, shuffle=True, pin_memory=False, drop_last=True)
    model = resnet18(num_classes=100).to(device, memory_format=torch.channels_last)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=5e-4)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=3 * len(loader))
    scaler = torch.amp.GradScaler("cuda")

    for epoch in range(3):
        model.train()
        running = 0.0
        for x, y in loader:
            x = x.to(device, non_blocking=True, memory_format=torch.channels_last)
            y = y.to(device, non_blocking=True)
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cuda", dtype=torch.float16):
                loss = criterion(model(x), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            scheduler.step()
            running += loss.item()
        print(f"epoch {epoch} loss {running / len(loader):.4f}")


if __name__ == "__main__":
    main()
