"""Every kind of tensor that PyTorch has, alive while holders are looked for beside busy threads.

Prints a line of JSON for each kind: the walks, the functions of Python that ran inside of them, and
what was told of the block that the kind leads to. A crash ends the process.
"""

import gc
import json
import os
import sys
import threading
import time
import warnings
from typing import ClassVar

import torch
from torch.utils._python_dispatch import TorchDispatchMode

import vramscope._vramscope as native
from vramscope.recorder import holders

SECONDS = float(sys.argv[1])
MIB = 1 << 20
KINDS = {}
#: Functions of Python that were called inside of a walk.
calls = []
stop = threading.Event()


def kind(make):
    KINDS[make.__name__] = make
    return make


def floats(mib=8):
    return torch.empty(mib * MIB // 4, device="cuda")


def profile(frame, event, argument):
    if event == "call":
        calls.append(f"{frame.f_code.co_filename}:{frame.f_lineno} {frame.f_code.co_qualname}")


inner = native.walk
counting = False
#: Warnings that were raised inside of a walk.
warned = []
inside = False


def walk(*arguments):
    global inside
    inside = True
    try:
        if not counting:
            return inner(*arguments)
        sys.setprofile(profile)
        try:
            return inner(*arguments)
        finally:
            sys.setprofile(None)
    finally:
        inside = False


native.walk = walk


# -- Kinds: each looks for holders while its tensors are alive -------------------------------------


@kind
def plain(look):
    kept = [floats(), torch.nn.Parameter(floats()), floats()[::2], floats().unsqueeze(0).conj()]
    look(kept)


@kind
def fake(look):
    from torch._subclasses.fake_tensor import FakeTensorMode

    mode = FakeTensorMode()
    real = floats()
    kept = [mode.from_tensor(floats(1)) for _ in range(200)]
    with mode:
        kept.append(torch.empty(8, device="cuda", requires_grad=True) * 2)
        look([kept, real])


@kind
def fake_with_symbolic_sizes(look):
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    mode = FakeTensorMode(shape_env=ShapeEnv())
    kept = [mode.from_tensor(floats(1).reshape(-1, 64)) for _ in range(20)]
    kept += [one.untyped_storage() for one in kept]
    look([kept, floats()])


@kind
def exported(look):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(8)))

        def forward(self, x):
            return self.layers(x).relu()

    program = torch.export.export(Net(), (torch.randn(2, 8),))
    look([program, floats()])


@kind
def functional(look):
    from torch._subclasses.fake_tensor import FakeTensorMode

    mode = FakeTensorMode()
    with mode:
        of_fake = [torch._to_functional_tensor(torch.empty(8, device="cuda")) for _ in range(50)]
    kept = [torch._to_functional_tensor(floats(1)) for _ in range(4)]
    look([kept, of_fake, floats()])


@kind
def functional_subclass(look):
    from torch._subclasses.functional_tensor import FunctionalTensor, FunctionalTensorMode

    real = floats()
    with FunctionalTensorMode():
        kept = [FunctionalTensor.to_functional(floats(1)) for _ in range(4)]
        look([kept, real])


@kind
def distributed(look):
    import torch.distributed as dist
    from torch.distributed.tensor import DTensor, Replicate, init_device_mesh
    from torch.testing._internal.distributed.fake_pg import FakeStore

    if not dist.is_initialized():
        dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=1)
    mesh = init_device_mesh("cuda", (1,))
    kept = [DTensor.from_local(floats(), mesh, [Replicate()]) for _ in range(4)]
    look(kept)


@kind
def nested(look):
    pieces = [floats(1), floats(1)]
    strided = torch._nested_view_from_buffer(
        floats(8),
        torch.tensor([[64, 64]]),
        torch.tensor([[64, 1]]),
        torch.tensor([0]),
    )
    from torch.nested._internal.nested_tensor import NestedTensor

    offsets = torch.tensor([0, 4, 8], device="cuda")
    jagged = NestedTensor(floats(8).reshape(8, -1), offsets)
    look([pieces, strided, jagged])


@kind
def sparse(look):
    at = torch.zeros(1, 4, dtype=torch.int64, device="cuda")
    coo = torch.sparse_coo_tensor(at, floats(1)[:4], (8,), check_invariants=False)
    rows = torch.zeros(3, dtype=torch.int64, device="cuda")
    columns = torch.zeros(2, dtype=torch.int64, device="cuda")
    csr = torch.sparse_csr_tensor(rows, columns, floats(1)[:2], (2, 2), check_invariants=False)
    look([coo, csr, floats()])


@kind
def quantized(look):
    kept = torch._empty_affine_quantized([8 * MIB], scale=1.0, zero_point=0, dtype=torch.quint8)
    on_device = torch._empty_affine_quantized(
        [8 * MIB], scale=1.0, zero_point=0, dtype=torch.quint8, device="cuda"
    )
    look([kept, on_device])


@kind
def mapped(look):
    seen = []

    def each(x):
        y = x * 2
        seen.append(y)
        look([x, y])
        return y

    kept = floats().reshape(4, -1)
    torch.func.vmap(each)(kept)
    look([seen, kept])


