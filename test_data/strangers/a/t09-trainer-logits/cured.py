import torch
from torch.utils.data import DataLoader, Dataset
from transformers import DistilBertConfig, DistilBertForMaskedLM


class RandomTokens(Dataset):
    def __init__(self, n):
        self.ids = torch.randint(5, 30522, (n, 128))

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "attention_mask": torch.ones(128, dtype=torch.long), "labels": self.ids[i]}


class Trainer:
    def __init__(self, model, train_set, eval_set, lr=5e-5, batch_size=8):
        self.model, self.device = model.cuda(), "cuda"
        self.train_loader = DataLoader(train_set, batch_size, shuffle=True)
        self.eval_loader = DataLoader(eval_set, batch_size)
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr)

    def train(self):
        self.model.train()
        for inputs in self.train_loader:
            loss = self.model(**{k: v.to(self.device) for k, v in inputs.items()}).loss
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        preds, labels = [], []
        for inputs in self.eval_loader:
            outputs = self.model(**{k: v.to(self.device) for k, v in inputs.items()})
            preds.append(outputs.logits.argmax(-1).cpu())
            labels.append(inputs["labels"])
        return (torch.cat(preds) == torch.cat(labels)).float().mean().item()


trainer = Trainer(DistilBertForMaskedLM(DistilBertConfig(n_layers=2, dim=256, n_heads=4, hidden_dim=1024)), RandomTokens(32), RandomTokens(96))
trainer.train()
print("accuracy", trainer.evaluate())
