optimizer.step()
optimizer.zero_grad(set_to_none=True)  # not first before the next backward()
