"""A client that says of each request what came back: one response, whole or cut, a closed connection, or nothing."""

import base64
import dataclasses
import hashlib
import os
import socket
import ssl
import time

# Longer than any timeout of the gateway's configuration: after it a request waits for ever.
PATIENCE = 6


@dataclasses.dataclass
class Exchange:
    """One request, and what came of it."""

    step: str
    # What it has proved: `valid`, `wrong`, `ended`, or nothing.
    credential: str = ""
    path: str = ""
    status: int = 0
    # `response`, `cut` (a response that visibly ends early), `closed`, `silence`, `malformed`
    outcome: str = "closed"
    headers: dict = dataclasses.field(default_factory=dict)
    body: bytes = b""
    # The body that the response has to have, where that is known.
    expected: bytes | None = None
    began: float = 0.0
    ended: float = 0.0
    # What was wrong with a malformed response.
    fault: str = ""

    @property
    def is_success(self):
        return self.outcome == "response" and 200 <= self.status < 300


class Malformed(Exception):
    """The bytes are no response."""


class Stream:
    """A connection with a deadline for everything that is read."""

    def __init__(self, port, context=None, patience=PATIENCE):
        self.deadline = time.monotonic() + patience
        self.buffer = b""
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=patience)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context:
            try:
                self.socket = context.wrap_socket(self.socket, server_hostname="localhost")
            except BaseException:
                self.socket.close()
                raise

    def renew(self, patience=PATIENCE):
        self.deadline = time.monotonic() + patience

    def send(self, data):
        self.socket.settimeout(max(0.01, self.deadline - time.monotonic()))
        self.socket.sendall(data)

    def more(self):
        """:returns: whether anything came before the end."""
        self.socket.settimeout(max(0.01, self.deadline - time.monotonic()))
        data = self.socket.recv(65536)
        self.buffer += data
        return bool(data)

    def take(self, count):
        while len(self.buffer) < count:
            if not self.more():
                raise EOFError
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def take_until(self, mark):
        while mark not in self.buffer:
            if not self.more():
                raise EOFError
        taken, _, self.buffer = self.buffer.partition(mark)
        return taken

    def close(self):
        self.socket.close()


def head_of(text):
    lines = text.decode("latin-1").split("\r\n")
    version, _, rest = lines[0].partition(" ")
    if version != "HTTP/1.1" or not rest[:3].isdigit():
        raise Malformed(f"status line {lines[0][:80]!r}")
    headers = {}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if not colon or name != name.strip():
            raise Malformed(f"field {line[:80]!r}")
        headers[name.lower()] = value.strip()
    return int(rest[:3]), headers


def read_body(stream, exchange, method):
    """Reads the body into the exchange, as far as it comes."""
    headers = exchange.headers
    if method == "HEAD" or exchange.status in (204, 304) or exchange.status < 200:
        return
    if headers.get("transfer-encoding", "").lower() == "chunked":
        while size := int(stream.take_until(b"\r\n"), 16):
            exchange.body += stream.take(size)
            if stream.take(2) != b"\r\n":
                raise Malformed("a chunk without its end")
        stream.take_until(b"\r\n")
    elif "content-length" in headers:
        left = int(headers["content-length"])
        while left:
            piece = stream.take(min(left, len(stream.buffer) or 1))
            exchange.body += piece
            left -= len(piece)
    else:
        raise Malformed("neither a length nor chunks")


class Client:
    """Sends requests over one connection as long as that lasts, and records every one of them."""

    def __init__(self, port, exchanges, context=None):
        self.port, self.exchanges, self.context = port, exchanges, context
        self.stream = None

    def close(self):
        if self.stream:
            self.stream.close()
        self.stream = None

    def request(self, step, method, path, headers=(), body=None, *, credential="", expected=None, patience=PATIENCE):
        """Sends a request. :returns: its exchange, which is also recorded."""
        exchange = Exchange(step, credential, path, expected=expected, began=time.monotonic())
        self.exchanges.append(exchange)
        lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{self.port}", f"X-Step: {step}", *headers]
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        data = "\r\n".join([*lines, "", ""]).encode() + (body or b"")
        try:
            if not self.stream:
                self.stream = Stream(self.port, self.context, patience)
            self.stream.renew(patience)
            self.send(data)
            exchange.status, exchange.headers = head_of(self.stream.take_until(b"\r\n\r\n"))
            exchange.outcome = "cut"
            read_body(self.stream, exchange, method)
            exchange.outcome = "response"
        except (Malformed, ValueError) as error:
            exchange.outcome, exchange.fault = "malformed", str(error)
        except TimeoutError:
            exchange.outcome = "silence"
        except (EOFError, OSError) as error:
            exchange.fault = type(error).__name__
        exchange.ended = time.monotonic()
        if exchange.outcome != "response" or exchange.headers.get("connection", "").lower() == "close":
            self.close()
        return exchange

    def send(self, data):
        """A gateway may respond to a part of a request, and close: its response is read all the same."""
        try:
            self.stream.send(data)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def upgrade(self, step, path, headers, text, *, credential=""):
        """Opens a WebSocket whose upstream sends back what it gets, and sends one short text through it."""
        key = base64.b64encode(os.urandom(16)).decode()
        exchange = self.request(step, "GET", path, [
            *headers, "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
            f"Sec-WebSocket-Key: {key}"], credential=credential)
        if exchange.status != 101 or not self.stream:
            return exchange
        accepted = base64.b64encode(hashlib.sha1((key + WEBSOCKET).encode()).digest()).decode()
        if exchange.headers.get("sec-websocket-accept") != accepted:
            exchange.outcome, exchange.fault = "malformed", "Sec-WebSocket-Accept is of another key"
            return exchange
        exchange.expected, exchange.outcome = bytes([0x81, len(text)]) + text, "cut"
        try:
            # A mask of zeros leaves the text as it is.
            self.stream.send(bytes([0x81, 0x80 | len(text), 0, 0, 0, 0]) + text)
            while len(exchange.body) < len(exchange.expected):
                exchange.body += self.stream.take(max(1, len(self.stream.buffer)))
                if exchange.body.startswith(b"\x88"):
                    # A Close frame of the gateway says that the tunnel is over.
                    exchange.body, exchange.fault = b"", "closed by a frame"
                    break
            else:
                exchange.outcome = "response"
        except TimeoutError:
            exchange.outcome = "silence"
        except (EOFError, OSError) as error:
            exchange.fault = type(error).__name__
        exchange.ended = time.monotonic()
        self.close()
        return exchange


