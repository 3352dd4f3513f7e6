"""cpnota/autonomous-learning-library#144

Truth: the frame stack is built before the state becomes a tensor, so every state in the replay
buffer on the GPU owns its own copy of four frames; the same frames are stored four times over.
Cure: stack lazily on tensors (FrameStack body): the buffer keeps references to single frames.
"""

# CAP=24000
import copy
import os
import random
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import vramscope

CURE = bool(os.environ.get("CURE"))


class LazyState:
    def __init__(self, frames):
        self.frames = list(frames)

    def observation(self):
        return torch.stack(self.frames)


class AtariEnvironment:
    def __init__(self, device):
        self.device, self._frames = device, [np.zeros((84, 84), np.uint8)] * 4
        self._tensors = [torch.zeros(84, 84, dtype=torch.uint8, device=device)] * 4

    def step(self, action):
        frame = np.random.randint(0, 255, (84, 84), dtype=np.uint8)
        if CURE:
            self._tensors = self._tensors[1:] + [torch.from_numpy(frame).to(self.device)]
            return LazyState(self._tensors)
        self._frames = self._frames[1:] + [frame]
        return torch.from_numpy(np.stack(self._frames)).to(self.device)


class ExperienceReplayBuffer:
    def __init__(self, size):
        self.buffer, self.capacity, self.pos = [], size, 0

    def store(self, state, action, reward, next_state):
        if len(self.buffer) < self.capacity:
            self.buffer.append((state, action, reward, next_state))
        else:
            self.buffer[self.pos] = (state, action, reward, next_state)
            self.pos = (self.pos + 1) % self.capacity

    def sample(self, n):
        batch = random.sample(self.buffer, n)
        tensor = lambda s: s.observation() if isinstance(s, LazyState) else s
        states, next_states = (
            torch.stack([tensor(b[0]) for b in batch]),
            torch.stack([tensor(b[3]) for b in batch]),
        )
        actions, rewards = (
            torch.tensor([b[1] for b in batch], device="cuda"),
            torch.tensor([b[2] for b in batch], device="cuda"),
        )
        return states, actions, rewards, next_states


def nature_dqn(actions=4):
    return nn.Sequential(
        nn.Conv2d(4, 32, 8, stride=4),
        nn.ReLU(),
        nn.Conv2d(32, 64, 4, stride=2),
        nn.ReLU(),
        nn.Conv2d(64, 64, 3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(3136, 512),
        nn.ReLU(),
        nn.Linear(512, actions),
    )


def main(iterations=8, frames_per_iteration=2500):
    q = nature_dqn().cuda()
    target, optimizer = copy.deepcopy(q), torch.optim.Adam(q.parameters(), lr=1e-4)
    env, replay = AtariEnvironment("cuda"), ExperienceReplayBuffer(100000)
    state = env.step(0)
    for _ in range(iterations):
        for _ in range(frames_per_iteration):
            action = random.randrange(4)
            next_state = env.step(action)
            replay.store(state, action, 0.0, next_state)
            state = next_state
        states, actions, rewards, next_states = replay.sample(64)
        with torch.no_grad():
            targets = rewards + 0.99 * target(next_states.float() / 255).max(1).values
        loss = F.smooth_l1_loss(
            q(states.float() / 255).gather(1, actions[:, None]).squeeze(1), targets
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


with vramscope.record(os.environ["OUT"]):
    main()
