import torch
from torch.utils.data import DataLoader, Dataset


class SyntheticScenes(Dataset):
    """Images with rectangles of known classes."""

    def __init__(self, n, size=256, num_classes=21, seed=0):
        self.n, self.size, self.num_classes = n, size, num_classes
        self.seed = seed

    def __len__(self):
        return self.n

    def __getitem__(self, idx):
        g = torch.Generator().manual_seed(self.seed * 100003 + idx)
        image = torch.rand(3, self.size, self.size, generator=g)
        mask = torch.zeros(self.size, self.size, dtype=torch.long)
        for _ in range(4):
            x, y, w, h = torch.randint(8, self.size // 2, (4,), generator=g).tolist()
            c = int(torch.randint(1, self.num_classes, (1,), generator=g))
            mask[y:y + h, x:x + w] = c
            image[:, y:y + h, x:x + w] = c / self.num_classes
        return image, mask


def make_loaders(batch_size, n_train, size, num_classes):
    train = SyntheticScenes(n_train, size, num_classes, seed=0)
    return DataLoader(train, batch_size=batch_size, shuffle=True, num_workers=2,
                      pin_memory=True, drop_last=True)
