"""Files beside recordings that tell what holds blocks (SIDECAR.md).

The recordings are older than the field, so the references are those of the programs' text: a call
site is held by the variable that the program puts its tensors into. Addresses and sizes are those
of the recordings' final segments.
"""

import gzip
import json
import os
import pickle

#: At most this many blocks, the largest.
MOST = 200


def live(path):
    """The live blocks of a recording, the largest first: address, bytes, own call site."""
    with gzip.open(path) as file:
        snapshot = pickle.load(file)
    found = []
    for segment in snapshot["segments"]:
        for block in segment["blocks"]:
            if block["state"] != "active_allocated":
                continue
            own = [f for f in block.get("frames", ()) if "/torch/" not in f["filename"]]
            site = f"{os.path.basename(own[0]['filename'])}:{own[0]['line']}" if own else ""
            found.append((segment["device"], block["address"], block["requested_size"], site))
    return sorted(found, key=lambda block: (-block[2], block[1]))


class Walk:
    """Links, blocks and drops, as the recorder writes them."""

    def __init__(self, complete=True, graph=True):
        self.told = {"complete": complete, "graph": graph, "objects": 208300, "seconds": 0.2}
        self.links, self.blocks, self.drops = [], [], []

    def link(self, **fields):
        self.links.append(fields)
        return len(self.links) - 1

    def drop(self, links, within=None):
        self.drops.append({"within": within, "links": links, "bytes": 0, "blocks": 0})
        return len(self.drops) - 1

    def hold(self, block, link, drop):
        device, address, size, _ = block
        self.blocks.append({"device": device, "address": address, "link": link, "drop": drop})
        while drop is not None:
            row = self.drops[drop]
            row["bytes"] += size
            row["blocks"] += 1
            drop = row["within"]

    def below_python(self, block):
        device, address, _, _ = block
        self.blocks.append({"device": device, "address": address, "none": "below_python"})

    def json(self):
        lists = {"links": self.links, "blocks": self.blocks, "drops": self.drops}
        sidecar = {"version": 1, "reason": "end", "holders": {**self.told, **lists}}
        return (json.dumps(sidecar, separators=(",", ":")) + "\n").encode()


def states(walk, optimizer, drop):
    """A function that holds a block as a state of an optimizer."""
    state = walk.link(**{"from": optimizer, "by": "attribute", "name": "state"})

    def hold(block, count):
        key, name = divmod(count, 2)
        of = walk.link(**{"from": state, "by": "key", "name": f"parameter {key}", "type": "dict"})
        name = ("exp_avg", "exp_avg_sq")[name]
        walk.hold(block, walk.link(**{"from": of, "by": "key", "name": name}), drop)

    return hold


def parameters(walk, net, drop):
    """A function that holds a block as a parameter of a module in a list of layers."""
    attribute = {"by": "attribute", "type": "ModuleList", "length": 12}
    layers = walk.link(**{"from": net, "name": "layers", **attribute})

    def hold(block, count):
        layer = walk.link(**{"from": layers, "by": "item", "name": str(count % 12)})
        weight = walk.link(**{"from": layer, "by": "attribute", "name": f"weight{count // 12}"})
        walk.hold(block, weight, drop)

    return hold


def leak(path):
    """gpt_leak: a list of slices of logits that grows by one each step."""
    walk = Walk()
    main = {"function": "main", "file": "/train/p_gpt.py", "line": 40}
    root = {"by": "local", **main}
    leaked = walk.link(name="leaked", type="list", length=12, **root)
    net = walk.link(name="net", type="GPT", **root)
    optimizer = walk.link(name="opt", type="AdamW", **root)
    all_leaked, of_net, of_optimizer = (walk.drop([link]) for link in (leaked, net, optimizer))
    state, parameter = states(walk, optimizer, of_optimizer), parameters(walk, net, of_net)
    counts = {}
    for block in live(path)[:MOST]:
        site = block[3]
        count = counts[site] = counts.get(site, -1) + 1
        if site == "p_gpt.py:31":
            item = {"from": leaked, "by": "item", "name": str(count), "type": "Tensor"}
            item = walk.link(**item)
            walk.hold(block, item, walk.drop([item], all_leaked))
        elif site == "p_gpt.py:30":
            state(block, count)
        elif site in ("", "gpt.py:11"):
            walk.below_python(block)
        else:
            parameter(block, count)
    return walk.json()


def failure(path):
    """oom_expandable: the loss of the step before keeps its graph."""
    walk = Walk()
    root = {"by": "global", "module": "__main__", "file": "/train/p_oom.py"}
    loss = walk.link(name="loss", type="Tensor", **root)
    first = walk.link(**{"from": loss, "by": "graph", "type": "NllLossBackward0"})
    net = walk.link(name="net", type="GPT", **root)
    optimizer = walk.link(name="opt", type="AdamW", **root)
    of_loss, of_net, of_optimizer = (walk.drop([link]) for link in (loss, net, optimizer))
    state, parameter = states(walk, optimizer, of_optimizer), parameters(walk, net, of_net)
    counts = {}
    for block in live(path)[:MOST]:
        site = block[3]
        count = counts[site] = counts.get(site, -1) + 1
        if site in ("gpt.py:25", "gpt.py:38", "gpt.py:6", "gpt.py:8", "gpt.py:36"):
            parameter(block, count)
        elif site == "p_oom.py:19":
            state(block, count)
        elif site in ("", "gpt.py:11"):
            walk.below_python(block)
        else:
            node = {"by": "graph", "type": "AddmmBackward0", "between": 30 + count}
            node = walk.link(**{"from": first, **node})
            walk.hold(block, walk.link(**{"from": node, "by": "saved", "name": "mat1"}), of_loss)
    return walk.json()


#: Files of test_data/holders, each with the recording that it is beside.
FILES = {
    "gpt_leak.vramscope.json": ("recorded/gpt_leak.pickle.gz", leak),
    "oom_expandable.vramscope.json": ("recorded/oom_expandable.pickle.gz", failure),
}
