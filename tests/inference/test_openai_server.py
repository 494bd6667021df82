"""The openai back end against a server process that misbehaves as it is told."""

import base64
import io
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from email.utils import formatdate

import numpy as np
import pytest
from PIL import Image

from soubench.cli import main
from soubench.inference.chat import Picture, data_url
from soubench.inference.dataset_rows import open_rows
from soubench.inference.questions import question_of
from soubench.inference.run_folder import read_run
from tests.inference.stub_server import reply_to

server = pytest.importorskip("soubench.inference.backends.openai_server")


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    monkeypatch.setattr(server, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(server, "DOWN_S", 0.5)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def run(out, *urls, arguments=(), config="aerial", dataset="sou-vqa", rc=0):
    urls = [f"--base-url={url}" for url in urls]
    command = ["predict", dataset, config, "--model=stub", f"--out={out}", *urls, *arguments]
    assert main(command) == rc
    return read_run(out)


def told(replies):
    return {reply.key: reply.reply for reply in replies}


def expected(config="aerial"):
    """What the server should have said to each row: a letter that depends on the text alone."""
    rows = open_rows("sou-vqa", config, None).columns()
    return {(row["id"], 0): reply_to(question_of(row).text) for row in rows}


def distinct_texts(config="aerial"):
    return len({question_of(row).text for row in open_rows("sou-vqa", config, None).columns()})


def test_replies_belong_to_their_rows_and_tokens_are_counted(built, stub_server, tmp_path):
    with stub_server() as stub:
        description, replies = run(tmp_path / "run", stub.url, arguments=["--concurrency=7"])
        assert stub.stats()["most_active"] <= 7
    assert told(replies) == expected()
    assert {(r.input_tokens, r.output_tokens, r.finish_reason) for r in replies} == {(7, 1, "stop")}
    assert description["model"]["backend"] == "openai"
    assert description["decoding"]["temperature"] == 0


@pytest.mark.parametrize(
    "faults",
    [
        pytest.param(["http 429", "http 429"], id="busy, with Retry-After"),
        pytest.param(["http 500"], id="server error"),
        pytest.param(["http 503", "http 408", "http 409"], id="other passing errors"),
        pytest.param(["cut"], id="cut connection"),
        pytest.param(["garbage"], id="no JSON"),
        pytest.param(["empty"], id="JSON without a reply"),
        pytest.param(["hang"], id="no answer in time"),
        pytest.param(["cut", "http 500", "hang", "http 429", "garbage"], id="all of them"),
    ],
)
def test_what_may_pass_is_tried_again_until_there_is_a_reply(built, stub_server, tmp_path, faults):
    hangs = "hang" in faults
    # A busy machine may take a while to answer, and only a server that hangs needs a short wait.
    more = ["--limit=12", f"--timeout={0.5 if hangs else 60}", "--concurrency=6"]
    with stub_server(faults=faults) as stub:
        _, replies = run(tmp_path / "run", stub.url, arguments=more)
        tries = stub.stats()["tries"]
    right = expected()
    assert {reply.key: right[reply.key] for reply in replies} == told(replies)
    assert len(replies) == 12
    assert all(reply.error is None for reply in replies)
    wanted = 12 + len(faults) * len(tries)
    assert sum(tries.values()) >= wanted if hangs else sum(tries.values()) == wanted


def test_a_bad_request_is_never_repeated_nor_asked_again(built, stub_server, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    import datasets

    datasets.Dataset.from_dict(
        {"question": ["good", "BAD", "fine"], "target": ["x"] * 3}
    ).to_parquet(folder / "test.parquet")
    with stub_server() as stub:
        for _ in range(2):
            _, replies = run(
                tmp_path / "run",
                stub.url,
                dataset=str(folder),
                config="default",
                arguments=["--blind"],
            )
        assert stub.stats()["tries"] == {"good": 1, "BAD": 1, "fine": 1}
    (bad,) = [reply for reply in replies if reply.error]
    assert (bad.error.kind, bad.error.permanent) == ("http 400", True)
    assert "the picture is too large" in bad.error.message


def test_a_server_that_is_wrong_on_resuming_costs_no_row(built, stub_server, tmp_path, capsys):
    out = tmp_path / "run"
    with stub_server() as stub:
        run(out, stub.url)
    file = out / "replies.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:20]))
    before = file.read_bytes()
    # Such as a server of a model that takes no pictures: every question is a bad request.
    with stub_server(faults=["http 400"] * 9) as stub:
        run(out, stub.url, rc=2)
    assert "all of the first 8 requests failed" in capsys.readouterr().err
    assert file.read_bytes() == before
    with stub_server() as stub:
        _, replies = run(out, stub.url)
    assert told(replies) == expected()


def test_retry_errors_asks_again_what_seemed_to_last(built, stub_server, tmp_path, capsys):
    out = tmp_path / "run"
    with stub_server() as stub:
        run(out, stub.url)
    file = out / "replies.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:-3]))
    # The last few of a run that has worked may be ones that the model cannot take.
    with stub_server(faults=["http 400"] * 9) as stub:
        _, replies = run(out, stub.url)
        assert sum(stub.stats()["tries"].values()) == 3
    assert sum(r.error is not None for r in replies) == 3
    assert "3 errors" in (said := capsys.readouterr().out)
    assert "3 of 3 are permanent: only --retry-errors asks those again" in said
    with stub_server() as stub:
        run(out, stub.url)
        assert stub.stats()["tries"] == {}
        _, replies = run(out, stub.url, arguments=["--retry-errors"])
        assert sum(stub.stats()["tries"].values()) == 3
    assert told(replies) == expected()
    assert "0 errors" in capsys.readouterr().out.splitlines()[-2]


def test_what_never_passes_is_an_error_that_the_next_run_tries_again(
    built, stub_server, tmp_path, monkeypatch
):
    with stub_server() as stub:
        run(tmp_path / "run", stub.url, arguments=["--limit=3"])
        file = tmp_path / "run" / "replies.jsonl"
        lines = file.read_text().splitlines(keepends=True)
        file.write_text("".join(lines[:2]))  # a third reply is still wanted
    monkeypatch.setattr(server.OpenAIBackend.__init__, "__kwdefaults__", {
        **server.OpenAIBackend.__init__.__kwdefaults__, "tries": 2
    })  # fmt: skip
    with stub_server(faults=["http 500"] * 9) as stub:
        _, replies = run(tmp_path / "run", stub.url, arguments=["--limit=3"])
        assert sum(stub.stats()["tries"].values()) == 2
    assert [r.error.kind for r in replies if r.error] == ["http 500"]
    with stub_server() as stub:
        _, replies = run(tmp_path / "run", stub.url, arguments=["--limit=3"])
        assert sum(stub.stats()["tries"].values()) == 1
    assert all(r.error is None for r in replies)


@pytest.mark.parametrize(
    ("headers", "wanted"),
    [
        ({"retry-after": "2"}, 2),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_the_pause_is_the_one_that_the_server_asks_for(headers, wanted):
    asked = server._asked_pause(headers)
    assert asked == wanted
    if asked is not None:
        assert asked <= server._pause(1, asked) <= 1.1 * asked
    pauses = [server._pause(n, None) for n in range(1, 30)]
    assert pauses[3] > pauses[0]
    assert max(pauses) <= server.LONGEST_PAUSE_S


def test_a_server_may_ask_for_a_date():
    asked = server._asked_pause({"retry-after": formatdate(time.time() + 30, usegmt=True)})
    assert 25 < asked <= 30


def test_several_servers_take_turns_and_a_dead_one_costs_no_row(built, stub_server, tmp_path):
    with stub_server() as one, stub_server() as two:
        _, replies = run(tmp_path / "a", one.url, two.url)
        asked = [sum(stub.stats()["tries"].values()) for stub in (one, two)]
        assert asked[0] == pytest.approx(asked[1], abs=2)
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            dead = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
            before = sum(one.stats()["tries"].values())
            _, replies = run(tmp_path / "b", dead, one.url)
        assert sum(one.stats()["tries"].values()) - before == len(replies)
    assert told(replies) == expected()


def test_a_server_that_fails_is_left_alone_for_a_while():
    good, bad = (server._Server(name, None) for name in ("good", "bad"))
    servers = server._Servers([bad, good])
    for _ in range(server.FAILURES_UNTIL_DOWN):
        servers.note(bad, good=False)
    assert {servers.next().url for _ in range(6)} == {"good"}
    for _ in range(server.FAILURES_UNTIL_DOWN):
        servers.note(good, good=False)
    assert servers.next() is bad  # both are down: the one that is up again first
    servers.note(bad, good=True)
    assert {servers.next().url for _ in range(6)} == {"bad"}


def test_faults_of_the_settings_stop_at_once_and_cost_no_row(
    built, stub_server, tmp_path, capsys, monkeypatch
):
    with stub_server(key="secret-key-1234") as stub:
        _, replies = run(tmp_path / "a", stub.url, rc=2)
        assert replies == []
        error = capsys.readouterr().err.splitlines()[-1]
        assert "answers 401" in error
        assert "OPENAI_API_KEY" in error
        monkeypatch.setenv("OPENAI_API_KEY", "secret-key-1234")
        _, replies = run(tmp_path / "a", stub.url)
        assert told(replies) == expected()
    for path in (tmp_path / "a").iterdir():
        assert "secret-key" not in path.read_text()
    with stub_server() as stub:
        command = ["predict", "sou-vqa", "aerial", "--model=other", f"--base-url={stub.url}"]
        assert main([*command, f"--out={tmp_path / 'b'}"]) == 2
        assert "Check --base-url and --model" in capsys.readouterr().err


def test_a_server_that_is_not_there_stops_the_run_without_writing(built, tmp_path, capsys):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        _, replies = run(tmp_path / "run", url, rc=2)
    assert replies == []
    assert "all of the first 8 requests failed" in capsys.readouterr().err


def test_pictures_and_roles_arrive_as_they_should(built, stub_server, tmp_path):
    with stub_server(tell=True) as stub:
        _, plain = run(tmp_path / "a", stub.url, arguments=["--limit=3"])
        _, small = run(
            tmp_path / "b",
            stub.url,
            arguments=["--limit=3", "--max-picture-bytes=9000", "--no-system-role"],
        )
        _, scaled = run(tmp_path / "c", stub.url, arguments=["--limit=3", "--max-pixels=10000"])
        _, blind = run(tmp_path / "d", stub.url, arguments=["--limit=3", "--blind"])
    rows = {row["id"]: row for row in open_rows("sou-vqa", "aerial", None).undecoded()}
    for reply in plain:
        said = json.loads(reply.reply)
        picture = Picture(**{"path": rows[reply.id]["image"]["path"], "data": None})
        width, height, size, _ = said["sizes"][0]
        assert (width, height) == picture.size_wh
        assert reply.picture_wh is None  # what the server's processor made of it, it does not say
        assert size == len(picture.read())  # the file as it is
        assert said["roles"] == ["system", "user"]
        assert said["temperature"] == 0
    for reply in small:
        said = json.loads(reply.reply)
        _, _, size, kind = said["sizes"][0]
        assert (size <= 9000, kind) == (True, "JPEG")
        assert reply.picture_wh is None
        assert said["roles"] == ["user"]
    for reply in scaled:
        width, height, *_ = json.loads(reply.reply)["sizes"][0]
        assert 9000 < width * height <= 10000
    assert [json.loads(r.reply)["sizes"] for r in blind] == [[]] * 3


def sent(url):
    return Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2])))


