import math

import torch
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel, get_linear_schedule_with_warmup

config = GPT2Config(vocab_size=8192, n_positions=256, n_embd=384, n_layer=6, n_head=6, use_cache=False)
model = GPT2LMHeadModel(config).cuda()
model.gradient_checkpointing_enable()
decay = [p for p in model.parameters() if p.dim() > 1]
no_decay = [p for p in model.parameters() if p.dim() <= 1]
optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": no_decay, "weight_decay": 0.0}], lr=3e-4)
scheduler = get_linear_schedule_with_warmup(optimizer, 2, 12)
train_loader = DataLoader(torch.randint(0, 8192, (96, 256)), batch_size=8, shuffle=True)
valid_loader = DataLoader(torch.randint(0, 8192, (24, 256)), batch_size=8)


def perplexity():
    model.eval()
    losses = []
    with torch.inference_mode():
        for ids in valid_loader:
            ids = ids.cuda()
            losses.append(model(input_ids=ids, labels=ids).loss.item())
    model.train()
    return math.exp(min(20.0, sum(losses) / len(losses)))


model.train()
for step, ids in enumerate(train_loader):
    ids = ids.cuda(non_blocking=True)
    loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    optimizer.zero_grad(set_to_none=True)
print("loss", loss.item(), "perplexity", perplexity())