WEBSOCKET = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

# HTTP/2 with prior knowledge: one request, and of its response the status and the body.

DATA, HEADERS, RST_STREAM, SETTINGS, GOAWAY = 0, 1, 3, 4, 7
# The static table's entries 8 to 14.
INDEXED_STATUS = {0x88: 200, 0x89: 204, 0x8A: 206, 0x8B: 304, 0x8C: 400, 0x8D: 404, 0x8E: 500}
# Huffman's codes of the digits (RFC 7541 appendix B).
DIGITS = {"00000": "0", "00001": "1", "00010": "2", "011001": "3", "011010": "4", "011011": "5", "011100": "6",
          "011101": "7", "011110": "8", "011111": "9"}


def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def field(name, value):
    """A field that is neither indexed nor compressed; all of ours are shorter than 127 bytes, or have a longer length."""
    def text(value):
        data = value.encode()
        if len(data) < 127:
            return bytes([len(data)]) + data
        rest, prefix = len(data) - 127, bytes([127])
        while rest >= 128:
            prefix, rest = prefix + bytes([rest % 128 | 128]), rest // 128
        return prefix + bytes([rest]) + data
    return b"\0" + text(name) + text(value)


def status_of(block):
    """The status in a block of fields, whose first field it is."""
    # Before it the size of the table may be changed.
    while block and block[0] & 0xE0 == 0x20:
        block = block[1:]
    if not block:
        raise Malformed("no fields")
    if block[0] in INDEXED_STATUS:
        return INDEXED_STATUS[block[0]]
    if block[0] & 0x0F not in range(8, 15) or len(block) < 3:
        raise Malformed(f"the first field is not the status: {block[:8].hex()}")
    length, value = block[1] & 0x7F, block[2:]
    if not block[1] & 0x80:
        return int(value[:length])
    bits, digits = "".join(f"{byte:08b}" for byte in value[:length]), ""
    while len(digits) < 3:
        code = next((code for code in DIGITS if bits.startswith(code)), None)
        if not code:
            raise Malformed("the status is no number")
        digits, bits = digits + DIGITS[code], bits[len(code):]
    return int(digits)


def http2_request(port, exchanges, step, path, headers, *, credential="", expected=None):
    exchange = Exchange(step, credential, path, expected=expected, began=time.monotonic())
    exchanges.append(exchange)
    fields = [(":method", "GET"), (":scheme", "http"), (":authority", "gateway.test"), (":path", path), ("x-step", step)]
    block = b"".join(field(name, value) for name, value in [*fields, *headers])
    stream = None
    try:
        stream = Stream(port)
        stream.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0) + frame(HEADERS, 5, 1, block))
        while exchange.outcome != "response":
            head = stream.take(9)
            kind, flags, number = head[3], head[4], int.from_bytes(head[5:], "big")
            payload = stream.take(int.from_bytes(head[:3], "big"))
            if kind == SETTINGS and not flags & 1:
                stream.send(frame(SETTINGS, 1, 0))
            elif kind == GOAWAY and payload[4:8] != b"\0\0\0\0":
                exchange.fault = f"GOAWAY {payload[7]}"
            elif number != 1:
                continue
            elif kind == RST_STREAM:
                exchange.fault = f"RST_STREAM {payload[3]}"
                break
            elif kind == HEADERS:
                if not exchange.status:
                    exchange.status = status_of(payload)
                exchange.outcome = "cut"
            elif kind == DATA:
                exchange.body += payload
            if kind in (HEADERS, DATA) and flags & 1:
                exchange.outcome = "response"
    except (Malformed, ValueError) as error:
        exchange.outcome, exchange.fault = "malformed", str(error)
    except TimeoutError:
        exchange.outcome = "silence"
    except (EOFError, OSError) as error:
        exchange.fault = exchange.fault or type(error).__name__
    finally:
        if stream:
            stream.close()
    exchange.ended = time.monotonic()
    return exchange


def trusting(certificate):
    return ssl.create_default_context(cafile=certificate)
