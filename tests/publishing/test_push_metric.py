"""Metrics on the Hub: anybody loads them by name, and their apps start."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hub import client as clients

pytestmark = pytest.mark.hub

METRICS = Path(__file__).parents[2] / "metrics"
NAMES = sorted(path.stem for path in METRICS.glob("*/*.py") if path.stem == path.parent.name)

LOADED_BY_A_STRANGER = """
import contextlib, io, json, re, sys
import evaluate

found = {}
for name in sys.argv[1:]:
    metric = evaluate.load(f"org/{name}", revision="v0.1.0")
    assert metric.__module__.startswith("evaluate_modules"), metric.__module__
    found[name] = type(metric).__name__
sama = evaluate.load("org/sama")
text = "(Circle, rotation=0, color=Red)"
found["value"] = sama.compute(predictions=[text], references=[text])["sama"]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def spaces(hub, client, tmp_path_factory):
    """All metrics, pushed and tagged."""
    for name in NAMES:
        status, out, err, _ = client(
            clients.soubench,
            "push-metric",
            name,
            f"org/{name}",
            "--tag=v0.1.0",
            cache=tmp_path_factory.mktemp("cache"),
        )
        assert status == 0, err
        assert f'evaluate.load("org/{name}", revision="v0.1.0")' in out
    return NAMES


def test_every_metric_loads_from_its_space_in_a_clean_cache(hub, spaces, tmp_path):
    settings = clients.environment(hub.endpoint, tmp_path / "home")
    done = subprocess.run(
        [sys.executable, "-c", LOADED_BY_A_STRANGER, *spaces],
        env=os.environ | settings | {"HF_MODULES_CACHE": str(tmp_path / "modules")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found.pop("value") == 1.0
    assert found == {name: name.title().replace("_", "") for name in spaces}


@pytest.mark.parametrize("name", NAMES)
def test_what_lies_in_a_space_starts_and_answers(name, hub, client, spaces, tmp_path):
    for path in hub.repo("space", f"org/{name}").files:
        (tmp_path / path).write_bytes(hub.read("space", f"org/{name}", path))
    outputs, values = client(clients.run_app, tmp_path)
    assert len(values) == outputs
    assert "None" not in values
    card = (tmp_path / "README.md").read_text()
    assert f'evaluate.load("org/{name}")' in card
    assert f'evaluate.load("{name}")' not in card.split("```python")[1].split("```")[0]
    requirements = (tmp_path / "requirements.txt").read_text()
    assert client(clients.unmet, requirements) == []


def test_a_space_is_private_if_asked_and_keeps_what_others_wrote(hub, client, tmp_path):
    options = {"cache": tmp_path}
    push = ("push-metric", "dice", "writer/dice", "--private")
    assert client(clients.soubench, *push, **options)[0] == 0
    assert hub.repo("space", "writer/dice").private
    card = hub.read("space", "writer/dice", "README.md").decode()
    hub.put("space", "writer/dice", {"README.md": f"{card}\nMine.\n".encode(), "a.txt": b"a"})
    status, out, _, _ = client(clients.soubench, *push, "--dry-run", **options)
    assert (status, "new" in out, "changed" in out) == (0, False, False)
    assert client(clients.soubench, *push, **options)[0] == 0
    assert hub.read("space", "writer/dice", "README.md").decode().endswith("\nMine.\n")
    assert hub.read("space", "writer/dice", "a.txt") == b"a"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(
            ("nothing", "org/nothing"), "expected one of the metrics acc_at_iou", id="name"
        ),
        pytest.param(("dice", "org/other"), "evaluate.load looks for other.py there", id="space"),
        pytest.param(("dice", "else/dice"), "namespace 'else' is not yours", id="namespace"),
    ],
)
def test_refusals(arguments, message, client, tmp_path):
    status, _, err, _ = client(clients.soubench, "push-metric", *arguments, cache=tmp_path)
    assert status == 2
    assert message in err
    assert err.count("\n") == 1
