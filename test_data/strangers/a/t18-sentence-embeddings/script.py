import torch
from transformers import DistilBertConfig, DistilBertModel


def mean_pool(hidden, mask):
    mask = mask.unsqueeze(-1).to(hidden.dtype)
    return (hidden * mask).sum(1) / mask.sum(1).clamp(min=1e-9)


def chunks(items, size):
    for start in range(0, len(items), size):
        yield items[start : start + size]


@torch.inference_mode()
def encode(model, token_ids, batch_size=64):
    embeddings = []
    for batch in chunks(token_ids, batch_size):
        ids = batch.to("cuda")
        mask = torch.ones_like(ids)
        hidden = model(input_ids=ids, attention_mask=mask).last_hidden_state
        pooled = torch.nn.functional.normalize(mean_pool(hidden, mask), dim=-1)
        embeddings.append(pooled.float().cpu())
    return torch.cat(embeddings)


if __name__ == "__main__":
    config = DistilBertConfig(vocab_size=30522, dim=384, n_layers=6, n_heads=6, hidden_dim=1536)
    model = DistilBertModel(config).half().to("cuda").eval()
    corpus = torch.randint(0, 30522, (1024, 128))
    vectors = encode(model, corpus)
    print(vectors.shape, vectors.dtype)
