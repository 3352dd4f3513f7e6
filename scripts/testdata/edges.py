"""Unusual but readable snapshots. Each has one peculiarity, in a form that a producer writes."""

import collections
import copy
import io
import pickle

from . import notation

F01 = "SA 1000 4096; A 1000 1000; A 1400 500; F 1000; F 1400"
EMPTY = "1000+4096: 4096 i"
LIVE = "1000+4096: 1024/1000 a, 3072 i"


def one(name, text=F01, end=EMPTY):
    return notation.snapshot(name, [(text, end)])


def without(keys, snapshot):
    for trace in snapshot["device_traces"]:
        for event in trace:
            for key in keys:
                event.pop(key, None)
    return snapshot


def root_list_history():
    def block(size, state, *history):
        return {"size": size, "state": state} | ({"history": list(history)} if history else {})

    frames = notation.stack("root_list_history", "legacy", 1)
    return [
        {
            "device": 0,
            "address": 0x7F0000000000,
            "total_size": 4096,
            "allocated_size": 1536,
            "active_size": 1536,
            "stream": 0,
            "segment_type": "small",
            "blocks": [
                block(
                    512,
                    "active_allocated",
                    {"addr": 0x7F0000000000, "real_size": 300, "frames": frames},
                ),
                block(1024, "active_allocated", {"addr": 0x7F0000000200, "real_size": 1000}),
                block(
                    2560,
                    "inactive",
                    {"addr": 0x7F0000000600, "real_size": 77, "frames": frames},
                    {"addr": 0x7F0000000800, "real_size": 78},
                ),
            ],
        },
        {
            "device": 0,
            "address": 0x7F0000100000,
            "total_size": 2097152,
            "allocated_size": 512,
            "active_size": 512,
            "stream": 0,
            "segment_type": "large",
            "blocks": [block(512, "active_allocated"), block(2096640, "inactive")],
        },
    ]


def addresses():
    high, negative, last = 1 << 63, -(1 << 40), (1 << 64) - 4096
    snapshot = {"segments": [], "device_traces": [[]]}
    for n, base in enumerate((0x80000000, 0x7F2A00000000, high, negative, last)):
        snapshot["device_traces"][0].append(
            {
                "action": "alloc",
                "addr": base,
                "size": 100 + n,
                "stream": -(1 << 33),
                "time_us": notation.CLOCK + n,
                "frames": notation.stack("addresses", "alloc", n),
            }
        )
        snapshot["segments"].append(
            {
                "device": 0,
                "address": base,
                "total_size": 4096,
                "allocated_size": 512,
                "active_size": 512,
                "requested_size": 100 + n,
                "stream": 0,
                "segment_type": "small",
                "segment_pool_id": (0, 0),
                "is_expandable": False,
                "frames": [],
                "blocks": [
                    {
                        "address": base,
                        "size": 512,
                        "requested_size": 100 + n,
                        "state": "active_allocated",
                        "frames": [],
                    },
                    {
                        "address": base + 512,
                        "size": 3584,
                        "requested_size": 0,
                        "state": "inactive",
                        "frames": [],
                    },
                ],
            }
        )
    return snapshot


def times():
    snapshot = one(
        "times",
        "A 1000 100; F 1000; A 1000 200; A 1400 300; F 1400",
        "1000+4096: 512/200 a, 3584 i",
    )
    for event, t in zip(snapshot["device_traces"][0], (50, 50, 50, 40, 60, 60, 60)):
        event["time_us"] = notation.CLOCK + t
    return snapshot


def annotate():
    snapshot = one("annotate", "A 1000 1000; A 1400 500; F 1400", LIVE)
    trace = snapshot["device_traces"][0]

    def note(addr, text):
        return {
            "action": "annotate",
            "addr": addr,
            "size": 0,
            "stream": 0,
            "time_us": trace[-1]["time_us"],
            "user_metadata": text,
            "frames": notation.stack("annotate", "note", 1),
        }

    trace[1:1] = [note(0x1000, "weights")]
    trace += [
        note(0x1000, '{"layer":3}'),
        note(0x1400, "already freed"),
        note(0x9000, "never known"),
    ]
    trace.append(
        {
            "action": "snapshot",
            "addr": 0,
            "size": 1 << 40,
            "stream": 0,
            "time_us": trace[-1]["time_us"],
        }
    )
    return snapshot


