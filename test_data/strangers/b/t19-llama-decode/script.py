import torch
from transformers import LlamaConfig, LlamaForCausalLM, set_seed

set_seed(42)
config = LlamaConfig(
    vocab_size=32000, hidden_size=768, intermediate_size=2048, num_hidden_layers=8,
    num_attention_heads=12, num_key_value_heads=4, max_position_embeddings=1024,
)
model = LlamaForCausalLM(config).to(device="cuda", dtype=torch.bfloat16).eval()


@torch.inference_mode()
def answer(prompts, new_tokens=24):
    out = model(input_ids=prompts.to(model.device), use_cache=True, logits_to_keep=1)
    reply = [out.logits.argmax(dim=-1)]
    for _ in range(new_tokens - 1):
        out = model(input_ids=reply[-1], past_key_values=out.past_key_values, use_cache=True, logits_to_keep=1)
        reply.append(out.logits.argmax(dim=-1))
    return torch.cat(reply, dim=1).cpu()


replies = []
for request in range(4):
    prompts = torch.randint(1, 32000, (4, 200))
    replies.append(answer(prompts))
print(torch.cat(replies).shape)
