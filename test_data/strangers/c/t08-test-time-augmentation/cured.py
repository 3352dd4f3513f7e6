import csv
import io

import torch
from torchvision.models import resnet18

torch.backends.cudnn.enabled = False


def dihedral(x):
    for flip in (False, True):
        y = x.flip(-1) if flip else x
        for turns in range(4):
            yield torch.rot90(y, turns, dims=(-2, -1))


def brightness(x, factors=(0.8, 1.0, 1.2)):
    return [(x * f).clamp(0, 1) for f in factors]


@torch.inference_mode()
def predict(model, images):
    views = (b for d in dihedral(images) for b in brightness(d))
    return sum(model(view).softmax(-1) for view in views) / 24


model = resnet18(weights=None, num_classes=200).cuda().eval()
sheet = io.StringIO()
writer = csv.writer(sheet)
writer.writerow(["id", "label"])
for start in range(0, 48, 16):
    images = torch.rand(16, 3, 160, 160)
    labels = predict(model, images.cuda()).argmax(-1).tolist()
    writer.writerows(enumerate(labels, start))
print(len(sheet.getvalue().splitlines()) - 1, "rows")
