"""HorizonRobotics/alf#1532 (merged pull request)

Truth: the Checkpointer's torch.load has no map_location, so the whole checkpoint (weights,
optimizer, the replay buffer's storage) is put on the GPU beside the live copies: a surge when
training resumes.
Cure: torch.load(f_path, map_location="cpu").
"""

# CAP=1800
import gc
import os
import tempfile
import torch
import torch.nn as nn
import vramscope

CURE = bool(os.environ.get("CURE"))


class ReplayBuffer(nn.Module):
    def __init__(self, num_environments, max_length, obs_dim, action_dim):
        super().__init__()
        shape = (num_environments, max_length)
        self.register_buffer("_obs", torch.zeros(*shape, obs_dim, device="cuda"))
        self.register_buffer("_action", torch.zeros(*shape, action_dim, device="cuda"))
        self.register_buffer("_reward", torch.zeros(*shape, device="cuda"))
        self.max_length = max_length

    def get_batch(self, batch_size):
        env = torch.randint(0, self._obs.shape[0], (batch_size,), device="cuda")
        t = torch.randint(0, self.max_length - 1, (batch_size,), device="cuda")
        return self._obs[env, t], self._action[env, t], self._reward[env, t], self._obs[env, t + 1]


def encoding_net(i, o, h=1024):
    return nn.Sequential(nn.Linear(i, h), nn.ReLU(), nn.Linear(h, h), nn.ReLU(), nn.Linear(h, o))


class SacAlgorithm(nn.Module):
    def __init__(self, obs_dim=376, action_dim=17):
        super().__init__()
        self._actor_network = encoding_net(obs_dim, action_dim)
        self._critic_networks = encoding_net(obs_dim + action_dim, 1)
        self._target_critic_networks = encoding_net(obs_dim + action_dim, 1)
        self._replay_buffer = ReplayBuffer(64, 8000, obs_dim, action_dim)

    def train_step(self, batch_size=4096):
        obs, act, rew, next_obs = self._replay_buffer.get_batch(batch_size)
        with torch.no_grad():
            target = rew + 0.99 * self._target_critic_networks(
                torch.cat([next_obs, self._actor_network(next_obs)], -1)
            ).squeeze(-1)
        q = self._critic_networks(torch.cat([obs, act], -1)).squeeze(-1)
        q_pi = self._critic_networks(torch.cat([obs, self._actor_network(obs)], -1))
        return (q - target).pow(2).mean() - q_pi.mean()


class Checkpointer:
    def __init__(self, ckpt_dir, **kwargs):
        self._ckpt_dir, self._modules = ckpt_dir, kwargs

    def save(self, step):
        torch.save(
            {k: m.state_dict() for k, m in self._modules.items()}, f"{self._ckpt_dir}/ckpt-{step}"
        )

    def load(self, step):
        f_path = f"{self._ckpt_dir}/ckpt-{step}"
        checkpoint = torch.load(f_path, map_location="cpu" if CURE else None)
        for k, m in self._modules.items():
            m.load_state_dict(checkpoint[k])


def build(ckpt_dir):
    alg = SacAlgorithm().cuda()
    opt = torch.optim.Adam([p for n, p in alg.named_parameters() if "target" not in n], lr=3e-4)
    return alg, opt, Checkpointer(ckpt_dir, algorithm=alg, optimizer=opt)


def train(alg, opt, iterations):
    for _ in range(iterations):
        loss = alg.train_step()
        opt.zero_grad()
        loss.backward()
        opt.step()


with tempfile.TemporaryDirectory() as ckpt_dir:
    alg, opt, ckpt = build(ckpt_dir)
    train(alg, opt, 1)
    ckpt.save(1000)
    del alg, opt, ckpt
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    with vramscope.record(os.environ["OUT"]):
        alg, opt, ckpt = build(ckpt_dir)
        ckpt.load(1000)
        train(alg, opt, 6)
