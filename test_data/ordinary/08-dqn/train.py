import argparse
import random
from collections import deque, namedtuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

Transition = namedtuple("Transition", "state action reward next_state done")


class VecPongLike:
    """A vector of fake Atari environments: stacked 84x84 frames."""

    def __init__(self, n_envs, n_actions=6, seed=0):
        self.n_envs, self.n_actions = n_envs, n_actions
        self.rng = np.random.default_rng(seed)

    def _obs(self):
        return self.rng.integers(0, 256, (self.n_envs, 4, 84, 84), dtype=np.uint8)

    def reset(self):
        return self._obs()

    def step(self, actions):
        reward = self.rng.choice([-1.0, 0.0, 1.0], self.n_envs, p=[0.02, 0.96, 0.02])
        done = self.rng.random(self.n_envs) < 0.005
        return self._obs(), reward.astype(np.float32), done.astype(np.float32)


class QNetwork(nn.Module):
    def __init__(self, n_actions):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(4, 32, 8, stride=4), nn.ReLU(),
            nn.Conv2d(32, 64, 4, stride=2), nn.ReLU(),
            nn.Conv2d(64, 64, 3, stride=1), nn.ReLU(), nn.Flatten(),
            nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, n_actions))

    def forward(self, x):
        return self.net(x)


class ReplayMemory:
    def __init__(self, capacity):
        self.memory = deque(maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, batch_size):
        batch = Transition(*zip(*random.sample(self.memory, batch_size)))
        return [torch.stack(x) for x in batch]

    def __len__(self):
        return len(self.memory)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--n-envs", type=int, default=32)
    parser.add_argument("--total-steps", type=int, default=300)
    parser.add_argument("--buffer-size", type=int, default=100_000)
    parser.add_argument("--learning-starts", type=int, default=1000)
    parser.add_argument("--train-every", type=int, default=16)
    parser.add_argument("--target-every", type=int, default=100)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--gamma", type=float, default=0.99)
    parser.add_argument("--lr", type=float, default=1e-4)
    parser.add_argument("--save", type=str, default=None)
    args = parser.parse_args()

    random.seed(0)
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    env = VecPongLike(args.n_envs)
    q_net, target_net = QNetwork(env.n_actions).to(device), QNetwork(env.n_actions).to(device)
    target_net.load_state_dict(q_net.state_dict())
    optimizer = torch.optim.Adam(q_net.parameters(), lr=args.lr)
    memory = ReplayMemory(args.buffer_size)

    def to_tensor(obs):
        return torch.as_tensor(obs, device=device).float() / 255.0

    state = to_tensor(env.reset())
    for step in range(args.total_steps):
        eps = max(0.05, 1.0 - step / (0.5 * args.total_steps))
        with torch.no_grad():
            greedy = q_net(state).argmax(1)
        explore = torch.rand(args.n_envs, device=device) < eps
        action = torch.where(explore, torch.randint_like(greedy, env.n_actions), greedy)
        obs, reward, done = env.step(action.cpu().numpy())
        next_state = to_tensor(obs)
        reward_t, done_t = torch.tensor(reward, device=device), torch.tensor(done, device=device)
        for i in range(args.n_envs):
            memory.push(state[i], action[i], reward_t[i], next_state[i], done_t[i])
        state = next_state

        if len(memory) >= args.learning_starts and step % args.train_every == 0:
            s, a, r, s2, d = memory.sample(args.batch_size)
            q = q_net(s).gather(1, a.unsqueeze(1)).squeeze(1)
            with torch.no_grad():
                target = r + args.gamma * (1 - d) * target_net(s2).max(1).values
            loss = F.smooth_l1_loss(q, target)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(q_net.parameters(), 10.0)
            optimizer.step()
            print(f"step {step} eps {eps:.2f} loss {loss.item():.4f} memory {len(memory)}")
        if step % args.target_every == 0:
            target_net.load_state_dict(q_net.state_dict())
    if args.save:
        torch.save(q_net.state_dict(), args.save)


if __name__ == "__main__":
    main()
