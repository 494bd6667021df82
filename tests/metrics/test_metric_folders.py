"""What every metric folder must be; new folders are found by themselves."""

import ast
import contextlib
import io
import re
from pathlib import Path

import evaluate
import pytest

from tests.light import run_at_once

METRICS = Path(__file__).parents[2] / "metrics"
FOLDERS = sorted(path.parent for path in METRICS.glob("*/*.py") if path.stem == path.parent.name)

pytestmark = pytest.mark.parametrize("folder", FOLDERS, ids=[folder.name for folder in FOLDERS])


def _card(folder):
    return (folder / "README.md").read_text(encoding="utf-8")


def _block(card, language):
    found = re.search(rf"^```{language}\n(.*?)^```$", card, re.DOTALL | re.MULTILINE)
    assert found, f"the card has no ```{language} block"
    return found.group(1)


def _relative_imports(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [
        (node.module or "").split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.level
    ]


def _run_example(folder, monkeypatch):
    """Run the card's example; return what it printed and the result of ``compute``."""
    load = evaluate.load
    monkeypatch.setattr(
        evaluate,
        "load",
        lambda path, *args, **kwargs: load(
            str(folder) if path == folder.name else path, *args, **kwargs
        ),
    )
    printed = io.StringIO()
    names = {}
    with contextlib.redirect_stdout(printed):
        exec(_block(_card(folder), "python"), names)
    return printed.getvalue(), names["result"]


def test_folder_has_what_a_space_needs(folder):
    for name in (f"{folder.name}.py", "README.md", "app.py", "requirements.txt", "__init__.py"):
        assert (folder / name).is_file(), name
    head = _card(folder).split("---\n")[1]
    for line in (f"title: {folder.name}", "sdk: gradio", "app_file: app.py", "- metric"):
        assert line in head.splitlines()


def test_app_compiles(folder):
    compile((folder / "app.py").read_text(encoding="utf-8"), "app.py", "exec")


@pytest.fixture(scope="module")
def loaded_elsewhere(tmp_path_factory):
    """Folder -> name of the class that a fresh process in another folder loads from there."""
    home = tmp_path_factory.mktemp("elsewhere")
    program = "".join(
        f"print({folder.name!r}, type(evaluate.load({str(folder)!r})).__name__)\n"
        for folder in FOLDERS
    )
    (printed,) = run_at_once(program, home, n=1)
    return dict(line.split() for line in printed.splitlines())


def test_folder_loads_by_path_from_elsewhere(folder, loaded_elsewhere):
    assert loaded_elsewhere[folder.name] == folder.name.title().replace("_", "")


def test_example_of_the_card_gives_the_printed_numbers(folder, monkeypatch):
    printed, _ = _run_example(folder, monkeypatch)
    assert printed == _block(_card(folder), "text")


def test_card_lists_every_result_key(folder, monkeypatch):
    _, result = _run_example(folder, monkeypatch)
    for key in result:
        assert f"| `{key}` |" in _card(folder), key


def test_compute_takes_no_stray_options(folder):
    tree = ast.parse((folder / f"{folder.name}.py").read_text(encoding="utf-8"))
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name == "_compute"
    ]
    assert len(found) == 1
    assert found[0].args.kwarg is None


def test_helpers_are_leaves_that_the_script_imports(folder):
    script = folder / f"{folder.name}.py"
    helpers = {
        path.stem
        for path in folder.glob("*.py")
        if path.stem not in (script.stem, "app", "__init__")
    }
    assert set(_relative_imports(script)) == helpers
    for helper in helpers:
        assert _relative_imports(folder / f"{helper}.py") == []


def test_folder_imports_nothing_of_ours(folder):
    for path in folder.glob("*.py"):
        assert not re.search(
            r"^\s*(?:from|import)\s+soubench\b", path.read_text(encoding="utf-8"), re.M
        )


def test_script_imports_one_module_a_line(folder):
    """The loader of evaluate reads ``import a, b`` as a package named ``a,``."""
    tree = ast.parse((folder / f"{folder.name}.py").read_text(encoding="utf-8"))
    assert all(len(node.names) == 1 for node in ast.walk(tree) if isinstance(node, ast.Import))
