#!/usr/bin/env python3
"""Tests HTTP/2 servers with what RFC 9113 (and RFC 7541, RFC 8441) allows a client to send, and what it does not.

    Tests/Conformance/http2.py --target martlet=127.0.0.1:8080 [--target nginx=127.0.0.1:8081 …] [--strict martlet]

Every case opens a new connection in clear text with prior knowledge, sends hand-written bytes, and checks the result: the
status of a response, RST_STREAM, GOAWAY, the end of the connection, or nothing while a PING is still acknowledged. The servers
proxy to an upstream that responds to everything with 200 and a body of at least five bytes, reads its input, and leaves the
body of a request for `/stall` unread for a second. A `✗` is an outcome that the section does not allow; a
`·` one that it allows and that the gateway excludes for itself. `--strict NAME` makes the exit
code 1 when that target has either.
"""

import argparse
import socket
import struct
import sys
import threading
import time

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS, PADDED, WITH_PRIORITY = 1, 1, 4, 8, 32
CODES = [
    "NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED",
    "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM",
    "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
]
(NO_ERROR, PROTOCOL, INTERNAL, FLOW, TIMEOUT, CLOSED, SIZE, REFUSED, CANCEL, COMPRESSION, _, CALM, _, _) = range(14)
MAGIC = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
PROBE = b"probe\0\0\1"
PATIENCE = 2.0
AFTERMATH = 0.3

# What Huffman coding makes of the digits (RFC 7541, appendix B), to read a status.
DIGITS = {format(code, f"0{bits}b"): digit for digit, (code, bits) in enumerate(
    [(0, 5), (1, 5), (2, 5)] + [(code, 6) for code in range(0x19, 0x20)])}
STATIC_STATUS = {8: 200, 9: 204, 10: 206, 11: 304, 12: 400, 13: 404, 14: 500}


def frame(kind, flags=0, stream=0, payload=b"", length=None):
    """One frame; `length` is what the header says, where it lies."""
    size = len(payload) if length is None else length
    return struct.pack(">I", size)[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def integer(value, bits, mark=0):
    """RFC 7541, section 5.1."""
    limit = (1 << bits) - 1
    if value < limit:
        return bytes([mark | value])
    out, value = [mark | limit], value - limit
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + [value])


def text(value):
    value = value if isinstance(value, bytes) else value.encode("latin-1")
    return integer(len(value), 7) + value


def block(fields):
    """A header block of literals that no table keeps."""
    return b"".join(b"\0" + text(name) + text(value) for name, value in fields)


GET = [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "conformance.example")]
POST = [(":method", "POST")] + GET[1:]


def but(name, value, fields=None):
    """The fields of a GET with another value of one of them, or without it."""
    return [(key, value if key == name else old) for key, old in fields or GET if key != name or value is not None]


def headers(stream, fields, flags=END_STREAM | END_HEADERS):
    return frame(HEADERS, flags, stream, block(fields))


def settings(*values):
    return frame(SETTINGS, 0, 0, b"".join(struct.pack(">HI", *value) for value in values))


def window(stream, increment):
    return frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", increment))


def reset(stream, code=CANCEL):
    return frame(RST_STREAM, 0, stream, struct.pack(">I", code))


def status_of(payload):
    """The status that a header block begins with; size updates of the table may stand before it."""
    index = 0
    while payload[index] & 0xE0 == 0x20:
        index += 1
        if payload[index - 1] & 0x1F == 0x1F:
            while payload[index] & 0x80:
                index += 1
            index += 1
    first = payload[index]
    if first & 0x80:
        return STATIC_STATUS.get(first & 0x7F, 0)
    # A literal whose name stands at one of 8 to 14 in the static table, indexed or not.
    name = first & (0x3F if first & 0x40 else 0x0F)
    if not 8 <= name <= 14:
        return 0
    size, value = payload[index + 1], payload[index + 2:]
    value = value[:size & 0x7F]
    if not size & 0x80:
        return int(value)
    bits, digits, code = "".join(format(byte, "08b") for byte in value), "", ""
    for bit in bits:
        code += bit
        if code in DIGITS:
            digits, code = digits + str(DIGITS[code]), ""
    return int(digits[:3] or 0)


