import torch
import torch.nn.functional as F

VOCAB, DIM, TAGS = 32000, 128, 17
dev = torch.device("cuda", 0)


def make_parameters():
    embedding = torch.empty(VOCAB, DIM, device=dev).normal_(std=0.02).requires_grad_()
    hidden = torch.empty(DIM, DIM, device=dev).normal_(std=0.1).requires_grad_()
    output = torch.empty(DIM, TAGS, device=dev).normal_(std=0.1).requires_grad_()
    return embedding, hidden, output


def tagger(tokens, embedding, hidden, output):
    x = F.one_hot(tokens, VOCAB).float() @ embedding
    x = torch.relu(x @ hidden)
    return x @ output


def minibatches(steps, sentences=64, words=48):
    for _ in range(steps):
        yield torch.randint(VOCAB, (sentences, words)), torch.randint(TAGS, (sentences, words))


params = make_parameters()
for step, (tokens, tags) in enumerate(minibatches(8)):
    logits = tagger(tokens.to(dev), *params)
    loss = F.cross_entropy(logits.flatten(0, 1), tags.to(dev).flatten())
    grads = torch.autograd.grad(loss, params)
    with torch.no_grad():
        for p, g in zip(params, grads):
            p -= 0.1 * g
    print(f"step={step} loss={loss.item():.3f}")
