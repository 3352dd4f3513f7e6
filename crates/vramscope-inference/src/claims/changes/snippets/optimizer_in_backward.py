each = {p: torch.optim.AdamW([p], lr=lr) for p in model.parameters()}
def update(p):
    each[p].step(), each[p].zero_grad()
for p in each:  # without optimizer.step() and zero_grad() in the loop
    p.register_post_accumulate_grad_hook(update)
