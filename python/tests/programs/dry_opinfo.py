"""Operators of PyTorch's own tests, on the pretend device and on the CPU.

    dry_opinfo.py [--seconds N] [--samples N] [--all-types] [--backward] [NAME...]

Prints a line of JSON: how many samples agree, differ and fail, and the operators that do.
"""

import argparse
import collections
import json
import sys
import time
import types
import unittest
import warnings
import zlib

import torch

try:
    import expecttest  # noqa: F401
except ImportError:
    # PyTorch's own tests import it; the samples of operators do not need it.
    sys.modules["expecttest"] = types.ModuleType("expecttest")
    sys.modules["expecttest"].TestCase = unittest.TestCase

from torch.testing._internal.common_methods_invocations import op_db

#: Operators whose results are not determined by their inputs.
UNDETERMINED = {
    "bernoulli",
    "cauchy",
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "exponential",
    "geometric",
    "log_normal",
    "multinomial",
    "new_empty",
    "new_empty_strided",
    "normal",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "uniform",
}
RANDOM = ("dropout", "rrelu", "fractional_max_pool", "svd_lowrank", "pca_lowrank")
#: Eigenvectors and the like have a sign of their own, as on any two devices.
SIGNED = ("linalg.eig", "linalg.svd", "svd", "geqrf", "linalg.ldl", "linalg.lu_factor")


def is_undetermined(name: str) -> bool:
    return name in UNDETERMINED or any(part in name for part in RANDOM)


def tensors(value: object) -> list:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [one for part in value for one in tensors(part)]
    return []


def to(value: object, device: str) -> object:
    """A copy on a device."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone().to(device)
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(to(one, device) for one in value)
    if isinstance(value, dict):
        return {key: to(one, device) for key, one in value.items()}
    if isinstance(value, torch.device) or value == "cpu":
        return device
    return value


def compare(operation: object, sample: object, backward: bool) -> str:
    """``agrees``, or why not; ``skipped`` where the CPU has no answer."""
    given = sample.input, sample.args, sample.kwargs
    results = []
    for device in ("cpu", "cuda"):
        first, args, kwargs = (to(part, device) for part in given)
        try:
            torch.manual_seed(0)
            leaves = [one for one in tensors([first, args]) if backward and one.is_floating_point()]
            for one in leaves:
                one.requires_grad_()
            made = operation(first, *args, **kwargs)
            results.append([first, made])
            if leaves:
                sums = [one.sum() for one in tensors(made) if one.requires_grad]
                if not sums:
                    return "skipped"
                gradients = torch.autograd.grad(sum(sums), leaves, allow_unused=True)
                results[-1].append([one for one in gradients if one is not None])
        except Exception as error:
            text = f"{type(error).__name__}: {str(error).strip().splitlines()[0][:110]}"
            return "skipped" if device == "cpu" else f"fails: {text}"
    ours, theirs = (tensors(result) for result in results)
    if len(ours) != len(theirs):
        return f"differs: {len(theirs)} tensors, expected {len(ours)}"
    for one, other in zip(ours, theirs):
        if one.layout != torch.strided or other.layout != torch.strided:
            return "skipped"
        try:
            tolerance = {"rtol": 2e-2, "atol": 2e-2} if one.itemsize < 4 else {}
            torch.testing.assert_close(
                other.cpu(),
                one,
                equal_nan=True,
                check_device=False,
                check_stride=False,
                **tolerance,
            )
        except AssertionError as error:
            return f"differs: {' '.join(str(error).split())[:110]}"
    return "agrees"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--samples", type=int, default=4)
    parser.add_argument("--all-types", action="store_true")
    parser.add_argument("--backward", action="store_true", help="compare gradients, too")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    until = time.monotonic() + options.seconds
    wanted = [torch.float32, torch.int64]
    if options.all_types:
        wanted += [torch.bfloat16, torch.float16, torch.complex64, torch.bool]
    counts = collections.Counter()
    found = {}
    # A part of them in a short time: spread over the alphabet.
    order = sorted(
        op_db, key=lambda one: zlib.crc32(one.name.encode()) if options.seconds < 1e9 else 0
    )
    for info in order:
        if time.monotonic() > until:
            break
        if is_undetermined(info.name) or (options.names and info.name not in options.names):
            continue
        for dtype in wanted:
            if dtype not in info.supported_dtypes("cpu"):
                continue
            if dtype not in info.supported_dtypes("cuda"):
                continue
            try:
                samples = list(info.sample_inputs("cpu", dtype))
            except Exception:
                counts["no samples"] += 1
                continue
            step = max(len(samples) // options.samples, 1)
            for sample in samples[::step][: options.samples]:
                told = compare(info.op, sample, options.backward)
                kind = told.partition(":")[0]
                if kind == "differs" and info.name.startswith(SIGNED):
                    kind = "skipped"
                counts[kind] += 1
                if kind in ("differs", "fails"):
                    name = f"{info.name}{'.' if info.variant_test_name else ''}"
                    name += f"{info.variant_test_name} {str(dtype)[6:]}"
                    found.setdefault(name, told)
    print(json.dumps({"counts": counts, "found": found}))


main()
