import logging

import torch
from torchvision.models import resnet18

torch.backends.cudnn.enabled = False
log = logging.getLogger("embed")
encoder = resnet18(weights=None).cuda().eval()
head = torch.nn.Linear(1000, 64).cuda()


def embed(record):
    frames = record["frames"].cuda()
    features = encoder(frames)
    if record["caption"] is None:
        raise ValueError(f"record {record['id']}: no caption")
    return head(features).mean(dim=0).cpu()


def records(n):
    for i in range(n):
        yield {"id": i, "frames": torch.rand(24, 3, 160, 160), "caption": None if i % 2 else f"clip {i}"}


@torch.inference_mode()
def main():
    vectors, failed = {}, []
    for record in records(90):
        try:
            vectors[record["id"]] = embed(record)
        except ValueError as error:
            failed.append(str(error))
    print(len(vectors), "embedded,", len(failed), "failed")
    for error in failed[:3]:
        log.warning("%s", error)


main()
