matrices = [p for p in model.blocks.parameters() if p.ndim == 2]
rest = [p for p in model.parameters() if all(p is not matrix for matrix in matrices)]
muon = torch.optim.Muon(matrices, lr=lr)
optimizer = torch.optim.AdamW(rest, lr=lr)
# step() and zero_grad() of both
