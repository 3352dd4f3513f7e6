import argparse

import torch
import torch.nn as nn
import torchvision.models as models
from torch.utils.data import DataLoader, TensorDataset, random_split


def build_model(num_classes):
    model = models.efficientnet_b0(weights=None)
    model.classifier[1] = nn.Linear(model.classifier[1].in_features, num_classes)
    return model


def train_epoch(model, loader, criterion, optimizer, device):
    model.train()
    total_loss, total_correct, total = 0.0, 0, 0
    for inputs, labels in loader:
        inputs, labels = inputs.to(device), labels.to(device)
        optimizer.zero_grad()
        outputs = model(inputs)
        loss = criterion(outputs, labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        total_loss += loss.item() * inputs.size(0)
        total_correct += (outputs.argmax(1) == labels).sum().item()
        total += inputs.size(0)
    return total_loss / total, total_correct / total


def validate(model, loader, criterion, device):
    model.eval()
    val_loss = 0.0
    correct = 0
    for inputs, labels in loader:
        inputs, labels = inputs.to(device), labels.to(device)
        outputs = model(inputs)
        val_loss += criterion(outputs, labels)
        correct += (outputs.argmax(1) == labels).sum()
    val_loss = val_loss / len(loader)
    return val_loss.item(), correct.item() / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--num-classes", type=int, default=10)
    parser.add_argument("--patience", type=int, default=3)
    parser.add_argument("--checkpoint", type=str, default="")
    args = parser.parse_args()

    torch.manual_seed(42)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")

    images = torch.randn(176, 3, 224, 224)
    labels = torch.randint(0, args.num_classes, (176,))
    train_set, val_set = random_split(TensorDataset(images, labels), [96, 80])
    train_loader = DataLoader(train_set, batch_size=args.batch_size, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=args.batch_size)

    model = build_model(args.num_classes).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)

    best, bad_epochs = float("inf"), 0
    for epoch in range(args.epochs):
        train_loss, train_acc = train_epoch(model, train_loader, criterion, optimizer, device)
        print(f"Epoch {epoch + 1}/{args.epochs} train loss {train_loss:.4f} acc {train_acc:.3f}")
        val_loss, val_acc = validate(model, val_loader, criterion, device)
        print(f"    val loss {val_loss:.4f} acc {val_acc:.3f}")
        scheduler.step(val_loss)
        if val_loss < best:
            best, bad_epochs = val_loss, 0
            if args.checkpoint:
                torch.save(model.state_dict(), args.checkpoint)
        else:
            bad_epochs += 1
            if bad_epochs >= args.patience:
                print("early stopping")
                break


if __name__ == "__main__":
    main()
