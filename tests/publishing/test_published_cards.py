"""The cards of published datasets: checked as the Hub does, and their snippets run."""

import os
import re
import subprocess
import sys

import pytest
from hub import client as clients

pytestmark = pytest.mark.hub

NAMES = ("sou-vqa", "my-set", "primitive-shapes", "plant-leaves", "rrs")
COUNT = "print(len(rows))\n"
RUN = "import datasets\ndatasets.disable_progress_bars()\n"


@pytest.fixture(scope="module")
def pushed(hub, client, built):
    """All datasets on the Hub."""
    for name in NAMES:
        command = ("push", name, f"org/card-{name}", "--i-have-the-right-to-redistribute")
        status, _, err, _ = client(clients.soubench, *command, cache=built / "cache")
        assert status == 0, err


@pytest.mark.parametrize("name", NAMES)
def test_the_card_says_what_is_there(name, hub, client, pushed):
    head = client(clients.check_card, f"org/card-{name}")
    for key in ("license", "language", "task_categories", "pretty_name", "tags", "configs"):
        assert head[key], key
    sizes = {info["config_name"]: info["splits"] for info in head["dataset_info"]}
    assert set(sizes) == {config["config_name"] for config in head["configs"]}
    text = hub.read("dataset", f"org/card-{name}", "README.md").decode()
    body = text.split("---\n", 2)[2]
    for word in ("| field |", "bibtex", "icense", f'"org/card-{name}"'):
        assert word in body, word
    files = hub.repo("dataset", f"org/card-{name}").files
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", body)
    assert pictures
    assert set(pictures) <= set(files)
    if name == "sou-vqa":
        assert len(pictures) == 6
        assert "constant letter" in body
    if name == "rrs":
        assert len(pictures) == 21
        assert body.count("## Examples") == 1
        assert "Blind baselines" in body


def test_the_snippets_of_the_cards_run_from_a_clean_home(hub, pushed, tmp_path):
    """In a new process of somebody who has nothing yet."""
    code = [RUN]
    for name in NAMES:
        text = hub.read("dataset", f"org/card-{name}", "README.md").decode()
        blocks = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
        assert len(blocks) >= 2
        for block in blocks:
            code += [block, COUNT]
    settings = clients.environment(hub.endpoint, tmp_path / "home")
    done = subprocess.run(
        [sys.executable, "-c", "".join(code)],
        env=os.environ | settings | {"HF_DATASETS_CACHE": str(tmp_path / "datasets")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.split("\n")[:-1]
    assert len(lines) == code.count(COUNT)
    assert all(int(line) for line in lines)
