"""The RUN folder: nothing asked twice, nothing lost, nothing mixed."""

import json
import os
import signal
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soubench.builders.errors import RunError
from soubench.inference.run_folder import Reply, ReplyError, RunFolder, merge_runs, read_run

DESCRIPTION = {
    "soubench": "0.1.0",
    "dataset": {
        "name": "sou-vqa",
        "config": "aerial",
        "split": "test",
        "source": "sou-vqa",
        "fingerprint": "abc",
        "rows": 2,
    },
    "model": {"name": "m", "backend": "pipeline", "revision": None},
    "prompt": {"sha256": "00", "version": "predict-v1"},
    "decoding": {"max_new_tokens": 16, "do_sample": False},
    "shard": "0/1",
    "libraries": {"torch": "2.13.0"},
    "started": "2026-11-30T00:00:00+00:00",
}


def changed(**fields):
    """The description with some values of its tables exchanged: ``dataset__rows=3``."""
    data = json.loads(json.dumps(DESCRIPTION))
    for name, value in fields.items():
        table, _, key = name.partition("__")
        if key:
            data[table][key] = value
        else:
            data[table] = value
    return data


def write_run(path, replies, **fields):
    with RunFolder.create_or_resume(path, changed(**fields)) as run:
        for reply in replies:
            run.append(reply)
    return path


PASSING = ReplyError("timeout", "no answer in 60 s", permanent=False)
LASTING = ReplyError("http 413", "too large", permanent=True)


def test_what_is_written_is_read_back(tmp_path):
    replies = [
        Reply("a", reply="B", picture_wh=((336, 336), (20, 10)), input_tokens=3, seconds=0.5),
        Reply("a", rotation=1, reply="\ud800\r\n\u2028 ends in no line break"),
        Reply("b", error=LASTING),
    ]
    path = write_run(tmp_path / "run", replies)
    assert read_run(path) == (DESCRIPTION, replies)
    assert len((path / "replies.jsonl").read_bytes().split(b"\n")) == 4


@given(
    st.builds(
        Reply,
        id=st.text(),
        rotation=st.integers(0, 25),
        reply=st.text(st.characters()),
        picture_wh=st.none() | st.lists(st.tuples(st.integers(1), st.integers(1))).map(tuple),
        seconds=st.none() | st.floats(0, 1e6),
    )
)
def test_a_line_holds_any_reply(reply):
    line = reply.to_line()
    assert line.count(b"\n") == 1
    assert Reply.from_line(line) == reply


def test_resuming_skips_replies_and_lasting_errors_and_retries_passing_ones(tmp_path):
    path = write_run(
        tmp_path / "run",
        [Reply("a", reply="A"), Reply("b", error=PASSING), Reply("c", error=LASTING)],
    )
    with RunFolder.create_or_resume(path, DESCRIPTION) as run:
        assert run.done() == {("a", 0), ("c", 0)}
        run.append(Reply("b", reply="B"))
        assert ("b", 0) in run.done()
    assert [r.reply for r in read_run(path)[1]] == ["A", "B", None]


@pytest.mark.parametrize("cut", [1, 5, 40])
def test_a_torn_last_line_is_cut_off_and_asked_again(tmp_path, cut):
    path = write_run(tmp_path / "run", [Reply("a", reply="A"), Reply("b", reply="B")])
    file = path / "replies.jsonl"
    whole = file.read_bytes()
    file.write_bytes(whole[:-cut])
    assert [r.id for r in read_run(path)[1]] == ["a"]
    with RunFolder.create_or_resume(path, DESCRIPTION) as run:
        assert run.done() == {("a", 0)}
        run.append(Reply("b", reply="B"))
    assert file.read_bytes() == whole


def test_a_damaged_line_is_named_and_not_skipped(tmp_path):
    path = write_run(tmp_path / "run", [Reply("a", reply="A"), Reply("b", reply="B")])
    file = path / "replies.jsonl"
    first, second = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(first.replace(b'"reply"', b'"answer"') + second)
    with pytest.raises(RunError, match="line 1: expected a reply"):
        read_run(path)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"dataset__fingerprint": "xyz"}, r'dataset.fingerprint was "abc" there and is "xyz" now'),
        ({"prompt__sha256": "11"}, r'prompt.sha256 was "00" there and is "11" now'),
        ({"model__name": "n"}, r'model.name was "m"'),
        ({"decoding__max_new_tokens": 8}, "decoding.max_new_tokens was 16 there and is 8 now"),
        ({"shard": "1/2"}, "shard was"),
        ({"coords": "unit"}, 'coords was null there and is "unit" now'),
    ],
)
def test_another_run_is_not_resumed_as_this_one(tmp_path, fields, says):
    path = write_run(tmp_path / "run", [Reply("a", reply="A")])
    with pytest.raises(RunError, match=says):
        RunFolder.create_or_resume(path, changed(**fields))