def metadata():
    snapshot = one("metadata", "A 1000 1000; A 1400 500; F 1400; A 1600 20; F 1600", LIVE)
    extra = [
        {"user_metadata": "a plain text", "compile_context": "N/A"},
        {
            "user_metadata": '{"step":3,"phase":"forward"}',
            "compile_context": "Torch-Compiled Region: 0/1",
        },
        {
            "user_metadata": {"step": 4, "nested": {"deep": [1, 2.5, None, True]}},
            "compile_context": "",
        },
        {"user_metadata": ""},
        {"internal_metadata": "mallocWithAddress"},
        {
            "forward_frames": [
                '  File "/train/model.py", line 12, in forward\n',
                "    y = self.fc(x)\n",
            ]
        },
    ]
    for event, more in zip(snapshot["device_traces"][0], extra):
        event.update(more)
    snapshot["external_annotations"] = [
        {"name": "ProfilerStep#1", "stage": "START", "device": 0, "time_us": notation.CLOCK},
        {"stage": "END", "time_us": notation.CLOCK + 1, "name": "never started", "device": 0},
        {"name": "ProfilerStep#1", "stage": "START", "device": 0, "time_us": notation.CLOCK + 2},
        {"name": "ProfilerStep#1", "stage": "END", "device": 0, "time_us": notation.CLOCK + 3},
        {"name": "elsewhere", "stage": "START", "device": 7, "time_us": 0, "color": "red"},
    ]
    return snapshot


def frames():
    snapshot = one(
        "frames",
        "A 1000 1000; A 1400 500; A 1600 20; A 1800 10; A 1a00 10; A 1c00 10; A 1e00 10; "
        "F 1400; F 1600; F 1800; F 1a00; F 1c00; F 1e00",
        LIVE,
    )
    fx = {
        "name": "forward",
        "filename": "/tmp/torchinductor/fx.py",
        "line": 7,
        "fx_node_op": "call_function",
        "fx_node_name": "linear",
        "fx_node_target": None,
        "fx_original_trace": 'File "/train/model.py", line 12\n  y = fc(x)\n',
    }
    variants = [
        None,
        [],
        [{}],
        [{"name": "only a name"}, {"filename": "??", "line": 0}],
        [
            {"name": "odd lines", "filename": "", "line": None},
            {"name": "negative", "filename": "x.py", "line": -1},
        ],
        [{"name": "std::" + "vector<" * 250 + ">" * 250, "filename": "??", "line": 0}],
        [fx, dict(fx, fx_node_name=None)],
    ]
    for event, value in zip(snapshot["device_traces"][0], variants):
        event["frames"] = value
    del snapshot["device_traces"][0][7]["frames"]
    return snapshot


def names():
    snapshot = one("names", "A 1000 1000; A 1400 500; F 1400", LIVE)
    odd = [
        "lone \ud800 surrogate",
        "NUL \x00 inside",
        "<script>alert(1)</script>",
        "RTL \u202e txt.exe",
        "long " + "x" * 70000,
        "emoji 🦀 and \u0301 combining",
        "",
    ]
    snapshot["device_traces"][0][0]["frames"] = [
        {"name": n, "filename": n, "line": i} for i, n in enumerate(odd)
    ]
    return snapshot


def host():
    snapshot = one("host")
    snapshot["host_segments"] = [
        {
            "address": 0x7FFF00000000,
            "total_size": 1 << 20,
            "allocated_size": 1 << 20,
            "active_size": 1 << 20,
            "segment_pool_id": (0, 0),
            "frames": [],
        }
    ]
    snapshot["host_traces"] = [
        {
            "action": a,
            "addr": 0x7FFF00000000,
            "size": 1 << 20,
            "stream": 0,
            "device": -1,
            "time_us": notation.CLOCK,
        }
        for a in ("segment_alloc", "alloc")
    ]
    return snapshot


