optimizer = torch.optim.AdamW(model.parameters(), lr=lr, fused=True)
