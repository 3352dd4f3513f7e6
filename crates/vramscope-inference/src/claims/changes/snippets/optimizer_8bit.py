import bitsandbytes as bnb

optimizer = bnb.optim.AdamW8bit(model.parameters(), lr=lr)
