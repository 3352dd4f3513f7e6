for x, y in zip(inputs.chunk(PARTS), targets.chunk(PARTS)):
    loss = model(x, y) / PARTS
    loss.backward()
