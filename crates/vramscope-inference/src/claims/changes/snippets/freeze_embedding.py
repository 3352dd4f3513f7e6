model.embedding.requires_grad_(False)  # before the optimizer is made
optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=lr)
