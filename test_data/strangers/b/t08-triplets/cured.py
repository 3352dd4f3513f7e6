import torch
from torch import nn, optim
import torch.nn.functional as F


def batch_all_triplet_loss(labels, embeddings, margin=0.2):
    distances = torch.cdist(embeddings, embeddings)
    anchor_positive = distances.unsqueeze(2)
    anchor_negative = distances.unsqueeze(1)
    same = labels.unsqueeze(0) == labels.unsqueeze(1)
    hardest_positive = (distances * same).amax(dim=1)
    hardest_negative = (distances + 10.0 * same).amin(dim=1)
    triplet = F.relu(hardest_positive - hardest_negative + margin)
    count = (triplet > 1e-16).sum().float()
    return triplet.sum() / (count + 1e-16)


class Embedder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 128))

    def forward(self, x):
        return F.normalize(self.layers(x), dim=-1)


if __name__ == "__main__":
    gpu = torch.device("cuda")
    net = Embedder().to(gpu)
    adam = optim.Adam(net.parameters())
    for iteration in range(10):
        x = torch.randn(512, 512).to(gpu)
        labels = torch.randint(0, 64, (512,)).to(gpu)
        loss = batch_all_triplet_loss(labels, net(x))
        adam.zero_grad(set_to_none=True)
        loss.backward()
        adam.step()
        print(iteration, loss.item())