def host_event(action, at, size):
    return {"action": action, "addr": at, "size": size, "stream": 0, "time_us": notation.CLOCK}


def host_block(at, size, requested, state):
    """A segment of pinned memory. It has one block."""
    block = {"address": at, "size": size, "requested_size": requested, "state": state}
    return {
        "device": -1,
        "address": at,
        "total_size": size,
        "allocated_size": size if state == "active_allocated" else 0,
        "active_size": 0 if state == "inactive" else size,
        "requested_size": requested,
        "stream": 0,
        "segment_type": "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": [],
        "blocks": [block | {"frames": []}],
    }


def host_requests():
    """Requests of pinned memory that are known, above the rounding threshold, and unknown."""
    snapshot = one("host_requests")
    known, above, freed, pending = (0x7FFF00000000 + (i << 28) for i in range(4))
    snapshot["host_segments"] = [
        host_block(pending, 8, 8, "active_pending_free"),
        host_block(known, 32 << 20, 21 << 20, "active_allocated"),
        host_block(freed, 8 << 20, 0, "inactive"),
    ]
    snapshot["host_traces"] = [
        host_event("segment_alloc", known, 32 << 20),
        host_event("alloc", known, 32 << 20),
        host_event("segment_alloc", above, 3 << 20),
        host_event("alloc", above, 3 << 20),
        host_event("free_requested", freed, 8 << 20),
        host_event("free_completed", freed, 8 << 20),
        host_event("free_requested", above, 3 << 20),
        host_event("free_completed", above, 3 << 20),
        host_event("segment_free", above, 3 << 20),
        host_event("free_requested", pending, 8),
    ]
    return snapshot


def host_only():
    """Recorded with record_cuda=False."""
    snapshot = host_requests()
    snapshot["segments"], snapshot["device_traces"] = [], [[]]
    snapshot["host_segments"] = [
        host_block(0x7FFF00000000, 32 << 20, 21 << 20, "active_allocated")
    ]
    snapshot["host_traces"] = snapshot["host_traces"][:2]
    return snapshot


def pools():
    snapshot = one(
        "pools",
        "SA 10000 4096; A 10000 1000; A 10400 600; F 10400",
        "1000+2048[3,0]: 512/300 a, 1536 i; 10000+4096[0,1]: 1024/1000 a, 3072 i",
    )
    for segment in snapshot["segments"]:
        segment["segment_pool_id"] = list(segment["segment_pool_id"])
    for event in snapshot["device_traces"][0]:
        event["pool_id"] = (0, 1)
    snapshot["device_traces"][0][2]["segment_pool_id"] = [0, 1]
    del snapshot["device_traces"][0][2]["pool_id"]
    return snapshot


def streams():
    snapshot = one(
        "streams",
        "A 1000 100; A 1400 200; A 1800 300; R 1000; R 1400; C 1400; R 1800",
        "1000+4096: 1024/100 p, 1024 i, 2048/300 p",
    )
    for event, s in zip(snapshot["device_traces"][0], (0, 94023847345, -5, 1, 2, 94023847345, 0)):
        event["stream"] = s
    snapshot["segments"][0]["blocks"][2]["state"] = "active_awaiting_free"
    return snapshot


