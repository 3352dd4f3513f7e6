loss = F.cross_entropy(logits, target)  # without logits.float()
