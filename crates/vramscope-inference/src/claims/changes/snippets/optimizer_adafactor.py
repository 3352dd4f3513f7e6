optimizer = torch.optim.Adafactor(model.parameters(), lr=lr)
