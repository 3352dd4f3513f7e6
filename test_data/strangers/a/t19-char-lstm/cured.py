import math

import torch
import torch.nn as nn

torch.backends.cudnn.enabled = False
vocab, emsize, nhid, nlayers, bptt, batch_size = 5000, 256, 512, 2, 35, 64


class RNNModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.2)
        self.encoder = nn.Embedding(vocab, emsize)
        self.rnn = nn.LSTM(emsize, nhid, nlayers, dropout=0.2)
        self.decoder = nn.Linear(nhid, vocab)

    def forward(self, tokens, hidden):
        output, hidden = self.rnn(self.drop(self.encoder(tokens)), hidden)
        return self.decoder(self.drop(output)).view(-1, vocab), hidden


corpus = torch.randint(0, vocab, (bptt * 20 + 1, batch_size))
model = RNNModel().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=5.0)
hidden = tuple(torch.zeros(nlayers, batch_size, nhid, device="cuda") for _ in range(2))
total = 0.0
for i in range(0, len(corpus) - 1, bptt):
    data = corpus[i : i + bptt].cuda()
    targets = corpus[i + 1 : i + 1 + bptt].reshape(-1).cuda()
    hidden = tuple(h.detach() for h in hidden)
    optimizer.zero_grad()
    output, hidden = model(data, hidden)
    loss = nn.functional.cross_entropy(output, targets)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
    optimizer.step()
    total += loss.item()
print("ppl", math.exp(min(total / 20, 20)))
