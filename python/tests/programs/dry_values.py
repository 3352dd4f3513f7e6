"""What values of a dry run decide: dry_values.py CASE. Prints JSON."""

import json
import os
import sys
import threading
import traceback

import torch
import torch.nn.functional as F
from torch import nn


def peaks():
    stats = torch.cuda.memory_stats()
    names = ("active_bytes.all.peak", "reserved_bytes.all.peak", "allocation.all.allocated")
    return [stats[name] for name in names]


def models():
    encoder = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
    convolution = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.ConvTranspose2d(8, 4, 3), nn.Flatten()
    )
    return {
        "mlp": (nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32)), (4, 16)),
        "encoder": (encoder, (2, 8, 32)),
        "convolution": (convolution, (2, 3, 8, 8)),
        "group": (nn.Sequential(nn.Conv1d(4, 8, 3), nn.GroupNorm(2, 8), nn.SiLU()), (2, 4, 9)),
    }


def losses(device):
    told = {}
    for options in ({"foreach": True}, {"fused": True}, {"foreach": False}):
        torch.manual_seed(0)
        for name, (model, shape) in models().items():
            x = torch.randn(shape).to(device)
            model = model.to(device)
            optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, **options)
            for step in range(4):
                loss = model(x).square().mean()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
                told[f"{name} {next(iter(options))} {step}"] = loss.item()
    return told


def train():
    return {"cpu": losses("cpu"), "cuda": losses("cuda")}


def recurrent():
    told = []
    for kind in (nn.LSTM, nn.GRU, nn.RNN):
        torch.manual_seed(0)
        network, x = kind(8, 16, 2, bidirectional=True), torch.randn(5, 3, 8)
        expected = network(x)[0]
        told.append((network.cuda()(x.cuda())[0].cpu() - expected).abs().max().item())
    return told


def sizes():
    x = torch.tensor([3, 1, 3, 0, 2, 2], device="cuda")
    mask = x > 1
    pairs = torch.tensor([[1, 2], [1, 2], [3, 4]], device="cuda")
    told = {
        "nonzero": mask.nonzero().flatten().tolist(),
        "masked_select": x.masked_select(mask).tolist(),
        "index": x[mask].tolist(),
        "unique": [one.tolist() for one in x.unique(return_inverse=True, return_counts=True)],
        "consecutive": x.unique_consecutive().tolist(),
        "rows": pairs.unique(dim=0).tolist(),
        "bincount": x.bincount().tolist(),
        "repeat": x.repeat_interleave(x).tolist(),
        "equal": [torch.equal(x, x.clone()), torch.equal(x, x + 1)],
        "where": [one.tolist() for one in torch.where(mask)],
        "argwhere": torch.argwhere(mask).shape[0],
        "out": torch.nonzero(mask, out=torch.empty(0, dtype=torch.int64, device="cuda")).tolist(),
    }
    x[mask] = 7
    told["put"] = x.tolist()
    return told


def sparse():
    def matrix(rows, columns):
        places = torch.tensor([rows, columns], device="cuda")
        values = torch.arange(1.0, len(rows) + 1, device="cuda")
        return torch.sparse_coo_tensor(places, values, (4, 4), check_invariants=False)

    one, other = matrix([3, 0, 1, 1], [1, 0, 2, 2]), matrix([0, 1, 2], [0, 2, 2])
    whole, rows = one.coalesce(), one.to_sparse_csr()
    other_rows = other.to_sparse_csr()
    return {
        "indices": whole.indices().tolist(),
        "values": whole.values().tolist(),
        "product": torch.sparse.mm(one, other)._nnz(),
        "softmax": torch.sparse.softmax(one, 1)._nnz(),
        "sum": (one + other).coalesce()._nnz(),
        "dense": torch.eye(4, device="cuda").to_sparse()._nnz(),
        "rows": [rows._nnz(), (rows + other_rows)._nnz(), (rows @ other_rows)._nnz()],
    }


