out = torch.cat([function(part) for part in x.chunk(PARTS)])