def odd_values():
    snapshot = one("odd_values")
    snapshot.update(
        {
            "an ordered dict": collections.OrderedDict([("b", 1), ("a", 2)]),
            "a set": {1, 2, 3},
            "a frozen set": frozenset({1, 2}),
            "bytes": bytes(range(256)),
            "a byte array": bytearray(b"abc"),
            "a float": 2.5,
            "infinity": float("inf"),
            "complex": 1 + 2j,
            "wide": 1 << 100,
            "wider": -(1 << 3000),
            "none": None,
            "true": True,
            "false": False,
            "tuples": ((), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)),
            "a range": range(3),
            "a class": collections.Counter,
            "an exception": ValueError("text"),
            3: "a number as a key",
            (1, 2): "a tuple as a key",
        }
    )
    cycle = []
    cycle.append(cycle)
    snapshot["a cycle"] = cycle
    loop = {}
    loop["self"] = loop
    snapshot["another cycle"] = loop
    return snapshot


def overflow():
    snapshot = one("overflow")
    snapshot["allocator_settings"] = dict(
        snapshot["allocator_settings"],
        trace_alloc_overflowed=True,
        trace_alloc_max_entries=7,
        roundup_power2_divisions={"1": 4, "2": 4},
        max_split_size=(1 << 64) - 1,
        graph_capture_record_stream_reuse=True,
    )
    snapshot.update(
        trace_alloc_overflowed=[True],
        trace_alloc_max_entries=[7],
        categories=["unknown"],
        segment_version=1,
    )
    return snapshot


def unknown():
    snapshot = one("unknown", "A 1000 1000; A 1400 500; F 1400", LIVE)
    trace = snapshot["device_traces"][0]
    trace[1:1] = [
        {
            "action": "user_defined",
            "addr": 0,
            "size": 0,
            "stream": 0,
            "frames": [{"name": "START", "filename": "label", "line": 0}],
        },
        {
            "action": "workspace_future",
            "addr": 0x1000,
            "size": 4096,
            "stream": 0,
            "another key": [1, 2, 3],
        },
        {"action": "oom"},
        {},
    ]
    return snapshot


def disagree():
    """Segments with gaps, overlapping segments, a block and an event outside of all segments."""
    snapshot = one("disagree", "A 1000 100; A 9000 200; F 9000", "1000+4096: 512/100 a, 3584 i")
    extra = copy.deepcopy(snapshot["segments"][0])
    extra.update(address=0x1800, total_size=8192)
    extra["blocks"] = [
        {
            "address": 0x4000,
            "size": 512,
            "requested_size": 50,
            "state": "active_allocated",
            "frames": [],
        },
        {
            "address": 0x1800,
            "size": 100,
            "requested_size": 999999,
            "state": "inactive",
            "frames": [],
        },
    ]
    snapshot["segments"].append(extra)
    return snapshot


def kineto():
    """The output of PyTorch's `profile_plot`: no times, categories, the CPU as the last device."""

    def entry(action, addr, size, **more):
        return {
            "action": action,
            "addr": addr,
            "size": size,
            "stream": 0,
            "frames": [{"filename": "none", "line": 0, "name": "aten::mm"}],
            **more,
        }

    def segment(device, base, total, used):
        return {
            "device": device,
            "address": base,
            "total_size": total,
            "stream": 0,
            "blocks": [
                {"size": used, "state": "active_allocated"},
                {"size": total - used, "state": "inactive"},
            ],
        }

    return {
        "segments": [segment(0, 0x1000, 4096, 1024), segment(1, 0x5000, 4096, 512)],
        "device_traces": [
            [
                entry("alloc", 0x1000, 1024, category="parameter"),
                entry("alloc", 0x1400, 512, category="activation"),
                entry("free", 0x1400, 512),
            ],
            [entry("alloc", 0x5000, 512, category="unknown")],
        ],
    }


