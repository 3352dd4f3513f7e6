import torch
import torch.nn.functional as F
from torchvision.models import vgg11

torch.backends.cudnn.enabled = False
device = torch.device("cuda")
STYLE_LAYERS, CONTENT_LAYER, SIZE = {1, 4, 7, 9, 12}, 9, 384

vgg = vgg11(weights=None).features[:13].to(device).eval()
for p in vgg.parameters():
    p.requires_grad_(False)
for m in vgg.modules():
    if isinstance(m, torch.nn.ReLU):
        m.inplace = False


def extract(img):
    feats, x = {}, img
    for i, layer in enumerate(vgg):
        x = layer(x)
        if i in STYLE_LAYERS:
            feats[i] = x
    return feats


def gram(x):
    f = x.flatten(2)
    return f @ f.transpose(1, 2) / f[0].numel()


content = torch.rand(1, 3, SIZE, SIZE).to(device)
content_feat = extract(content)[CONTENT_LAYER]
paintings = [extract(torch.rand_like(content)) for _ in range(6)]
canvas = content.clone().requires_grad_(True)
optimizer = torch.optim.Adam([canvas], lr=0.02)
for step in range(12):
    feats = extract(canvas)
    style_loss = sum(F.mse_loss(gram(feats[i]), gram(p[i])) for p in paintings for i in STYLE_LAYERS)
    loss = F.mse_loss(feats[CONTENT_LAYER], content_feat) + 1e4 * style_loss / len(paintings)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