def test_a_turned_picture_is_sent_upright():
    image, exif = Image.new("RGB", (40, 20)), Image.Exif()
    exif[0x0112] = 6
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", exif=exif)
    url = data_url(Picture(None, buffer.getvalue()), max_bytes=10**6, max_pixels=None)
    assert sent(url).size == (20, 40)
    assert url.startswith("data:image/jpeg;base64,")


@pytest.mark.parametrize("cap", [50_000, 5_000, 1_000])
def test_any_picture_fits_below_the_cap(cap):
    noise = np.random.default_rng(0).integers(0, 255, (300, 400, 3)).astype(np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(noise).save(buffer, "PNG")
    url = data_url(Picture(None, buffer.getvalue()), max_bytes=cap, max_pixels=None)
    assert len(url.partition(",")[2]) * 3 // 4 <= cap + 2
    size = sent(url).size
    assert size[0] / size[1] == pytest.approx(4 / 3, rel=0.1)


def test_newer_models_get_the_limit_under_its_new_name(built, stub_server, tmp_path):
    with stub_server(new_limit=True) as stub:
        _, replies = run(tmp_path / "run", stub.url)
        assert max(stub.stats()["tries"].values()) < 24  # found out once, not for every row
    assert told(replies) == expected()


def test_kill_9_and_resume_ask_only_what_is_missing(built, stub_server, tmp_path):
    command = [sys.executable, "-m", "soubench", "predict", "sou-vqa", "aerial", "--model=stub"]
    more = [f"--out={tmp_path / 'run'}", "--concurrency=4", "--circular"]
    total = 4 * len(expected())
    sent = []
    with stub_server(latency_s=0.05) as stub:
        for stop in (50, 150):
            child = subprocess.Popen([*command, *more, f"--base-url={stub.url}"])
            while len(stub.stats()["order"]) < stop:
                assert child.poll() is None
                time.sleep(0.02)
            os.kill(child.pid, signal.SIGKILL)
            child.wait()
            sent.append(len(stub.stats()["order"]))
            with (tmp_path / "run" / "replies.jsonl").open("ab") as file:
                file.write(b'{"id": "torn')
        done = len(read_run(tmp_path / "run")[1])
        subprocess.run([*command, *more, f"--base-url={stub.url}"], check=True)
        time.sleep(0.2)
        answered = len(stub.stats()["order"])
    _, replies = read_run(tmp_path / "run")
    assert len(replies) == total
    assert len((tmp_path / "run" / "replies.jsonl").read_bytes().splitlines()) == total
    # At most the four requests that were on their way are lost at each kill.
    assert total <= answered <= total + 2 * 4
    assert sent[1] - done <= 2 * 4


def test_ctrl_c_stops_soon_and_the_run_goes_on(built, stub_server, tmp_path):
    # Processes in the background of a shell may ignore the signal, and so may their children.
    program = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    program += "import sys; from soubench.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", program, "predict", "sou-vqa", "aerial", "--model=stub"]
    with stub_server(latency_s=0.1) as stub:
        command += [f"--out={tmp_path / 'run'}", f"--base-url={stub.url}", "--concurrency=2"]
        child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        while len(stub.stats()["order"]) < 5:
            time.sleep(0.02)
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=20)
        assert child.returncode == 130
        assert "The same command goes on" in errors
        assert "Traceback" not in errors
        assert subprocess.run(command).returncode == 0
    assert told(read_run(tmp_path / "run")[1]) == expected()


