"""Clients and the upstream of one gateway, in lock step: a batch of requests is sent, then a batch of responses.

Both ends run in this one thread, so that every batch is like the previous one, whatever else the machine does.
"""

import contextlib
import itertools
import select
import socket
import ssl
import struct

TIMEOUT = 60
"""Seconds to wait for anything; a gateway under callgrind is a hundred times slower."""



def response(server):
    """A response of 1 KiB with that server name in its first field."""
    return (
        b"HTTP/1.1 200 OK\r\nServer: " + server + b"\r\nDate: Sat, 21 Nov 2026 12:00:00 GMT\r\n"
        b"Content-Type: text/plain\r\nContent-Length: 1024\r\nConnection: keep-alive\r\n\r\n" + b"m" * 1024)


class Rejected(Exception):
    """The gateway did not serve the request."""


class Upstream:
    """An HTTP/1.1 server that receives requests without bodies and responds on command.

    Its responses all have the same head, or each a different one from the previous.
    """

    def __init__(self, has_changing_heads=False):
        self.responses = itertools.cycle([response(b"origin"), response(b"source")][: 1 + has_changing_heads])
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port = self.listener.getsockname()[1]
        self.poll = select.poll()
        self.poll.register(self.listener, select.POLLIN)
        self.links = {}
        self.last_head = b""

    def take(self, count, early_response):
        """The connections of the next `count` requests, in the order of their arrival.

        `early_response` is called while nothing arrives: a gateway that rejects a request does not call the upstream.
        """
        taken, silent = [], 0
        while len(taken) < count:
            events = self.poll.poll(1000)
            silent = 0 if events else silent + 1
            if silent and (response := early_response()):
                raise Rejected(f"the gateway responds after {len(taken)} of {count} calls of the upstream: {response!r}")
            if silent > TIMEOUT:
                raise Rejected(f"the gateway neither responds nor calls the upstream for {TIMEOUT} s")
            for descriptor, _ in events:
                taken += self.hear(descriptor)
        return taken

    def hear(self, descriptor):
        if descriptor == self.listener.fileno():
            link = self.listener.accept()[0]
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.links[link.fileno()] = (link, bytearray())
            self.poll.register(link, select.POLLIN)
            return
        link, held = self.links[descriptor]
        received = link.recv(65536)
        held += received
        if not received:
            self.poll.unregister(link)
            del self.links[descriptor]
            link.close()
        elif held.endswith(b"\r\n\r\n"):
            self.last_head = bytes(held)
            held.clear()
            yield link

    def respond(self, links):
        for link in links:
            link.sendall(next(self.responses))

    def close(self):
        for link, _ in self.links.values():
            link.close()
        self.listener.close()


class PlainClients:
    """Keep-alive HTTP/1.1 connections, each with one request per batch; over TLS 1.3 where there is a context."""

    def __init__(self, port, count, tls=None):
        self.connections = [connect(port, tls) for _ in range(count)]
        self.tails = [b""] * count
        self.batch = count

    def send(self, requests):
        for connection, request in zip(self.connections, requests):
            connection.sendall(request)

    def early_response(self):
        """The beginning of a response that is there; it stays unread."""
        ready = select.select(self.connections, [], [], 0)[0]
        return f"{len(ready)} responses" if ready else ""

    def receive(self):
        for index, connection in enumerate(self.connections):
            held = self.tails[index]
            while (end := held.find(b"\r\n\r\n")) < 0 or len(held) < end + 4 + 1024:
                if not (received := connection.recv(65536)):
                    raise Rejected(f"the gateway closed the connection after: {held[:300]!r}")
                held += received
                if not held.startswith(b"HTTP/1.1 200 "[: len(held)]):
                    raise Rejected(f"the gateway responded: {held[:300]!r}")
            self.tails[index] = held[end + 4 + 1024:]

    def close(self):
        for connection in self.connections:
            connection.close()


