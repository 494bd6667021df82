"""A Hub on the loopback device, close enough to the real one for its own clients.

Repositories with commits, branches, tags, private ones, tokens; files by LFS on an origin of its
own, as the real Hub has it; faults on demand; a log of all requests. Standard library only.
"""

import base64
import hashlib
import json
import re
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fnmatch import fnmatch
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import parse_qs, quote, unquote

TYPES = {"models": "model", "datasets": "dataset", "spaces": "space"}
LFS_PATTERNS = ("*.parquet", "*.arrow", "*.png", "*.jpg", "*.jpeg", "*.bin", "*.safetensors")
LFS_FROM_BYTES = 10_000_000
PART_BYTES_HEADER = "chunk_size"


class Blob(NamedTuple):
    """A file of a commit: its git object, size, and the SHA-256 of its content if it is in LFS."""

    oid: str
    size: int
    sha256: str | None


class Commit(NamedTuple):
    oid: str
    title: str
    files: dict[str, Blob]
    parent: str | None
    user: str
    date: str


@dataclass
class User:
    """Who a token belongs to; ``writes`` is False for a token that only reads."""

    name: str
    orgs: tuple[str, ...] = ()
    writes: bool = True


@dataclass
class Repo:
    kind: str
    id: str
    private: bool = False
    commits: dict[str, Commit] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    pull_requests: dict[str, str] = field(default_factory=dict)
    stored: set[str] = field(default_factory=set)

    def resolve(self, revision: str) -> str | None:
        if revision in self.commits:
            return revision
        name = revision.removeprefix("refs/heads/")
        for refs in (self.branches, self.tags, self.pull_requests):
            if name in refs:
                return refs[name]
        return None

    @property
    def files(self) -> dict[str, Blob]:
        """The files of main."""
        return self.commits[self.branches["main"]].files


@dataclass
class Fault:
    """What goes wrong with requests that match, and how often.

    Attributes:
        method: Of the request.
        pattern: Regular expression that is searched for in its path.
        status: Answered instead of doing anything; 0 closes the connection without an answer.
        times: How often.
        after: How many matching requests pass first.
        headers: Of the answer.
        drop_after: The answer is given, but the connection is closed after so many bytes of it.
        lose_answer: The request is carried out, but the connection is closed before the answer.
        before: Called before the request is carried out, instead of any of the above.
    """

    method: str
    pattern: str
    status: int | None = None
    times: int = 1
    after: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    drop_after: int | None = None
    lose_answer: bool = False
    before: Callable[[], None] | None = None


class Request(NamedTuple):
    method: str
    path: str
    status: int
    sent: int
    received: int
    token: str | None


