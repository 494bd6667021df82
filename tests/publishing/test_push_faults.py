"""What goes wrong between a push and the Hub, and what of it a user has to know about."""

import os
import re
import shutil
import signal
import subprocess
import sys

import pytest
from hub import client as clients

pytestmark = pytest.mark.hub

ALL = "--i-have-the-right-to-redistribute"


@pytest.fixture
def push(client, built):
    def run(*arguments, **options):
        return client(clients.soubench, "push", *arguments, cache=built / "cache", **options)

    return run


FAULTS = {
    "rate limit": (("POST", "/preupload/", 429), {"headers": {"Retry-After": "7"}}, 8),
    "rate limit at the commit": (("POST", "/commit/", 429), {"headers": {"Retry-After": "9"}}, 9),
    "a fault of the storage": (("PUT", "/put/", 500), {"times": 2}, 1),
    "storage hangs up": (("PUT", "/put/", 0), {}, 1),
    "repository is locked": (("POST", "/commit/", 409), {"times": 3}, 4),
    "somebody was quicker": (("POST", "/commit/", 412), {"times": 2}, 2),
    "bad gateway": (("POST", "/commit/", 502), {}, 1),
    "the answer to the commit is lost": (("POST", "/commit/", None), {"lose_answer": True}, 1),
    "the Hub does not say what it has": (("GET", "/tree/", 503), {}, 1),
    "the tag fails": (("POST", "/tag/", 500), {}, 1),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_pass(fault, hub, client, push):
    what, options, waited_s = FAULTS[fault]
    repo_id = f"org/fault-{list(FAULTS).index(fault)}"
    hub.fail(*what, **options)
    status, out, err, waits = push("my-set", repo_id, "--tag", "v1.0.0")
    assert status == 0, err
    assert max(waits) >= waited_s
    repo = hub.repo("dataset", repo_id)
    assert [c.title.split(":")[0] for c in repo.commits.values()] == [
        "initial commit",
        "soubench push my-set 1.0.0",
    ]
    assert repo.tags == {"v1.0.0": repo.branches["main"]}
    assert "signature" not in out + err


def test_a_fault_that_does_not_pass_is_one_line_and_changes_nothing(hub, push):
    hub.fail("POST", "/commit/", 503, times=9)
    status, _, err, waits = push("my-set", "org/down")
    assert status == 2
    *notes, error = err.splitlines()
    assert notes == [f"the Hub answered 503; trying again in {wait} s" for wait in waits]
    assert "the Hub answered 503, and waiting did not help" in error
    assert sorted(waits) == waits
    assert list(hub.repo("dataset", "org/down").files) == [".gitattributes"]


def test_what_the_hub_refuses_is_said_and_changes_nothing(hub, push):
    hub.fail("POST", "/validate-yaml", 400)
    hub.fail("POST", "/org/asks-much/commit/", 429, headers={"Retry-After": "3600"})
    for repo_id, message in (
        ("org/bad-card", "the Hub refuses what is to be sent. Invalid metadata in README.md"),
        ("org/asks-much", "the Hub's rate limit is reached, and it asks to wait 3600 s"),
    ):
        status, _, err, waits = push("my-set", repo_id)
        assert (status, waits) == (2, [])
        assert message in err
        assert list(hub.repo("dataset", repo_id).files) == [".gitattributes"]


def test_a_second_pusher_in_between(hub, client, push, built):
    """Another push of another config comes first: both are there, and nothing is sent twice."""
    theirs, repo_id = "org/theirs", "org/both"
    assert push("sou-vqa", theirs, ALL, "--config", "underwater")[0] == 0

    def be_quicker():
        before, repo = hub.repo("dataset", theirs), hub.repo("dataset", repo_id)
        files = {
            path: hub.regular(hub.content(blob).replace(theirs.encode(), repo_id.encode()))
            if path == "README.md"
            else blob
            for path, blob in before.files.items()
        }
        repo.stored |= before.stored
        hub.commit(repo, "main", files, "soubench push, of somebody else", "somebody")

    hub.fail("POST", f"/{repo_id}/commit/", before=be_quicker)
    seen = len(hub.log)
    status, _, err, waits = push("sou-vqa", repo_id, ALL, "--config", "driving", "--tag", "v1.0.0")
    assert status == 0, err
    assert waits == [1]
    assert err == "the Hub answered 412; trying again in 1 s\n"
    called = [r.path.split("?")[0] for r in hub.log[seen:] if r.method in ("POST", "PUT")]
    commit = f"/api/datasets/{repo_id}/commit/main"
    assert called.count(commit) == 2
    assert not [path for path in called[called.index(commit) :] if path.startswith("/put/")]
    for config in ("driving", "underwater", "driving-ol"):
        expected = client(clients.digests, "sou-vqa", config, cache=built / "cache", built=True)
        found = client(clients.digests, repo_id, config, revision="v1.0.0", streaming=True)
        assert found == expected


def test_killed_in_the_middle_and_run_again(hub, client, built, tmp_path):
    repo_id = "org/killed"
    command = [sys.executable, "-m", "soubench", "push", "sou-vqa", repo_id, ALL]
    # Another process of this test run may be exporting from the same cache.
    cache = shutil.copytree(
        built / "cache", tmp_path / "cache", ignore=shutil.ignore_patterns("staging")
    )
    settings = clients.environment(hub.endpoint, tmp_path / "home")
    settings["HF_DATASETS_CACHE"] = str(cache)
    running = subprocess.Popen(
        command, env=os.environ | settings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    hub.fail("PUT", f"/put/datasets/{repo_id}/", after=3, before=running.kill)
    running.communicate(timeout=120)
    assert running.returncode == -signal.SIGKILL
    repo = hub.repo("dataset", repo_id)
    assert list(repo.files) == [".gitattributes"]
    stored, seen = set(repo.stored), len(hub.log)
    assert len(stored) >= 3
    assert list((cache / "soubench" / "staging").iterdir())
    status, _, err, _ = client(clients.soubench, "push", "sou-vqa", repo_id, ALL, cache=cache)
    assert status == 0, err
    sent = {r.path.split("?")[0][-64:] for r in hub.requests("PUT", f"/{repo_id}/", seen)}
    assert sent
    assert not sent & stored
    wanted = {blob.sha256 for blob in repo.files.values() if blob.sha256}
    assert sent | stored == wanted
    assert not list((cache / "soubench" / "staging").iterdir())


def test_large_files_go_in_parts_and_long_listings_come_in_pages(hub, client, push, built):
    hub.part_bytes, hub.page_size = 5000, 2
    status, _, err, _ = push("my-set", "org/parts", ALL)
    assert status == 0, err
    assert hub.requests("PUT", "/part/")
    assert hub.requests("GET", "/datasets/org/parts/tree/.*cursor=4")
    expected = client(clients.digests, "my-set", "all", cache=built / "cache", built=True)
    assert client(clients.digests, "org/parts", "all", streaming=True) == expected


# To store in a folder is an aid of the library's own tests: constraints.txt holds its version.
def test_with_xet_storage_as_the_hub_has_it_by_default(hub, client, push, built, tmp_path):
    assert push("my-set", "org/not-xet", ALL)[0] == 0
    for folder in ("storage", "contents", "cache"):
        (tmp_path / folder).mkdir()
    stored = {digest: hub.objects[digest] for digest in hub.repo("dataset", "org/not-xet").stored}
    hub.xet_hashes = client(clients.xet_hashes, stored, tmp_path / "contents")
    hub.xet_folder = str(tmp_path / "storage")
    status, _, err, _ = push("my-set", "org/xet", ALL, "--tag", "v1.0.0", xet=True)
    assert status == 0, err
    assert not hub.requests("PUT", "/datasets/org/xet/")
    assert not hub.requests("POST", "/datasets/org/xet.git/")
    seen = len(hub.log)
    pull = ("pull", "org/xet", "--revision", "v1.0.0")
    status, _, err, _ = client(clients.soubench, *pull, cache=tmp_path / "cache", xet=True)
    assert status == 0, err
    assert not hub.requests("GET", "/lfs/", seen)
    expected = client(clients.digests, "my-set", "all", cache=built / "cache", built=True)
    found = client(clients.digests, "my-set", "all", cache=tmp_path / "cache", built=True)
    assert found == expected


def test_a_download_that_is_cut_off_goes_on(hub, client, push, built, tmp_path):
    assert push("my-set", "org/cut", ALL)[0] == 0
    seen = len(hub.log)
    hub.fail("GET", "/lfs/", drop_after=1000)
    status, _, err, _ = client(clients.soubench, "pull", "org/cut", cache=tmp_path)
    assert status == 0, err
    assert 1000 in [r.sent for r in hub.requests("GET", "/lfs/", seen)]
    expected = client(clients.digests, "my-set", "all", cache=built / "cache", built=True)
    assert client(clients.digests, "my-set", "all", cache=tmp_path, built=True) == expected


REFUSED = {
    "no token": (("my-set", "org/x"), None, r"expected a token of the Hub, found none"),
    "an unknown token": (("my-set", "org/x"), "hf_wrong", r"the Hub does not accept this token"),
    "a token that only reads": (("my-set", "org/x"), clients.READER, r"may not write there"),
    "no namespace": (("my-set", "x"), clients.TOKEN, r"'x': expected .* org/name"),
    "somebody's namespace": (("my-set", "else/x"), clients.TOKEN, r"namespace 'else' is not yours"),
    "an address": (("my-set", "datasets/org/x"), clients.TOKEN, r"expected .* org/name"),
    "a name that cannot be": (("my-set", "org/a b"), clients.TOKEN, r"expected .* org/name"),
    "a Space": (("my-set", "org/space"), clients.TOKEN, r"org/space is a space .* not a dataset"),
    "not built": (("none", "org/x"), clients.TOKEN, r"none: no build of it"),
    "no such config": (
        ("my-set", "org/x", "--config", "al"),
        clients.TOKEN,
        r"no 'al'; it has all, all-ce",
    ),
    "no name for a tag": (("my-set", "org/x", "--tag", "a b"), clients.TOKEN, r"--tag expects"),
    "another dataset": (("sou-vqa", "org/shapes"), clients.TOKEN, r"holds primitive-shapes"),
}


@pytest.fixture(scope="module")
def _taken(hub, client, built):
    shapes = ("push", "primitive-shapes", "org/shapes")
    assert client(clients.soubench, *shapes, cache=built / "cache")[0] == 0
    metric = ("push-metric", "dice", "org/dice")
    assert client(clients.soubench, *metric, cache=built / "cache")[0] == 0
    hub.repos["space", "org/space"] = hub.repos["space", "org/dice"]


@pytest.mark.usefixtures("_taken")
@pytest.mark.parametrize("why", REFUSED)
def test_refusals_say_what_to_do_in_one_line(why, hub, push, built):
    arguments, token, message = REFUSED[why]
    seen = len(hub.log)
    status, out, err, _ = push(*arguments, token=token)
    assert (status, out) == (2, "")
    assert re.search(message, err), err
    assert err.count("\n") == 1
    assert "hf_" not in err.replace("hf auth", "")
    assert not hub.requests("PUT", "", seen)
    assert not [r for r in hub.requests("POST", "/commit/", seen) if r.status == 200]


def test_pull_refuses_what_it_does_not_know_and_what_is_not_what_it_says(
    hub, client, push, built, tmp_path
):
    client(clients.push_plainly, "my-set", "all", "org/plainly", "all", cache=built / "cache")
    assert push("my-set", "org/forged")[0] == 0
    manifest = hub.read("dataset", "org/forged", "manifest.json")
    wrong = manifest.replace(b'"fingerprint": "', b'"fingerprint": "0')
    hub.put("dataset", "org/forged", {"manifest.json": wrong})
    for arguments, message in (
        (("org/plainly",), "was not published by soubench push"),
        (("org/nowhere",), "there is no such dataset"),
        (("org/forged", "--revision", "v9"), "no such commit, tag or branch"),
        (("org/forged",), "does not hold what it says"),
    ):
        status, _, err, _ = client(clients.soubench, "pull", *arguments, cache=tmp_path / "cache")
        assert status == 2
        assert message in err
        assert not list((tmp_path / "cache").glob("my-set/*"))
