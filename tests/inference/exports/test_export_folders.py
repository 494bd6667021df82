"""Folders for tools: whole or not at all, the same bytes each time, whose pictures they hold."""

import json
from pathlib import Path

import pytest

from soubench.cli import main
from soubench.inference.exports import FORMATS
from soubench.inference.exports.export import EVALUATION, TRAINING


def export(*arguments):
    return main(["export", *map(str, arguments)])


def files_in(folder):
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def test_the_table_has_every_format_that_the_command_offers():
    assert (*EVALUATION, *TRAINING) == FORMATS


@pytest.mark.parametrize("to", EVALUATION)
def test_evaluation_folders_have_the_same_bytes_from_cache_and_from_an_export(built, tmp_path, to):
    flags = ["--config", "a-soda", "--to", to]
    assert export("sou-vqa", tmp_path / "a", *flags) == 0
    assert export("sou-vqa", tmp_path / "b", *flags) == 0
    first = files_in(tmp_path / "a")
    assert files_in(tmp_path / "b") == first
    # And over what is there, which a stray file does not survive.
    (tmp_path / "b" / "images").mkdir()
    (tmp_path / "b" / "images" / "stray.png").touch()
    assert export("sou-vqa", tmp_path / "b", *flags) == 0
    assert files_in(tmp_path / "b") == first
    assert str(tmp_path).encode() not in b"".join(first.values())


@pytest.mark.parametrize("to", TRAINING)
def test_training_folders_have_the_same_bytes(training, tmp_path, to):
    flags = ["--config", "a-visdrone", "--to", to]
    for name in "ab":
        assert export("sou-train", tmp_path / name, *flags) == 0
    assert files_in(tmp_path / "a") == files_in(tmp_path / "b")
    assert str(tmp_path).encode() not in b"".join(files_in(tmp_path / "a").values())


@pytest.mark.parametrize("to", EVALUATION)
def test_pictures_that_may_not_be_passed_on_are_named(built, tmp_path, capsys, to):
    assert export("sou-vqa", tmp_path / "all", "--config", "aerial", "--to", to) == 0
    assert "the pictures of ai-tod, visdrone may not be passed on" in capsys.readouterr().out
    readme = (tmp_path / "all" / "README.md").read_text(encoding="utf-8")
    assert "- visdrone: may not be passed on (license: none stated)." in readme
    assert "- soda-a: may be passed on (license: CC BY-NC 4.0)." in readme
    assert "do not publish it" in readme
    assert export("primitive-shapes", tmp_path / "shapes", "--config=tuple", "--to", to) == 0
    assert "may not" not in capsys.readouterr().out
    assert "do not publish" not in (tmp_path / "shapes" / "README.md").read_text(encoding="utf-8")


def test_an_exported_folder_gives_the_same_questions(built, tmp_path):
    assert export("sou-vqa", tmp_path / "plain", "--i-have-the-right-to-redistribute") == 0
    flags = ["--config", "a-visdrone", "--to", "lmms-eval"]
    assert export(tmp_path / "plain", tmp_path / "a", *flags) == 0
    assert export("sou-vqa", tmp_path / "b", *flags) == 0
    ours, theirs = files_in(tmp_path / "a"), files_in(tmp_path / "b")
    assert ours["utils.py"] == theirs["utils.py"]
    assert ours["sou_vqa_a_visdrone_test.yaml"] == theirs["sou_vqa_a_visdrone_test.yaml"]
    assert "- visdrone: may not" in ours["README.md"].decode()
    assert "soubench score --dataset PATH/plain --config" in ours["README.md"].decode()
    assert "soubench score --dataset sou-vqa --config" in theirs["README.md"].decode()


def test_a_folder_for_a_tool_is_no_dataset(built, tmp_path, capsys):
    flags = ["--config", "a-soda", "--to", "lmms-eval"]
    assert export("sou-vqa", tmp_path / "out", *flags) == 0
    assert json.loads((tmp_path / "out" / "export.json").read_text())["to"] == "lmms-eval"
    assert export(tmp_path / "out", tmp_path / "again", *flags) == 2
    assert "export --to lmms-eval: it is for that tool" in capsys.readouterr().err
    assert main(["verify", str(tmp_path / "out")]) == 2
    assert "export --to lmms-eval: it is for that tool" in "".join(capsys.readouterr())


def test_a_folder_of_someone_else_is_not_touched(built, tmp_path, capsys):
    (tmp_path / "notes.txt").write_text("mine")
    assert export("sou-vqa", tmp_path, "--config", "a-soda", "--to", "vlmevalkit") == 2
    assert "was not made by soubench export" in capsys.readouterr().err
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        pytest.param(["--config=aerial"], "--config: only with --to", id="without --to"),
        pytest.param(["--to=trl", "--fingerprint=0"], "not with --to", id="flag of a plain export"),
        pytest.param(["--to=lmms-eval"], "none was given", id="no config"),
        pytest.param(
            ["--to=lmms-eval", "--config=aerial", "--split=x"], "no split 'x'", id="split"
        ),
    ],
)
def test_flags_that_do_not_fit_are_refused(built, tmp_path, capsys, flags, said):
    assert export("sou-vqa", tmp_path / "out", *flags) == 2
    assert said in capsys.readouterr().err
    assert not Path(tmp_path / "out").exists()
