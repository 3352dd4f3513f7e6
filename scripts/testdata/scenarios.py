"""Twenty traces that are small enough to check by hand, and their expected values.

`requested` and `reserved` are the bytes before the first event, then after each event. `peak` is
(bytes, 0-based event after which the value is first reached); event -1 is the state before the
first event. All values were computed by hand from the meaning of the events, not by a program.
"""

from collections import namedtuple

Device = namedtuple("Device", "trace end requested peak reserved reserved_peak")
ONE = "1000+4096: 4096 i"
MIB = 1 << 20


def flat(value, events):
    return [value] * (events + 1)


SCENARIOS = {
    "f01": (
        "a first block, a second, both freed",
        [
            Device(
                "SA 1000 4096; A 1000 1000; A 1400 500; F 1000; F 1400",
                ONE,
                [0, 0, 1000, 1500, 1500, 500, 500, 0],
                (1500, 2),
                [0] + [4096] * 7,
                (4096, 0),
            )
        ],
    ),
    "f02": (
        "an address used twice",
        [
            Device(
                "A 1000 100; A 1200 200; A 1400 300; F 1200; A 1200 50",
                "1000+4096: 512/100 a, 512/50 a, 512/300 a, 2560 i",
                [0, 100, 300, 600, 600, 400, 450],
                (600, 2),
                flat(4096, 6),
                (4096, -1),
            )
        ],
    ),
    "f03": (
        "a block from before the window that stays",
        [
            Device(
                "A 1400 200; F 1400",
                "1000+4096: 1024/700 a, 3072 i",
                [700, 900, 900, 700],
                (900, 0),
                flat(4096, 3),
                (4096, -1),
            )
        ],
    ),
    "f04": (
        "a block from before the window that is freed in it",
        [
            Device(
                "A 1400 200; F 1000 700; F 1400",
                ONE,
                [700, 900, 900, 200, 200, 0],
                (900, 0),
                flat(4096, 5),
                (4096, -1),
            )
        ],
    ),
    "f05": (
        "an address used twice, nothing left",
        [
            Device(
                "A 1000 100; F 1000; A 1000 300; F 1000",
                ONE,
                [0, 100, 100, 0, 300, 300, 0],
                (300, 3),
                flat(4096, 6),
                (4096, -1),
            )
        ],
    ),
    "f06": (
        "a free that completes later",
        [
            Device(
                "A 1000 100; R 1000; A 1400 50; C 1000",
                "1000+4096: 1024 i, 512/50 a, 2560 i",
                [0, 100, 100, 150, 50],
                (150, 2),
                flat(4096, 4),
                (4096, -1),
            )
        ],
    ),
    "f07": (
        "a free still pending at the end",
        [
            Device(
                "A 1000 100; R 1000",
                "1000+4096: 1024/100 p, 3072 i",
                [0, 100, 100],
                (100, 0),
                flat(4096, 2),
                (4096, -1),
            )
        ],
    ),
    "f08": (
        "a pending block that the trace does not know",
        [
            Device(
                "A 1400 8; F 1400",
                "1000+4096: 1024/400 p, 3072 i",
                [400, 408, 408, 400],
                (408, 0),
                flat(4096, 3),
                (4096, -1),
            )
        ],
    ),
    "f09": (
        "no events",
        [
            Device(
                "",
                "1000+4096: 1024/600 a, 1024/300 a, 2048 i",
                [900],
                (900, -1),
                [4096],
                (4096, -1),
            )
        ],
    ),
    "f10": (
        "an alloc on a live address: the free was lost",
        [
            Device(
                "A 1000 100; A 1000 200; F 1000",
                ONE,
                [0, 100, 200, 200, 0],
                (200, 1),
                flat(4096, 4),
                (4096, -1),
            )
        ],
    ),
    "f11": (
        "out of memory",
        [
            Device(
                "A 1000 1000; OOM 8192 512",
                "1000+4096: 1024/1000 a, 3072 i",
                [0, 1000, 1000],
                (1000, 0),
                flat(4096, 2),
                (4096, -1),
            )
        ],
    ),
    "f12": (
        "the peak is before the window",
        [
            Device(
                "F 1000 700; A 1000 400",
                "1000+4096: 1024/400 a, 3072 i",
                [700, 700, 0, 400],
                (700, -1),
                flat(4096, 3),
                (4096, -1),
            )
        ],
    ),
    "f13": (
        "a private pool",
        [
            Device(
                "A 1000 300; SA 10000 4096; A 10000 1000; A 10400 600; F 10400",
                "10000+4096[0,1]: 1024/1000 a, 3072 i; 1000+2048: 512/300 a, 1536 i",
                [0, 300, 300, 1300, 1900, 1900, 1300],
                (1900, 3),
                [2048, 2048] + [6144] * 5,
                (6144, 1),
            )
        ],
    ),
    "f14": (
        "expandable segments in a private pool",
        [
            Device(
                "SM 10000 2048; A 10000 1500; SM 10800 4096; A 10800 4000; F 10000; F 10800",
                "10000+6144[0,1]x: 6144 i",
                [0, 0, 1500, 1500, 5500, 5500, 4000, 4000, 0],
                (5500, 3),
                [0, 2048, 2048] + [6144] * 6,
                (6144, 2),
            )
        ],
    ),
    "f15": (
        "an expandable segment that grows and shrinks",
        [
            Device(
                "SM 4000 4096; A 4000 2048; SM 5000 12288; A 5000 10240; "
                "F 5000; F 4000; SU 7000 4096",
                "4000+12288x: 12288 i",
                [0, 0, 2048, 2048, 12288, 12288, 2048, 2048, 0, 0],
                (12288, 3),
                [0, 4096, 4096] + [16384] * 6 + [12288],
                (16384, 2),
            )
        ],
    ),
    "f16": (
        "an unmap that leaves a hole",
        [
            Device(
                "SM 4000 12288; A 4000 4096; A 5000 4096; A 6000 4096; F 5000; SU 5000 4096",
                "4000+4096x: 4096/4096 a; 6000+4096x: 4096/4096 a",
                [0, 0, 4096, 8192, 12288, 12288, 8192, 8192],
                (12288, 3),
                [0] + [12288] * 6 + [8192],
                (12288, 0),
            )
        ],
    ),
    "f17": (
        "segments only",
        [
            Device(
                "SA 9000 2048; SA 20000 1000; SF 20000 1000",
                "1000+4096: 4096 i; 9000+2048: 2048 i",
                flat(0, 3),
                (0, -1),
                [4096, 6144, 7144, 6144],
                (7144, 1),
            )
        ],
    ),
    "f18": (
        "a block too small to see",
        [
            Device(
                "A 1000 1000; A 1400 10; A 1800 500; F 1400; F 1000; F 1800",
                ONE,
                [0, 1000, 1010, 1510, 1510, 1500, 1500, 500, 500, 0],
                (1510, 2),
                flat(4096, 9),
                (4096, -1),
            )
        ],
    ),
    "f19": (
        "one address on two devices",
        [
            Device(
                "A 1000 100",
                "1000+4096: 512/100 a, 3584 i",
                [0, 100],
                (100, 0),
                flat(4096, 1),
                (4096, -1),
            ),
            Device("", "1000+4096: 4096/4000 a", [4000], (4000, -1), [4096], (4096, -1)),
        ],
    ),
    "f20": (
        "a ring buffer of few entries",
        [
            Device(
                f"C 6a00000 {4 * MIB}; A 6a00000 {4 * MIB}; C 6a00000; "
                f"A 6a00000 {4 * MIB}; C 6a00000",
                f"1e00000+{2 * MIB}: {MIB}/{MIB} a, {MIB} i; "
                f"6800000+{20 * MIB}: {2 * MIB}/{2 * MIB} a, {18 * MIB} i",
                [7 * MIB, 3 * MIB, 7 * MIB, 3 * MIB, 7 * MIB, 3 * MIB],
                (7 * MIB, -1),
                flat(22 * MIB, 5),
                (22 * MIB, -1),
            )
        ],
    ),
}


def expected():
    """The table as JSON, for the tests."""

    def band(values, peak):
        return {
            "start": values[0],
            "after": values[1:],
            "peak": peak[0],
            "peak_event": peak[1],
            "end": values[-1],
        }

    return {
        name: {
            "about": about,
            "devices": [
                {
                    "device": i,
                    "requested_bytes": band(d.requested, d.peak),
                    "reserved_bytes": band(d.reserved, d.reserved_peak),
                }
                for i, d in enumerate(devices)
            ],
        }
        for name, (about, devices) in SCENARIOS.items()
    }
