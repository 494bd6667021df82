"""The command line's own duties: what it prints, refuses, and leaves to others."""

import os
import subprocess
import sys

import datasets
import pytest

from soubench.builders.demo_scenes import write_demo_source
from soubench.cli import main


def test_inspect_prints_counts_and_writes_a_sheet(tmp_path, capsys):
    root = write_demo_source("visdrone", tmp_path / "v", pictures=2)
    assert main(["inspect", "visdrone", str(root), "--out", str(tmp_path / "s")]) == 0
    output = capsys.readouterr().out
    assert "visdrone (val): 2 pictures" in output
    assert "ignore_region" in output
    assert (tmp_path / "s" / "visdrone-val.png").stat().st_size > 10_000


def test_an_unknown_format_gets_the_known_ones(capsys, tmp_path):
    assert main(["inspect", "kitti", str(tmp_path)]) == 2
    assert "soda-d, visdrone" in capsys.readouterr().err


@pytest.mark.parametrize("wrong", ["0", "-1", "x", "1.5"])
def test_numbers_are_checked_where_they_are_given(wrong, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["build", "sou-vqa", "driving", f"--limit={wrong}"])
    assert stopped.value.code == 2
    assert "expected a number of at least 1" in capsys.readouterr().err


def test_a_closed_pipe_is_no_error(tmp_path):
    root = write_demo_source("visdrone", tmp_path / "v", pictures=1)
    command = f"{sys.executable} -m soubench inspect visdrone '{root}' | head -n 1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert "error" not in done.stderr


def test_export_and_attach_give_a_folder_that_loads(tmp_path, capsys):
    root = write_demo_source("visdrone", tmp_path / "v", pictures=2)
    datasets.config.HF_DATASETS_CACHE = tmp_path / "cache"
    assert main(["build", "sou-vqa", "a-visdrone", f"--source=visdrone={root}"]) == 0
    folder = tmp_path / "sou-vqa"
    assert main(["export", "sou-vqa", str(folder)]) == 0
    assert "Without the pictures of visdrone" in capsys.readouterr().out
    assert main(["attach", str(folder), f"--pictures={root}"]) == 0
    assert "2 pictures attached" in capsys.readouterr().out
    rows = datasets.load_dataset(str(folder), "a-visdrone-ol", split="test")
    assert [row["image"].size for row in rows] == [(960, 540)] * 2
    assert main(["export", "nothing", str(tmp_path / "x")]) == 2
    assert "nothing" in capsys.readouterr().err
