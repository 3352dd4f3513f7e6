"""FelixOpolka/STGCN-PyTorch#7

Truth: training is done in batches, but validation passes the whole validation set through the net
in one call: its activations are the peak.
Cure: validation in batches, too.
"""

# CAP=24000
import os
import torch
import torch.nn as nn
import torch.nn.functional as F
import vramscope

CURE = bool(os.environ.get("CURE"))
num_timesteps_input, num_timesteps_output, batch_size = 12, 3, 50


class TimeBlock(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size=3):
        super().__init__()
        self.conv1, self.conv2, self.conv3 = (
            nn.Conv2d(in_channels, out_channels, (1, kernel_size)) for _ in range(3)
        )

    def forward(self, X):
        X = X.permute(0, 3, 1, 2)
        temp = self.conv1(X) + torch.sigmoid(self.conv2(X))
        out = F.relu(temp + self.conv3(X))
        return out.permute(0, 2, 3, 1)


class STGCNBlock(nn.Module):
    def __init__(self, in_channels, spatial_channels, out_channels, num_nodes):
        super().__init__()
        self.temporal1, self.temporal2 = (
            TimeBlock(in_channels, out_channels),
            TimeBlock(spatial_channels, out_channels),
        )
        self.Theta1, self.batch_norm = (
            nn.Parameter(torch.randn(out_channels, spatial_channels)),
            nn.BatchNorm2d(num_nodes),
        )

    def forward(self, X, A_hat):
        t = self.temporal1(X)
        lfs = torch.einsum("ij,jklm->kilm", [A_hat, t.permute(1, 0, 2, 3)])
        return self.batch_norm(self.temporal2(F.relu(torch.matmul(lfs, self.Theta1))))


class STGCN(nn.Module):
    def __init__(self, num_nodes, num_features):
        super().__init__()
        self.block1, self.block2 = (
            STGCNBlock(num_features, 16, 64, num_nodes),
            STGCNBlock(64, 16, 64, num_nodes),
        )
        self.last_temporal = TimeBlock(64, 64)
        self.fully = nn.Linear((num_timesteps_input - 2 * 5) * 64, num_timesteps_output)

    def forward(self, A_hat, X):
        out = self.last_temporal(self.block2(self.block1(X, A_hat), A_hat))
        return self.fully(out.reshape(out.shape[0], out.shape[1], -1))


def train_epoch(training_input, training_target):
    for i in range(0, len(training_input), batch_size):
        net.train()
        optimizer.zero_grad()
        X_batch, y_batch = (
            training_input[i : i + batch_size].cuda(),
            training_target[i : i + batch_size].cuda(),
        )
        loss_criterion(net(A_wave, X_batch), y_batch).backward()
        optimizer.step()


def validate(val_input, val_target):
    with torch.no_grad():
        net.eval()
        step, losses = batch_size if CURE else len(val_input), []
        for i in range(0, len(val_input), step):
            out = net(A_wave, val_input[i : i + step].cuda())
            losses.append(loss_criterion(out, val_target[i : i + step].cuda()).item())
    return sum(losses) / len(losses)


with vramscope.record(os.environ["OUT"]):
    A_wave = torch.rand(207, 207).cuda()
    net, loss_criterion = STGCN(207, 2).cuda(), nn.MSELoss()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    train = torch.rand(200, 207, 12, 2), torch.rand(200, 207, 3)
    val = torch.rand(600, 207, 12, 2), torch.rand(600, 207, 3)
    for epoch in range(2):
        train_epoch(*train)
        validate(*val)