class CppPickler:
    """Writes as PyTorch's C++ pickler does, in protocol 2.

    Strings are memoized by value. A list has one MARK. Integers outside of int32 take eight bytes,
    so that large ones become negative. With `tags`, containers are wrapped in `restore_type_tag`.
    """

    def __init__(self, tags):
        self.out, self.memo, self.tags = io.BytesIO(), {}, tags

    def put(self, key):
        n = self.memo[key] = len(self.memo)
        self.out.write(b"q" + bytes([n]) if n < 256 else b"r" + n.to_bytes(4, "little"))

    def string(self, s):
        if s in self.memo:
            n = self.memo[s]
            self.out.write(b"h" + bytes([n]) if n < 256 else b"j" + n.to_bytes(4, "little"))
            return
        raw = s.encode("utf-8", "surrogatepass")
        self.out.write(b"X" + len(raw).to_bytes(4, "little") + raw)
        self.put(s)

    def write(self, v):
        w = self.out.write
        if isinstance(v, bool):
            w(b"\x88" if v else b"\x89")
        elif v is None:
            w(b"N")
        elif isinstance(v, float):
            w(pickle.dumps(v, 1)[:-1])
        elif isinstance(v, int):
            if -(1 << 31) <= v < 1 << 31:
                w(b"J" + v.to_bytes(4, "little", signed=True))
            else:
                w(b"\x8a\x08" + (v & ((1 << 64) - 1)).to_bytes(8, "little"))
        elif isinstance(v, str):
            self.string(v)
        elif isinstance(v, tuple):
            for x in v:
                self.write(x)
            w(b"\x86")
        else:
            if self.tags:
                w(b"ctorch.jit._pickle\nrestore_type_tag\n")
            if isinstance(v, dict):
                w(b"}(")
                for k, x in v.items():
                    self.write(k)
                    self.write(x)
                w(b"u")
            else:
                w(b"](")
                for x in v:
                    self.write(x)
                w(b"e")
            if self.tags:
                self.string("Dict[str, Any]" if isinstance(v, dict) else "List[Any]")
                w(b"\x86R")

    @classmethod
    def dumps(cls, value, tags=False):
        p = cls(tags)
        p.out.write(b"\x80\x02")
        p.write(value)
        p.out.write(b".")
        return p.out.getvalue()


def deep_stack():
    snapshot = one("deep_stack", "A 1000 1000", LIVE)
    snapshot["device_traces"][0][0]["frames"] = [
        {"name": f"recurse_{i % 3}", "filename": "/train/deep.py", "line": i % 7}
        for i in range(1500)
    ]
    return snapshot


def sparse_memo():
    """Protocol 2 with a memo index of a million, for which no table may be allocated."""
    raw = pickle.dumps(one("sparse_memo"), 2)
    return raw.replace(b"}q\x00", b"}r\x40\x42\x0f\x00", 1)


def batches():
    sizes = [i % 500 + 1 for i in range(1010)]
    snapshot = one(
        "batches",
        "; ".join(f"A {0x1000 + i * 512:x} {s}" for i, s in enumerate(sizes)),
        f"1000+{len(sizes) * 512}: " + ", ".join(f"512/{s} a" for s in sizes),
    )
    shared = notation.stack("batches", "alloc", 0)
    for entry in snapshot["device_traces"][0] + snapshot["segments"][0]["blocks"]:
        entry["frames"] = shared
    return snapshot


def dump(value, protocol=4):
    return pickle.dumps(value, protocol)


