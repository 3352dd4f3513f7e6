model = model.to(torch.bfloat16)  # before the optimizer is made
