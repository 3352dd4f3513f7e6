"""Tensors that something holds, one program for each kind of reference.

Each case allocates a block of a size of its own, asks who holds it, drops what the answer names,
and compares the bytes that ``memory_allocated`` falls by. One line of JSON is printed for each.
With names only these cases run.
"""

import asyncio
import contextvars
import functools
import gc
import json
import queue
import sys
import threading
import weakref
from typing import ClassVar

import torch

from vramscope.recorder import holders

MIB = 1 << 20
CASES = {}


def case(*chain, none=None, frees=True, also=()):
    """Registers a program. ``chain`` is who holds the block, ``also`` what else does."""

    def register(program):
        CASES[program.__name__] = (program, list(chain), none, frees, list(also))
        return program

    return register


def block(mib, **options):
    return torch.empty(mib * MIB, dtype=torch.uint8, device="cuda", **options)


def floats(mib, **options):
    return torch.empty(mib * MIB // 4, device="cuda", **options)


def words(told, link):
    found = []
    while link is not None:
        one = told["links"][link]
        text = " ".join(str(one[key]) for key in ("by", "name") if one.get(key) is not None)
        if one.get("type") is not None:
            text += f": {one['type']}"
        if one.get("between") is not None:
            text += f" after {one['between']}"
        if one.get("thread") is not None:
            text += f" in {one['thread']}"
        found.append(text)
        link = one["from"]
    return found[::-1]


class Look:
    """What is told of the block of a size."""

    def __init__(self):
        #: Whether the program drops what holds the most, and not only this block.
        self.outermost = True
        self.row, self.entry, self.told, self.fell = None, None, None, None

    def __call__(self, mib):
        before = torch.cuda.memory_stats()["allocation.all.allocated"]
        blocks = holders.live_blocks(torch.cuda.memory_snapshot())
        # A loaded machine must not cut the walk.
        self.told = holders.find(torch, blocks, hidden=[self], seconds=60)
        assert torch.cuda.memory_stats()["allocation.all.allocated"] == before, "it allocates"
        sizes = {(one.device, one.address): one.bytes for one in blocks}
        # A rest of a segment up to 1 MiB belongs to the block.
        fits = [
            one
            for one in self.told["blocks"]
            if 0 <= sizes[one["device"], one["address"]] - mib * MIB <= MIB
        ]
        assert len(fits) == 1, f"{len(fits)} blocks of {mib} MiB"
        self.entry = fits[0]
        self.row = None
        if "drop" in self.entry:
            rows = self.told["drops"]
            self.row = rows[self.entry["drop"]]
            while self.outermost and self.row["within"] is not None:
                self.row = rows[self.row["within"]]
        self.allocated = torch.cuda.memory_allocated()
        return self

    @property
    def chain(self):
        return words(self.told, self.entry["link"]) if "link" in self.entry else []

    @property
    def also(self):
        return [words(self.told, link) for link in self.row["links"]] if self.row else []

    def measure(self):
        """Takes the bytes that were freed, before the program ends."""
        self.fell = self.allocated - torch.cuda.memory_allocated()


# -- Local variables, containers -------------------------------------------------------------------


@case("local x: Tensor")
def a_local_variable(look):
    x = block(41)
    look(41)
    del x


@case(
    "local losses: list",
    "item 0: Tensor",
    "graph: SumBackward0",
    "graph: MulBackward0",
    "saved other",
)
def a_list_of_losses(look):
    weight = torch.ones(1, device="cuda", requires_grad=True)
    losses = [(weight * floats(20 + 4 * at)).sum() for at in range(3)]
    look(20)
    del losses
    look.measure()


@case("local cache: dict", "item step 3: Tensor")
def a_dict(look):
    cache = {"step 3": block(43)}
    look(43)
    del cache["step 3"]


@case("local pairs: tuple", "item 1: list", "item 0: Tensor")
def nested_containers(look):
    pairs = (1, [block(44)])
    look(44)
    del pairs


@case("local box: _Slots", "attribute held: Tensor")
def a_slot(look):
    box = _Slots()
    box.held = block(45)
    look(45)
    del box


class _Slots:
    __slots__ = ("held",)


@case("local box: _Plain", "attribute inner: _Plain", "attribute held: Tensor")
def attributes(look):
    box = _Plain()
    box.inner = _Plain()
    box.inner.held = block(46)
    look(46)
    del box.inner


class _Plain:
    pass


# -- Globals, functions, classes -------------------------------------------------------------------


@case("global KEPT: Tensor")
def a_global(look):
    global KEPT
    KEPT = block(47)
    look(47)
    KEPT = None


@case("global _with_default: function", "default held: Tensor")
def a_default_argument(look):
    _with_default.__defaults__ = (block(48),)
    look(48)
    _with_default.__defaults__ = (None,)


def _with_default(held=None):
    return held


@case("global _Metric: class _Metric", "attribute seen: list", "item 0: Tensor")
def a_class_attribute(look):
    _Metric.seen.append(block(49))
    look(49)
    _Metric.seen.clear()


class _Metric:
    seen: ClassVar[list] = []


@case("local add: function", "closure maps: list", "item 0: Tensor")
def a_closure(look):
    def made():
        maps = [block(50)]
        return lambda: maps

    add = made()
    look(50)
    del add


@case(
    "local net: Linear",
    "attribute _forward_hooks: OrderedDict",
    "item 0: function",
    "closure maps: list",
    "item 0: Tensor",
)
def a_forward_hook(look):
    net = torch.nn.Linear(4, 4)

    def hooked():
        maps = [block(51)]

        def keep(module, args, output):
            maps.append(output)

        handle = net.register_forward_hook(keep)
        key, handle.id = handle.id, 0
        net._forward_hooks[0] = net._forward_hooks.pop(key)

    hooked()
    look(51)
    net._forward_hooks.clear()


@case("global _cached: _lru_cache_wrapper", "cache: Tensor")
def an_unbounded_cache(look):
    _cached(1)
    look(52)
    _cached.cache_clear()


@functools.cache
def _cached(size):
    return block(52)


@case("global _bounded: _lru_cache_wrapper", "cache: Tensor")
def a_bounded_cache(look):
    _bounded(1)
    look(53)
    _bounded.cache_clear()


@functools.lru_cache(maxsize=4)
def _bounded(size):
    return block(53)


@case("local call: partial", "attribute args: tuple", "item 0: Tensor")
def a_partial(look):
    call = functools.partial(print, block(54))
    look(54)
    del call


@case("local call: method", "attribute __self__: _Holding", "attribute held: Tensor")
def a_bound_method(look):
    box = _Holding()
    box.held = block(55)
    call = box.run
    del box
    look(55)
    del call


class _Holding(_Plain):
    def run(self):
        pass


# -- Exceptions, generators, threads ---------------------------------------------------------------


def _failing(mib):
    logits = block(mib)
    raise RuntimeError(str(logits.shape))


@case("local kept: RuntimeError", "frame_local logits: Tensor")
def a_kept_exception(look):
    kept = None
    try:
        _failing(56)
    except RuntimeError as error:
        kept = error
    look(56)
    del kept


@case("handled RuntimeError: RuntimeError", "frame_local logits: Tensor", frees=False)
def an_exception_in_its_handler(look):
    try:
        _failing(57)
    except RuntimeError:
        look(57)


def _yielding(mib):
    batch = block(mib)
    yield batch.shape
    yield batch.shape


@case("local batches: generator", "frame_local batch: Tensor")
def a_generator(look):
    batches = _yielding(58)
    next(batches)
    look(58)
    del batches


@case("local task: coroutine", "frame_local batch: Tensor")
def a_coroutine(look):
    async def run():
        batch = block(59)
        await asyncio.sleep(0)
        return batch

    task = run()
    task.send(None)
    look(59)
    task.close()
    del task


@case("local data: dict", "item batch: Tensor")
def in_another_thread_s_container(look):
    data = {}
    worker = threading.Thread(target=lambda: data.update(batch=block(60)))
    worker.start()
    worker.join()
    look(60)
    data.clear()


@case("local batch: Tensor in loader", frees=False)
def a_local_of_another_thread(look):
    ready, done = threading.Event(), threading.Event()

    def load():
        batch = block(61)
        ready.set()
        done.wait()
        del batch

    worker = threading.Thread(target=load, name="loader")
    worker.start()
    ready.wait()
    look(61)
    done.set()
    worker.join()


@case("global OWN: _local", "attribute batch: Tensor")
def a_thread_local(look):
    OWN.batch = block(62)
    look(62)
    del OWN.batch


OWN = threading.local()


@case("local ready: Queue", "attribute queue: deque", "item 0: Tensor")
def a_queue(look):
    ready = queue.Queue()
    ready.put(block(63))
    look(63)
    del ready


@case("local ready: SimpleQueue", "item: Tensor")
def a_simple_queue(look):
    ready = queue.SimpleQueue()
    ready.put(block(64))
    look(64)
    del ready


@case("context CONTEXT: Tensor")
def a_context_variable(look):
    CONTEXT.set(block(65))
    look(65)
    CONTEXT.set(None)


CONTEXT = contextvars.ContextVar("CONTEXT")


# -- PyTorch ---------------------------------------------------------------------------------------


@case("local net: Sequential", "item 1: Linear", "attribute weight: Parameter", frees=False)
def a_parameter(look):
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(66 * 1024, 256, bias=False))
    net.cuda()
    optimizer = torch.optim.AdamW(net.parameters())
    look(66)
    del optimizer


