model.set_attn_implementation("sdpa")  # or from_pretrained(..., attn_implementation="sdpa")
