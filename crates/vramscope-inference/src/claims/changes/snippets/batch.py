batch_size = int(batch_size * FACTOR)  # of the data loader