def edges():
    """Maps names to (description, bytes).

    A third value is the snapshot without calls, for the oracle, which refuses them.
    """
    lost = one(
        "lost_alloc",
        "A 1000 100; F 1000; C 1000 300; A 1400 40; F 1400",
        "1000+4096: 1024 i, 512/60 a, 2560 i",
    )
    many = notation.snapshot(
        "two_devices",
        [
            (F01, EMPTY),
            (
                "SA 1000 8192; A 1000 3000; A 1400 2000; F 1000",
                "1000+8192: 1024 i, 2048/2000 a, 5120 i",
            ),
        ],
    )
    beyond = one("beyond")
    beyond["segments"] += notation.segments("beyond", LIVE, 5)
    state = one("state", "C 1000 10", LIVE)
    gaps = notation.snapshot("empty_devices", [("", "")] * 3 + [(F01, EMPTY)] + [("", "")] * 4)
    no_settings = one("no_settings")
    del no_settings["allocator_settings"], no_settings["external_annotations"]
    return {
        "no_time.pickle": (
            "torch before 2.2: no time_us",
            dump(without(["time_us"], one("no_time"))),
        ),
        "segments_only.pickle": (
            "a dict with segments and nothing else",
            dump({"segments": one("segments_only", "", LIVE)["segments"]}),
        ),
        "trace_only.pickle": (
            "a trace without segments: reserved seems to start below zero",
            dump(one("trace_only", F01, "")),
        ),
        "root_list_history.pickle": (
            "torch 1.13: a bare list, blocks without address, with history",
            dump(root_list_history()),
        ),
        "two_devices.pickle": ("two devices that use the same addresses", dump(many)),
        "empty_devices.pickle": ("device 3 of 8 visible ones", dump(gaps)),
        "beyond.pickle": ("segments of a device that has no trace", dump(beyond)),
        "addresses.pickle": (
            "2^31, a Linux device address, 2^63, negative and the last page of 64 bits",
            dump(addresses()),
        ),
        "times.pickle": ("equal microseconds, and a clock that steps back", dump(times())),
        "streams.pickle": (
            "frees pending at the end, on several streams; the state called active_awaiting_free",
            dump(streams()),
        ),
        "annotate.pickle": (
            "annotate events, on live, dead and unknown addresses; a snapshot mark",
            dump(annotate()),
        ),
        "metadata.pickle": (
            "user_metadata as text and dict, compile_context, forward_frames, unpaired annotations",
            dump(metadata()),
        ),
        "frames.pickle": (
            "frames missing, None, empty, without keys, with FX fields",
            dump(frames()),
        ),
        "names.pickle": ("lone surrogates, NULs, markup and 70 kB in names", dump(names())),
        "deep_stack.pickle": ("a stack of 1500 frames", dump(deep_stack())),
        "host.pickle": ("pinned host memory beside the device", dump(host())),
        "host_requests.pickle": (
            "pinned host memory: known, exact and unknown requests",
            dump(host_requests()),
        ),
        "host_only.pickle": ("pinned host memory without a device", dump(host_only())),
        "pools.pickle": ("pool ids as lists, and on events under both names", dump(pools())),
        "overflow.pickle": (
            "hints of an overrun ring, settings with other types",
            dump(overflow()),
        ),
        "unknown.pickle": (
            "actions and keys that no release has, an event without keys",
            dump(unknown()),
        ),
        "disagree.pickle": ("segments and trace that do not agree", dump(disagree())),
        "kineto.pickle": ("the output of profile_plot", dump(kineto())),
        "lost_alloc.pickle": (
            "a second completion, and a live block whose address completed: lost allocs",
            dump(lost),
        ),
        "state_only.pickle": ('one stray event, as enabled="state" leaves', dump(state)),
        "no_settings.pickle": ("neither settings nor annotations", dump(no_settings)),
        "nothing.pickle": ("empty lists", dump({"segments": [], "device_traces": []})),
        "odd_values.pickle": (
            "sets, bytes, floats, wide integers, classes, calls and cycles under other keys",
            dump(odd_values()),
            dump(one("odd_values")),
        ),
        "cpp_style.pickle": ("as the C++ pickler writes", CppPickler.dumps(addresses())),
        "cpp_tagged.pickle": (
            "the same with restore_type_tag around every container",
            CppPickler.dumps(one("cpp_tagged", F01, EMPTY), tags=True),
            dump(one("cpp_tagged", F01, EMPTY)),
        ),
        "sparse_memo.pickle": ("memo indices far apart", sparse_memo()),
        **{
            f"protocol{p}.pickle": (f"protocol {p}", dump(one("protocol"), p))
            for p in (0, 1, 2, 3, 5)
        },
        "protocol5_bytearray.pickle": (
            "protocol 5 with BYTEARRAY8",
            dump(dict(one("protocol5"), extra=bytearray(b"x" * 70000)), 5),
        ),
        "batches.pickle": ("more than 1000 items, so several APPENDS", dump(batches())),
    }
