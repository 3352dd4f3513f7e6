with torch.autograd.graph.save_on_cpu(pin_memory=True):
    loss = model(inputs, targets)