class StreamClients:
    """One HTTP/2 connection, with prior knowledge, and many streams per batch.

    Header fields are indexed as by a browser: literal on the first request, a byte each on every further one.
    """

    DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
    END_STREAM, END_HEADERS, ACK = 1, 4, 1

    def __init__(self, port, streams):
        self.connection = connect(port, None)
        self.batch = streams
        self.stream = 1
        self.indexed = {}
        self.held = bytearray()
        window = 1 << 30
        settings = struct.pack(">HI", 4, window)
        self.connection.sendall(
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + self.frame(self.SETTINGS, 0, 0, settings)
            + self.frame(self.WINDOW_UPDATE, 0, 0, struct.pack(">I", window)))

    @staticmethod
    def frame(kind, flags, stream, payload):
        return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload

    def block(self, fields):
        """The fields by RFC 7541: an index where the other end has it, a literal with incremental indexing elsewhere."""
        out = bytearray()
        for field in fields:
            if field in self.indexed:
                out.append(0x80 | 62 + len(self.indexed) - 1 - self.indexed[field])
                continue
            self.indexed[field] = len(self.indexed)
            out.append(0x40)
            for text in field:
                out += integer(len(text), 7) + text
        return bytes(out)

    def send(self, requests):
        out = bytearray()
        for fields in requests:
            out += self.frame(self.HEADERS, self.END_STREAM | self.END_HEADERS, self.stream, self.block(fields))
            self.stream += 2
        self.connection.sendall(out)

    def early_response(self):
        """The first frame with which a stream got its response or ended; other frames arrive independently."""
        waiting = bytes(self.held)
        if select.select([self.connection], [], [], 0)[0]:
            waiting += self.connection.recv(1 << 16, socket.MSG_PEEK)
        while len(waiting) >= 9:
            if waiting[3] in (self.HEADERS, self.RST_STREAM, self.GOAWAY):
                return waiting[:200]
            waiting = waiting[9 + int.from_bytes(waiting[:3], "big"):]
        return b""

    def receive(self):
        finished, taken = 0, 0
        while finished < self.batch:
            while (frame := self.next_frame()) is None:
                if not (received := self.connection.recv(1 << 20)):
                    raise Rejected("the gateway closed the connection")
                self.held += received
            kind, flags, payload = frame
            if kind == self.HEADERS and payload[:1] != b"\x88":
                raise Rejected(f"the gateway responded with a status other than 200: {payload[:20]!r}")
            if kind in (self.RST_STREAM, self.GOAWAY):
                raise Rejected(f"the gateway ended a stream or the connection: {payload!r}")
            if kind == self.SETTINGS and not flags & self.ACK:
                self.connection.sendall(self.frame(self.SETTINGS, self.ACK, 0, b""))
            if kind == self.DATA:
                taken += len(payload)
            if kind in (self.DATA, self.HEADERS) and flags & self.END_STREAM:
                finished += 1
        if taken:
            self.connection.sendall(self.frame(self.WINDOW_UPDATE, 0, 0, struct.pack(">I", taken)))

    def next_frame(self):
        if len(self.held) < 9 or len(self.held) < 9 + (length := int.from_bytes(self.held[:3], "big")):
            return None
        kind, flags, payload = self.held[3], self.held[4], bytes(self.held[9:9 + length])
        del self.held[:9 + length]
        return kind, flags, payload

    def close(self):
        self.connection.close()


def integer(value, bits):
    """RFC 7541, 5.1, for the low bits of a byte whose other bits are zero."""
    limit = (1 << bits) - 1
    if value < limit:
        return bytes((value,))
    out, value = bytearray((limit,)), value - limit
    while value >= 128:
        out.append(value % 128 | 128)
        value //= 128
    return bytes(out) + bytes((value,))


def connect(port, tls):
    connection = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return tls.wrap_socket(connection, server_hostname="localhost") if tls else connection


def tls_context(authority):
    """The context of a client that speaks only TLS 1.3 and trusts one CA."""
    context = ssl.create_default_context(cafile=authority)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.set_alpn_protocols(["http/1.1"])
    return context


def converse(clients, upstream, requests, batches):
    """Sends `batches` batches; `requests` is an endless iterator."""
    for _ in range(batches):
        clients.send([next(requests) for _ in range(clients.batch)])
        links = upstream.take(clients.batch, clients.early_response)
        upstream.respond(links)
        clients.receive()


@contextlib.contextmanager
def closing(*things):
    try:
        yield
    finally:
        for thing in things:
            thing.close()
