# SPDX-License-Identifier: Apache-2.0
"""A Hugging Face server for tests, on 127.0.0.1, with a second server that plays the storage of large files."""
import hashlib
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def git_blob_sha1(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def do_HEAD(self):
        self.answer(body=False)

    def do_GET(self):
        self.answer(body=True)

    def answer(self, body):
        hub = self.server.hub
        storage = self.server is hub.storage
        with hub.lock:
            hub.requests.append(("storage" if storage else "hub", self.command, self.path, dict(self.headers)))
        if hub.redirect_to:
            return self.send(302, {"Location": hub.redirect_to})
        if storage:
            return self.send_content(self.path.rsplit("/", 1)[1], {}, body)
        if hub.old_name and self.path.startswith("/" + hub.old_name + "/"):
            return self.send(307, {"Location": self.path.replace(hub.old_name, hub.repository, 1)})
        if hub.status:
            return self.send(hub.status, {"X-Error-Message": "because of the test"})
        if hub.token and self.headers.get("Authorization") != f"Bearer {hub.token}":
            return self.send(401, {"X-Error-Message": "Invalid username or password."})
        prefix = f"/{hub.repository}/resolve/"
        if not self.path.startswith(prefix):
            return self.send(404, {"X-Error-Message": "Repository not found"})
        revision, _, name = self.path[len(prefix):].partition("/")
        if unquote(revision) not in hub.revisions or name not in hub.files:
            return self.send(404, {"X-Error-Message": "Entry not found"})
        content = hub.files[name]
        headers = {"X-Repo-Commit": hub.commit} if hub.commit else {}
        if name not in hub.large:
            headers["ETag"] = hub.etag or f'"{git_blob_sha1(content)}"'
            return self.send_content(name, headers, body)
        headers["X-Linked-ETag"] = f'"{hashlib.sha256(content).hexdigest()}"'
        headers["X-Linked-Size"] = str(len(content))
        headers["Location"] = f"http://127.0.0.1:{hub.storage.server_port}/blobs/{name}"
        return self.send(302, headers)

    def send(self, status, headers):
        content = b"a body that is not the file\n"
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def send_content(self, name, headers, body):
        hub = self.server.hub
        content = hub.sent.get(name, hub.files[name])
        first = 0
        wanted = self.headers.get("Range")
        if body and wanted and not hub.ignores_ranges:
            first = int(wanted.removeprefix("bytes=").removesuffix("-"))
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {first}-{len(content) - 1}/{len(content)}")
        else:
            self.send_response(200)
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(content) - first))
        self.end_headers()
        if body:
            self.send_pieces(name, content[first:])

    def send_pieces(self, name, content):
        hub = self.server.hub
        cut = hub.cut.pop(name, None)
        if cut is not None:
            content = content[:cut]
        piece = 65536
        for start in range(0, len(content), piece):
            self.wfile.write(content[start:start + piece])
            if name in hub.slow:
                self.wfile.flush()
                time.sleep(hub.slow[name])
        if cut is not None:
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, address):
        pass  # clients that go away are part of the tests


class FakeHub:
    def __init__(self, files, large):
        self.lock = threading.Lock()
        self.requests = []
        self.repository = "org/name"
        self.old_name = None
        self.commit = COMMIT
        self.revisions = {"main", COMMIT}
        self.files = files
        self.large = large  # names of files in the storage
        self.sent = {}  # content that is sent instead
        self.cut = {}  # file: bytes after which the connection breaks, once
        self.slow = {}  # file: seconds after each 64 KiB
        self.ignores_ranges = False
        self.status = None
        self.token = None
        self.etag = None
        self.redirect_to = None
        self.main = self.start()
        self.storage = self.start()
        self.endpoint = f"http://127.0.0.1:{self.main.server_port}"

    def start(self):
        server = Server(("127.0.0.1", 0), Handler)
        server.hub = self
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        return server

    def close(self):
        for server in (self.main, self.storage):
            server.shutdown()
            server.server_close()

    def gets(self, name):
        return [r for r in self.requests if r[0] == "storage" and r[1] == "GET" and r[2].endswith(name)]
