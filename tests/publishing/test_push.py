"""Datasets on the Hub: what was built is what anybody loads, and no push does harm."""

import re
import shutil

import pytest
import yaml
from hub import client as clients

pytestmark = pytest.mark.hub

LARGEST = {
    "sou-vqa": "all",
    "sou-train": "a-visdrone",
    "my-set": "all",
    "primitive-shapes": "tuple",
    "plant-leaves": "sentence",
    "rrs": "all",
}
ALL = "--i-have-the-right-to-redistribute"


@pytest.fixture
def push(client, built):
    """Push from the shared cache; fails the test where the command fails."""

    def run(*arguments, cache=built / "cache", **options):
        status, out, err, waits = client(
            clients.soubench, "push", *arguments, cache=cache, **options
        )
        assert status == 0, err
        return out, waits

    run.cache = built / "cache"
    return run


def parquet_files(hub, repo_id):
    return {path for path in hub.repo("dataset", repo_id).files if path.endswith(".parquet")}


def said_files(hub, repo_id):
    """The data files that the card names."""
    card = hub.read("dataset", repo_id, "README.md").decode()
    head = yaml.load(card.split("---\n")[1], yaml.CSafeLoader)
    return {
        p for config in head["configs"] for files in config["data_files"] for p in files["path"]
    }


@pytest.mark.parametrize("name", LARGEST)
def test_round_trip(name, hub, client, push, built, tmp_path):
    config, repo_id = LARGEST[name], f"org/{name}"
    out, _ = push(name, repo_id, ALL, "--tag", "v1.0.0")
    assert "Read back at" in out
    features, expected = client(clients.digests, name, config, cache=built / "cache", built=True)
    assert all(pictures == n > 0 for n, pictures, _ in expected.values())
    for options in ({}, {"streaming": True}, {"revision": "v1.0.0"}):
        cache = tmp_path / "-".join(options) / "clean"
        assert client(clients.digests, repo_id, config, cache=cache, **options) == (
            features,
            expected,
        )
    pulled = tmp_path / "pulled"
    status, out, err, _ = client(
        clients.soubench, "pull", repo_id, "--revision", "v1.0.0", cache=pulled
    )
    assert status == 0, err
    assert "derived anew from the rows: it is right" in out
    assert client(clients.digests, name, config, cache=pulled, built=True) == (features, expected)
    again = client(clients.export, name, tmp_path / "again", cache=pulled)
    files = hub.repo("dataset", repo_id).files
    assert again == {p: files[p].sha256 for p in parquet_files(hub, repo_id)}
    card = client(clients.check_card, repo_id)
    assert {entry["config_name"] for entry in card["configs"]} >= {config}
    _assert_no_secret(hub, repo_id, built, out + err)


def _assert_no_secret(hub, repo_id, built, printed):
    repo = hub.repo("dataset", repo_id)
    said = [hub.content(blob) for commit in repo.commits.values() for blob in commit.files.values()]
    said += [commit.title.encode() for commit in repo.commits.values()] + [printed.encode()]
    for data in said:
        assert b"OfTheTests" not in data
        assert str(built.parent).encode() not in data
        assert b"signature=" not in data


def test_only_what_a_source_allows_goes_out_and_a_dry_run_sends_nothing(hub, client, push, built):
    repo_id = "org/lean"
    out, _ = push("sou-vqa", repo_id, "--dry-run")
    assert re.search(r"^new +[\d,]+ bytes  data/a-soda/test-00000-of-00001.parquet$", out, re.M)
    assert ("dataset", repo_id) not in hub.repos
    out, _ = push("sou-vqa", repo_id)
    assert "Without the pictures of ai-tod, ruod, soda-d, visdrone" in out
    _, found = client(clients.digests, repo_id, "all")
    rows, pictures, _ = found["test"]
    assert pictures == rows // 5
    out, _ = push("sou-vqa", repo_id, "--dry-run")
    assert "0 files of 0.0 MB new" in out
    _assert_no_secret(hub, repo_id, built, out)


