"""The end of the report of every table of goals, and the options that all tables take."""

import argparse
import dataclasses
import json
from pathlib import Path

import goals
import machine

ROOT = Path(__file__).resolve().parents[2]


def parser_of(text, keys, rounds, quick, limit_minutes=40):
    """`quick` describes a quick run."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"{quick}, to see whether it works")
    parser.add_argument("--rows", "--only", dest="rows", metavar="KEY,...", help=f"only these; * matches anything: {' '.join(keys)}")
    parser.add_argument("--rounds", type=int, help=f"interleaved rounds ({rounds})")
    limit = f"bound of the whole run ({limit_minutes})"
    parser.add_argument("--limit-minutes", type=float, default=limit_minutes, help=limit)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--build", metavar="DIR", default=ROOT / "build", help="build folder with our programs")
    parser.add_argument("--peers", metavar="DIR", default=ROOT / "build-peers", help="where peers are installed and compiled")
    parser.add_argument("--no-install", action="store_true", help="measure only the peers that are here")
    return parser


def options_of(parser, rounds, quick_rounds):
    options = parser.parse_args()
    options.rounds = options.rounds or (quick_rounds if options.quick else rounds)
    return options


def print_end(run, kept, missing, quick, judged):
    """`kept` describes the samples. `missing` lists (what is not measured, why). `quick` is the reason why a quick run proves nothing."""
    print(f"\n{run.rounds_done} whole rounds of {run.options.rounds}, {run.progress.elapsed() / 60:.1f} min{kept}")
    print(f"processor: {machine.processor()}")
    if run.busy:
        print(f"cores used by others at the start of each round: {' '.join(f'{share:.0%}' for share in run.busy)}")
    for what, why in missing:
        print(f"{goals.NOT_MEASURED}: {what}: {why}")
    for what, errors in run.failures.items():
        print(f"failed {len(errors)} times: {what}: {errors[-1]}")
    if run.options.quick:
        print(f"a quick run: {quick}; its verdicts say nothing about the goals")
    print("\nwhat | goal | figure | met, missed or not measured")
    for _, what, goal, judgements in judged:
        print(goals.line_of(what, goal, judgements))


def write_json(path, run, missing, judged, figures):
    """`figures` maps names to further measurements."""
    document = {
        "rounds": run.rounds_done,
        "minutes": run.progress.elapsed() / 60,
        "busy": run.busy,
        "processor": machine.processor(),
        "failed": run.failures,
        "not_available": missing,
        "rows": [
            {
                "key": key,
                "what": what,
                "goal": goal,
                "verdict": goals.verdict(judgements),
                "states": {state: dataclasses.asdict(judgements[state]) if judgements[state] else "not seen" for state in goals.shown_states(judgements)},
            }
            for key, what, goal, judgements in judged
        ],
        **figures,
    }
    Path(path).write_text(json.dumps(document, indent=1) + "\n")


def exit_status(judged):
    return 0 if all(goals.verdict(judgements) == "met" for *_, judgements in judged) else 1
