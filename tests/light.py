"""Programs for processes of their own."""

import os
import subprocess
import sys

LIGHT = (
    "import sys; sys.modules['transformers'] = None; import evaluate\n"
    "del sys.modules['transformers']\n"
)
"""Start of a program that imports ``evaluate`` as where plain soubench is installed: it takes four
seconds more where ``transformers`` is there."""


def run_at_once(program, folder, n=2):
    """Run a program ``n`` times at once, with a new cache of modules; return what each printed."""
    environment = {**os.environ, "HF_EVALUATE_OFFLINE": "1", "HF_MODULES_CACHE": str(folder)}
    running = [
        subprocess.Popen(
            [sys.executable, "-c", LIGHT + program],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(n)
    ]
    printed = [process.communicate(timeout=120)[0] for process in running]
    assert [process.returncode for process in running] == [0] * n
    return printed
