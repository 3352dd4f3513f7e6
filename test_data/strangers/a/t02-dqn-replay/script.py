import random
from collections import deque

import numpy as np
import torch
import torch.nn as nn

torch.backends.cudnn.enabled = False
device = "cuda"


class ReplayMemory:
    def __init__(self, capacity):
        self.memory = deque(maxlen=capacity)

    def push(self, *transition):
        self.memory.append(transition)

    def sample(self, n):
        return [torch.stack(column) for column in zip(*random.sample(self.memory, n))]


def observe():
    frames = np.random.randint(0, 255, (4, 84, 84), dtype=np.uint8)
    return torch.from_numpy(frames).to(device).float().div_(255)


q_net = nn.Sequential(nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Flatten(), nn.Linear(5184, 512), nn.ReLU(), nn.Linear(512, 6)).to(device)
optimizer = torch.optim.RMSprop(q_net.parameters(), lr=2.5e-4)
memory = ReplayMemory(100_000)
state = observe()
for frame in range(6000):
    action = torch.tensor(random.randrange(6), device=device)
    next_state, reward = observe(), torch.tensor(random.random(), device=device)
    memory.push(state, action, reward, next_state)
    state = next_state
    if frame > 500 and frame % 20 == 0:
        s, a, r, s2 = memory.sample(32)
        with torch.no_grad():
            target = r + 0.99 * q_net(s2).max(1).values
        loss = nn.functional.smooth_l1_loss(q_net(s).gather(1, a[:, None]).squeeze(1), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print("frames", frame + 1, "memory", len(memory.memory))