def test_who_has_the_pictures_puts_them_into_a_download(hub, client, push, built, tmp_path):
    push("sou-vqa", "org/to-attach")
    folder, cache = tmp_path / "sou-vqa", tmp_path / "cache"
    client(clients.download, "org/to-attach", folder)
    for command in (
        ("verify", folder),
        ("attach", folder, "--pictures", built / "sources"),
        ("verify", folder, "--pictures"),
    ):
        status, _, err, _ = client(clients.soubench, *command, cache=cache)
        assert status == 0, err
    _, expected = client(clients.digests, "sou-vqa", "all", cache=built / "cache", built=True)
    _, found = client(clients.digests, str(folder), "all", cache=cache)
    assert found["test"][:2] == expected["test"][:2]
    # Attached pictures are not sent by mistake, nor is what a download leaves beside them.
    status, _, err, _ = client(clients.soubench, "push", folder, "org/by-mistake", cache=cache)
    assert status == 2
    assert "which may not be passed on" in err
    assert (folder / ".cache").is_dir()
    push(folder, "org/on-purpose", ALL, cache=cache)
    assert not [p for p in hub.repo("dataset", "org/on-purpose").files if ".cache" in p]


def test_what_load_dataset_returned_is_pushed_as_users_do(hub, client, built):
    client(clients.push_plainly, "sou-vqa", "aerial", "org/plain", "aerial", cache=built / "cache")
    ours = client(clients.digests, "sou-vqa", "aerial", cache=built / "cache", built=True)
    assert client(clients.digests, "org/plain", "aerial") == ours


def test_a_card_of_the_users_own_stays(hub, client, push):
    repo_id = "org/with-card"
    push("my-set", repo_id)
    own = b"---\nlicense: mit\npretty_name: Mine\ntags: [mine]\n---\n# My own words\n\nStay.\n"
    mine = {"notes/mine.txt": b"mine", "examples/mine.txt": b"mine"}
    hub.put("dataset", repo_id, {"README.md": own} | mine)
    push("my-set", repo_id)
    text = hub.read("dataset", repo_id, "README.md").decode()
    assert text.split("---\n")[2].startswith("# My own words\n\nStay.\n\n<!-- soubench push")
    hub.put("dataset", repo_id, {"README.md": f"{text}\n## Below, mine too\n".encode()})
    push("my-set", repo_id, "--pictures", "none")
    after = hub.read("dataset", repo_id, "README.md").decode()
    assert "# My own words\n\nStay.\n" in after
    assert after.endswith("## Below, mine too\n")
    assert after.count("<!-- soubench push") == 1
    assert hub.read("dataset", repo_id, "notes/mine.txt") == b"mine"
    assert hub.read("dataset", repo_id, "examples/mine.txt") == b"mine"
    assert "license_name" not in after
    head = client(clients.check_card, repo_id)
    assert (head["license"], head["pretty_name"]) == ("mit", "Mine")
    assert set(head["tags"]) > {"mine"}
    assert f'load_dataset("{repo_id}", "all", split="train")' in after


def test_card_and_files_agree_after_fewer_shards_and_other_columns(hub, client, push):
    repo_id = "org/again"
    shards = []
    for arguments, options in (
        ((ALL,), {"shard_bytes": 1}),
        ((ALL,), {}),
        (("--pictures", "none"), {}),
        ((ALL,), {}),
    ):
        push("my-set", repo_id, *arguments, **options)
        files = parquet_files(hub, repo_id)
        shards.append(len(files))
        assert said_files(hub, repo_id) == files
        features, found = client(clients.digests, repo_id, "all-oc", streaming=True)
        assert ("pixels_sha256" in features) == ("none" in arguments)
        assert {split: n for split, (n, _, _) in found.items()} == {"train": 3, "val": 3}
    assert shards == [6, 2, 2, 2]


def test_configs_that_are_not_pushed_stay(hub, client, push, built, tmp_path):
    repo_id = "org/by-config"
    push("sou-vqa", repo_id, ALL, "--config", "underwater")
    tasks = ("ce", "oc", "cr", "ol", "scc", "poi")
    alone = {"underwater", *(f"underwater-{task}" for task in tasks)}
    card = hub.read("dataset", repo_id, "README.md").decode()
    assert f'load_dataset("{repo_id}", "underwater"' in card
    assert set(re.findall(r"### \w+, `([^/]+)/", card)) == {"underwater"}
    client(clients.download, repo_id, tmp_path / "download")
    status, out, err, _ = client(clients.soubench, "verify", tmp_path / "download", cache=tmp_path)
    assert status == 0, out + err
    assert set(client(clients.config_names, repo_id)) == alone
    out, _ = push("sou-vqa", repo_id, ALL, "--config", "aerial")
    assert "Kept as they were: configs underwater, underwater-ce" in out
    names = set(client(clients.config_names, repo_id))
    assert alone | {"aerial", "a-soda", "aerial-ol"} < names
    assert not names & {"all", "driving"}
    cache = tmp_path / "pulled"
    status, out, err, _ = client(clients.soubench, "pull", repo_id, cache=cache)
    assert status == 0, err
    assert "Part of the build" in out
    status, out, err, _ = client(clients.soubench, "verify", "sou-vqa", cache=cache)
    assert status == 0, out + err
    assert "this is part of a build" in out
    for config in ("underwater", "aerial"):
        expected = client(clients.digests, "sou-vqa", config, cache=built / "cache", built=True)
        assert client(clients.digests, repo_id, config, streaming=True) == expected
        assert client(clients.digests, "sou-vqa", config, cache=cache, built=True) == expected


