"""Peak memory of a soubench command and all its processes, for the benchmarks beside this file."""

import os
import subprocess
import sys
import time

import psutil


def peak_mib(args: list[str], env: dict[str, str]) -> float:
    """Return the largest sum of the unique memory of a command's processes, sampled."""
    process = subprocess.Popen(
        [sys.executable, "-m", "soubench", *args],
        env=os.environ | env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    peak = 0
    parent = psutil.Process(process.pid)
    while process.poll() is None:
        try:
            family = [parent, *parent.children(recursive=True)]
            peak = max(peak, sum(p.memory_full_info().uss for p in family))
        except psutil.NoSuchProcess:
            pass
        time.sleep(0.02)
    if process.returncode:
        raise SystemExit(f"soubench {' '.join(args)} failed")
    return peak / 2**20
