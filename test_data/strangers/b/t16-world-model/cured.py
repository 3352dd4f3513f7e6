import torch
from torch import nn


def rollout(length, envs=256, obs=32, act=4):
    g = torch.Generator().manual_seed(length)
    for _ in range(length):
        yield torch.randn(envs, obs, generator=g), torch.randn(envs, act, generator=g)


class WorldModel(nn.Module):
    def __init__(self, obs=32, act=4, hidden=512):
        super().__init__()
        self.cell = nn.GRUCell(obs + act, hidden)
        self.predict = nn.Sequential(nn.Linear(hidden, hidden), nn.ELU(), nn.Linear(hidden, obs))
        self.hidden = hidden

    def initial(self, envs):
        return self.cell.weight_hh.new_zeros(envs, self.hidden)

    def forward(self, o, a, h):
        h = self.cell(torch.cat([o, a], dim=-1), h)
        return self.predict(h), h


def train(updates=3, horizon=400):
    model = WorldModel().cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
    for update in range(updates):
        h, total, guess = model.initial(256), 0.0, None
        for t, (o, a) in enumerate(rollout(horizon)):
            o, a = o.cuda(), a.cuda()
            if guess is not None:
                total = total + (guess - o).abs().mean() / horizon
            if t % 50 == 49:
                total.backward()
                total, h, guess = 0.0, h.detach(), None
            else:
                guess, h = model(o, a, h)
        nn.utils.clip_grad_norm_(model.parameters(), 100.0)
        optimizer.step()
        optimizer.zero_grad()
        print("update", update)


train()
