import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset
from transformers import ViTConfig, ViTForImageClassification, get_cosine_schedule_with_warmup

torch.backends.cudnn.enabled = False


def main():
    accelerator = Accelerator(gradient_accumulation_steps=2)
    config = ViTConfig(hidden_size=256, num_hidden_layers=6, num_attention_heads=4, intermediate_size=1024, image_size=96, patch_size=8, num_labels=10)
    model = ViTForImageClassification(config)
    data = TensorDataset(torch.rand(192, 3, 96, 96), torch.randint(0, 10, (192,)))
    train, test = torch.utils.data.random_split(data, [128, 64])
    train, test = DataLoader(train, batch_size=16, shuffle=True), DataLoader(test, batch_size=16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.05)
    schedule = get_cosine_schedule_with_warmup(optimizer, 4, 2 * len(train))
    model, optimizer, train, test, schedule = accelerator.prepare(model, optimizer, train, test, schedule)

    for epoch in range(2):
        model.train()
        for pixels, labels in train:
            with accelerator.accumulate(model):
                loss = model(pixel_values=pixels, labels=labels).loss
                accelerator.backward(loss)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
        model.eval()
        correct = 0
        for pixels, labels in test:
            with torch.no_grad():
                predicted = model(pixel_values=pixels).logits.argmax(dim=-1)
            correct += (predicted == labels).sum().item()
        accelerator.print(f"epoch {epoch}: {loss.item():.3f}, {correct} correct")


if __name__ == "__main__":
    main()
