matrices = [p for p in model.parameters() if p.ndim == 2]
rest = [p for p in model.parameters() if p.ndim != 2]
muon = torch.optim.Muon(matrices, lr=lr)
optimizer = torch.optim.AdamW(rest, lr=lr)
# step() and zero_grad() of both