def test_a_build_beside_another_build_and_a_config_of_nobody(hub, client, push, built, tmp_path):
    """Somebody pushes one scenario of a build of their own: ``all`` keeps the rows that it had."""
    repo_id, here, there = "org/two-builds", built / "cache", built / "driving"
    push("sou-vqa", repo_id, ALL)
    client(clients.push_plainly, "sou-vqa", "a-soda-ol", repo_id, "mine", cache=here)
    out, _ = push("sou-vqa", repo_id, ALL, cache=there)
    assert "Kept as they were: configs a-aitod" in out
    cache = tmp_path / "pulled"
    status, _, err, _ = client(clients.soubench, "pull", repo_id, cache=cache)
    assert status == 0, err
    expected = {
        "all": client(clients.digests, "sou-vqa", "all", cache=here, built=True),
        "driving": client(clients.digests, "sou-vqa", "driving", cache=there, built=True),
    }
    for config, rows in expected.items():
        assert client(clients.digests, repo_id, config, streaming=True) == rows
        assert client(clients.digests, "sou-vqa", config, cache=cache, built=True) == rows
    assert expected["driving"] != client(
        clients.digests, "sou-vqa", "driving", cache=here, built=True
    )
    mine = client(clients.digests, "sou-vqa", "a-soda-ol", cache=here, built=True)
    assert client(clients.digests, repo_id, "mine", streaming=True) == mine
    assert any(path.startswith("builds/") for path in hub.repo("dataset", repo_id).files)
    push("sou-vqa", repo_id, ALL)
    files = hub.repo("dataset", repo_id).files
    assert not any(path.startswith("builds/") for path in files)
    assert {p for p in parquet_files(hub, repo_id) if p.startswith("data/")} == {
        f"data/{subset}/test-00000-of-00001.parquet"
        for subset in ("driving", "a-visdrone", "a-aitod", "a-soda", "underwater")
    }
    assert client(clients.digests, repo_id, "mine", streaming=True) == mine


def test_an_exported_folder_is_pushed_as_it_is_unless_its_pictures_may_not_go(
    hub, client, push, built, tmp_path
):
    folder = tmp_path / "sou-vqa"
    client(clients.export, "sou-vqa", folder, cache=built / "cache")
    refused = client(clients.soubench, "push", folder, "org/folder", cache=tmp_path)
    assert refused[0] == 2
    assert "ai-tod, ruod, soda-d, visdrone inside, which may not be passed on" in refused[2]
    assert ("dataset", "org/folder") not in hub.repos
    out, _ = push(folder, "org/folder", ALL, cache=tmp_path)
    assert str(tmp_path) not in out
    files = hub.repo("dataset", "org/folder").files
    for path in parquet_files(hub, "org/folder"):
        assert hub.content(files[path]) == (folder / path).read_bytes()


def test_pictures_whose_records_state_an_open_license_go_out(hub, client, push, built, tmp_path):
    out, _ = push("rrs", "org/open-sites")
    assert "Without the pictures" not in out
    folder = tmp_path / "rrs"
    client(clients.export, "rrs", folder, cache=built / "cache")
    push(folder, "org/open-folder", cache=tmp_path)
    for repo_id in ("org/open-sites", "org/open-folder"):
        _, found = client(clients.digests, repo_id, "perception-object", streaming=True)
        assert found["test"][0] == found["test"][1] > 0


