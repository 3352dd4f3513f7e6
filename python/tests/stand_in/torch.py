"""Stands in for PyTorch in tests of the recorder: only what it calls, and memory as a list.

``TORCH_VERSION`` and ``TORCH_BACKEND`` of the environment say which PyTorch this is, and
``TORCH_LIMIT`` the limit of the process. Without a device if ``TORCH_DEVICES`` is 0. With
``TORCH_REFUSES`` requests are refused early, as by PyTorch 2.15 under ``throw_on_cudamalloc_oom``:
the error comes without a call of observers. Operations pass through the dispatch modes of their
thread. With ``TORCH_EVENT_BYTES`` an event takes these bytes of a snapshot.
"""

import contextlib
import os
import sys
import threading
import types

__version__ = os.environ.get("TORCH_VERSION", "2.9.1")
#: Elements that a device has.
CAPACITY = 1 << 40
LIMIT = int(os.environ.get("TORCH_LIMIT", CAPACITY))


class OutOfMemoryError(RuntimeError):
    pass


observers = []
events = []
rejections = []


def empty(elements, device):
    _initialize()
    if elements > CAPACITY and "TORCH_REFUSES" in os.environ:
        rejections.append(elements)
        raise OutOfMemoryError("CUDA out of memory. Allocation was preemptively rejected")
    if elements > CAPACITY:
        for observer in observers:
            observer(0, elements, LIMIT, 0)
        raise OutOfMemoryError("CUDA out of memory")
    text = "x" * int(os.environ.get("TORCH_EVENT_BYTES", 0))
    events.append({"action": "alloc", "size": elements, "frames": [], "text": text})
    return elements


_queue = []
_tls = types.SimpleNamespace(is_initialized=False)


def _module(name, **members):
    module = types.ModuleType(name)
    vars(module).update(members)
    sys.modules[name] = module
    return module


def _lazy_call(function):
    """Calls at the first use of the device, as PyTorch does: not again by what it calls then."""
    assert not hasattr(_tls, "is_initializing"), "PyTorch would wait for its own lock"
    if _tls.is_initialized:
        function()
    else:
        _queue.append(function)


def _initialize():
    if not _tls.is_initialized:
        _tls.is_initializing = True
        for function in _queue:
            function()
        del _tls.is_initializing
        _tls.is_initialized = True


def _record_memory_history(enabled, **arguments):
    _record_memory_history_impl(enabled, **arguments)


def _record_memory_history_impl(enabled="all", context="all", stacks="all", max_entries=1 << 40):
    if enabled and cuda.get_allocator_backend() != "native":
        raise RuntimeError("does not yet support recordHistory")
    if not enabled:
        events.clear()


def _snapshot():
    return {"segments": [], "device_traces": [list(events)]}


def _memory_snapshot(mempool_id=None, include_traces=True):
    block = {"size": 512, "state": "inactive"}
    sizes = {"total_size": 1024, "allocated_size": 512, "active_size": 512}
    kind = {"stream": 0, "segment_type": "small", "segment_pool_id": (0, 0)}
    used = {"size": 512, "state": "active_allocated"}
    return [{"device": 0, "address": 4096, "blocks": [used, block], **sizes, **kind}]


def _memory_stats(device):
    return {
        "allocated_bytes.all.current": sum(event["size"] for event in events),
        "num_ooms": 0,
        "num_oom_rejections": len(rejections),
    }


class Tensor:
    """A tensor of its own storage on the device."""

    def __torch_dispatch__(self):
        raise NotImplementedError

    def get_device(self):
        return 0

    def untyped_storage(self):
        return types.SimpleNamespace(data_ptr=lambda: id(self), nbytes=lambda: 512)


class _Modes(threading.local):
    def __init__(self):
        self.stack = []


class TorchDispatchMode:
    def __enter__(self):
        _modes.stack.append(self)
        return self

    def __exit__(self, kind, error, trace):
        _modes.stack.pop()


class _Operation:
    def __init__(self, name):
        self._name = name

    def __str__(self):
        return f"aten.{self._name}"

    def __call__(self, *tensors):
        if not _modes.stack and self._name == "mm":
            raise RuntimeError("1D tensors")
        if not _modes.stack:
            return Tensor()
        mode = _modes.stack.pop()
        try:
            return mode.__torch_dispatch__(self, (), tensors)
        finally:
            _modes.stack.append(mode)


_modes = _Modes()
neg, exp, abs, mm = map(_Operation, ("neg", "exp", "abs", "mm"))
_module("torch.utils")
_module("torch.utils._python_dispatch", TorchDispatchMode=TorchDispatchMode)
version = types.SimpleNamespace(cuda="12.8", hip=None)
_C = types.SimpleNamespace(
    DisableTorchFunction=contextlib.nullcontext,
    _cuda_attach_out_of_memory_observer=observers.append,
    _dynamo=types.SimpleNamespace(),
    _get_dispatch_stack_at=lambda at: _modes.stack[at],
    _len_torch_dispatch_stack=lambda: len(_modes.stack),
)
_optimizer = _module(
    "torch.optim.optimizer",
    register_optimizer_step_post_hook=lambda hook: types.SimpleNamespace(remove=lambda: None),
)
optim = _module("torch.optim", optimizer=_optimizer)
_memory = _module(
    "torch.cuda.memory",
    _record_memory_history=_record_memory_history,
    _record_memory_history_impl=_record_memory_history_impl,
    _snapshot=_snapshot,
)
cuda = _module(
    "torch.cuda",
    OutOfMemoryError=OutOfMemoryError,
    _lazy_call=_lazy_call,
    _tls=_tls,
    current_device=lambda: 0,
    device_count=lambda: 1,
    get_allocator_backend=lambda: os.environ.get("TORCH_BACKEND", "native"),
    get_device_name=lambda device: "none",
    is_available=lambda: os.environ.get("TORCH_DEVICES") != "0",
    mem_get_info=lambda device: (CAPACITY, CAPACITY),
    memory=_memory,
    memory_reserved=lambda device: 0,
    memory_stats=_memory_stats,
)
if int(__version__.split(".")[1]) >= 11:
    cuda.memory_snapshot = _memory_snapshot