def sparse_unknown():
    # Computed from so much that it is not known.
    large = torch.randn(1 << 20, device="cuda")
    places = (large[:6] > 0).long().reshape(2, 3)
    tensor = torch.sparse_coo_tensor(places, large[:3], (2, 9), check_invariants=False)
    return tensor.coalesce()._nnz()


def sparse_adam():
    embedding = nn.Embedding(4096, 256, sparse=True, device="cuda")
    optimizer = torch.optim.SparseAdam(embedding.parameters())
    told = []
    for _ in range(2):
        embedding(torch.arange(3000, device="cuda") % 2000).sum().backward()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        optimizer.step()
        told.append((torch.cuda.max_memory_allocated() - before) / (2000 * 256 * 4))
        optimizer.zero_grad()
    return told[1]


def numbers():
    whole = torch.arange(3, device="cuda")
    half = torch.ones(3, device="cuda", dtype=torch.float16)
    one = torch.ones((), device="cuda", dtype=torch.float16)
    results = [whole * 0.07, whole + 1, whole / 2, half * 3.5, one * 2.5, whole > 1.5, 2.0**whole]
    results += [torch.where(whole > 1, 1.0, 0.0), torch.where(whole > 1, whole, 5), whole % 2]
    results += [torch.bitwise_and(whole, 1), whole.clamp(max=1), 2**whole, 1j * half]
    expected = [f(whole.cpu(), half.cpu(), one.cpu()) for f in _SAME]
    for got, wanted in zip(results, expected):
        torch.testing.assert_close(got.cpu(), wanted)
    return [str(result.dtype) for result in results] == [str(one.dtype) for one in expected]


_SAME = [
    lambda w, h, o: w * 0.07,
    lambda w, h, o: w + 1,
    lambda w, h, o: w / 2,
    lambda w, h, o: h * 3.5,
    lambda w, h, o: o * 2.5,
    lambda w, h, o: w > 1.5,
    lambda w, h, o: 2.0**w,
    lambda w, h, o: torch.where(w > 1, 1.0, 0.0),
    lambda w, h, o: torch.where(w > 1, w, 5),
    lambda w, h, o: w % 2,
    lambda w, h, o: torch.bitwise_and(w, 1),
    lambda w, h, o: w.clamp(max=1),
    lambda w, h, o: 2**w,
    lambda w, h, o: 1j * h,
]


def made_up():
    large = torch.randn(1 << 20, device="cuda")
    total = large.sum()
    count = (large[:64] > 0).nonzero().shape[0]  # line of a size
    if total.item() > 1e9:  # line of a branch
        print("never")
    empty = torch.empty(5, dtype=torch.int64, device="cuda")
    empty[0].item()  # line of an empty one
    return count


def stacks():
    torch.cuda.memory._record_memory_history(stacks=sys.argv[2])
    x = nn.Linear(64, 64).cuda()
    optimizer = torch.optim.AdamW(x.parameters())
    for _ in range(2):
        x(torch.randn(8, 64, device="cuda")).relu().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    events = torch.cuda.memory._snapshot()["device_traces"][0]
    frames = [[frame["filename"], frame["name"]] for event in events for frame in event["frames"]]
    own = [one for one in frames if "dry" + os.sep + "values" + os.sep in one[0]]
    calls = [one for one in frames if "PythonKernelHolder" in one[1]]
    python = [one for one in frames if one[0].endswith(".py")]
    return {"own": own, "calls": len(calls), "python": python}


def tracebacks():
    told = []
    for fails in (
        lambda: torch.empty(1 << 44, device="cuda"),
        lambda: torch.ones(3, device="cuda").new_zeros(1 << 44),
        lambda: torch.ones(2, 3, device="cuda") @ torch.ones(2, 3, device="cuda"),
    ):
        try:
            fails()
        except RuntimeError as error:
            files = {frame.filename for frame in traceback.extract_tb(error.__traceback__)}
            told.append([type(error).__name__, sorted(map(os.path.basename, files))])
    return told