@kind
def differentiated(look):
    kept = floats()

    def loss(x):
        y = (x * 2).sum()
        look([x, y])
        return y

    torch.func.grad(loss)(kept)


class Wrapper(torch.Tensor):
    """Without memory of its own. Frees what the walk may know, wherever it is asked."""

    keeps: ClassVar = [[] for _ in range(1000)]

    @staticmethod
    def __new__(cls, inside):
        return torch.Tensor._make_wrapper_subclass(
            cls,
            inside.shape,
            dtype=inside.dtype,
            device=inside.device,
            dispatch_device=True,
            dispatch_sizes_strides_policy="sizes",
        )

    def __init__(self, inside):
        self.inside = inside

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        cls.keeps[:] = [[] for _ in range(1000)]
        time.sleep(0.001)
        if function is torch.ops.prim.device.default:
            return torch.device("cuda", 0)
        if function.name().startswith("aten::sym_size") or "size" in function.name():
            return args[0].inside.shape
        return NotImplemented


class Own(torch.Tensor):
    """With memory of its own."""

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        with torch._C._DisableTorchDispatch():
            return function(*args, **(kwargs or {}))


class Plain(torch.Tensor):
    """Without dispatch. Its properties are the program's."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        time.sleep(0.001)
        return super().__torch_function__(function, types, args, kwargs or {})

    @property
    def is_cuda(self):
        raise AssertionError("code of the program runs")

    def data_ptr(self):
        raise AssertionError("code of the program runs")

    def __getattribute__(self, name):
        if inside and threading.current_thread() is threading.main_thread():
            calls.append(f"__getattribute__ {name}")
        return super().__getattribute__(name)


@kind
def wrapper(look):
    look([Wrapper(floats()) for _ in range(20)])


@kind
def own(look):
    look([torch.Tensor._make_subclass(Own, floats()), floats()])


@kind
def without_dispatch(look):
    look([floats().as_subclass(Plain) for _ in range(4)])


@kind
def of_a_changed_class(look):
    """The class learns to dispatch after its tensors were made."""

    class Later(torch.Tensor):
        pass

    kept = [floats(1).as_subclass(Later) for _ in range(4)]
    Later.__torch_dispatch__ = Own.__torch_dispatch__
    kept += [torch.Tensor._make_subclass(Later, floats(1)) for _ in range(4)]
    del Later.__torch_dispatch__
    look([kept, floats()])


@kind
def in_a_mode(look):
    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            time.sleep(0.001)
            return function(*args, **(kwargs or {}))

    base = floats().requires_grad_()
    changed = (base * 2).view(-1, 64)
    changed[0].add_(1)
    with Mode(), torch.device("cuda"):
        look([changed, base])


@kind
def in_a_function(look):
    class Function(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            context.save_for_backward(x)
            context.kept = x
            return x * 2

        @staticmethod
        def backward(context, gradient):
            return gradient

        @property
        def next_functions(self):
            raise AssertionError("code of the program runs")

    out = Function.apply(floats().requires_grad_())
    look([out])


@kind
def packed(look):
    class Packed:
        def __init__(self, inside):
            self.inside = inside

    with torch.autograd.graph.saved_tensors_hooks(Packed, lambda packed: packed.inside):
        out = (floats().requires_grad_() * floats()).sum()
    look([out])


# -- Walks -----------------------------------------------------------------------------------------


def loads():
    text = json.dumps([{"at": at, "name": f"n{at}", "list": [at] * 8} for at in range(300)])
    while not stop.is_set():
        json.loads(text)


threads = [threading.Thread(target=loads) for _ in range(3)]
for thread in threads:
    thread.start()

warnings.simplefilter("always")
warnings.showwarning = lambda *about: warned.append(str(about[0])) if inside else None
share = SECONDS / len(KINDS)


class Look:
    """Looks for holders again and again, for a kind's share of the time."""

    def __init__(self):
        self.told = []

    def __call__(self, kept):
        global counting
        end = time.perf_counter() + share / 2
        while len(self.told) < 2 or time.perf_counter() < end:
            counting = len(self.told) % 2 == 0
            blocks = holders.live_blocks(torch.cuda.memory_snapshot())
            self.told.append(holders.find(torch, blocks, seconds=10))


try:
    for name, make in KINDS.items():
        look, before = Look(), len(warned)
        make(look)
        gc.collect()
        told = look.told
        one = {
            "kind": name,
            "walks": len(told),
            "calls": sorted(set(calls))[:5],
            "warned": warned[before:][:3],
            "opaque": max(one["opaque"] for one in told),
            "complete": sum(one["complete"] for one in told),
            "linked": sum("link" in block for block in told[-1]["blocks"]),
            "blocks": len(told[-1]["blocks"]),
        }
        calls.clear()
        print(json.dumps(one), flush=True)
finally:
    stop.set()
for thread in threads:
    thread.join()
sys.stdout.flush()
os._exit(0)
