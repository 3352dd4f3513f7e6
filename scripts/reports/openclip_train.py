"""mlfoundations/open_clip#26

Truth: validation multiplies all image features with all text features on the GPU and ranks them
there: the [N, N] logits and the sorted values and int64 indices of argsort are GiB for N of 20000.
Cure: logits_per_image to the host, ranking there.
"""

# CAP=24000
import os
import torch
import torch.nn as nn
import torch.nn.functional as F
import vramscope

CURE = bool(os.environ.get("CURE"))


class Transformer(nn.Module):
    def __init__(self, width, layers, heads):
        super().__init__()
        self.resblocks = nn.ModuleList(
            nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, "relu", 1e-5, True, True)
            for _ in range(layers)
        )

    def forward(self, x):
        for block in self.resblocks:
            x = block(x)
        return x


class CLIP(nn.Module):
    def __init__(self, width=384, embed_dim=512, layers=6, vocab=12000):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 16, 16)
        self.visual, self.transformer = Transformer(width, layers, 6), Transformer(width, layers, 6)
        self.token_embedding = nn.Embedding(vocab, width)
        self.visual_proj = nn.Linear(width, embed_dim, bias=False)
        self.text_projection = nn.Linear(width, embed_dim, bias=False)
        self.logit_scale = nn.Parameter(torch.ones([]) * 2.66)

    def forward(self, images, texts):
        image = self.visual(self.conv1(images).flatten(2).transpose(1, 2)).mean(1)
        text = self.transformer(self.token_embedding(texts)).mean(1)
        return (
            F.normalize(self.visual_proj(image), dim=-1),
            F.normalize(self.text_projection(text), dim=-1),
            self.logit_scale.exp(),
        )


def get_metrics(image_features, text_features, logit_scale):
    logits_per_image = logit_scale * image_features @ text_features.t()
    if CURE:
        logits_per_image = logits_per_image.detach().cpu()
    logits_per_text = logits_per_image.t()
    logits = {"image_to_text": logits_per_image, "text_to_image": logits_per_text}
    ground_truth = torch.arange(len(text_features), device=logits_per_image.device).view(-1, 1)
    metrics = {}
    for name, logit in logits.items():
        ranking = torch.argsort(logit, descending=True)
        preds = (ranking == ground_truth).byte().argmax(1)
        metrics[f"{name}_mean_rank"] = preds.float().mean().item() + 1
    return metrics


def batches(n, size):
    for _ in range(n):
        yield torch.rand(size, 3, 224, 224).cuda(), torch.zeros(size, 77, dtype=torch.long).cuda()


def train(model, optimizer):
    model.train()
    for images, texts in batches(5, 24):
        optimizer.zero_grad()
        image_features, text_features, logit_scale = model(images, texts)
        logits = logit_scale * image_features @ text_features.t()
        labels = torch.arange(len(logits)).cuda()
        loss = (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)) / 2
        loss.backward()
        optimizer.step()


def evaluate(model):
    model.eval()
    all_image_features, all_text_features = [], []
    with torch.no_grad():
        for images, texts in batches(50, 150):
            image_features, text_features, logit_scale = model(images, texts)
            all_image_features.append(image_features)
            all_text_features.append(text_features)
        return get_metrics(torch.cat(all_image_features), torch.cat(all_text_features), logit_scale)


with vramscope.record(os.environ["OUT"]):
    model = CLIP().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
    for epoch in range(2):
        train(model, optimizer)
        evaluate(model)
