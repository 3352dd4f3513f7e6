eval_loader = DataLoader(dataset, batch_size=int(batch_size * FACTOR))
