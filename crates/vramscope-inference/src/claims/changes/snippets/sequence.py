length = int(length * FACTOR)  # tokens of each sample
