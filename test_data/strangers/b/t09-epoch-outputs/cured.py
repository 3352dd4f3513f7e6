import torch
from torch import nn

torch.backends.cudnn.enabled = False


class LitSegmenter(nn.Module):
    def __init__(self, classes=21):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 32, 3, 1, 1), nn.ReLU(), nn.Conv2d(32, 32, 3, 1, 1), nn.ReLU(), nn.Conv2d(32, classes, 1))

    def training_step(self, batch, batch_idx):
        images, masks = batch
        logits = self.net(images)
        return {"loss": nn.functional.cross_entropy(logits, masks), "logits": logits, "masks": masks}

    def training_epoch_end(self, outputs):
        mean = torch.stack([o["loss"].detach() for o in outputs]).mean()
        accuracy = (outputs[-1]["logits"].argmax(1) == outputs[-1]["masks"]).float().mean()
        print(f"loss {mean.item():.3f} pixel accuracy {accuracy.item():.3f}")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


class Trainer:
    def __init__(self, max_epochs):
        self.max_epochs = max_epochs

    def fit(self, module, loader):
        module.cuda().train()
        optimizer = module.configure_optimizers()
        for _ in range(self.max_epochs):
            step_outputs = []
            for idx, batch in enumerate(loader):
                out = module.training_step([t.cuda() for t in batch], idx)
                optimizer.zero_grad()
                out["loss"].backward()
                optimizer.step()
                step_outputs = [*({"loss": o["loss"].detach()} for o in step_outputs), out]
            module.training_epoch_end(step_outputs)


batches = [(torch.rand(8, 3, 128, 128), torch.randint(0, 21, (8, 128, 128))) for _ in range(40)]
Trainer(max_epochs=2).fit(LitSegmenter(), batches)