def test_a_real_server_says_what_the_pipeline_says(built, tiny_vlm, tmp_path):
    model = str(tiny_vlm("llava"))
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    os.makedirs(os.path.join(os.environ["HF_HOME"], "hub"), exist_ok=True)  # noqa: PTH103, PTH118
    command = ["transformers.cli.transformers", "serve", model, "--device=cpu"]
    process = subprocess.Popen(
        [sys.executable, "-m", *command, "--host=127.0.0.1", f"--port={port}"],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    try:
        for _ in range(240):
            assert process.poll() is None
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health")
                break
            except urllib.error.URLError:
                time.sleep(0.5)
        shared = ["predict", "sou-vqa", "aerial", f"--model={model}", "--limit=6"]
        shared += ["--max-new-tokens=5"]
        url = f"--base-url=http://127.0.0.1:{port}/v1"
        assert main([*shared, f"--out={tmp_path / 'served'}", url, "--concurrency=3"]) == 0
    finally:
        process.kill()
        process.wait()
    assert main([*shared, f"--out={tmp_path / 'local'}"]) == 0
    served, local = (told(read_run(tmp_path / name)[1]) for name in ("served", "local"))
    assert served == local


@pytest.mark.parametrize(
    ("choices", "reply"),
    [
        ([{"message": {"content": "B"}}], "B"),
        ([{"message": {"content": [{"type": "text", "text": "B"}]}}], "B"),
        ([{"message": {"content": None, "refusal": "no"}}], "no"),
        ({"0": 1}, None),
        ([], None),
        ([{"message": {"content": [7]}}], None),
        ([{"message": {"content": {"text": "B"}}}], None),
    ],
)
def test_odd_completions_are_read_or_refused(choices, reply):
    from types import SimpleNamespace

    from soubench.inference.backends import openai_server

    if isinstance(choices, list):
        choices = [
            SimpleNamespace(message=SimpleNamespace(**({"refusal": None} | c["message"])))
            for c in choices
        ]
    answer = SimpleNamespace(choices=choices, usage=None)
    request = SimpleNamespace(question=SimpleNamespace(id="a", rotation=0))
    if reply is None:
        with pytest.raises(openai_server._NoReplyError):
            openai_server._reply(request, answer, 1.0)
    else:
        assert openai_server._reply(request, answer, 1.0).reply == reply