def test_another_day_and_library_may_go_on(tmp_path):
    path = write_run(tmp_path / "run", [Reply("a", reply="A")])
    later = changed(started="2027", libraries={"torch": "3"}, dataset__source="./sou-vqa")
    with RunFolder.create_or_resume(path, later):
        assert read_run(path)[0] == DESCRIPTION  # written once


def test_a_run_without_a_reply_may_start_anew_with_other_settings(tmp_path):
    path = write_run(tmp_path / "run", [])
    (path / "replies.jsonl").write_bytes(b'{"id": "torn')
    other = changed(model__name="n")
    with RunFolder.create_or_resume(path, other) as run:
        assert run.done() == set()
    assert read_run(path) == (other, [])
    (path / "run.json").write_text('{"of": "another tool"}')
    with pytest.raises(RunError, match="description of a run"):
        RunFolder.create_or_resume(path, other)
    assert json.loads((path / "run.json").read_text()) == {"of": "another tool"}


def test_two_writers_are_refused(tmp_path):
    path = tmp_path / "run"
    with (
        RunFolder.create_or_resume(path, DESCRIPTION),
        pytest.raises(RunError, match="another process is writing"),
    ):
        RunFolder.create_or_resume(path, DESCRIPTION)
    RunFolder.create_or_resume(path, DESCRIPTION).close()


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("x")
    with pytest.raises(RunError, match=r"thesis.txt"):
        RunFolder.create_or_resume(tmp_path, DESCRIPTION)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.txt"]


WRITER = """
import sys
from pathlib import Path
from soubench.inference.run_folder import Reply, RunFolder
import json
run = RunFolder.create_or_resume(Path(sys.argv[1]), json.loads(sys.argv[2]))
for i in range(10**6):
    run.append(Reply(str(i), reply="x" * (i % 5000)))
    print(i, flush=True)
"""


@pytest.mark.parametrize("after", [0, 3, 50])
def test_what_was_appended_survives_kill_9(tmp_path, after):
    path = tmp_path / "run"
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), json.dumps(DESCRIPTION)], stdout=subprocess.PIPE
    )
    said = -1
    while said < after:
        said = int(writer.stdout.readline())
    os.kill(writer.pid, signal.SIGKILL)
    rest = writer.communicate()[0].split()
    said = int(rest[-1]) if rest else said
    with RunFolder.create_or_resume(path, DESCRIPTION) as run:
        ids = [int(i) for i, _ in sorted(run.done(), key=lambda key: int(key[0]))]
    # Everything that append() returned from, and at most the one line after it.
    assert ids[: said + 1] == list(range(said + 1))
    assert len(ids) <= said + 2


def test_shards_are_one_run(tmp_path):
    one = write_run(tmp_path / "1", [Reply("b", reply="B")], shard="1/2", dataset__rows=1)
    zero = write_run(
        tmp_path / "0", [Reply("a", reply="A"), Reply("c", reply="C")], shard="0/2", started="x"
    )
    description, replies = merge_runs([one, zero])
    assert description["shard"] == "0/1"
    assert description["dataset"]["rows"] == 3
    assert {r.id: r.reply for r in replies} == {"a": "A", "b": "B", "c": "C"}


def test_one_run_is_merged_as_it_is(tmp_path):
    path = write_run(tmp_path / "run", [Reply("a", reply="A")])
    assert merge_runs([path]) == (DESCRIPTION, [Reply("a", reply="A")])


@pytest.mark.parametrize(
    ("shards", "fields", "says"),
    [
        (("0/3", "2/3"), {}, "missing: 1/3,"),
        (("0/12", "2/12"), {}, "missing: 1/12, 3/12, 4/12 and 7 more,"),
        (("0/2", "0/2"), {}, "0/2 is given twice"),
        (("0/2", "1/3"), {}, "of another division: 1/3"),
        (("0/2", "1/2"), {"dataset__fingerprint": "z"}, "dataset.fingerprint"),
    ],
)
def test_what_does_not_fit_together_is_not_merged(tmp_path, shards, fields, says):
    paths = [write_run(tmp_path / "x0", [], shard=shards[0])]
    paths.append(write_run(tmp_path / "x1", [], shard=shards[1], **fields))
    with pytest.raises(RunError, match=says):
        merge_runs(paths)
