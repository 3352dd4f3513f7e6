optimizer = torch.optim.SGD(model.parameters(), lr=lr)  # without momentum
