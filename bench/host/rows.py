"""The goals for host memory on one machine."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common_py"))

from goals import *  # noqa: E402, F403

ALL_REDUCE_2_SMALL = Group("all_reduce", 2, 8, 4 * KIB, calls=((4 * KIB, 20000),), with_threads=True)
ALL_REDUCE_2_MEDIUM = Group(
    "all_reduce", 2, 16 * KIB, MIB, extra_sizes=(32 * KIB,), calls=((64 * KIB, 3000), (MIB, 500)), with_threads=True
)
ALL_REDUCE_2_LARGE = Group(
    "all_reduce", 2, 8 * MIB, 256 * MIB, calls=((32 * MIB, 30), (256 * MIB, 8)), with_limit=True, with_threads=True
)
ALL_REDUCE_4_SMALL = Group("all_reduce", 4, 8, 64 * KIB, calls=((64 * KIB, 2000),))
ALL_REDUCE_4_LARGE = Group("all_reduce", 4, MIB, 256 * MIB, calls=((16 * MIB, 30), (256 * MIB, 6)), with_limit=True)
OTHERS = tuple(
    Group(collective, ranks, 64 * KIB, 64 * MIB, calls=((MIB, 300), (64 * MIB, 20)))
    for collective in ("all_gather", "reduce_scatter", "broadcast", "all_to_all")
    for ranks in (2, 4)
)
YARDSTICK_SIZES = (32 * KIB, 256 * KIB, MIB, 8 * MIB, 64 * MIB, 256 * MIB)  # the sizes that such a program prints
YARDSTICKS = tuple(Group("limit programs", ranks, 32 * KIB, 256 * MIB, named_sizes=YARDSTICK_SIZES) for ranks in (2, 4))

ROWS = (
    (
        Row(
            "ar2-small",
            "all_reduce, 2 processes, 8 B - 4 KiB",
            (ALL_REDUCE_2_SMALL,),
            "time",
            0.7,
            (Floor(0, 1.0),),
        ),
        Row(
            "ar2-medium",
            "all_reduce, 2 processes, 16 KiB - 1 MiB",
            (ALL_REDUCE_2_MEDIUM,),
            "speed",
            1.2,
            (Floor(0, 1.0),),
        ),
        Row(
            "ar2-large",
            "all_reduce, 2 processes, 8 - 256 MiB",
            (ALL_REDUCE_2_LARGE,),
            "speed",
            1.4,
            limit_each=0.85,
            limit_mean=0.93,
        ),
        Row("ar4-small", "all_reduce, 4 processes, 8 B - 64 KiB", (ALL_REDUCE_4_SMALL,), "time", 0.7),
        Row(
            "ar4-large",
            "all_reduce, 4 processes, 1 - 256 MiB",
            (ALL_REDUCE_4_LARGE,),
            "speed",
            1.6,
            (Floor(0, 1.1),),
            limit_mean=0.9,
        ),
    )
    + tuple(
        Row(
            f"{group.collective.replace('_', '-')}-{group.ranks}",
            f"{group.collective}, {group.ranks} processes, 64 KiB - 64 MiB",
            (group,),
            "speed",
            1.5,
        )
        for group in OTHERS
    )
    + (
        Row(
            "threads",
            "2 threads against 2 processes, both with Seto",
            (ALL_REDUCE_2_SMALL, ALL_REDUCE_2_MEDIUM, ALL_REDUCE_2_LARGE),
            "speed",
            0.0,
            (Floor(8 * MIB, 1.0), Floor(0, 0.95, 8 * MIB)),
            ours=THREADS,
            against=(OURS,),
        ),
        Row(
            "ar2-medium-lent",
            "all_reduce, 2 processes, 16 KiB - 1 MiB, memory of setoMemAlloc",
            (ALL_REDUCE_2_MEDIUM,),
            "speed",
            1.6,
            ours=LENT,
        ),
        Row(
            "ar2-large-lent",
            "all_reduce, 2 processes, 8 - 256 MiB, memory of setoMemAlloc",
            (ALL_REDUCE_2_LARGE,),
            "speed",
            2.0,
            limit_each=1.3,
            ours=LENT,
        ),
    )
)

# Rows with their own programs, which run.py measures.
CALL_ROW, STEP_ROW, FIRST_ROW, YARDSTICK_ROW = "call-8", "step", "first-call", "yardstick"
KEYS = (*(row.key for row in ROWS), CALL_ROW, STEP_ROW, FIRST_ROW)
FIRST_CALL_BOUNDS = {8: 10_000.0, MIB: 100_000.0}  # size -> microseconds
OVER_EXCHANGE_NS = {NEAR: 40.0, FAR: 80.0}  # with one state, the bound of near
STEP_BOUND_NS = 8.0
YARDSTICK_ROWS = tuple(
    Row(
        f"{YARDSTICK_ROW}-{group.ranks}",
        f"limit program against the yardstick, {group.ranks} processes",
        (group,),
        "speed",
        0.95,
        ours=LIMIT,
        against=(YARDSTICK,),
    )
    for group in YARDSTICKS
)