def generators():
    torch.manual_seed(5)
    x = torch.rand(9, device="cuda")
    F.dropout(x, 0.5)
    torch.randperm(9, device="cuda")
    torch.multinomial(x, 3)
    return [torch.get_rng_state().sum().item(), torch.cuda.get_rng_state().tolist()]


def threads():
    errors = []

    def work():
        try:
            with torch.cuda.stream(torch.cuda.Stream()):
                x = torch.arange(1000, device="cuda")
                for add in range(40):
                    assert int((x + add).sum()) == 499500 + 1000 * add
                    assert (x > 500).nonzero().shape[0] == 499
                    y = torch.ones(64, device="cuda", requires_grad=True)
                    F.dropout(y, 0.5).sum().backward()
                    assert set(y.grad.tolist()) <= {0.0, 2.0}
        except BaseException as error:
            errors.append(repr(error))

    running = [threading.Thread(target=work) for _ in range(6)]
    for one in running:
        one.start()
    for one in running:
        one.join()
    return errors


def modes():
    """Modes of the program see its own operations only, and none lands on the wrong device."""
    torch.set_default_device("cuda")
    x = torch.randn(8, 8, requires_grad=True)
    (x.softmax(-1).topk(2).values.sum() * 0.5).backward()
    seen = [str(x.grad.device)]
    torch.set_default_device("cpu")
    with torch.inference_mode():
        y = torch.ones(4, device="cuda")
        y += 1
    z = torch.ones(4, device="cuda")
    z += 1
    return [*seen, y.sum().item(), z.sum().item()]


def views():
    x = torch.arange(12, device="cuda", dtype=torch.float32).reshape(3, 4)
    c = torch.complex(x, x + 1)
    return {
        "transposed": (x.t() + 1)[1].tolist(),
        "part": x[1:, ::2].add_(10).tolist(),
        "whole": x.sum().item(),
        "conj": c.conj().imag.sum().item(),
        "product": (c.conj() @ c.t()).real.sum().item(),
        "swapped": x.flip(0)[0].tolist(),
    }


def memory():
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.TransformerEncoderLayer(64, 4, 128) for _ in range(2)]).cuda()
    for options in ({"foreach": True}, {"fused": True}):
        optimizer = torch.optim.AdamW(model.parameters(), **options)
        for _ in range(3):
            with torch.autocast("cuda", torch.bfloat16):
                loss = model(torch.randn(4, 16, 64, device="cuda")).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    return peaks()


def graph():
    x = torch.ones(4, device="cuda")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        x + 1
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        y = x + 1
    captured.replay()
    y.sum().item()
    return True


def kernels_of_triton():
    try:
        import triton
        import triton.language as tl
    except ImportError:
        return None

    def kernel(x_ptr, labels_ptr, out_ptr, count_ptr, n, size: tl.constexpr):
        total = tl.zeros((size,), tl.float32)
        to = out_ptr
        for at in range(0, n, size):
            offsets = at + tl.arange(0, size)
            x = tl.load(x_ptr + offsets, mask=offsets < n)
            total += x * tl.load(labels_ptr + offsets, mask=offsets < n)
            tl.store(to + offsets - at, x, mask=offsets < n)
            to += size
        tl.atomic_add(count_ptr, tl.sum(total))

    kernel.__globals__["tl"] = tl
    x, labels = torch.ones(64, device="cuda"), torch.arange(64, device="cuda")
    out, count = torch.empty(64, device="cuda"), torch.zeros(1, device="cuda")
    triton.jit(kernel)[(1,)](x, labels, out, count, 64, size=32)
    known = [labels.sum().item(), x.sum().item()]
    out.sum().item()
    count.item()
    return known


print(json.dumps(globals()[sys.argv[1]]()))