@case("local net: Sequential", "item 0: Linear", "attribute weight: Parameter", "gradient: Tensor")
def a_gradient(look):
    net = torch.nn.Sequential(torch.nn.Linear(67 * 1024, 256, bias=False)).cuda()
    weight = net[0].weight
    weight.grad = torch.empty_like(weight)
    with torch.no_grad():
        weight.set_(floats(1).view(-1)[:8].view(2, 4))
    del weight
    look.outermost = False
    look(67)
    net[0].weight.grad = None
    look.measure()


@case(
    "local schedule: list",
    "item 0: LambdaLR",
    "attribute optimizer: SGD",
    "attribute state: defaultdict",
    "item Parameter: dict",
    "item momentum_buffer: Tensor",
)
def an_optimizer_of_a_scheduler(look):
    weight = torch.nn.Parameter(floats(2))
    optimizer = torch.optim.SGD([weight], lr=0.1, momentum=0.9)
    optimizer.state[weight]["momentum_buffer"] = floats(68)
    schedule = [torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)]
    del optimizer
    look(68)
    del schedule
    look.measure()


@case("local hidden: Tensor", "graph: SumBackward0", "graph: MulBackward0", "saved other")
def a_hidden_state(look):
    hidden = torch.ones(1, device="cuda", requires_grad=True)
    step = floats(70)
    hidden = (hidden * step).sum()
    del step
    look(70)
    del hidden
    look.measure()


