"""A repository on the Hub: who may write to it, what lies there, and commits that wait their turn.

Everything that a command sends goes into one commit on top of the head that it looked at, so that
``main`` changes as a whole or not at all. Large files are uploaded before; until the commit nobody
sees them, and an upload that starts again sends only what the Hub does not have yet.
"""

import logging
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import file_digest, sha1, sha256
from pathlib import Path
from typing import Literal, TypeVar

import httpx2
from huggingface_hub import (
    CommitOperationAdd,
    CommitOperationDelete,
    HfApi,
    constants,
    get_token,
)
from huggingface_hub.errors import (
    HfHubHTTPError,
    HFValidationError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.hf_api import RepoFile
from huggingface_hub.utils import (  # type: ignore[attr-defined]  # re-exported without saying so
    are_progress_bars_disabled,
    disable_progress_bars,
    enable_progress_bars,
    parse_ratelimit_headers,
    validate_repo_id,
)
from huggingface_hub.utils import logging as hub_logging

from soubench.builders.errors import PublishError

Kind = Literal["dataset", "space"]
Content = Path | bytes
T = TypeVar("T")
_log = logging.getLogger(__name__)

MAIN = "main"
WAITS_S = (1, 2, 4, 8, 16, 32, 60, 120)
"""Between tries, unless the Hub says how long."""
LONGEST_WAIT_S = 600
UNREACHABLE_TRIES = 5
"""So many where there is no connection at all; below, the client has tried several times each."""
RETRIED = frozenset({408, 409, 412, 425, 429, 500, 502, 503, 504})
"""Conflicts with another commit, rate limits, and faults of the server: all pass."""
TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
ADDRESS = re.compile(r"\w+://\S+")
# What the client and, below it, the storage library (hf_xet) raise.
_FAILURES = (HfHubHTTPError, httpx2.TransportError, ConnectionError, RuntimeError)


@dataclass(frozen=True, slots=True)
class Change:
    """What a commit does to one file: ``new``, ``changed``, ``deleted``, or nothing (``same``)."""

    path: str
    size: int
    what: Literal["new", "changed", "deleted", "same"]


@dataclass(frozen=True, slots=True)
class Target:
    """What a commit wants: contents by path in the repository, and paths that go."""

    files: Mapping[str, Content]
    deleted: Sequence[str] = ()


@dataclass(slots=True)
class Repository:
    """A repository on the Hub, and the account of the token that `huggingface_hub` finds.

    Attributes:
        id: ``org/name``.
        kind: Its type.
        head: The commit that main was at when it was last looked at; empty if there is none.
        files: The files of that commit.
        tags: Tag -> its commit.
        private: Whether it is private.
    """

    id: str
    kind: Kind
    head: str = ""
    files: dict[str, RepoFile] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    private: bool = False
    _api: HfApi = field(default_factory=HfApi)
    _digests: dict[Path, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        try:
            validate_repo_id(self.id)
            is_name = self.id.count("/") == 1
        except HFValidationError:
            is_name = False
        if not is_name:
            raise PublishError(
                f"{self.id!r}: expected the name of a {self.kind} on the Hub, org/name: an account "
                "or organization, a slash, and letters, digits, '-', '_' or '.'."
            )

    def look(self, revision: str | None = None) -> bool:
        """Read what is there now; say whether there is such a repository.

        Args:
            revision: A commit, tag or branch instead of main.

        Raises:
            PublishError: The Hub cannot be reached, refuses, or has no such revision.
        """

        def read() -> bool:
            try:
                info = self._api.repo_info(self.id, repo_type=self.kind, revision=revision)
            except RepositoryNotFoundError:
                self.head, self.files, self.tags = "", {}, {}
                return False
            refs = self._api.list_repo_refs(self.id, repo_type=self.kind)
            tree = self._api.list_repo_tree(
                self.id, repo_type=self.kind, revision=info.sha, recursive=True
            )
            self.files = {entry.path: entry for entry in tree if isinstance(entry, RepoFile)}
            self.tags = {tag.name: tag.target_commit for tag in refs.tags}
            self.head, self.private = str(info.sha), bool(info.private)
            return True

        with self.explained():
            return patiently(read)

    def read(self, path: str) -> bytes:
        """Return the content of a file at ``head``."""

        def download() -> str:
            return self._api.hf_hub_download(self.id, path, repo_type=self.kind, revision=self.head)

        with self.explained():
            return Path(patiently(download)).read_bytes()

    def check_token(self) -> None:
        """Make sure early that there is a token, and that the Hub knows it.

        Raises:
            PublishError: It is not so.
        """
        if get_token() is None:
            raise PublishError(
                "expected a token of the Hub, found none. Run hf auth login with a token that may "
                "write, or set HF_TOKEN."
            )
        with self.explained():
            patiently(self._api.whoami)

    def prepare(self, *, private: bool, space_sdk: str | None = None) -> None:
        """Make sure that there is a repository.

        Raises:
            PublishError: It may not be made; it is public where a private one was asked for; a
                repository of another type has the name.
        """
        if not self.look():
            with self.explained():
                patiently(self._refuse_other_types)
                patiently(
                    lambda: self._api.create_repo(
                        self.id,
                        repo_type=self.kind,
                        private=private or None,
                        space_sdk=space_sdk,
                        exist_ok=True,
                    )
                )
            self.look()
        if private and not self.private:
            raise PublishError(
                f"{self.id} is public, and --private was given. Make it private on the Hub first, "
                "leave --private out, or give another name."
            )

    def _refuse_other_types(self) -> None:
        for kind in ("model", "dataset", "space"):
            if kind != self.kind and self._api.repo_exists(self.id, repo_type=kind):
                raise PublishError(
                    f"{self.id} is a {kind} on the Hub, not a {self.kind}. Give another name, or "
                    f"make a {self.kind} of that name first, if two of one name are what you want."
                )

    def upload(self, files: Mapping[str, Content]) -> None:
        """Upload large files ahead of their commit; what the Hub has already is not sent again."""
        additions = [self._addition(path, content) for path, content in files.items()]
        with self.explained(bars=True), self._refusals():
            patiently(
                lambda: self._api.preupload_lfs_files(
                    self.id, additions, repo_type=self.kind, free_memory=False
                )
            )

    def commit(self, message: str, plan: Callable[[], Target]) -> str:
        """Make one commit; where somebody else was quicker, look again and plan anew.

        Args:
            message: Of the commit.
            plan: Says what is wanted, seen from ``head`` and ``files``.

        Returns:
            The commit that main is at then: the new one, or the head if nothing had to change.
        """

        def once() -> str:
            self.look()
            target = plan()
            changed = {c.path for c in self.changes(target) if c.what in ("new", "changed")}
            operations: list[CommitOperationAdd | CommitOperationDelete] = [
                *(CommitOperationDelete(path) for path in target.deleted),
                *(self._addition(path, target.files[path]) for path in sorted(changed)),
            ]
            if not operations:
                return self.head
            done = self._api.create_commit(
                self.id,
                operations,
                commit_message=message,
                repo_type=self.kind,
                revision=MAIN,
                parent_commit=self.head,
            )
            return str(done.oid)

        with self.explained(), self._refusals():
            return patiently(once)

    def changes(self, target: Target) -> list[Change]:
        """Compare what is wanted with what is there."""
        found = []
        for path, content in target.files.items():
            size = content.stat().st_size if isinstance(content, Path) else len(content)
            known = self.files.get(path)
            what: Literal["new", "changed", "same"] = "new"
            if known is not None:
                what = "same" if self._is_same(known, content, size) else "changed"
            found.append(Change(path, size, what))
        found += [Change(path, self.files[path].size, "deleted") for path in target.deleted]
        return found

    def check_tag(self, tag: str | None, target: Target) -> None:
        """Refuse a tag that names other content already.

        Raises:
            PublishError: It does.
        """
        if tag is None or tag not in self.tags:
            return
        unchanged = all(change.what == "same" for change in self.changes(target))
        if self.tags[tag] != self.head or not unchanged:
            raise PublishError(
                f"{self.id} has a tag {tag} already, and it names other content. Tags stay what "
                "they are: give the next version. Nothing was sent."
            )

    def tag(self, tag: str, commit: str) -> None:
        """Give a commit a name; done already is well done."""

        def once() -> None:
            self.look()
            if self.tags.get(tag) == commit:
                return
            if tag in self.tags:
                # Since it was looked for before the upload.
                raise PublishError(
                    f"{self.id}: the data was sent, but somebody else has made a tag {tag} in the "
                    "meantime, of another commit. Give another one with --tag."
                )
            self._api.create_tag(self.id, repo_type=self.kind, tag=tag, revision=commit)

        with self.explained():
            patiently(once)

    def differences(self, commit: str, files: Mapping[str, Content]) -> list[str]:
        """Return what of some files is not, at a commit, what was sent, by the Hub's own hashes."""
        self.look(commit)
        return [c.path for c in self.changes(Target(files)) if c.what != "same"]

    def _is_same(self, known: RepoFile, content: Content, size: int) -> bool:
        if known.size != size:
            return False
        if known.lfs is not None:
            return known.lfs.sha256 == self._sha256(content)
        data = content.read_bytes() if isinstance(content, Path) else content
        # Of git: the address of a blob, not a safeguard.
        digest = sha1(b"blob %d\0" % size + data, usedforsecurity=False)
        return known.blob_id == digest.hexdigest()

    def _addition(self, path: str, content: Content) -> CommitOperationAdd:
        addition = CommitOperationAdd(path, content)
        if isinstance(content, Path):
            # Known already: a large file is not read once more for it.
            addition.upload_info.sha256 = bytes.fromhex(self._sha256(content))
        return addition

    def _sha256(self, content: Content) -> str:
        if isinstance(content, bytes):
            return sha256(content).hexdigest()
        if content not in self._digests:
            with content.open("rb") as file:
                self._digests[content] = file_digest(file, "sha256").hexdigest()
        return self._digests[content]

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """Turn what the client makes of content that the Hub refuses into a message of ours."""
        try:
            yield
        except ValueError as error:
            if isinstance(error, HfHubHTTPError):
                raise
            said = " ".join(ADDRESS.sub("..", str(error)).split())[:300]
            raise PublishError(f"{self.id}: the Hub refuses what is to be sent. {said}") from error

    @contextmanager
    def explained(self, *, bars: bool = False) -> Iterator[None]:
        """Turn what the Hub's client raises into one message, without addresses or tokens.

        Args:
            bars: Let the client draw progress bars, if somebody is there to see them.
        """
        try:
            with _quiet(bars=bars and sys.stderr.isatty()):
                yield
        except LocalEntryNotFoundError as error:
            # What hf_hub_download makes of any failure; the cause says more.
            raise PublishError(_explain(_root(error), self.id, self.kind)) from error
        except _FAILURES as error:
            raise PublishError(_explain(_root(error), self.id, self.kind)) from error


def check_tag_name(tag: str | None) -> None:
    """Refuse what is no name for a tag.

    Raises:
        PublishError: It is none.
    """
    if tag is not None and not TAG.fullmatch(tag):
        raise PublishError(f"--tag expects a name such as v1.0.0; got {tag!r}.")


def patiently(call: Callable[[], T]) -> T:
    """Call, and call again after conflicts, rate limits, faults of the server, lost connections.

    Raises:
        HfHubHTTPError: The Hub refuses, or the fault does not pass.
        TransportError: The Hub cannot be reached.
    """
    for n, wait_s in enumerate(WAITS_S):
        try:
            return call()
        except (*_FAILURES, LocalEntryNotFoundError) as error:
            cause = _root(error)
            if isinstance(cause, HfHubHTTPError):
                if cause.response.status_code not in RETRIED:
                    raise
                asked_s = _asked_to_wait_s(cause.response)
                wait_s = wait_s if asked_s is None else asked_s
                if wait_s > LONGEST_WAIT_S:
                    raise
            elif (
                isinstance(cause, OfflineModeIsEnabled | LocalEntryNotFoundError)
                or n == UNREACHABLE_TRIES
            ):
                raise
        _log.warning("%s; trying again in %d s", _in_short(cause), wait_s)
        time.sleep(wait_s)
    return call()


def _in_short(error: BaseException) -> str:
    if isinstance(error, HfHubHTTPError):
        return f"the Hub answered {error.response.status_code}"
    return f"the connection to the Hub failed ({type(error).__name__})"


def _asked_to_wait_s(response: httpx2.Response) -> int | None:
    after = response.headers.get("Retry-After", "")
    if after.isdecimal():
        return int(after)
    limits = parse_ratelimit_headers(response.headers)
    if response.status_code == 429 and limits is not None and limits.remaining == 0:
        return int(limits.reset_in_seconds) + 1
    return None


def _root(error: BaseException) -> BaseException:
    """Return the failure of the Hub that an error of the client wraps, if there is one."""
    inner: BaseException | None = error
    while inner is not None:
        if _is_of_the_hub(inner):
            return inner
        inner = inner.__cause__
    return error


def _is_of_the_hub(error: BaseException) -> bool:
    return isinstance(error, HfHubHTTPError | httpx2.TransportError | OfflineModeIsEnabled)


def _explain(error: BaseException, repo_id: str, kind: str) -> str:
    if isinstance(error, OfflineModeIsEnabled):
        return f"{repo_id}: HF_HUB_OFFLINE is set, so the Hub cannot be asked. Unset it."
    if not isinstance(error, HfHubHTTPError):
        said = " ".join(ADDRESS.sub("..", str(error)).split())[:200]
        return (
            f"{repo_id}: the connection to {constants.ENDPOINT} fails ({type(error).__name__}: "
            f"{said}). Run the command again: what was sent is not sent twice."
        )
    status = error.response.status_code
    said = f" The Hub says: {error.server_message}" if error.server_message else ""
    if isinstance(error, RevisionNotFoundError):
        return f"{repo_id} has no such commit, tag or branch.{said}"
    if isinstance(error, RepositoryNotFoundError):
        return (
            f"{repo_id}: there is no such {kind} on the Hub, or it is private and not for this "
            "token. Check the name, or give a token that may see it: hf auth login, or HF_TOKEN."
        )
    if status == 401:
        return (
            f"{repo_id}: the Hub does not accept this token. Run hf auth login again, or set "
            f"HF_TOKEN.{said}"
        )
    if status == 403:
        return (
            f"{repo_id}: this token may not write there: the namespace "
            f"{repo_id.split('/')[0]!r} is not yours, or the token has no write permission.{said}"
        )
    asked_s = _asked_to_wait_s(error.response)
    if status == 429 and asked_s is not None:
        return f"{repo_id}: the Hub's rate limit is reached, and it asks to wait {asked_s} s."
    return (
        f"{repo_id}: the Hub answered {status}, and waiting did not help.{said} Run the command "
        "again later: what was sent is not sent twice."
        if status in RETRIED
        else f"{repo_id}: the Hub answered {status}.{said}"
    )


@contextmanager
def _quiet(*, bars: bool) -> Iterator[None]:
    """Keep `huggingface_hub` from logging signed addresses, and from drawing bars unless wanted."""
    level, shown = hub_logging.get_verbosity(), not are_progress_bars_disabled()
    hub_logging.set_verbosity_error()  # type: ignore[no-untyped-call]  # of the library
    if not bars:
        disable_progress_bars()
    try:
        yield
    finally:
        hub_logging.set_verbosity(level)
        if shown and not bars:
            enable_progress_bars()
