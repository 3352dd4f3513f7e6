"""Copies recordings of PyTorch, and writes the oracle's reading of each.

The reading includes the figures of `torch.cuda.memory_stats()` that the tests use, at the start of
the recording and before the dump. Files above 64 KiB are gzipped.
"""

import gzip
import json
import os
import shutil

import oracle

PLAIN_LIMIT = 64 << 10
RECORDED = """
t20/linear_seed_python t20/linear_seed_all t20/gpt_small t20/pools t20/streams t20/two_devices
t20/resnet50_ok
t26/linear_seed_python t26/linear_seed_all t26/gpt_small t26/pools t26/streams t26/two_devices
t26/expandable_gpt t26/oom_observer
t29/linear_seed_python t29/pools t29/streams t29/two_devices t29/expandable_gpt t29/gpt_small_all
misc/deep misc/huge misc/norecord misc/nothing misc/unicode
gpt_late gpt_leak gpt_max_split gpt_ring10000 gpt_state_only gpt_amp
late_expandable_26 late_max_split_26 oom_expandable
ranks_fsdp/rank2_memory_snapshot ranks_fsdp/rank3_memory_snapshot
""".split()
FRAMEWORKS = [
    "bf16_master_step",
    "compile_inductor_backward",
    "ddp_step",
    "ddp_view_step",
    "inf_catcache",
    "t215_pinned_loader",
    "zero2_bf16_backward",
    "zero3_bf16_step",
]
TRUTH = [
    f"{model}_{when}" for model in ("gpt", "resnet18") for when in ("forward", "backward", "step")
]
SITES = [
    "field/win_hf_gpt2.pickle.gz",
    "field/c11_inductor.pickle",
    "frameworks/compile_inductor_forward.pickle.gz",
]
PROTOCOLS = [f"unicode_{p}" for p in ("p0", "p1", "p2", "p3", "p5", "purepython_p4")] + [
    "gpt_small_p0",
    "gpt_small_p2",
    "gpt_small_p5",
]
KEYS = [
    f"{band}_bytes.all.{which}"
    for band in ("requested", "active", "allocated", "reserved")
    for which in ("current", "peak")
] + [
    "active.all.current",
    "allocation.all.current",
    "segment.all.current",
    "num_ooms",
    "num_alloc_retries",
]


def pack(source, target):
    """Copies a pickle, gzipped if it is large. Returns the path and the oracle's reading."""
    with open(source, "rb") as f:
        raw = f.read()
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if len(raw) > PLAIN_LIMIT:
        target, raw = target + ".gz", gzip.compress(raw, 9, mtime=0)
    with open(target, "wb") as out:
        out.write(raw)
    return target, oracle.read(raw, os.path.basename(target))


def statistics(path):
    with open(path) as f:
        full = json.load(f)

    def cut(devices):
        return {
            i: {key: d["memory_stats"][key] for key in KEYS if key in d["memory_stats"]}
            for i, d in devices.items()
        }

    return {
        "torch": full["torch"],
        "alloc_conf": full["alloc_conf"],
        "note": full["note"],
        "at_start": cut(full.get("at_start") or {}),
        "at_dump": cut(full["at_dump"]),
    }


def dump(path, value):
    with open(path, "w") as out:
        json.dump(value, out, indent=1)
        out.write("\n")


def copy(recordings, target, sample):
    for folder in ("recorded", "protocols", "truth", "sites"):
        shutil.rmtree(os.path.join(target, folder), ignore_errors=True)
    expected = {}
    names = [("recorded", name) for name in RECORDED]
    for folder, name in names + [("frameworks", name) for name in FRAMEWORKS]:
        source = os.path.join(recordings, folder, name)
        packed, found = pack(source + ".pickle", os.path.join(target, "recorded", name + ".pickle"))
        expected[os.path.relpath(packed, os.path.join(target, "recorded"))] = {
            "oracle": found,
            "memory_stats": statistics(source + ".stats.json"),
        }
    dump(os.path.join(target, "recorded", "expected.json"), expected)

    expected = {}
    for name in PROTOCOLS:
        packed, found = pack(
            os.path.join(recordings, "protocols", name + ".pickle"),
            os.path.join(target, "protocols", name + ".pickle"),
        )
        expected[os.path.basename(packed)] = {"oracle": found}
    dump(os.path.join(target, "protocols", "expected.json"), expected)
    for name in TRUTH:
        source, goal = (
            os.path.join(recordings, "recorded", "truth", name),
            os.path.join(target, "truth", name),
        )
        pack(source + ".pickle", goal + ".pickle")
        shutil.copyfile(source + ".truth.json", goal + ".truth.json")
    os.makedirs(os.path.join(target, "sites"))
    for name in SITES:
        goal = os.path.join(target, "sites", os.path.basename(name))
        shutil.copyfile(os.path.join(recordings, name), goal)
    for name in FRAMEWORKS:
        for end in (".pickle.gz", ".truth.json"):
            shutil.copyfile(
                os.path.join(recordings, "frameworks", name + end),
                os.path.join(target, "truth", name + end),
            )
    sample_run(
        os.path.join(recordings, "recorded", "ranks"),
        sample,
        os.path.join(target, "sample_expected.json"),
    )


def sample_run(ranks, site, expected_path):
    """Writes the sample run of the page: eight ranks, gzipped, and the oracle's reading of each."""
    shutil.rmtree(site, ignore_errors=True)
    os.makedirs(site)
    files, expected = [], {}
    for rank in range(8):
        name = f"rank{rank}_memory_snapshot.pickle"
        with open(os.path.join(ranks, name), "rb") as f:
            packed = gzip.compress(f.read(), 9, mtime=0)
        url = name + ".gz"
        with open(os.path.join(site, url), "wb") as out:
            out.write(packed)
        files.append({"path": name, "url": url, "bytes": len(packed)})
        found = oracle.read(packed, url)["devices"][0]
        expected[name] = {
            "rank": rank,
            "requested_bytes": found["active"],
            "reserved_bytes": found["reserved"],
        }
    dump(os.path.join(site, "index.json"), {"title": "sample run", "files": files})
    dump(expected_path, expected)
