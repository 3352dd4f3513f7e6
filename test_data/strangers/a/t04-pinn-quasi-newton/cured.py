import torch
from torch import nn

net = nn.Sequential(nn.Linear(2, 768), nn.Tanh(), nn.Linear(768, 768), nn.Tanh(), nn.Linear(768, 768), nn.Tanh(), nn.Linear(768, 1)).cuda()


def flatten(tensors):
    return torch.cat([t.reshape(-1) for t in tensors])


def heat_residual(points):
    u = net(points)
    du = torch.autograd.grad(u.sum(), points, create_graph=True)[0]
    d2u = torch.autograd.grad(du[:, 0].sum(), points, create_graph=True)[0]
    initial = u - torch.sin(3.14159 * points[:, :1])
    return (du[:, 1] - 0.1 * d2u[:, 0]).square().mean() + initial.square().mean()


class QuasiNewton:
    def __init__(self, params, lr=0.5):
        self.params, self.lr = list(params), lr
        self.s, self.y, self.last = [], [], None

    def step(self, loss):
        g = flatten(torch.autograd.grad(loss, self.params))
        if self.last is not None:
            self.y.append(g - self.last)
        q, alphas = g.clone(), []
        for s, y in zip(reversed(self.s), reversed(self.y)):
            alphas.append(s.dot(q) / y.dot(s))
            q -= alphas[-1] * y
        for s, y, a in zip(self.s, self.y, reversed(alphas)):
            q += (a - y.dot(q) / y.dot(s)) * s
        self.s.append(-self.lr * q)
        self.last = g
        self.s, self.y = self.s[-10:], self.y[-10:]
        with torch.no_grad():
            nn.utils.vector_to_parameters(nn.utils.parameters_to_vector(self.params) + self.s[-1], self.params)


optimizer = QuasiNewton(net.parameters())
for iteration in range(120):
    loss = heat_residual(torch.rand(1024, 2, device="cuda", requires_grad=True))
    optimizer.step(loss)
    if iteration % 20 == 0:
        print(iteration, loss.item())
