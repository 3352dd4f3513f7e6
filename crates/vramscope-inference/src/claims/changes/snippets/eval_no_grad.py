with torch.no_grad():
    loss = model(inputs, targets)
