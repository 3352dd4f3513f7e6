"""ray-project/ray#6962 (cured by #7238)

Truth: PPO's `value` for the bootstrap of a fragment runs with autograd, so the advantages that are
computed from it and kept in the sample batches hold the graph of the vision network.
Cure: torch.no_grad() around value.
"""

# CAP=1300
import contextlib
import os
import torch
import torch.nn as nn
import torch.nn.functional as F
import vramscope

CURE = bool(os.environ.get("CURE"))


class VisionNetwork(nn.Module):
    def __init__(self, num_outputs=6):
        super().__init__()
        self._convs = nn.Sequential(
            nn.Conv2d(4, 32, 8, 4, 2), nn.ReLU(), nn.Conv2d(32, 64, 4, 2, 1), nn.ReLU(),
            nn.Conv2d(64, 64, 3, 1, 1), nn.ReLU(), nn.Flatten(), nn.Linear(6400, 512), nn.ReLU(),
        )
        self._logits, self._value_branch = nn.Linear(512, num_outputs), nn.Linear(512, 1)

    def forward(self, obs):
        features = self._convs(obs.float() / 255.0)
        return self._logits(features), self._value_branch(features).squeeze(1)


class PPOTorchPolicy:
    def __init__(self):
        self.model = VisionNetwork().cuda()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=5e-5)

    @torch.no_grad()
    def compute_actions(self, obs):
        logits, vf = self.model(obs)
        return logits.argmax(1), logits, vf

    def value(self, obs):
        with torch.no_grad() if CURE else contextlib.nullcontext():
            return self.model(obs)[1]

    def postprocess_trajectory(self, batch, last_obs, gamma=0.99, lambda_=0.95):
        last_r = self.value(last_obs)
        vpred_t = torch.stack([*batch["vf_preds"], last_r])
        delta_t = torch.stack(batch["rewards"]) + gamma * vpred_t[1:] - vpred_t[:-1]
        advantages, adv = [], 0.0
        for delta in reversed(delta_t):
            adv = delta + gamma * lambda_ * adv
            advantages.insert(0, adv)
        batch["advantages"] = torch.stack(advantages)
        return batch

    def learn_on_batch(self, batches, minibatch=256):
        cat = lambda k: torch.cat([t for b in batches for t in b[k]])
        obs, actions, old = cat("obs"), cat("actions"), cat("logits")
        adv = cat("advantages").detach()
        for i in range(0, len(obs), minibatch):
            s = slice(i, i + minibatch)
            logits, vf = self.model(obs[s])
            r = F.log_softmax(logits, 1).gather(1, actions[s, None]).squeeze(1)
            r = (r - F.log_softmax(old[s], 1).gather(1, actions[s, None]).squeeze(1)).exp()
            loss = -torch.min(r * adv[s], r.clamp(0.8, 1.2) * adv[s]).mean() + vf.pow(2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


class RolloutWorker:
    def __init__(self, policy, num_envs=128, rollout_fragment_length=3):
        self.policy, self.num_envs, self.length = policy, num_envs, rollout_fragment_length

    def observe(self):
        return torch.zeros(self.num_envs, 4, 84, 84, dtype=torch.uint8).cuda()

    def sample(self):
        batch = {k: [] for k in ("obs", "actions", "logits", "vf_preds", "rewards")}
        for _ in range(self.length):
            obs = self.observe()
            action, logits, vf = self.policy.compute_actions(obs)
            row = (obs, action, logits, vf, torch.zeros(self.num_envs).cuda())
            for k, v in zip(batch, row):
                batch[k].append(v)
        return self.policy.postprocess_trajectory(batch, self.observe())


with vramscope.record(os.environ["OUT"]):
    policy = PPOTorchPolicy()
    worker = RolloutWorker(policy)
    for iteration in range(4):
        samples = []
        for _ in range(20):
            samples.append(worker.sample())
        policy.learn_on_batch(samples)
