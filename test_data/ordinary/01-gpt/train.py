import argparse
import math
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from model import GPT, GPTConfig


class TokenDataset(Dataset):
    """Random windows out of one long array of tokens."""

    def __init__(self, n_tokens, block_size, vocab_size, length):
        rng = np.random.default_rng(1337)
        self.data = rng.integers(0, vocab_size, size=n_tokens, dtype=np.int64)
        self.block_size = block_size
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        start = (i * 7919) % (len(self.data) - self.block_size - 1)
        chunk = torch.from_numpy(self.data[start:start + self.block_size + 1])
        return chunk[:-1], chunk[1:]


def get_lr(step, args):
    if step < args.warmup:
        return args.lr * (step + 1) / args.warmup
    ratio = (step - args.warmup) / max(1, args.max_steps - args.warmup)
    return 0.1 * args.lr + 0.45 * args.lr * (1 + math.cos(math.pi * min(1.0, ratio)))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--batch-size", type=int, default=8)
    p.add_argument("--block-size", type=int, default=1024)
    p.add_argument("--n-layer", type=int, default=6)
    p.add_argument("--n-head", type=int, default=8)
    p.add_argument("--n-embd", type=int, default=512)
    p.add_argument("--lr", type=float, default=6e-4)
    p.add_argument("--weight-decay", type=float, default=0.1)
    p.add_argument("--warmup", type=int, default=4)
    p.add_argument("--max-steps", type=int, default=12)
    p.add_argument("--grad-clip", type=float, default=1.0)
    p.add_argument("--save", default="", help="where to save the checkpoint")
    p.add_argument("--seed", type=int, default=1337)
    args = p.parse_args()

    torch.manual_seed(args.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"

    cfg = GPTConfig(block_size=args.block_size, n_layer=args.n_layer,
                    n_head=args.n_head, n_embd=args.n_embd)
    model = GPT(cfg).to(device)
    print(f"parameters: {sum(p.numel() for p in model.parameters()) / 1e6:.1f}M")

    decay = [p for p in model.parameters() if p.dim() >= 2]
    no_decay = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW(
        [{"params": decay, "weight_decay": args.weight_decay},
         {"params": no_decay, "weight_decay": 0.0}],
        lr=args.lr, betas=(0.9, 0.95))

    dataset = TokenDataset(1_000_000, args.block_size, cfg.vocab_size,
                           args.batch_size * args.max_steps)
    loader = DataLoader(dataset, batch_size=args.batch_size, shuffle=True,
                        num_workers=2, pin_memory=True, drop_last=True)

    model.train()
    t0 = time.time()
    for step, (x, y) in enumerate(loader):
        lr = get_lr(step, args)
        for group in optimizer.param_groups:
            group["lr"] = lr
        x = x.to(device, non_blocking=True)
        y = y.to(device, non_blocking=True)

        logits, loss = model(x, y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), args.grad_clip)
        optimizer.step()

        if step % 2 == 0:
            dt = time.time() - t0
            print(f"step {step:4d} | loss {loss.item():.4f} | norm {norm:.2f} | "
                  f"lr {lr:.2e} | {dt:.1f}s")

    if args.save:
        torch.save({"model": model.state_dict(), "config": cfg}, args.save)


if __name__ == "__main__":
    main()
