# Word-level language model, after the pytorch/examples one.
import argparse
import math
import time

import torch
import torch.nn as nn

parser = argparse.ArgumentParser(description="LSTM language model")
parser.add_argument("--emsize", type=int, default=400)
parser.add_argument("--nhid", type=int, default=800)
parser.add_argument("--nlayers", type=int, default=2)
parser.add_argument("--lr", type=float, default=20)
parser.add_argument("--clip", type=float, default=0.25)
parser.add_argument("--epochs", type=int, default=1)
parser.add_argument("--batch_size", type=int, default=40)
parser.add_argument("--bptt", type=int, default=35)
parser.add_argument("--accumulate", type=int, default=1,
                    help="windows per step of the optimizer")
parser.add_argument("--dropout", type=float, default=0.2)
parser.add_argument("--seed", type=int, default=1111)
parser.add_argument("--log-interval", type=int, default=1)
parser.add_argument("--save", type=str, default="")
args = parser.parse_args()

torch.manual_seed(args.seed)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
ntokens = 20000


class RNNModel(nn.Module):
    def __init__(self, ntoken, ninp, nhid, nlayers, dropout):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = nn.LSTM(ninp, nhid, nlayers, dropout=dropout)
        self.decoder = nn.Linear(nhid, ntoken)
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.uniform_(self.decoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)
        self.nhid, self.nlayers = nhid, nlayers

    def forward(self, x, hidden):
        emb = self.drop(self.encoder(x))
        output, hidden = self.rnn(emb, hidden)
        return self.decoder(self.drop(output)).flatten(0, 1), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        return (weight.new_zeros(self.nlayers, bsz, self.nhid),
                weight.new_zeros(self.nlayers, bsz, self.nhid))


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    return data.narrow(0, 0, nbatch * bsz).view(bsz, -1).t().contiguous().to(device)


def get_batch(source, i):
    seq_len = min(args.bptt, len(source) - 1 - i)
    return source[i:i + seq_len], source[i + 1:i + 1 + seq_len].reshape(-1)


train_data = batchify(torch.randint(0, ntokens, (args.batch_size * (35 * 64 + 1),)), args.batch_size)
model = RNNModel(ntokens, args.emsize, args.nhid, args.nlayers, args.dropout).to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.25)


def train(epoch):
    model.train()
    hidden = model.init_hidden(args.batch_size)
    total_loss = 0.0
    start = time.time()
    n_windows = (train_data.size(0) - 1) // args.bptt
    for window in range(n_windows):
        data, targets = get_batch(train_data, window * args.bptt)
        output, hidden = model(data, hidden)
        loss = criterion(output, targets) / args.accumulate
        total_loss = total_loss + loss

        if (window + 1) % args.accumulate == 0:
            optimizer.zero_grad()
            total_loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
            optimizer.step()
            hidden = tuple(h.detach() for h in hidden)
            step = (window + 1) // args.accumulate
            if step % args.log_interval == 0:
                cur = total_loss.item()
                print(f"| epoch {epoch} | window {window + 1}/{n_windows} "
                      f"| lr {scheduler.get_last_lr()[0]:.2f} | loss {cur:5.2f} "
                      f"| ppl {math.exp(min(cur, 20)):8.2f} | {time.time() - start:.1f}s")
            total_loss = 0.0


for epoch in range(1, args.epochs + 1):
    train(epoch)
    scheduler.step()
    if args.save:
        torch.save(model.state_dict(), args.save)
