#!/usr/bin/env python3
"""Compares the reserved peaks of `what-if` with another model of PyTorch's allocator.

check_model.py PROGRAM MODEL FOLDER... [--set CONF]...

MODEL is a script: MODEL FILE --device D [--set CONF] [--pytorch-memory BYTES] [--start PROGRAM]
prints JSON with recorded_reserved_peak and simulated_reserved_peak. Without --set it uses the
recording's settings, with --start it begins with what PROGRAM says was reserved before the window.
By default the recording's settings and three others are compared. A peak between the lowest and the
highest of the program's orders of addresses counts as equal. Left out are recordings with
garbage_collection_threshold, files for which MODEL prints nothing, and expandable segments where a
recording has private pools, because PyTorch 2.9 changed them. The exit code is 0 when all peaks are
equal.
"""

import argparse
import glob
import json
import os
import subprocess
import sys

# More than any recording reserves.
PLENTY = 1 << 40
SETTINGS = ["expandable_segments:True", "max_split_size_mb:64", "roundup_power2_divisions:4"]


def run(*command):
    """The JSON that a command prints; None if it prints none."""
    ran = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    try:
        return json.loads(ran.stdout)
    except ValueError:
        return None


def peaks(program, model, path, settings):
    """Yields (settings, lowest and highest peak of the program, peak of the model)."""
    sets = [word for text in settings for word in ("--set", text)]
    own = run(program, "what-if", path, "--format", "json")
    if not own or own["declined"] or not own["scenarios"]:
        return
    if own["scenarios"][0]["settings"]["garbage_collection_threshold"] > 0:
        return
    device = ["--device", own["device"]]
    capacity = own["calibration"]["capacity"]["bytes"]
    limit = [] if capacity is None else ["--pytorch-memory", capacity]
    other = run(sys.executable, model, path, *device, *limit, "--start", program)
    peak = own["calibration"]["simulated_reserved_peak"]
    yield "as recorded", [peak, peak], other and other["simulated_reserved_peak"]
    if not sets:
        return
    has_private_pool = any(part["pool"] for part in own["pools"])
    # Where memory runs out, a peak says little. A recording that began late has another start under
    # other settings.
    limit = ["--pytorch-memory", PLENTY]
    whole = run(program, "what-if", path, *device, *limit, *sets, "--format", "json")
    for text, scenario in zip(settings, whole["scenarios"]):
        is_own = scenario["conf"] == own["scenarios"][0]["conf"]
        is_private = has_private_pool and scenario["settings"]["expandable_segments"]
        if scenario["basis"] != "simulated" or is_own or is_private:
            continue
        other = run(sys.executable, model, path, *device, *limit, "--set", text)
        yield text, scenario["reserved_range"], other and other["simulated_reserved_peak"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("program")
    parser.add_argument("model")
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--set", action="append", help="settings to compare, instead of three")
    arguments = parser.parse_args()
    settings = SETTINGS if arguments.set is None else [text for text in arguments.set if text]
    compared = different = 0
    for folder in arguments.folders:
        for path in sorted(glob.glob(os.path.join(folder, "**", "*.pickle*"), recursive=True)):
            for text, (low, high), other in peaks(
                arguments.program, arguments.model, path, settings
            ):
                if other is None:
                    continue
                compared += 1
                if not low <= other <= high:
                    different += 1
                    print(f"{path}: {text}: program {low} to {high}, model {other}")
    print(f"{compared - different} of {compared} peaks equal")
    sys.exit(compared == 0 or different > 0)


if __name__ == "__main__":
    main()