@case(
    "local first: Tensor",
    "graph: MulBackward0",
    "graph: MulBackward0 after 2",
    "saved other",
    also=[["local first: Tensor"], ["local second: Tensor"]],
)
def two_variables_share_a_graph(look):
    weight = torch.ones(1, device="cuda", requires_grad=True)
    shared = weight * floats(71)
    first, second = shared[:4].sum() * 1.0, shared[4:8].sum() * 1.0
    del shared
    look(71)
    del first, second
    look.measure()


@case("local mine: Tensor", also=[["local mine: Tensor"], ["global KEPT: Tensor"]])
def a_local_and_a_global(look):
    global KEPT
    mine = KEPT = block(72)
    look(72)
    KEPT = None
    del mine


@case("local piece: Tensor")
def a_slice(look):
    piece = block(73)[:16]
    look(73)
    assert look.entry["view_bytes"] == 16
    del piece
    look.measure()


@case("local storage: UntypedStorage")
def a_storage(look):
    storage = block(74).untyped_storage()
    look(74)
    del storage


class _Custom(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, other):
        ctx.kept = other
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


@case("local out: Tensor", "graph: _CustomBackward", "attribute kept: Tensor")
def a_custom_function(look):
    x = torch.ones(4, device="cuda", requires_grad=True)
    out = _Custom.apply(x, block(75))
    look(75)
    del out
    look.measure()


