import random

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

random.seed(1)
documents = [torch.randint(1, 8000, (random.randint(40, 160),)) for _ in range(383)]
documents.insert(250, torch.randint(1, 8000, (2600,)))
dataset = [(doc, i % 5) for i, doc in enumerate(documents)]


def collate(samples):
    tokens, labels = zip(*samples)
    return pad_sequence(tokens, batch_first=True), torch.tensor(labels)


class Classifier(nn.Module):
    def __init__(self, dim=192):
        super().__init__()
        self.embed = nn.Embedding(8000, dim, padding_idx=0)
        self.convs = nn.ModuleList(nn.Conv1d(dim, 2 * dim, k, padding=k // 2) for k in (3, 5, 7))
        self.out = nn.Linear(6 * dim, 5)

    def forward(self, tokens):
        x = self.embed(tokens).transpose(1, 2)
        return self.out(torch.cat([conv(x).relu().amax(dim=2) for conv in self.convs], dim=1))


torch.backends.cudnn.enabled = False
model = Classifier().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step, (tokens, labels) in enumerate(DataLoader(dataset, batch_size=64, collate_fn=collate)):
    loss = nn.functional.cross_entropy(model(tokens.cuda()), labels.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, tuple(tokens.shape), loss.item())
