from torch.distributed.fsdp import fully_shard

for module in [*model.blocks, model]:  # before the optimizer is made, on PARTS ranks
    fully_shard(module)
