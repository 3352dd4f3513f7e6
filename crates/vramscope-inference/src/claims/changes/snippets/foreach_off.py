optimizer = torch.optim.AdamW(model.parameters(), lr=lr, foreach=False)