class Refused(Exception):
    """An answer other than success."""

    def __init__(self, status: int, message: str, code: str = "", **body: str) -> None:
        super().__init__(message)
        self.status, self.message, self.code, self.body = status, message, code, body


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address) -> None:
        """Say nothing where a client is gone: some are killed on purpose."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class Hub:
    """The state of the Hub, and its two servers."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.faults: list[Fault] = []
        self.log: list[Request] = []
        self.page_size = 1000
        self.part_bytes = 0  # larger files come in parts of so many bytes; 0: never
        self.users: dict[str, User] = {}
        self.repos: dict[tuple[str, str], Repo] = {}
        self.blobs: dict[str, bytes] = {}  # git oid -> content of regular files
        self.objects: dict[str, bytes] = {}  # SHA-256 -> content of LFS files
        self.parts: dict[tuple[str, int], bytes] = {}
        # Where hf_xet keeps its chunks, if at all; and SHA-256 -> its own hash of that content.
        self.xet_folder = ""
        self.xet_hashes: dict[str, str] = {}
        self._servers = [
            _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": self, "app": a}))
            for a in (_API, _STORAGE)
        ]
        self.endpoint, self.storage = (
            f"http://127.0.0.1:{server.server_address[1]}" for server in self._servers
        )
        for server in self._servers:
            threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()

    def repo(self, kind: str, repo_id: str) -> Repo:
        return self.repos[kind, repo_id]

    def read(self, kind: str, repo_id: str, path: str, revision: str = "main") -> bytes:
        """Return the content of a file."""
        repo = self.repos[kind, repo_id]
        return self.content(repo.commits[repo.resolve(revision)].files[path])

    def content(self, blob: Blob) -> bytes:
        return self.objects[blob.sha256] if blob.sha256 else self.blobs[blob.oid]

    def fail(self, method: str, pattern: str, status: int | None = None, **more) -> Fault:
        """Let requests fail from now on; see ``Fault``."""
        fault = Fault(method, pattern, status, **more)
        with self.lock:
            self.faults.append(fault)
        return fault

    def requests(self, method: str, pattern: str, since: int = 0) -> list[Request]:
        """Return the logged requests that match."""
        return [r for r in self.log[since:] if r.method == method and re.search(pattern, r.path)]

    def fault_of(self, method: str, path: str) -> Fault | None:
        with self.lock:
            for fault in self.faults:
                if fault.method == method and fault.times and re.search(fault.pattern, path):
                    if fault.after:
                        fault.after -= 1
                        continue
                    fault.times -= 1
                    return fault
        return None

    def put(self, kind: str, repo_id: str, files: dict[str, bytes], title: str = "by hand") -> str:
        """Commit regular files to main, as somebody else would in between."""
        repo = self.repos[kind, repo_id]
        changed = {path: self.regular(data) for path, data in files.items()}
        return self.commit(repo, "main", repo.files | changed, title, "somebody")

    def regular(self, data: bytes) -> Blob:
        oid = _git_oid(data)
        self.blobs[oid] = data
        return Blob(oid, len(data), None)

    def commit(self, repo: Repo, branch: str, files: dict[str, Blob], title: str, user: str) -> str:
        parent = repo.branches.get(branch)
        seed = f"{repo.kind} {repo.id} {len(repo.commits)} {title} {sorted(files.items())}"
        oid = hashlib.sha1(seed.encode()).hexdigest()
        date = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        repo.commits[oid] = Commit(oid, title, files, parent, user, date)
        refs = repo.pull_requests if branch.startswith("refs/pr/") else repo.branches
        refs[branch] = oid
        return oid


