"""A small model of `transformers` in training. `snippets.py` makes edits where a line says so."""

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

vocabulary, length, batch_size, lr = 4000, 192, 4, 1e-3
config = Qwen2Config(
    vocab_size=vocabulary,
    hidden_size=256,
    intermediate_size=768,
    num_hidden_layers=5,
    num_attention_heads=4,
    num_key_value_heads=4,
    attn_implementation="eager",
    use_cache=False,
)
model = Qwen2ForCausalLM(config).cuda().train()  # edit: model
optimizer = torch.optim.AdamW(model.parameters(), lr=lr)  # edit: optimizer
for _ in range(4):
    tokens = torch.randint(vocabulary, (batch_size, length)).cuda()
    optimizer.zero_grad()  # edit: zero_grad
    loss = model(tokens, labels=tokens).loss  # edit: forward
    loss.backward()  # edit: backward
    optimizer.step()  # edit: step
