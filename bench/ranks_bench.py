#!/usr/bin/env python3
"""Tokens a second of a recipe on its ranks beside one rank that has all the cores, side by side.

    python3 bench/ranks_bench.py [--recipe recipes/wikitext-5d.toml] [--rounds 3] [--steps 3]

Each round runs the recipe's layout, then one rank, for a few steps into a folder of their own. The first step of a run
is left out (cold caches). Prints the medians over all steps and the ratio round by round.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def run(program, recipe, steps, layout):
    folder = tempfile.mkdtemp(prefix="penteract-bench-")
    args = [program, "train", recipe, "--json", "--set", f"run.dir={folder}/run", "--set", f"train.steps={steps + 1}",
            "--set", "eval.every=0", "--set", "eval.steps=1", "--set", "checkpoint.every=0"]
    if layout:
        args += ["--layout", layout]
    try:
        done = subprocess.run(args, cwd=ROOT, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(args)} ended with {done.returncode}:\n{done.stderr}")
        document = json.loads(done.stdout)
        return [s["tokens_per_s"] for s in document["steps"][1:]], document["memory_peak_bytes"]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=os.path.join(ROOT, "build/bin/penteract"))
    parser.add_argument("--recipe", default="recipes/wikitext-5d.toml")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=3)
    args = parser.parse_args()
    many, one, ratios, memory = [], [], [], [0, 0]
    for round_number in range(1, args.rounds + 1):
        a, memory_a = run(args.program, args.recipe, args.steps, None)
        b, memory_b = run(args.program, args.recipe, args.steps, "tp=1")
        many += a
        one += b
        memory = [max(memory[0], memory_a), max(memory[1], memory_b)]
        ratios.append(statistics.median(a) / statistics.median(b))
        print(f"round {round_number}: {statistics.median(a):.0f} tokens/s on the recipe's ranks, "
              f"{statistics.median(b):.0f} on one; ratio {ratios[-1]:.2f}", flush=True)
    print(f"median: {statistics.median(many):.0f} against {statistics.median(one):.0f} tokens/s, "
          f"ratio {statistics.median(ratios):.2f} (min {min(ratios):.2f}, max {max(ratios):.2f}); "
          f"peak memory {memory[0] / 2**30:.2f} and {memory[1] / 2**30:.2f} GiB")


if __name__ == "__main__":
    main()
