"""The test Hub, a process that is its client, and datasets to publish, built once per run."""

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from unittest import mock

import pytest
from filelock import FileLock
from hub import client as clients
from hub.server import Hub, User


@pytest.fixture(scope="session")
def hub():
    running = Hub()
    running.users |= {
        clients.TOKEN: User("writer", ("org",)),
        clients.READER: User("reader", ("org",), writes=False),
        clients.STRANGER: User("stranger"),
    }
    yield running
    running.close()


@pytest.fixture(autouse=True)
def _no_faults_left(hub):
    yield
    left = [fault for fault in hub.faults if fault.times]
    hub.faults.clear()
    hub.page_size, hub.part_bytes, hub.xet_folder = 1000, 0, ""
    assert not left


@pytest.fixture(scope="session")
def client(hub, tmp_path_factory):
    """Run a function of ``hub.client`` in the process that talks to the Hub."""
    home = tmp_path_factory.mktemp("client")
    # It must not find this process's settings before it sets its own.
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "PYTEST_"))}
    with (
        mock.patch.dict(os.environ, kept, clear=True),
        ProcessPoolExecutor(
            1,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=clients.start,
            initargs=(hub.endpoint, home),
        ) as pool,
    ):
        pool.submit(os.getpid).result()

        def run(function, *arguments, **options):
            return pool.submit(function, *arguments, **options).result()

        yield run


@pytest.fixture(scope="session")
def built(client, tmp_path_factory, worker_id):
    """A folder whose ``cache`` has every dataset built, shared by the processes of a run."""
    base = tmp_path_factory.getbasetemp()
    home = (base if worker_id == "master" else base.parent) / "built-to-publish"
    with FileLock(f"{home}.lock"):
        if not (home / "done").exists():
            home.mkdir()
            client(clients.build_all, home)
            (home / "done").touch()
    return home
