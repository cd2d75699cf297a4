"""What talks to the gateway: a client of one request, and upstreams that keep what they got."""

import base64
import hashlib
import json
import socket
import ssl
import threading


class Request:
    """A request that a client sends to a listener."""

    def __init__(self, method, target, host, fields, body=b""):
        self.method, self.target, self.host, self.fields, self.body = method, target, host, fields, body
        self.is_chunked = False
        self.is_secure = False
        self.certificate = None

    @property
    def sent_fields(self):
        """The fields as they are sent, except for `Host` and `Connection: close`."""
        if self.is_chunked:
            return self.fields + [("Transfer-Encoding", "chunked")]
        return self.fields + ([("Content-Length", str(len(self.body)))] if self.body else [])

    def has(self, name):
        return any(key.lower() == name for key, _ in self.fields)

    @property
    def bytes(self):
        lines = [f"{self.method} {self.target} HTTP/1.1", f"Host: {self.host}"]
        lines += [f"{name}: {value}" for name, value in self.sent_fields]
        lines += ([] if self.has("connection") else ["Connection: close"]) + ["", ""]
        body = f"{len(self.body):x}\r\n".encode() + self.body + b"\r\n0\r\n\r\n" if self.is_chunked else self.body
        return "\r\n".join(lines).encode() + body

    def __str__(self):
        body = f", body of {len(self.body)} bytes" if self.body else ""
        more = f", certificate {self.certificate}" if self.certificate else ""
        scheme = "https" if self.is_secure else "http"
        return f"{self.method} {scheme}: {self.target} Host: {self.host} {self.sent_fields}{body}{more}"


class Response:
    def __init__(self, status, fields, body):
        self.status, self.fields, self.body = status, fields, body

    def values(self, name):
        return [value for key, value in self.fields if key.lower() == name]

    @property
    def id(self):
        return next(iter(self.values("x-request-id")), None)

    @property
    def document(self):
        """The body as JSON; empty for every other."""
        try:
            document = json.loads(self.body)
            return document if isinstance(document, dict) else {}
        except ValueError:
            return {}

    def __str__(self):
        return f"{self.status} {self.body[:200]!r}"


def send(connection, request):
    """Sends a request over a connection, and closes it."""
    with connection:
        connection.sendall(request.bytes)
        data = b""
        while True:
            while b"\r\n\r\n" not in data:
                more = connection.recv(65536)
                if not more:
                    return Response(0, [], data)
                data += more
            head, _, body = data.partition(b"\r\n\r\n")
            lines = head.decode().split("\r\n")
            status = int(lines[0].split(" ")[1])
            if status >= 200 or status == 101:
                break
            data = body
        fields = [tuple(part.strip() for part in line.split(":", 1)) for line in lines[1:]]
        length = next((int(value) for name, value in fields if name.lower() == "content-length"), None)
        has_body = request.method != "HEAD" and status not in (101, 204, 304)
        while has_body and (length is None or len(body) < length):
            more = connection.recv(65536)
            if not more:
                break
            body += more
        return Response(status, fields, body)


class Connector:
    """Connections to the listeners of a gateway."""

    def __init__(self, folder):
        self.contexts = {}
        for name in (None, "client", "stranger"):
            context = ssl.create_default_context(cafile=folder / "ca.pem")
            context.check_hostname = False
            if name:
                context.load_cert_chain(folder / f"{name}.pem", folder / f"{name}.key")
            self.contexts[name] = context

    def open(self, port, request):
        connection = socket.create_connection(("127.0.0.1", port), timeout=60)
        return self.contexts[request.certificate].wrap_socket(connection) if request.is_secure else connection

    @staticmethod
    def open_socket(path):
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(60)
        connection.connect(str(path))
        return connection


# Fields of a response that a route may hide or replace.
UPSTREAM_FIELDS = [
    ("Content-Type", "text/plain"), ("X-Internal", "secret"), ("Access-Control-Allow-Origin", "https://upstream.example"),
    ("Set-Cookie", "theirs=1"), ("Set-Cookie", "martlet=mct_forged"), ("Cache-Control", "max-age=5")]


class Upstreams:
    """Servers in this process, which keep each request by its `X-Request-Id`."""

    def __init__(self, count):
        self.got, self.copies = {}, {}
        self.ports = [self.listen() for _ in range(count)]

    def listen(self):
        listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        port = listener.getsockname()[1]
        threading.Thread(target=self.accept, args=(listener, port), daemon=True).start()
        return port

    def accept(self, listener, port):
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=self.serve, args=(connection, port), daemon=True).start()

    def serve(self, connection, port):
        with connection, connection.makefile("rb") as stream:
            try:
                while self.serve_one(connection, stream, port):
                    pass
            except (OSError, ValueError):
                pass

    def serve_one(self, connection, stream, port):
        line = stream.readline().decode("latin-1").split()
        if len(line) != 3:
            return False
        fields = []
        while (text := stream.readline().decode("latin-1").rstrip("\r\n")):
            name, _, value = text.partition(":")
            fields.append((name, value.strip()))
        received = {"port": port, "method": line[0], "target": line[1], "fields": fields}
        values = {name.lower(): value for name, value in fields}
        kept = self.copies if port == self.ports[-1] else self.got
        kept.setdefault(values.get("x-request-id"), []).append(received)
        if values.get("transfer-encoding") == "chunked":
            while (size := int(stream.readline().split(b";")[0], 16)):
                stream.read(size + 2)
            while stream.readline().strip():
                pass
        else:
            stream.read(int(values.get("content-length", "0")))
        if "upgrade" in values:
            key = values.get("sec-websocket-key", "") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
            accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
            lines = ["HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", f"Upgrade: {values['upgrade']}"]
            lines += [f"Sec-WebSocket-Accept: {accept}"] if values["upgrade"].lower() == "websocket" else []
            connection.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
            return False
        lines = ["HTTP/1.1 200 OK", "Content-Length: 2"] + [f"{name}: {value}" for name, value in UPSTREAM_FIELDS]
        connection.sendall(("\r\n".join(lines) + "\r\n\r\n" + ("" if line[0] == "HEAD" else "ok")).encode())
        return True