class _Saving(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, other):
        ctx.save_for_backward(other)
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


@case("local out: Tensor", "graph: _SavingBackward", "saved tensors")
def a_custom_function_that_saves(look):
    x = torch.ones(4, device="cuda", requires_grad=True)
    out = _Saving.apply(x, block(76))
    look(76)
    del out
    look.measure()


RAN = []


def _unpack(packed):
    RAN.append("unpack")
    return packed[0]


@case(
    "local out: Tensor",
    "graph: SumBackward0",
    "graph: MulBackward0",
    "packed other: tuple",
    "item 0: Tensor",
)
def a_hook_that_packs(look):
    x = torch.ones(1, device="cuda", requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: (tensor,), _unpack):
        out = (x * floats(77)).sum()
    look(77)
    assert RAN == [], "a hook ran"
    del out
    look.measure()


@case("cycle", frees=False)
def a_cycle(look):
    box = _Plain()
    box.me, box.held = box, block(78)
    del box
    look(78)
    gc.collect()


@case("expression", frees=False)
def a_value_of_an_expression(look):
    return [[block(79)], look(79)][0][0].shape


@case(none="below_python", frees=False)
def a_raw_allocation(look):
    address = torch.cuda.caching_allocator_alloc(80 * MIB)
    look(80)
    torch.cuda.caching_allocator_delete(address)


@case("local x: Tensor")
def weak_references_hold_nothing(look):
    x = block(81)
    seen = weakref.WeakValueDictionary(x=x)
    seen["x"] = x
    look(81)
    del x
    assert len(seen) == 0


# -- Traps -----------------------------------------------------------------------------------------


class _Loud:
    """An object of which everything is code of the program."""

    def __init__(self, held):
        object.__setattr__(self, "held", held)

    def __getattribute__(self, name):
        RAN.append(name)
        raise AttributeError(name)

    def __eq__(self, other):
        RAN.append("==")
        return False

    def __hash__(self):
        return 1

    def __len__(self):
        RAN.append("len")
        return 1

    def __repr__(self):
        RAN.append("repr")
        return "?"


class _LoudDict(dict):
    def items(self):
        RAN.append("items")
        return []

    __iter__ = keys = values = __len__ = items


@case("local loud: _Loud", "attribute held: _LoudDict", "item _Loud: Tensor")
def no_code_of_the_program_runs(look):
    inner = _LoudDict()
    dict.__setitem__(inner, _Loud(None), block(82))
    loud = _Loud(inner)
    del inner
    RAN.clear()
    look(82)
    assert RAN == [], RAN
    del loud


class _Subclass(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        RAN.append(str(func))
        return super().__torch_function__(func, types, args, kwargs or {})

    @property
    def grad(self):
        RAN.append("grad")


@case("local x: _Subclass")
def a_tensor_s_own_code_does_not_run(look):
    x = block(83).as_subclass(_Subclass)
    RAN.clear()
    look(83)
    assert RAN == [], RAN
    del x


@case("local x: Tensor")
def a_frame_keeps_nothing(look):
    """Up to Python 3.12 a frame keeps the dict of its local variables."""
    x = block(84)
    look(84)
    del x
    look.measure()


def run(name):
    """Runs a case."""
    program, chain, none, frees, also = CASES[name]
    gc.collect()
    look = Look()
    found = {"case": name}
    program(look)
    if look.fell is None:
        look.measure()
    found["chain"], found["wanted"] = look.chain, chain
    found["none"], found["wanted_none"] = look.entry.get("none"), none
    found["complete"] = look.told["complete"] and look.told["graph"]
    if frees:
        found["told_bytes"], found["fell"] = look.row and look.row["bytes"], look.fell
        found["together"] = bool(look.row) and len(look.row["links"]) > 1
    if also:
        found["also"], found["wanted_also"] = sorted(look.also), sorted(also)
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    # The workspaces of libraries.
    torch.ones(8, 8, device="cuda") @ torch.ones(8, 8, device="cuda")
    for wanted in sys.argv[1:] or CASES:
        run(wanted)
