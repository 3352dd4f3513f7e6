with torch.autocast("cuda", dtype=torch.bfloat16, cache_enabled=False):
    loss = model(inputs, targets)
