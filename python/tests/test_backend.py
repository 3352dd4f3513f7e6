"""Which backend of PyTorch the recorder uses. Modules stand in for those of other devices."""

import sys
import types

import pytest

from vramscope.recorder import allocator, backend, sidecar, tensors


def module(is_available=True, records=True, **members):
    def record(enabled="all", context="all", stacks="all", max_entries=1, device=None):
        calls.append((enabled, stacks, max_entries))

    calls = []
    memory = types.SimpleNamespace(_snapshot=dict)
    if records:
        memory._record_memory_history = record
    return types.SimpleNamespace(
        is_available=lambda: is_available,
        memory=memory,
        calls=calls,
        current_device=lambda: 0,
        device_count=lambda: 2,
        memory_reserved=lambda device: 100,
        mem_get_info=lambda device: (300, 1000),
        get_device_name=lambda device: f"device {device}",
        **members,
    )


def torch(cuda=None, hip=None, **members):
    return types.SimpleNamespace(
        __version__="2.11.0",
        version=types.SimpleNamespace(cuda=None, hip=hip),
        cuda=cuda or module(is_available=False),
        _C=types.SimpleNamespace(),
        **members,
    )


@pytest.fixture
def npu(monkeypatch):
    """Makes torch_npu a module that the program has imported."""
    observers = []
    of_c = types.SimpleNamespace(_npu_attach_out_of_memory_observer=observers.append)
    torch_npu = types.SimpleNamespace(npu=module(), _C=of_c, observers=observers)
    monkeypatch.setitem(sys.modules, "torch_npu", torch_npu)
    return torch_npu


def test_cuda_comes_first(npu):
    cuda = module()
    assert backend.choose(torch(cuda)).module is cuda
    assert backend.choose(torch(cuda)).name == "cuda"
    assert backend.choose(torch(cuda, hip="6.4")).name == "rocm"
    assert backend.choose(torch(cuda, xpu=module())).module is cuda


def test_another_device_needs_the_calls(npu):
    xpu = module()
    assert backend.choose(torch()).module is npu.npu
    assert backend.choose(torch(xpu=xpu)).name == "npu"
    npu.npu = module(records=False)
    assert backend.choose(torch(xpu=xpu)).module is xpu
    assert backend.choose(torch(xpu=module(records=False))).name == "cuda"
    assert not backend.choose(torch(xpu=module(is_available=False))).is_available()


def test_torch_npu_is_not_imported(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch_npu", raising=False)
    assert backend.choose(torch()).name == "cuda"
    assert "torch_npu" not in sys.modules


def test_an_npu_is_recorded_by_its_own_calls(npu):
    chosen = backend.choose(torch())
    arguments = allocator.start_history(chosen, 5000, "python")
    # torch_npu takes neither annotations nor compile contexts. This PyTorch loses errors in frees.
    assert arguments == {"stacks": "python", "max_entries": 5000, "context": "alloc"}
    allocator.stop_history(chosen)
    assert npu.npu.calls == [("all", "python", 5000), (None, "all", 1)]
    observer = object()
    assert allocator.attach_oom_observer(chosen, observer)
    assert npu.observers == [observer]


def test_intel_gpus_have_no_observers(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch_npu", raising=False)
    chosen = backend.choose(torch(xpu=module()))
    assert chosen.name == "xpu"
    assert not allocator.attach_oom_observer(chosen, object())


def test_the_queue_of_a_backend_delays_the_start():
    waiting = []
    lazy = backend.choose(torch(module(_lazy_call=waiting.append)))
    lazy.when_initialized(lambda: waiting.append("called"))
    assert len(waiting) == 1 and callable(waiting[0])
    at_once = []
    backend.choose(torch(module())).when_initialized(lambda: at_once.append("called"))
    assert at_once == ["called"]


def test_the_file_beside_a_snapshot_names_the_backend(npu, monkeypatch):
    for name in ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTORCH_NPU_ALLOC_CONF", "expandable_segments:True")
    chosen = backend.choose(torch())
    facts = sidecar.environment(chosen)
    assert (facts["backend"], facts["driver"]) == ("npu", None)
    assert facts["alloc_conf"] == "expandable_segments:True"
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:1")
    monkeypatch.delenv("PYTORCH_NPU_ALLOC_CONF")
    assert sidecar.environment(chosen)["alloc_conf"] is None
    devices = sidecar.devices(chosen, None)
    assert [one["device"] for one in devices] == [0, 1]
    assert (devices[1]["name"], devices[1]["other_bytes"]) == ("device 1", 600)


def test_tensors_of_all_devices_have_names():
    def parameter(kind):
        storage = types.SimpleNamespace(data_ptr=lambda: 4096, nbytes=lambda: 64)
        device = types.SimpleNamespace(type=kind, index=0)
        return types.SimpleNamespace(
            untyped_storage=lambda: storage, device=device, shape=(4, 4), dtype="torch.float32"
        )

    for kind, count in (("cuda", 1), ("xpu", 1), ("npu", 1), ("cpu", 0), ("meta", 0)):
        assert len(list(tensors._entry("parameter", "w", parameter(kind)))) == count, kind
