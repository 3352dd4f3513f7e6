y = F.scaled_dot_product_attention(q, k, v, is_causal=True)  # instead of softmax(q @ k.T) @ v
