import argparse

import torch
import torch.nn.functional as F


def encode(n, dim, device, chunk=4096):
    tower = torch.nn.Linear(dim, dim, bias=False).to(device)
    with torch.no_grad():
        return torch.cat([F.normalize(tower(torch.randn(min(chunk, n - i), dim, device=device)), dim=-1) for i in range(0, n, chunk)])


@torch.no_grad()
def recall_at(queries, gallery, truth, ks=(1, 5, 10)):
    similarity = queries @ gallery.T
    ranking = torch.argsort(similarity, dim=1, descending=True)
    hits = ranking[:, : max(ks)] == truth[:, None]
    return {k: hits[:, :k].any(dim=1).float().mean().item() for k in ks}


def main():
    cli = argparse.ArgumentParser()
    cli.add_argument("--gallery", type=int, default=40_000)
    cli.add_argument("--queries", type=int, default=2_000)
    cli.add_argument("--dim", type=int, default=128)
    opt = cli.parse_args()
    device = torch.device("cuda")
    gallery = encode(opt.gallery, opt.dim, device)
    for language in ("en", "de", "ja"):
        queries = encode(opt.queries, opt.dim, device)
        truth = torch.randint(opt.gallery, (opt.queries,), device=device)
        print(language, recall_at(queries, gallery, truth))


main()
