import torch
import torch.nn as nn

torch.backends.cudnn.enabled = False
ENVS, HORIZON, DEV = 16, 32, "cuda"


class ActorCritic(nn.Module):
    def __init__(self, actions=5):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 16, 8, 4), nn.ReLU(), nn.Conv2d(16, 32, 4, 2), nn.ReLU(), nn.Flatten(), nn.Linear(1152, 256), nn.ReLU())
        self.pi, self.v = nn.Linear(256, actions), nn.Linear(256, 1)

    def forward(self, obs):
        return self.pi(h := self.body(obs)), self.v(h).squeeze(-1)


class Rollout:
    def __init__(self):
        self.obs = torch.empty(0, 3, 64, 64, device=DEV)
        self.act, self.ret = self.obs.new_empty(0, dtype=torch.long), self.obs.new_empty(0)

    def add(self, obs, act, ret):
        self.obs = torch.cat([self.obs, obs])
        self.act, self.ret = torch.cat([self.act, act]), torch.cat([self.ret, ret])

    def minibatches(self, n, size=128):
        for rows in torch.randperm(n, device=DEV).split(size):
            rows = rows + len(self.obs) - n
            yield self.obs[rows], self.act[rows], self.ret[rows]


agent, rollout = ActorCritic().to(DEV), Rollout()
optimizer = torch.optim.Adam(agent.parameters(), lr=2.5e-4, eps=1e-5)
for update in range(25):
    for t in range(HORIZON):
        obs = torch.rand(ENVS, 3, 64, 64).to(DEV)
        with torch.no_grad():
            logits, value = agent(obs)
        rollout.add(obs, logits.argmax(-1), torch.randn(ENVS, device=DEV) + value)
    for obs, act, ret in rollout.minibatches(ENVS * HORIZON):
        logits, value = agent(obs)
        loss = -(torch.log_softmax(logits, -1).gather(1, act[:, None]).squeeze(1) * (ret - value.detach())).mean() + 0.5 * (ret - value).pow(2).mean()
        optimizer.zero_grad(), loss.backward(), optimizer.step()
print("updates", update + 1, "loss", loss.item())