class Connection:
    """A client's side of one connection, and what came over it."""

    def __init__(self, address, greet=True, values=()):
        self.socket = socket.create_connection(address, timeout=PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""
        self.frames = []
        self.statuses = {}
        self.bodies = {}
        self.ended = set()
        self.resets = {}
        self.goaway = None
        self.is_closed = False
        self.answers_pings = False
        self.settings = None
        self.acknowledged = 0
        if greet:
            self.send(MAGIC + settings((1, 0), *values))
            self.wait(lambda: self.settings is not None and self.acknowledged > 0)

    def send(self, data):
        """Sends; a peer that has had enough is seen by reading."""
        try:
            self.socket.sendall(data)
        except OSError:
            pass

    def take(self, deadline):
        """Reads some bytes; `False` when there will be no more of them before the deadline."""
        left = deadline - time.monotonic()
        if left <= 0 or self.is_closed:
            return False
        self.socket.settimeout(left)
        try:
            data = self.socket.recv(65536)
        except (TimeoutError, socket.timeout):
            return False
        except OSError:
            data = b""
        if not data:
            self.is_closed = True
            return False
        self.buffer += data
        while len(self.buffer) >= 9:
            size = int.from_bytes(self.buffer[:3], "big")
            if len(self.buffer) < 9 + size:
                break
            kind, flags, stream = struct.unpack(">BBI", self.buffer[3:9])
            payload, self.buffer = self.buffer[9:9 + size], self.buffer[9 + size:]
            self.note(kind, flags, stream & 0x7FFFFFFF, payload)
        return True

    def note(self, kind, flags, stream, payload):
        self.frames.append((kind, flags, stream, payload))
        if kind == SETTINGS and flags & ACK:
            self.acknowledged += 1
        elif kind == SETTINGS:
            self.settings = {key: value for key, value in struct.iter_unpack(">HI", payload)}
            self.send(frame(SETTINGS, ACK))
        elif kind == HEADERS:
            if payload and not flags & PADDED:
                self.statuses.setdefault(stream, status_of(payload[5:] if flags & WITH_PRIORITY else payload))
        elif kind == DATA:
            self.bodies[stream] = self.bodies.get(stream, 0) + len(payload)
        elif kind == RST_STREAM:
            self.resets.setdefault(stream, struct.unpack(">I", payload)[0])
        elif kind == GOAWAY and (self.goaway is None or self.goaway == NO_ERROR):
            self.goaway = struct.unpack(">I", payload[4:8])[0]
        elif kind == PING and flags & ACK and payload == PROBE:
            self.answers_pings = True
        if kind in (HEADERS, DATA) and flags & END_STREAM:
            self.ended.add(stream)

    def wait(self, condition, patience=PATIENCE):
        """Reads until a condition holds; returns whether it does."""
        deadline = time.monotonic() + patience
        while not condition():
            if not self.take(deadline):
                return condition()
        return True

    def is_over(self):
        return self.is_closed or bool(self.goaway)

    def is_settled(self, stream):
        return self.is_over() or stream in self.ended or stream in self.resets

    def outcome(self, stream, probes=True, patience=AFTERMATH):
        """What has become of a stream, in words; of the connection, where that has ended."""
        if probes:
            self.send(frame(PING, 0, 0, PROBE))
        self.wait(lambda: self.is_settled(stream) or self.answers_pings)
        # PING is acknowledged before anything else: earlier results may still arrive.
        if not self.is_over():
            self.wait(lambda: self.is_settled(stream), patience)
        if self.goaway == NO_ERROR and not self.is_closed:
            self.wait(lambda: self.is_closed or bool(self.goaway), AFTERMATH)
        if self.goaway:
            return "GOAWAY " + name(self.goaway)
        if stream in self.statuses and stream in self.ended:
            return str(self.statuses[stream])
        if stream in self.resets:
            return "RST " + name(self.resets[stream])
        if self.is_closed:
            return "closed"
        if stream in self.statuses:
            return f"{self.statuses[stream]}…"
        return "alive" if self.answers_pings else "silent"

    def close(self):
        self.socket.close()


def name(code):
    return CODES[code] if code < len(CODES) else hex(code)


class Right:
    """Outcomes that are right."""

    def __init__(self, words, codes=(), statuses=(), resets=True, closes=True):
        self.words = words
        self.exact = {"GOAWAY " + name(code) for code in codes} if closes else set()
        if closes and codes:
            self.exact.add("closed")
        if resets:
            self.exact |= {"RST " + name(code) for code in codes}
        self.statuses = statuses

    def also(self, *outcomes):
        self.exact |= set(outcomes)
        self.words += " or " + " or ".join(outcomes)
        return self

    def holds(self, outcome):
        return outcome in self.exact or (outcome.isdigit() and int(outcome) // 100 in self.statuses)


def connection_error(*codes):
    return Right("connection error " + "/".join(map(name, codes)), codes, resets=False)


def stream_error(*codes):
    """RFC 9113, section 5.4: it may be made the connection's."""
    return Right("stream error " + "/".join(map(name, codes)), codes)


def malformed():
    """RFC 9113, section 8.1.1: a stream error, before which a response may be sent."""
    return Right("malformed: PROTOCOL_ERROR or 4xx", (PROTOCOL,), (4,))


def answered():
    return Right("answered", (), (2,))


def refused():
    """Not done: by a status, a reset or the end of the connection."""
    return Right("refused", (PROTOCOL, REFUSED, CANCEL, CALM, INTERNAL, NO_ERROR, FLOW), (4, 5))


def alive():
    return Right("nothing happens").also("alive")


CASES = []


def case(section, title, right, stream=1, probes=True, greet=True, values=(), must=True):
    """Adds a case; the function sends, and may say itself what came of it."""
    def add(function):
        CASES.append((section, title, right, stream, probes, greet, values, must, function))
        return function
    return add


def sends(section, title, right, data, **more):
    """A case that only sends."""
    case(section, title, right, **more)(lambda c: c.send(data))


def run(index, address):
    """Runs one case; answers the outcome in words and whether it is right."""
    _, _, right, stream, probes, greet, values, _, function = CASES[index]
    try:
        connection = Connection(address, greet, values)
    except OSError as error:
        return f"no connection: {error}", False
    try:
        # Whoever is to answer may take its time; of what is to do nothing, nothing is seen.
        patience = PATIENCE if right.statuses else AFTERMATH
        outcome = function(connection) or connection.outcome(stream, probes, patience)
        return outcome, right.holds(outcome)
    finally:
        connection.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", action="append", required=True, metavar="NAME=HOST:PORT")
    parser.add_argument("--strict", action="append", default=[], metavar="NAME")
    parser.add_argument("--only", default="", help="cases whose section or title holds this")
    parser.add_argument("--failures", action="store_true", help="show wrong ones only")
    arguments = parser.parse_args()
    targets = {}
    for target in arguments.target:
        key, _, address = target.partition("=")
        host, _, port = address.rpartition(":")
        targets[key] = (host, int(port))
    chosen = [index for index, item in enumerate(CASES) if arguments.only in item[0] + " " + item[1]]
    results = {key: {} for key in targets}

    def ask(key):
        for index in chosen:
            results[key][index] = run(index, targets[key])

    threads = [threading.Thread(target=ask, args=(key,)) for key in targets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    report(chosen, results, arguments.failures)
    wrong = [key for key in arguments.strict for index in chosen if not results[key][index][1]]
    return 1 if wrong else 0


def report(chosen, results, failures):
    width = max(len(CASES[index][0] + CASES[index][1]) for index in chosen) + 2
    print("case".ljust(width + 4), *(key.ljust(28) for key in results))
    marks = {True: "✗ ", False: "· "}
    for number, index in enumerate(chosen, 1):
        section, title, must = *CASES[index][:2], CASES[index][7]
        outcomes = [results[key][index] for key in results]
        if failures and all(good for _, good in outcomes):
            continue
        print(f"{number:3} " + f"{section} {title}".ljust(width),
              *(("  " if good else marks[must]) + outcome.ljust(26) for outcome, good in outcomes))
        if not all(good for _, good in outcomes):
            print(" " * 8 + "right: " + CASES[index][2].words)
    for key in results:
        counts = {}
        for must in (True, False):
            judged = [results[key][index][1] for index in chosen if CASES[index][7] == must]
            counts[must] = f"{sum(judged)} of {len(judged)}"
        print(f"{key}: {counts[True]} right, {counts[False]} bounds held")


if __name__ == "__main__":
    # The cases import this module's names: they must be those that run here.
    sys.modules["http2"] = sys.modules["__main__"]
    import http2_cases  # noqa: F401

    sys.exit(main())
