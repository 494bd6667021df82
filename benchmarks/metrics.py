"""All benchmarks of the metrics, one after the other.

Run: ``python benchmarks/metrics.py [boxes|captions|masks|options|shapes]``; all by default. Each
part is a file of its own, ``metrics_<part>.py``, which says what it measures against which peer.
"""

import runpy
import sys
from pathlib import Path

PARTS = {
    path.stem.removeprefix("metrics_"): path
    for path in sorted(Path(__file__).parent.glob("metrics_*.py"))
}

if __name__ == "__main__":
    chosen = sys.argv[1:] or list(PARTS)
    del sys.argv[1:]  # a part's own arguments are not ours
    for name in chosen:
        print(f"== {name}", flush=True)
        runpy.run_path(str(PARTS[name]), run_name="__main__")
