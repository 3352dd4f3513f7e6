model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
