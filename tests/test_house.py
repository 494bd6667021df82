"""The house keeps its order: who imports whom, what the wheel holds, what must not be inside."""

import ast
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = ("builders", "dataset_scripts", "inference", "metrics", "soubench")
MAY_IMPORT = {
    "builders": {"builders"},
    "dataset_scripts": {"builders", "dataset_scripts"},
    "inference": {"builders", "inference"},
    "metrics": set(),
    "soubench": {"builders", "commands", "dataset_scripts", "inference", "metrics"},
}


def python_files(room):
    return [p for p in sorted((ROOT / room).rglob("*.py")) if not _behind_a_link(p)]


def _behind_a_link(path):
    return any(parent.is_symlink() for parent in path.parents if parent != ROOT.parent)


def imported(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module or ""


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_import_in_one_direction(room):
    files = python_files(room)
    assert files
    for path in files:
        for name in imported(path):
            first, _, rest = name.partition(".")
            assert first not in MAY_IMPORT or first == "soubench", f"{path}: {name}"
            if first == "soubench" and rest and path.parent != ROOT / "soubench":
                assert rest.split(".")[0] in MAY_IMPORT[room], f"{path} imports {name}"


def test_builders_import_neither_torch_nor_a_hub_client():
    code = (
        "import sys\n"
        "import soubench.builders.sou.build, soubench.builders.demo_scenes\n"
        "heavy = {'torch', 'transformers', 'datasets', 'evaluate', 'huggingface_hub', 'requests'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.fixture(scope="module")
def distributions(tmp_path_factory):
    """The sdist, and the wheel built from it, without network."""
    out = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT],
        check=True,
        capture_output=True,
    )
    (wheel,) = out.glob("*.whl")
    (sdist,) = out.glob("*.tar.gz")
    return wheel, sdist


@pytest.mark.slow
def test_the_wheel_holds_every_room_and_nothing_else(distributions):
    wheel, sdist = distributions
    names = set(zipfile.ZipFile(wheel).namelist())
    top = {name.split("/")[0] for name in names}
    assert {t for t in top if not t.endswith(".dist-info")} == {"soubench"}
    for room in ROOMS:
        for path in python_files(room):
            relative = path.relative_to(ROOT).as_posix()
            inside = relative if room == "soubench" else f"soubench/{relative}"
            assert inside in names
    for data in (
        "soubench/builders/sou/prompts_v1.toml",
        "soubench/dataset_scripts/sou_vqa/CITATION.bib",
        "soubench/inference/published/sou_vqa_table3.csv",
        "soubench/metrics/option_match/README.md",
        "soubench/py.typed",
    ):
        assert data in names
    assert not [n for n in names if "__pycache__" in n or "/tests/" in n]
    with tarfile.open(sdist) as archive:
        assert any(n.endswith("/builders/scene.py") for n in archive.getnames())


@pytest.mark.slow
def test_the_installed_wheel_runs_the_demo_from_the_root_folder(distributions, tmp_path):
    """Without the checkout on the path: libraries from here, soubench from the wheel alone."""
    wheel, _ = distributions
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    code = (
        "import sys\n"
        f"sys.path[:] = [{str(site)!r}] + [p for p in sys.path if p and p != {str(ROOT)!r}]\n"
        "import soubench\n"
        f"assert soubench.__file__.startswith({str(site)!r}), soubench.__file__\n"
        "from soubench.cli import main\n"
        f"sys.exit(main(['demo', '--out', {str(tmp_path / 'out')!r}, '--pictures', '4', "
        "'--workers', '1']))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd="/", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    oracle = [line for line in lines if " oracle " in line]
    assert len(oracle) == 7
    assert all(line.split()[-7:] == ["100.00"] * 7 for line in oracle)


def test_nothing_names_a_machine_or_an_outside_folder():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    # What an sdist holds is all the project's own.
    own = (p.relative_to(ROOT).as_posix() for p in ROOT.rglob("*"))
    names = own if listed.returncode else listed.stdout.split("\n")
    pattern = re.compile(r"/wor[k]/|\.\./share[d]")
    for name in names:
        path = ROOT / name
        if path.is_file() and not path.is_symlink() and path.suffix in {".py", ".md", ".toml", ""}:
            found = pattern.search(path.read_text(encoding="utf-8", errors="replace"))
            assert not found, f"{name}: {found}"
