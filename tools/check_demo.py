"""Reads a run's metrics.jsonl and says whether the demo learned what it must.

Every step from 1 on stands there once; the last loss is below the first; the last validation loss and the test loss lie
between 4 and 12 (ln 151,936 = 11.93 is a model that knows nothing). Usage: check_demo.py RUN_DIR STEPS. Exit 7: no.
"""

import json
import math
import pathlib
import sys

LOW, HIGH = 4.0, 12.0


def complaints(records, num_steps):
    steps = [record.get("step") for record in records]
    if steps != list(range(1, num_steps + 1)):
        yield f"the steps are {steps}, expected each from 1 to {num_steps} once"
        return
    for record in records:
        loss = record.get("loss")
        if not isinstance(loss, (int, float)) or not math.isfinite(loss):
            yield f"step {record['step']}: the loss is {loss}"
            return
    first, last = records[0]["loss"], records[-1]["loss"]
    if not last < first:
        yield f"the last loss {last} is not below the first {first}"
    for key in ("eval_loss", "test_loss"):
        values = [record[key] for record in records if key in record]
        if not values:
            yield f"there is no {key}"
        elif not isinstance(values[-1], (int, float)) or not LOW < values[-1] < HIGH:
            yield f"the last {key} is {values[-1]}, expected between {LOW} and {HIGH}"


def main(run_dir, num_steps):
    path = pathlib.Path(run_dir) / "metrics.jsonl"
    try:
        records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        found = list(complaints(records, num_steps))
    except (OSError, ValueError, AttributeError) as error:
        found = [str(error)]
    for text in found:
        print(f"{path}: {text}", file=sys.stderr)
    if not found:
        print(f"demo: the loss fell from {records[0]['loss']:.3f} to {records[-1]['loss']:.3f} in {num_steps} steps")
    return 7 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
