"""Runs with replies of every kind, and large ones, for the tests of the report."""

import json
from html.parser import HTMLParser
from pathlib import Path

import datasets

from soubench.cli import main
from soubench.inference.dataset_rows import LoadedRows
from soubench.inference.questions import question_of
from soubench.inference.report.runs import ScoredRun, Section
from soubench.inference.scores import Verdict

HOSTILE = [
    "</script><script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked = 1'>",
    "<!-- <script> --> ]]> &lt;b&gt; {{data}} {{script}}",
    'A "quoted" \\ reply\nof \u2028 two lines, 答え \U0001f600, \ud800 and \x00.',
]
"""Replies that must stay texts."""


def make_run(out, *arguments, dataset="sou-vqa", config="aerial", model="baseline:random"):
    """Run a baseline; the model may be given with a seed of its own."""
    command = ["predict", dataset, config, "--model", model, "--out", str(out), *arguments]
    assert main(command) == 0
    return Path(out)


def change(run, replies=None, model=None):
    """Change a run after the fact.

    Args:
        run: The RUN folder.
        replies: Place of a line -> a reply, or the kind of an error in a tuple of one.
        model: What to change in the description of the model.
    """
    file = run / "replies.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    for place, said in (replies or {}).items():
        if isinstance(said, tuple):
            lines[place]["reply"] = None
            lines[place]["error"] = {"kind": said[0], "message": "no", "permanent": True}
        else:
            lines[place]["reply"] = said
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    described = json.loads((run / "run.json").read_text())
    described["model"] |= model or {}
    (run / "run.json").write_text(json.dumps(described))
    return run


class Page(HTMLParser):
    """What a browser would find in a page."""

    def __init__(self, path):
        super().__init__()
        self.scripts, self.links, self.cells, self.heads = [], [], [], []
        self._into = None
        self.text = Path(path).read_text(encoding="utf-8")
        self.feed(self.text)
        self.data = json.loads(self.scripts[0])

    def handle_starttag(self, tag, attributes):
        of = dict(attributes)
        self.links += [of[name] for name in ("src", "href", "action", "srcset") if name in of]
        self._into = {"script": self.scripts, "td": self.cells, "h2": self.heads}.get(
            tag, self._into if tag == "small" else None
        )
        if self._into is not None and tag != "small":
            self._into.append("")

    def handle_endtag(self, tag):
        if tag in ("script", "td", "h2"):
            self._into = None

    def handle_data(self, data):
        if self._into is not None:
            self._into[-1] += data

    def verdicts(self, section=0, run=0):
        """Return id -> (reply, state, error, rotation) of one run."""
        of = self.data["sections"][section]
        names = ("wrong", "right", "partly", "unparsed", "error")
        found = {}
        for row, rotation, reply, _, _, state, *rest in of["verdicts"][run]:
            found[of["rows"][row][0], rotation] = (reply, names[state], rest[0] if rest else None)
        return found


def synthetic_section(rows=18_204, runs=2):
    """Return a section of many rows without pictures, as ``sections_of`` would make it."""
    tasks = ("CE", "OC", "CR", "OL", "SCC", "POI")
    table = [
        {
            "id": f"synthetic/{i:05d}",
            "task": tasks[i % 6],
            "subset": "driving" if i % 2 else "underwater",
            "question": f"What is number {i // 600} of the {tasks[i % 6]} questions?",
            "options": [f"option {(i + k) % 97} of many" for k in range(4)],
            "answer": "ABCD"[i % 4],
        }
        for i in range(rows)
    ]
    loaded = LoadedRows(
        datasets.Dataset.from_list(table), "synthetic", "all", "test", "f" * 64, "synthetic"
    )
    description = {
        "dataset": {"name": "synthetic", "config": "all", "split": "test", "fingerprint": "f" * 64},
        "model": {"name": "m", "backend": "baseline", "revision": None, "parameters": None},
        "coords": "pixel",
    }
    made = []
    for run in range(runs):
        verdicts = []
        for i, row in enumerate(table):
            said = "ABCD"[(i * (run + 3) // 5) % 4]
            question = question_of(row)
            verdicts.append(
                Verdict(
                    id=row["id"],
                    rotation=0,
                    config="all",
                    split="test",
                    scenario=row["subset"],
                    subset=row["subset"],
                    task=row["task"],
                    group_id=str(i // 6),
                    kind="mcq",
                    question_sha256=f"{i:016x}",
                    reply=f"After looking at the picture, I think that it is {said}.",
                    parsed=said,
                    answer=question.answer,
                    right=float(said == question.answer),
                    unparsed=False,
                    error=None,
                    values={"accuracy": float(said == question.answer)},
                    options=4,
                )
            )
        counts = dict.fromkeys(("asked", "answered", "unparsed", "errors"), rows)
        scores = {"run": description, "runs": [description], "counts": counts}
        made.append(ScoredRun(Path(f"run-{run}"), f"model {run}", scores, verdicts))
    return Section("synthetic", "synthetic", ("f" * 64,), None, {("all", "test"): loaded}, made)
