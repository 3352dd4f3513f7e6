optimizer.zero_grad(set_to_none=True)  # after the forward pass
loss.backward()