def test_tags_stay_what_they_are(hub, client, push, built):
    repo_id = "org/tags"
    push("my-set", repo_id, "--tag", "v1.0.0")
    first = hub.repo("dataset", repo_id).tags["v1.0.0"]
    push("my-set", repo_id, "--tag", "v1.0.0")
    status, _, err, _ = client(
        clients.soubench, "push", "my-set", repo_id, ALL, "--tag", "v1.0.0", cache=built / "cache"
    )
    assert status == 2
    assert "has a tag v1.0.0 already" in err
    push("my-set", repo_id, ALL, "--tag", "v1.1.0")
    repo = hub.repo("dataset", repo_id)
    assert repo.tags["v1.0.0"] == first != repo.tags["v1.1.0"] == repo.branches["main"]
    _, found = client(clients.digests, repo_id, "all", revision="v1.0.0", streaming=True)
    assert all(pictures == 0 for _, pictures, _ in found.values())


def test_a_private_repository_is_for_those_who_may_see_it(hub, client, push, tmp_path):
    repo_id = "org/secret"
    push("my-set", repo_id, ALL, "--private")
    assert hub.repo("dataset", repo_id).private
    client(clients.digests, repo_id, "all-oc", cache=tmp_path / "a")
    for token in (None, clients.STRANGER):
        options = {"cache": tmp_path, "token": token}
        status, _, err, _ = client(clients.soubench, "pull", repo_id, **options)
        assert status == 2
        assert "there is no such dataset on the Hub, or it is private" in err
    push("my-set", "org/open")
    status, _, err, _ = client(
        clients.soubench, "push", "my-set", "org/open", "--private", cache=push.cache
    )
    assert status == 2
    assert "org/open is public" in err


def test_what_was_pulled_without_pictures_verifies_and_exports(hub, client, push, tmp_path):
    push("my-set", "org/labels", "--pictures", "none")
    cache, folder = tmp_path / "pulled", tmp_path / "again"
    for command in (
        ("pull", "org/labels"),
        ("verify", "my-set", "--pictures"),
        ("export", "my-set", folder),
        ("verify", folder, "--pictures"),
    ):
        status, _, err, _ = client(clients.soubench, *command, cache=cache)
        assert status == 0, (command, err)
    files = hub.repo("dataset", "org/labels").files
    assert set(parquet_files(hub, "org/labels")) == {
        path.relative_to(folder).as_posix() for path in folder.glob("data/**/*.parquet")
    }
    for path in parquet_files(hub, "org/labels"):
        assert hub.content(files[path]) == (folder / path).read_bytes()


def test_a_download_of_two_builds_is_for_pull(client, push, built, tmp_path):
    repo_id = "org/two-downloaded"
    push("sou-vqa", repo_id, ALL)
    push("sou-vqa", repo_id, ALL, cache=built / "driving")
    folder = tmp_path / "sou-vqa"
    client(clients.download, repo_id, folder)
    for command in (("verify", folder), ("attach", folder, "--pictures", built / "sources")):
        status, _, err, _ = client(clients.soubench, *command, cache=tmp_path)
        assert status == 2
        assert "parts of several builds, as soubench push leaves them" in err


def test_pull_leaves_a_local_build_with_its_pictures(client, push, built, tmp_path):
    cache = shutil.copytree(built / "cache", tmp_path / "cache")
    push("sou-vqa", "org/lean-again", "--config", "driving", cache=cache)
    status, out, err, _ = client(clients.soubench, "pull", "org/lean-again", cache=cache)
    assert status == 0, err
    assert "in the cache already, with all pictures, and was left as it is" in out
    status, out, err, _ = client(clients.soubench, "verify", "sou-vqa", "--pictures", cache=cache)
    assert status == 0, out + err


def test_a_folder_is_pushed_whole(client, built, tmp_path):
    client(clients.export, "my-set", tmp_path / "out", cache=built / "cache")
    arguments = ("push", tmp_path / "out", "org/part", ALL, "--config", "all-oc")
    status, _, err, _ = client(clients.soubench, *arguments, cache=tmp_path)
    assert status == 2
    assert "a folder is pushed as it is" in err


def test_what_is_on_the_hub_goes_to_other_tools_by_its_name(client, push, tmp_path):
    push("rrs", "org/for-tools")
    arguments = ("export", "org/for-tools", tmp_path / "out", "--to=lmms-eval", "--config=vg")
    status, out, err, _ = client(clients.soubench, *arguments, cache=tmp_path / "cache")
    assert status == 0, err
    assert "may not be passed on" not in out
    readme = (tmp_path / "out" / "README.md").read_text()
    assert "soubench score --dataset org/for-tools --config vg" in readme