def _git_oid(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def _pointer(sha256: str, size: int) -> bytes:
    return (
        f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {size}\n".encode()
    )


_API: list[tuple[str, re.Pattern[str], Callable]] = []
_STORAGE: list[tuple[str, re.Pattern[str], Callable]] = []
_REPO = r"/api/(?P<kinds>models|datasets|spaces)/(?P<id>[^/]+/[^/]+)"
_FILES = r"/(?:(?P<kinds>datasets|spaces)/)?(?P<id>[^/]+/[^/]+)"


def _route(app: list, method: str, pattern: str) -> Callable[[Callable], Callable]:
    def add(function: Callable) -> Callable:
        app.append((method, re.compile(pattern + "$"), function))
        return function

    return add


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    hub: Hub
    app: list

    def log_message(self, *args) -> None:
        pass

    def __getattr__(self, name: str):
        if name.startswith("do_"):
            return lambda: self._handle(name.removeprefix("do_"))
        raise AttributeError(name)

    def _handle(self, method: str) -> None:
        self.close_connection = False
        self.sent = 0
        status = 0
        self.data = self._read_body()
        self.fault = self.hub.fault_of(method, self.path)
        if self.fault and self.fault.before:
            self.fault.before()
            self.fault = None
        try:
            status = self._answer(method)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        finally:
            request = Request(method, self.path, status, self.sent, len(self.data), self.token)
            self.hub.log.append(request)

    def _answer(self, method: str) -> int:
        fault = self.fault
        if fault and fault.status == 0:
            self.close_connection = True
            return 0
        try:
            if fault and fault.status:
                raise Refused(fault.status, "fault on demand")
            path, _, query = self.path.partition("?")
            self.query = {k: v[-1] for k, v in parse_qs(query, keep_blank_values=True).items()}
            # The clients ask HEAD where the answer to GET has a body that they do not want.
            wanted = "GET" if method == "HEAD" else method
            for known, pattern, function in self.app:
                found = pattern.match(path)
                if known == wanted and found:
                    with self.hub.lock:
                        answer = function(self, **found.groupdict())
                    break
            else:
                raise Refused(404, f"no such address: {method} {path}")
        except Refused as refused:
            body = json.dumps({"error": refused.message} | refused.body).encode()
            headers = {"X-Error-Message": refused.message.replace("\n", " ")}
            if refused.code:
                headers["X-Error-Code"] = refused.code
            if refused.body.get("commit"):
                headers["X-Repo-Commit"] = refused.body["commit"]
            return self._send(refused.status, body, headers, method)
        if fault and fault.lose_answer:
            self.close_connection = True
            return 0
        if isinstance(answer, tuple):
            return self._send(*answer, method)
        return self._send(200, json.dumps(answer).encode(), {}, method)

    def _send(self, status: int, body: bytes, headers: dict[str, str], method: str) -> int:
        if self.fault:
            headers = headers | self.fault.headers
        self.send_response(status)
        headers = {"Content-Type": "application/json"} | headers
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if method == "HEAD":
            return status
        if self.fault and self.fault.drop_after is not None:
            body = body[: self.fault.drop_after]
            self.close_connection = True
        self.wfile.write(body)
        self.sent = len(body)
        return status

    def _read_body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            parts = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    @property
    def token(self) -> str | None:
        return (self.headers.get("Authorization") or "").removeprefix("Bearer ") or None

    def json(self):
        return json.loads(self.data)

    def user(self) -> User | None:
        if self.token is None:
            return None
        if self.token not in self.hub.users:
            raise Refused(401, "Invalid credentials in Authorization header")
        return self.hub.users[self.token]

    def writer(self, namespace: str, what: str) -> User:
        user = self.user()
        if user is None:
            raise Refused(401, "Invalid username or password.")
        if not user.writes or namespace not in (user.name, *user.orgs):
            raise Refused(
                403, f"You don't have the rights to {what} under the namespace {namespace!r}"
            )
        return user

    def repo(self, kinds: str | None, repo_id: str) -> Repo:
        user = self.user()
        repo = self.hub.repos.get((TYPES[kinds or "models"], unquote(repo_id)))
        namespace = repo_id.split("/")[0]
        if repo is None or (
            repo.private and (user is None or namespace not in (user.name, *user.orgs))
        ):
            # Who may not see a repository is not told that it is there.
            raise Refused(404 if user else 401, "Repository not found", "RepoNotFound")
        return repo

    def commit_of(self, repo: Repo, revision: str) -> Commit:
        oid = repo.resolve(unquote(revision))
        if oid is None:
            message = f"Invalid rev id: {unquote(revision)}"
            raise Refused(404, message, "RevisionNotFound")
        return repo.commits[oid]


# What is asked about an account and about cards


@_route(_API, "GET", "/api/whoami-v2")
def _whoami(http: _Handler):
    user = http.user()
    if user is None:
        raise Refused(401, "Invalid username or password.")
    role = "write" if user.writes else "read"
    return {
        "type": "user",
        "name": user.name,
        "fullname": user.name,
        "orgs": [{"name": name, "type": "org"} for name in user.orgs],
        "auth": {"type": "access_token", "accessToken": {"displayName": "test", "role": role}},
    }


@_route(_API, "POST", "/api/validate-yaml")
def _validate(http: _Handler):
    content = http.json()["content"]
    if content.startswith("---\n") and "\n---" not in content[4:]:
        body = json.dumps({"errors": [{"message": "the head never ends"}], "warnings": []})
        return 400, body.encode(), {}
    return {"errors": [], "warnings": []}


# What is asked about a repository


def _info(repo: Repo, commit: Commit):
    siblings = [{"rfilename": path, "size": b.size} for path, b in sorted(commit.files.items())]
    return {
        "_id": hashlib.sha1(repo.id.encode()).hexdigest()[:24],
        "id": repo.id,
        "author": repo.id.split("/")[0],
        "sha": commit.oid,
        "private": repo.private,
        "gated": False,
        "disabled": False,
        "tags": [],
        "downloads": 0,
        "likes": 0,
        "createdAt": "2026-01-01T00:00:00.000Z",
        "lastModified": commit.date,
        "cardData": {},
        "siblings": siblings,
    }


@_route(_API, "GET", r"/api/(?P<kinds>models|datasets|spaces)")
def _list(http: _Handler, kinds: str):
    found = [r for r in http.hub.repos.values() if r.kind == TYPES[kinds] and not r.private]
    return [_info(repo, repo.commits[repo.branches["main"]]) for repo in found]


@_route(_API, "GET", _REPO + r"(?:/revision/(?P<revision>[^/]+))?")
def _repo_info(http: _Handler, kinds: str, id: str, revision: str | None):
    repo = http.repo(kinds, id)
    return _info(repo, http.commit_of(repo, revision or "main"))


@_route(_API, "GET", _REPO + "/refs")
def _refs(http: _Handler, kinds: str, id: str):
    repo = http.repo(kinds, id)

    def listed(refs: dict[str, str], prefix: str):
        return [
            {"name": name, "ref": prefix + name, "targetCommit": oid} for name, oid in refs.items()
        ]

    return {
        "branches": listed(repo.branches, "refs/heads/"),
        "tags": listed(repo.tags, "refs/tags/"),
        "converts": [],
        "pullRequests": listed(repo.pull_requests, ""),
    }


@_route(_API, "GET", _REPO + "/commits/(?P<revision>[^/]+)")
def _commits(http: _Handler, kinds: str, id: str, revision: str):
    repo = http.repo(kinds, id)
    commit: Commit | None = http.commit_of(repo, revision)
    found = []
    while commit:
        found.append(
            {
                "id": commit.oid,
                "title": commit.title,
                "message": "",
                "date": commit.date,
                "authors": [{"user": commit.user}],
            }
        )
        commit = repo.commits.get(commit.parent or "")
    return found


def _entry(path: str, blob: Blob):
    entry = {"type": "file", "path": path, "oid": blob.oid, "size": blob.size}
    if blob.sha256:
        pointer = len(_pointer(blob.sha256, blob.size))
        entry["lfs"] = {"oid": blob.sha256, "size": blob.size, "pointerSize": pointer}
    return entry


def _directory(path: str):
    oid = hashlib.sha1(path.encode()).hexdigest()
    return {"type": "directory", "path": path, "oid": oid, "size": 0}


@_route(_API, "GET", _REPO + "/tree/(?P<revision>[^/]+)(?:/(?P<folder>.*))?")
def _tree(http: _Handler, kinds: str, id: str, revision: str, folder: str | None):
    commit = http.commit_of(http.repo(kinds, id), revision)
    recursive = http.query.get("recursive", "").lower() in ("true", "1")
    top = unquote(folder or "").strip("/")
    prefix = f"{top}/" if top else ""
    entries = {}
    for path, blob in commit.files.items():
        if not path.startswith(prefix):
            continue
        parts = path[len(prefix) :].split("/")
        for i in range(1, len(parts) if recursive else min(len(parts), 2)):
            name = prefix + "/".join(parts[:i])
            entries[name] = _directory(name)
        if recursive or len(parts) == 1:
            entries[path] = _entry(path, blob)
    if top and not entries:
        raise Refused(404, f"{top} does not exist on {revision}", "EntryNotFound")
    listed = [entries[path] for path in sorted(entries)]
    start = int(http.query.get("cursor", 0))
    end = start + http.hub.page_size
    headers = {}
    if end < len(listed):
        path = http.path.partition("?")[0]
        rest = "&".join(f"{k}={quote(v)}" for k, v in http.query.items() if k != "cursor")
        url = f"{http.hub.endpoint}{path}?{rest}&cursor={end}"
        headers["Link"] = f'<{url}>; rel="next"'
    return 200, json.dumps(listed[start:end]).encode(), headers


@_route(_API, "POST", _REPO + "/paths-info/(?P<revision>[^/]+)")
def _paths_info(http: _Handler, kinds: str, id: str, revision: str):
    commit = http.commit_of(http.repo(kinds, id), revision)
    if "json" in http.headers.get("Content-Type", ""):
        paths = http.json()["paths"]
    else:
        paths = parse_qs(http.data.decode())["paths"]
    found = []
    for path in paths:
        if path in commit.files:
            found.append(_entry(path, commit.files[path]))
        elif any(name.startswith(f"{path}/") for name in commit.files):
            found.append(_directory(path))
    return found


@_route(_API, "GET", _FILES + "/resolve/(?P<revision>[^/]+)/(?P<path>.+)")
def _resolve(http: _Handler, kinds: str | None, id: str, revision: str, path: str):
    repo = http.repo(kinds, id)
    commit = http.commit_of(repo, revision)
    blob = commit.files.get(unquote(path))
    if blob is None:
        raise Refused(404, "Entry not found", "EntryNotFound", commit=commit.oid)
    headers = {"X-Repo-Commit": commit.oid, "ETag": f'"{blob.sha256 or blob.oid}"'}
    if blob.sha256:
        headers |= {
            "X-Linked-Size": str(blob.size),
            "X-Linked-ETag": f'"{blob.sha256}"',
            "Location": f"{http.hub.storage}/lfs/{blob.sha256}?signature=of-the-hub",
        }
        if http.hub.xet_folder and blob.sha256 in http.hub.xet_hashes:
            address = (
                f"{http.hub.endpoint}/api/{kinds or 'models'}/{id}/xet-read-token/{commit.oid}"
            )
            headers["X-Xet-Hash"] = http.hub.xet_hashes[blob.sha256]
            headers["Link"] = f'<{address}>; rel="xet-auth"'
        return 302, b"", headers
    return _ranged(http, http.hub.content(blob), headers)


def _ranged(http: _Handler, data: bytes, headers: dict[str, str]):
    headers |= {"Content-Type": "application/octet-stream", "Accept-Ranges": "bytes"}
    found = re.fullmatch(r"bytes=(\d*)-(\d*)", http.headers.get("Range", ""))
    if not found or found.groups() == ("", ""):
        return 200, data, headers
    first, last = found.groups()
    start = int(first) if first else max(0, len(data) - int(last))
    end = min(int(last), len(data) - 1) if first and last else len(data) - 1
    if start >= len(data):
        return 416, b"", headers | {"Content-Range": f"bytes */{len(data)}"}
    headers["Content-Range"] = f"bytes {start}-{end}/{len(data)}"
    return 206, data[start : end + 1], headers


# What changes a repository


@_route(_API, "POST", "/api/repos/create")
def _create(http: _Handler):
    asked = http.json()
    kind = asked.get("type") or "model"
    user = http.user()
    namespace = asked.get("organization") or (user.name if user else "")
    http.writer(namespace, f"create a {kind}")
    repo_id = f"{namespace}/{asked['name']}"
    prefix = "" if kind == "model" else f"{kind}s/"
    url = f"{http.hub.endpoint}/{prefix}{repo_id}"
    if (kind, repo_id) in http.hub.repos:
        raise Refused(409, f"You already created this {kind} repo", url=url)
    private = bool(asked.get("private")) or asked.get("visibility") == "private"
    repo = http.hub.repos[kind, repo_id] = Repo(kind, repo_id, private)
    attributes = "".join(f"{p} filter=lfs diff=lfs merge=lfs -text\n" for p in LFS_PATTERNS)
    files = {".gitattributes": http.hub.regular(attributes.encode())}
    http.hub.commit(repo, "main", files, "initial commit", "hub")
    return {"url": url, "name": repo_id, "id": repo_id}


@_route(_API, "DELETE", "/api/repos/delete")
def _delete(http: _Handler):
    asked = http.json()
    http.writer(asked.get("organization") or http.user().name, "delete a repository")
    kind = asked.get("type") or "model"
    del http.hub.repos[kind, f"{asked['organization']}/{asked['name']}"]
    return {}


def _may_write(http: _Handler, kinds: str | None, repo_id: str) -> tuple[Repo, User]:
    repo = http.repo(kinds, repo_id)
    return repo, http.writer(repo_id.split("/")[0], "write to a repository")


@_route(_API, "POST", _REPO + "/preupload/(?P<revision>[^/]+)")
def _preupload(http: _Handler, kinds: str, id: str, revision: str):
    repo, _ = _may_write(http, kinds, id)
    files = http.commit_of(repo, revision).files
    answer = []
    for asked in http.json()["files"]:
        path, size = asked["path"], asked["size"]
        sample = base64.b64decode(asked["sample"])
        large = size > LFS_FROM_BYTES or b"\0" in sample
        lfs = large or any(fnmatch(path, pattern) for pattern in LFS_PATTERNS)
        known = files.get(path)
        oid = known and (known.sha256 if lfs else known.oid)
        mode = "lfs" if lfs else "regular"
        answer.append({"path": path, "uploadMode": mode, "shouldIgnore": False, "oid": oid})
    return {"files": answer}


@_route(_API, "POST", _FILES + r"\.git/info/lfs/objects/batch")
def _batch(http: _Handler, kinds: str | None, id: str):
    repo, _ = _may_write(http, kinds, id)
    hub, objects = http.hub, []
    for asked in http.json()["objects"]:
        oid, size = asked["oid"], asked["size"]
        answer = {"oid": oid, "size": size}
        objects.append(answer)
        if oid in repo.stored:
            continue
        prefix = f"{kinds}/" if kinds else ""
        upload = {
            "href": f"{hub.storage}/put/{prefix}{id}/{oid}?signature=of-the-hub",
            "header": {},
        }
        if hub.part_bytes and size > hub.part_bytes:
            n = -(-size // hub.part_bytes)
            upload["header"] = {PART_BYTES_HEADER: str(hub.part_bytes)} | {
                str(i + 1): f"{hub.storage}/part/{oid}/{i + 1}?signature=of-the-hub"
                for i in range(n)
            }
            upload["href"] = f"{hub.storage}/complete/{prefix}{id}/{oid}"
        verify = {"href": f"{hub.endpoint}/{prefix}{id}/lfs-verify"}
        answer["actions"] = {"upload": upload, "verify": verify}
    return {"transfer": "basic", "objects": objects}


@_route(_API, "POST", _FILES + "/lfs-verify")
def _verify(http: _Handler, kinds: str | None, id: str):
    repo, _ = _may_write(http, kinds, id)
    asked = http.json()
    if asked["oid"] not in repo.stored or len(http.hub.objects[asked["oid"]]) != asked["size"]:
        raise Refused(404, "the object is not stored")
    return {}


@_route(_API, "POST", _REPO + "/commit/(?P<revision>[^/]+)")
def _commit(http: _Handler, kinds: str, id: str, revision: str):
    repo, user = _may_write(http, kinds, id)
    hub, branch = http.hub, unquote(revision)
    head = http.commit_of(repo, revision)
    files = dict(head.files)
    title = ""
    for line in http.data.splitlines():
        item = json.loads(line)
        value = item["value"]
        match item["key"]:
            case "header":
                title = value["summary"]
                if value.get("parentCommit") not in (None, head.oid):
                    message = "A commit has happened since. Please refresh and try again."
                    raise Refused(412, message)
            case "file":
                files[value["path"]] = hub.regular(base64.b64decode(value["content"]))
            case "lfsFile":
                oid = value["oid"]
                if hub.xet_folder and oid in hub.xet_hashes:
                    repo.stored.add(oid)
                if oid not in repo.stored:
                    raise Refused(400, f"Invalid LFS pointer: {oid} is not stored")
                size = len(hub.objects[oid])
                files[value["path"]] = Blob(_git_oid(_pointer(oid, size)), size, oid)
            case "deletedFile":
                if files.pop(value["path"], None) is None:
                    raise Refused(404, "A file with this name doesn't exist", "EntryNotFound")
            case "deletedFolder":
                folder = value["path"].rstrip("/") + "/"
                files = {p: b for p, b in files.items() if not p.startswith(folder)}
    answer: dict[str, object] = {"success": True, "hookOutput": ""}
    if http.query.get("create_pr"):
        branch = f"refs/pr/{len(repo.pull_requests) + 1}"
        answer["pullRequestUrl"] = f"{hub.endpoint}/{kinds}/{id}/discussions/1"
    elif branch not in repo.branches and branch not in repo.pull_requests:
        raise Refused(404, f"Invalid rev id: {branch}", "RevisionNotFound")
    oid = hub.commit(repo, branch, files, title, user.name)
    url = f"{hub.endpoint}/{kinds}/{id}/commit/{oid}"
    return answer | {"commitOid": oid, "commitUrl": url}


@_route(_API, "POST", _REPO + "/branch/(?P<name>[^/]+)")
def _branch(http: _Handler, kinds: str, id: str, name: str):
    repo, _ = _may_write(http, kinds, id)
    if unquote(name) in repo.branches:
        raise Refused(409, "Reference already exists")
    start = (http.json() if http.data else {}).get("startingPoint") or "main"
    repo.branches[unquote(name)] = http.commit_of(repo, quote(start, safe="")).oid
    return {}


@_route(_API, "POST", _REPO + "/tag/(?P<revision>[^/]+)")
def _tag(http: _Handler, kinds: str, id: str, revision: str):
    repo, _ = _may_write(http, kinds, id)
    name = http.json()["tag"]
    if name in repo.tags:
        raise Refused(409, "Tag already exists")
    repo.tags[name] = http.commit_of(repo, revision).oid
    return {}


@_route(_API, "DELETE", _REPO + "/tag/(?P<name>[^/]+)")
def _delete_tag(http: _Handler, kinds: str, id: str, name: str):
    repo, _ = _may_write(http, kinds, id)
    if repo.tags.pop(unquote(name), None) is None:
        raise Refused(404, "no such tag", "RevisionNotFound")
    return {}


@_route(_API, "GET", _REPO + "/xet-(?P<what>read|write)-token/(?P<revision>[^/]+)")
def _xet_token(http: _Handler, kinds: str, id: str, what: str, revision: str):
    _ = http.repo(kinds, id) if what == "read" else _may_write(http, kinds, id)
    answer = {
        "casUrl": f"local://{http.hub.xet_folder}",
        "accessToken": "xet",
        "exp": int(time.time()) + 3600,
    }
    headers = {
        "X-Xet-Cas-Url": answer["casUrl"],
        "X-Xet-Access-Token": answer["accessToken"],
        "X-Xet-Token-Expiration": str(answer["exp"]),
    }
    return 200, json.dumps(answer).encode(), headers


# The storage, on an origin of its own: addresses are signed, and tokens have no business there


def _no_token(http: _Handler) -> None:
    if http.token:
        raise Refused(400, "Only one auth mechanism allowed")


_OBJECT = r"/(?:(?P<kinds>datasets|spaces)/)?(?P<id>[^/]+/[^/]+)/(?P<oid>[0-9a-f]{64})"


def _store(http: _Handler, kinds: str | None, repo_id: str, oid: str, data: bytes):
    if hashlib.sha256(data).hexdigest() != oid:
        raise Refused(400, "the content has another SHA-256")
    http.hub.objects[oid] = data
    http.hub.repos[TYPES[kinds or "models"], repo_id].stored.add(oid)
    return {}


@_route(_STORAGE, "PUT", "/put" + _OBJECT)
def _put(http: _Handler, kinds: str | None, id: str, oid: str):
    _no_token(http)
    return _store(http, kinds, id, oid, http.data)


@_route(_STORAGE, "PUT", "/part/(?P<oid>[0-9a-f]{64})/(?P<number>[0-9]+)")
def _put_part(http: _Handler, oid: str, number: str):
    _no_token(http)
    http.hub.parts[oid, int(number)] = http.data
    return 200, b"", {"ETag": f'"{hashlib.md5(http.data).hexdigest()}"'}


@_route(_STORAGE, "POST", "/complete" + _OBJECT)
def _complete(http: _Handler, kinds: str | None, id: str, oid: str):
    parts = [http.hub.parts[oid, part["partNumber"]] for part in http.json()["parts"]]
    return _store(http, kinds, id, oid, b"".join(parts))


@_route(_STORAGE, "GET", "/lfs/(?P<oid>[0-9a-f]{64})")
def _get_object(http: _Handler, oid: str):
    _no_token(http)
    return _ranged(http, http.hub.objects[oid], {"ETag": f'"{oid}"'})


if __name__ == "__main__":
    running = Hub()
    running.users["hf_test"] = User("tester", ("org",))
    print(f"HF_ENDPOINT={running.endpoint} HF_TOKEN=hf_test HF_HUB_DISABLE_XET=1", flush=True)
    while True:
        time.sleep(3600)
