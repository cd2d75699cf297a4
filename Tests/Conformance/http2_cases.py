"""The cases: the section of RFC 9113 (or another), what is sent, which outcomes are right."""

import struct
import time

from http2 import (
    ACK, CALM, CLOSED, COMPRESSION, CONTINUATION, DATA, END_HEADERS, END_STREAM, FLOW, GET, GOAWAY, HEADERS, MAGIC,
    NO_ERROR, PADDED, PING, POST, PRIORITY, PROBE, PROTOCOL, PUSH_PROMISE, REFUSED, RST_STREAM, SETTINGS, SIZE,
    WINDOW_UPDATE, WITH_PRIORITY, alive, answered, block, but, case, connection_error, frame, headers, integer,
    malformed, refused, reset, sends, settings, stream_error, text, window,
)

OPEN = headers(1, POST, END_HEADERS)
WHOLE = headers(1, GET)
PRIORITY_FIELDS = struct.pack(">IB", 0, 15)


def data(stream, payload=b"", flags=0):
    return frame(DATA, flags, stream, payload)


def request(fields, body=None):
    """A request on stream 1, with a body where one is given."""
    if body is None:
        return headers(1, fields)
    return headers(1, fields, END_HEADERS) + data(1, body, END_STREAM)


def done(c, stream=1):
    """Waits until a stream is over both ways."""
    c.wait(lambda: stream in c.ended)


# Section 3.4: the preface.

@case("3.4", "the server begins with SETTINGS", alive())
def _(c):
    return None if c.frames[0][0] == SETTINGS and not c.frames[0][1] & ACK else "begins with another frame"


sends("3.4", "a whole request in the first packet", answered(), MAGIC + settings() + WHOLE, greet=False)
sends("3.4", "a preface that is wrong", connection_error(PROTOCOL).also("400"),
      MAGIC[:-3] + b"X\r\n" + settings() + WHOLE, greet=False, probes=False)
sends("3.4", "a first frame that is not SETTINGS", connection_error(PROTOCOL), MAGIC + frame(PING, 0, 0, b"x" * 8),
      greet=False)
sends("3.4", "HEADERS before SETTINGS", connection_error(PROTOCOL), MAGIC + WHOLE, greet=False)


@case("3.4", "a preface that comes by byte", answered(), greet=False)
def _(c):
    for byte in MAGIC + settings() + WHOLE:
        c.send(bytes([byte]))


# Section 4: frames.

sends("4.1", "a frame of an unknown type", answered(), frame(0xBB, 0, 0, b"abc") + WHOLE)
sends("4.1", "a frame of an unknown type on a stream", answered(), WHOLE + frame(0xBB, 0xFF, 1, b"abc"))
sends("4.1", "flags that a frame does not have", answered(), frame(PING, 0xFE & ~ACK, 0, b"x" * 8) + WHOLE)
sends("4.1", "the reserved bit", answered(), frame(PING, 0, 1 << 31, b"x" * 8) + WHOLE)
sends("4.2", "DATA of 16 384 bytes", answered(), OPEN + data(1, b"x" * 16384, END_STREAM))
sends("4.2", "DATA of 16 385 bytes", stream_error(SIZE), OPEN + data(1, b"x" * 16385, END_STREAM))
sends("4.2", "HEADERS of 16 385 bytes", connection_error(SIZE), frame(HEADERS, 5, 1, block(GET).ljust(16385, b"\0")))
sends("4.2", "SETTINGS of 16 386 bytes", connection_error(SIZE), frame(SETTINGS, 0, 0, b"\xAA\xAA\0\0\0\0" * 2731))
sends("4.2", "an unknown frame of 16 385 bytes", connection_error(SIZE).also("alive"), frame(0xBB, 0, 0, b"x" * 16385))
sends("4.3", "a header block in three frames", answered(),
      frame(HEADERS, END_STREAM, 1, block(GET[:1])) + frame(CONTINUATION, 0, 1, block(GET[1:2]))
      + frame(CONTINUATION, END_HEADERS, 1, block(GET[2:])))
sends("4.3", "a field that is cut between two frames", answered(),
      frame(HEADERS, END_STREAM, 1, block(GET)[:7]) + frame(CONTINUATION, END_HEADERS, 1, block(GET)[7:]))
sends("4.3", "another frame within a header block", connection_error(PROTOCOL),
      frame(HEADERS, END_STREAM, 1, block(GET)) + frame(PING, 0, 0, PROBE), probes=False)
sends("4.3", "an unknown frame within a header block", connection_error(PROTOCOL),
      frame(HEADERS, END_STREAM, 1, block(GET)) + frame(0xBB, 0, 1), probes=False)
sends("4.3", "HEADERS of another stream within a header block", connection_error(PROTOCOL),
      frame(HEADERS, END_STREAM, 1, block(GET)) + headers(3, GET), probes=False)
sends("4.3", "CONTINUATION of another stream", connection_error(PROTOCOL),
      frame(HEADERS, END_STREAM, 1, block(GET)) + frame(CONTINUATION, END_HEADERS, 3), probes=False)

# Section 5.1: states of streams.

sends("5.1", "idle: DATA", connection_error(PROTOCOL), data(1, b"x"))
sends("5.1", "idle: RST_STREAM", connection_error(PROTOCOL), reset(1))
sends("5.1", "idle: WINDOW_UPDATE", connection_error(PROTOCOL), window(1, 1))
sends("5.1", "idle: CONTINUATION", connection_error(PROTOCOL), frame(CONTINUATION, END_HEADERS, 1, block(GET)))
sends("5.1", "idle: PRIORITY", answered(), frame(PRIORITY, 0, 1, PRIORITY_FIELDS) + WHOLE)
sends("5.1", "half-closed: DATA", stream_error(CLOSED), WHOLE + data(1, b"x", END_STREAM))
sends("5.1", "half-closed: HEADERS", stream_error(CLOSED), WHOLE + headers(1, [("x", "y")]))
sends("5.1", "half-closed: CONTINUATION", connection_error(PROTOCOL), WHOLE + frame(CONTINUATION, END_HEADERS, 1))
sends("5.1", "half-closed: WINDOW_UPDATE", answered(), WHOLE + window(1, 10))
sends("5.1", "half-closed: PRIORITY", answered(), WHOLE + frame(PRIORITY, 0, 1, PRIORITY_FIELDS))
sends("5.1", "half-closed: RST_STREAM", alive(), WHOLE + reset(1), stream=99)
sends("5.1", "after RST_STREAM: DATA", stream_error(CLOSED), OPEN + reset(1) + data(1, b"x"))
sends("5.1", "after RST_STREAM: HEADERS", stream_error(CLOSED, PROTOCOL), OPEN + reset(1) + headers(1, [("x", "y")]))
sends("5.1", "after RST_STREAM: RST_STREAM", alive(), OPEN + reset(1) + reset(1), stream=99)
sends("5.1", "after RST_STREAM: WINDOW_UPDATE", alive(), OPEN + reset(1) + window(1, 1), stream=99)


@case("5.1", "closed: DATA", stream_error(CLOSED), stream=99)
def _(c):
    c.send(WHOLE)
    done(c)
    c.send(data(1, b"x", END_STREAM))
    return closed_outcome(c)


@case("5.1", "closed: HEADERS", connection_error(CLOSED, PROTOCOL).also("RST STREAM_CLOSED"), stream=99)
def _(c):
    c.send(WHOLE)
    done(c)
    c.send(WHOLE)
    return closed_outcome(c)


def closed_outcome(c):
    """What becomes of frames on stream 1 after it was answered."""
    c.ended.discard(1)
    c.statuses.pop(1, None)
    return c.outcome(1)


@case("5.1", "closed: WINDOW_UPDATE and PRIORITY", answered(), stream=3)
def _(c):
    c.send(WHOLE)
    done(c)
    c.send(window(1, 1) + frame(PRIORITY, 0, 1, PRIORITY_FIELDS) + headers(3, GET))


@case("5.1", "closed: RST_STREAM", answered(), stream=3)
def _(c):
    c.send(WHOLE)
    done(c)
    c.send(reset(1) + headers(3, GET))


sends("5.1.1", "a stream of even number", connection_error(PROTOCOL), headers(2, GET), stream=2)
sends("5.1.1", "a lower number than before", connection_error(PROTOCOL), headers(5, GET) + headers(3, GET), stream=3)
sends("5.1.1", "numbers with gaps", answered(), headers(101, GET), stream=101)
sends("5.1.1", "the highest number", answered(), headers(0x7FFFFFFF, GET), stream=0x7FFFFFFF)


@case("5.1.2", "more streams than are allowed", stream_error(PROTOCOL, REFUSED))
def _(c):
    limit = c.settings.get(3, 200)
    for number in range(limit + 1):
        c.send(headers(2 * number + 1, POST, END_HEADERS))
    return c.outcome(2 * limit + 1, patience=2)


@case("5.1.2", "a stream is free again after a reset", answered())
def _(c):
    limit = c.settings.get(3, 128)
    for number in range(limit):
        c.send(headers(2 * number + 1, POST, END_HEADERS))
    c.send(reset(1) + headers(2 * limit + 1, GET))
    return c.outcome(2 * limit + 1, patience=2)


sends("5.3", "HEADERS with a priority", answered(),
      frame(HEADERS, END_STREAM | END_HEADERS | WITH_PRIORITY, 1, PRIORITY_FIELDS + block(GET)))
sends("5.3", "a priority that depends on an idle stream", answered(),
      frame(HEADERS, END_STREAM | END_HEADERS | WITH_PRIORITY, 1, struct.pack(">IB", 77, 15) + block(GET)))


@case("5.4.1", "the connection is closed after an error", connection_error(PROTOCOL))
def _(c):
    c.send(data(0, b"x"))
    return None if c.wait(lambda: c.is_closed) else "stays open"


sends("5.5", "an unknown setting", answered(), settings((0xABCD, 7)) + WHOLE)

# Section 6.1: DATA.

sends("6.1", "DATA on the connection", connection_error(PROTOCOL), OPEN + data(0, b"x"))
sends("6.1", "a body", answered(), OPEN + data(1, b"hello", END_STREAM))
sends("6.1", "a body that ends with an empty frame", answered(), OPEN + data(1, b"hello") + data(1, b"", END_STREAM))
sends("6.1", "a body with padding", answered(), OPEN + data(1, b"\3hello\0\0\0", PADDED | END_STREAM))
sends("6.1", "padding of no bytes", answered(), OPEN + data(1, b"\0hello", PADDED | END_STREAM))
sends("6.1", "nothing but padding", answered(), OPEN + data(1, b"\3\0\0\0", PADDED | END_STREAM))
sends("6.1", "more padding than frame", connection_error(PROTOCOL), OPEN + data(1, b"\6hello", PADDED | END_STREAM))
sends("6.1", "PADDED without a byte", connection_error(PROTOCOL, SIZE), OPEN + data(1, b"", PADDED | END_STREAM))

# Section 6.2: HEADERS.

sends("6.2", "HEADERS on the connection", connection_error(PROTOCOL), headers(0, GET))
sends("6.2", "HEADERS with padding", answered(), frame(HEADERS, 5 | PADDED, 1, b"\4" + block(GET) + b"\0" * 4))
sends("6.2", "more padding than frame", connection_error(PROTOCOL), frame(HEADERS, 5 | PADDED, 1, b"\xFF" + block(GET)))
sends("6.2", "a priority that is cut", connection_error(SIZE, PROTOCOL), frame(HEADERS, 5 | WITH_PRIORITY, 1, b"\0\0\0"))

# Section 6.3: PRIORITY.

sends("6.3", "PRIORITY on the connection", connection_error(PROTOCOL), frame(PRIORITY, 0, 0, PRIORITY_FIELDS))
sends("6.3", "PRIORITY of four bytes", stream_error(SIZE), OPEN + frame(PRIORITY, 0, 1, b"\0\0\0\0"))
sends("6.3", "PRIORITY of six bytes", stream_error(SIZE), OPEN + frame(PRIORITY, 0, 1, b"\0\0\0\0\0\0"))

# Section 6.4: RST_STREAM.

sends("6.4", "RST_STREAM on the connection", connection_error(PROTOCOL), reset(0))
sends("6.4", "RST_STREAM of three bytes", connection_error(SIZE), OPEN + frame(RST_STREAM, 0, 1, b"\0\0\0"))
sends("6.4", "RST_STREAM of five bytes", connection_error(SIZE), OPEN + frame(RST_STREAM, 0, 1, b"\0\0\0\0\0"))
sends("7", "RST_STREAM with an unknown code", answered(), OPEN + reset(1, 0xFFFF) + headers(3, GET), stream=3)

# Section 6.5: SETTINGS.


@case("6.5", "SETTINGS are acknowledged", alive(), stream=99)
def _(c):
    before = c.acknowledged
    c.send(settings() + settings())
    return None if c.wait(lambda: c.acknowledged == before + 2) else "not acknowledged"


sends("6.5", "SETTINGS on a stream", connection_error(PROTOCOL), frame(SETTINGS, 0, 1))
sends("6.5", "an acknowledgement with a payload", connection_error(SIZE), frame(SETTINGS, ACK, 0, b"\0" * 6))
sends("6.5", "SETTINGS of seven bytes", connection_error(SIZE), frame(SETTINGS, 0, 0, b"\0" * 7))
sends("6.5.2", "ENABLE_PUSH of 2", connection_error(PROTOCOL), settings((2, 2)))
sends("6.5.2", "INITIAL_WINDOW_SIZE over 2^31-1", connection_error(FLOW), settings((4, 1 << 31)))
sends("6.5.2", "MAX_FRAME_SIZE below 16 384", connection_error(PROTOCOL), settings((5, 16383)))
sends("6.5.2", "MAX_FRAME_SIZE over 2^24-1", connection_error(PROTOCOL), settings((5, 1 << 24)))
sends("6.5.3", "one setting twice: the last one counts", answered(), settings((4, 0), (4, 65535)) + WHOLE)
sends("6.5.2", "all settings at their limits", answered(),
      settings((1, 1 << 20), (2, 0), (3, 0x7FFFFFFF), (4, 0x7FFFFFFF), (5, (1 << 24) - 1), (6, 0xFFFFFFFF)) + WHOLE)

# Section 6.6 and 8.4: push.

sends("8.4", "PUSH_PROMISE of a client", connection_error(PROTOCOL),
      OPEN + frame(PUSH_PROMISE, END_HEADERS, 1, struct.pack(">I", 2) + block(GET)))

# Section 6.7: PING.

sends("6.7", "PING is answered", alive(), b"", stream=99)
sends("6.7", "PING on a stream", connection_error(PROTOCOL), frame(PING, 0, 1, b"x" * 8))
sends("6.7", "PING of six bytes", connection_error(SIZE), frame(PING, 0, 0, b"x" * 6))
sends("6.7", "PING of nine bytes", connection_error(SIZE), frame(PING, 0, 0, b"x" * 9))


@case("6.7", "an answer to no PING is not answered", alive(), stream=99)
def _(c):
    c.send(frame(PING, ACK, 0, b"no  ping"))
    c.outcome(99)
    return "answered" if any(payload == b"no  ping" for _, _, _, payload in c.frames) else None


# Section 6.8: GOAWAY.

sends("6.8", "GOAWAY on a stream", connection_error(PROTOCOL), frame(GOAWAY, 0, 1, b"\0" * 8))
sends("6.8", "GOAWAY of seven bytes", connection_error(SIZE), frame(GOAWAY, 0, 0, b"\0" * 7))
sends("6.8", "a request before GOAWAY is answered", answered(), WHOLE + frame(GOAWAY, 0, 0, b"\0" * 8 + b"why"))

# Section 6.9: flow control.

sends("6.9", "WINDOW_UPDATE of three bytes", connection_error(SIZE), frame(WINDOW_UPDATE, 0, 0, b"\0\0\1"))
sends("6.9", "WINDOW_UPDATE of zero on the connection", connection_error(PROTOCOL), window(0, 0))
sends("6.9", "WINDOW_UPDATE of zero on a stream", stream_error(PROTOCOL), OPEN + window(1, 0))
sends("6.9", "the reserved bit of WINDOW_UPDATE", answered(),
      frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1 << 31 | 1)) + WHOLE)
sends("6.9.1", "the connection's window over 2^31-1", connection_error(FLOW), window(0, 0x7FFFFFFF))
sends("6.9.1", "a stream's window over 2^31-1", stream_error(FLOW), OPEN + window(1, 0x7FFFFFFF))


@case("6.9.1", "no more DATA than the window", answered(), values=[(4, 3)])
def _(c):
    c.send(WHOLE)
    c.wait(lambda: c.bodies.get(1, 0) > 3 or c.is_settled(1), 1)
    if c.bodies.get(1, 0) != 3:
        return f"{c.bodies.get(1, 0)} bytes"
    c.send(window(1, 100_000))


@case("6.9.1", "more DATA than the window", stream_error(FLOW))
def _(c):
    c.send(headers(1, but(":path", "/stall", POST), END_HEADERS))
    # Not even a peer that takes a mebibyte in advance has room for all of it.
    for _ in range(512):
        c.send(data(1, b"x" * 16384))
        if c.is_settled(1):
            break


@case("6.9.2", "a smaller window while a stream waits", answered(), values=[(4, 0)])
def _(c):
    c.send(WHOLE)
    c.wait(lambda: 1 in c.statuses)
    c.send(settings((4, 4)) + settings((4, 1)))
    c.wait(lambda: c.bodies.get(1, 0) > 4 or c.is_settled(1), 0.5)
    # The window may be less than nothing now: what was sent counts.
    if c.bodies.get(1, 0) > 4:
        return f"{c.bodies.get(1, 0)} bytes"
    c.send(window(1, 100_000))


sends("6.9.2", "SETTINGS that take a stream's window over 2^31-1", connection_error(FLOW),
      OPEN + window(1, 0x7FFF0000 - 65535) + settings((4, 0x7FFFFFFF)))


@case("6.9", "windows are opened while a body is taken", answered())
def _(c):
    c.send(OPEN)
    sent, allowed, connection = 0, c.settings.get(4, 65535), 65535
    seen = 0
    while sent < 600_000 and not c.is_settled(1):
        for kind, _, stream, payload in c.frames[seen:]:
            if kind == WINDOW_UPDATE and stream == 0:
                connection += struct.unpack(">I", payload)[0]
            elif kind == WINDOW_UPDATE and stream == 1:
                allowed += struct.unpack(">I", payload)[0]
        seen = len(c.frames)
        room = min(allowed, connection, 16384)
        if room > 0:
            c.send(data(1, b"x" * room))
            sent, allowed, connection = sent + room, allowed - room, connection - room
        elif not c.take(time.monotonic() + 2):
            return f"stuck after {sent}"
    c.send(data(1, b"", END_STREAM))


# Section 6.10: CONTINUATION.

sends("6.10", "CONTINUATION on the connection", connection_error(PROTOCOL), frame(CONTINUATION, END_HEADERS))
sends("6.10", "CONTINUATION after END_HEADERS", connection_error(PROTOCOL),
      OPEN + frame(CONTINUATION, END_HEADERS, 1, block([("a", "b")])))
sends("6.10", "CONTINUATION after DATA", connection_error(PROTOCOL),
      OPEN + data(1, b"x") + frame(CONTINUATION, END_HEADERS, 1, block([("a", "b")])))
sends("6.10", "an empty CONTINUATION", answered(),
      frame(HEADERS, END_STREAM, 1, block(GET)) + frame(CONTINUATION, END_HEADERS, 1))

# Section 8.1: messages.

TRAILERS = block([("x-checksum", "1")])
sends("8.1", "trailers", answered(), OPEN + data(1, b"x") + frame(HEADERS, 5, 1, TRAILERS))
sends("8.1", "trailers without END_STREAM", malformed(), OPEN + data(1, b"x") + frame(HEADERS, END_HEADERS, 1, TRAILERS))
sends("8.1", "DATA after trailers", stream_error(CLOSED, PROTOCOL),
      OPEN + data(1, b"x") + frame(HEADERS, 5, 1, TRAILERS) + data(1, b"x", END_STREAM))
sends("8.1", "a HEAD request", answered(), headers(1, but(":method", "HEAD")))


@case("8.1", "an answer to HEAD has no DATA", answered())
def _(c):
    c.send(headers(1, but(":method", "HEAD")))
    done(c)
    return "DATA" if c.bodies.get(1) else None


sends("8.1.1", "a length that holds", answered(), request(POST + [("content-length", "5")], b"hello"))
sends("8.1.1", "a length of zero and no body", answered(), request(POST + [("content-length", "0")]))
sends("8.1.1", "less data than the length", malformed(), request(POST + [("content-length", "6")], b"hello"))
sends("8.1.1", "more data than the length", malformed(), request(POST + [("content-length", "4")], b"hello"))
sends("8.1.1", "a length and no body", malformed(), request(POST + [("content-length", "1")]))
sends("8.1.1", "more data than the length over two frames", malformed(),
      headers(1, POST + [("content-length", "6")], END_HEADERS) + data(1, b"hello") + data(1, b"you", END_STREAM))
sends("8.1.1", "two lengths", malformed(), request(POST + [("content-length", "5"), ("content-length", "6")], b"hello"))
sends("8.1.1", "a length with a sign", malformed(), request(POST + [("content-length", "+5")], b"hello"))
sends("8.1.1", "a length that overflows", malformed(), request(POST + [("content-length", "9" * 25)], b"hello"))

# Section 8.2: fields.

for label, field in [
    ("a name in upper case", ("X-Name", "1")), ("a name with one letter in upper case", ("x-naMe", "1")),
    ("an empty name", ("", "1")), ("a name with a space", ("x name", "1")), ("a name with a colon", ("x:name", "1")),
    ("a name with LF", ("x\nname", "1")), ("a name with CR", ("x\rname", "1")), ("a name with NUL", ("x\0name", "1")),
    ("a name with DEL", ("x\x7fname", "1")), ("a name over 0x7F", ("x\xe9name", "1")),
]:
    sends("8.2.1", label, malformed(), request(GET + [field]))
sends("8.2.1", "a name with a comma", malformed(), request(GET + [("x,name", "1")]), must=False)
for label, value in [
    ("a value with LF", "a\nx-evil: 1"), ("a value with CR", "a\rb"), ("a value with CRLF", "a\r\nx-evil: 1"),
    ("a value with NUL", "a\0b"), ("a value with a leading space", " a"), ("a value with a trailing space", "a "),
    ("a value with a leading tab", "\ta"), ("a value with a trailing tab", "a\t"),
]:
    sends("8.2.1", label, malformed(), request(GET + [("x-name", value)]))
sends("8.2.1", "an empty value, a tab inside, obs-text", answered(),
      request(GET + [("x-a", ""), ("x-b", "a\tb"), ("x-c", "caf\xe9")]))
for label, field in [
    ("connection", ("connection", "keep-alive")), ("proxy-connection", ("proxy-connection", "keep-alive")),
    ("keep-alive", ("keep-alive", "timeout=5")), ("transfer-encoding", ("transfer-encoding", "chunked")),
    ("upgrade", ("upgrade", "h2c")), ("te: gzip", ("te", "gzip")), ("te: trailers, gzip", ("te", "trailers, gzip")),
]:
    sends("8.2.2", label, malformed(), request(GET + [field]))
sends("8.2.2", "transfer-encoding with a body", malformed(), request(POST + [("transfer-encoding", "chunked")], b"0\r\n\r\n"))
sends("8.2.2", "te: trailers", answered(), request(GET + [("te", "trailers")]))
sends("8.2.3", "cookie crumbs", answered(), request(GET + [("cookie", "a=1"), ("cookie", "b=2")]))

# Section 8.3: pseudo-header fields.

sends("8.3", "a pseudo-header behind a field", malformed(), request(GET[:3] + [("x", "y")] + GET[3:]))
sends("8.3", "an unknown pseudo-header", malformed(), request(GET + [(":unknown", "1")]))
sends("8.3", "a pseudo-header of answers", malformed(), request(GET + [(":status", "200")]))
sends("8.3", "a pseudo-header in trailers", malformed(),
      OPEN + data(1, b"x") + headers(1, [("x-checksum", "1"), (":path", "/")]))
sends("8.3", "a pseudo-header in upper case", malformed(), request(GET[1:] + [(":Method", "GET")]))
for missing in (":method", ":scheme", ":path"):
    sends("8.3.1", f"no {missing}", malformed(), request(but(missing, None)))
    sends("8.3.1", f"{missing} twice", malformed(), request(GET + [field for field in GET if field[0] == missing]))
sends("8.3.1", ":authority twice", malformed(), request(GET + [GET[3]]))
sends("8.3.1", "an empty :path", malformed(), request(but(":path", "")))
sends("8.3.1", "a :path that does not begin with a slash", malformed(), request(but(":path", "index")))
sends("8.3.1", "a :path of * for GET", malformed(), request(but(":path", "*")))
sends("8.3.1", "OPTIONS *", answered().also("404", "405", "400", "501"),
      request(but(":path", "*", but(":method", "OPTIONS"))))
sends("8.3.1", "a :path with a query", answered(), request(but(":path", "/a?b=c")))
sends("8.3.1", "a :path with a space", malformed(), request(but(":path", "/ HTTP/1.1")))
sends("8.3.1", "a :path with CRLF", malformed(), request(but(":path", "/ HTTP/1.1\r\nHost: evil\r\n\r\n")))
sends("8.3.1", "a :path with NUL", malformed(), request(but(":path", "/a\0b")))
sends("8.3.1", "a :path with a fragment", malformed(), request(but(":path", "/a#b")))
sends("8.3.1", "a :method with a space", malformed(), request(but(":method", "GET /evil HTTP/1.1")))
sends("8.3.1", "a :method with CRLF", malformed(), request(but(":method", "GET\r\n")))
sends("8.3.1", "an empty :method", malformed(), request(but(":method", "")))
sends("8.3.1", "an empty :scheme", malformed(), request(but(":scheme", "")))
sends("8.3.1", "a :scheme with a space", malformed(), request(but(":scheme", "ht tp")))
sends("8.3.1", "a :scheme that is a whole target", malformed(), request(but(":scheme", "http://evil/?")))
sends("8.3.1", "host instead of :authority", answered(), request(but(":authority", None) + [("host", "a.example")]))
sends("8.3.1", "neither :authority nor host", malformed(), request(but(":authority", None)))
sends("8.3.1", "host that says what :authority says", answered(), request(GET + [("host", GET[3][1])]))
sends("8.3.1", "host that says something else", malformed(), request(GET + [("host", "evil.example")]),
      must=False)
sends("8.3.1", "an :authority with user information", malformed(), request(but(":authority", "user@a.example")))
sends("8.3.1", "an :authority with CRLF", malformed(), request(but(":authority", "a\r\nx-evil: 1")))
sends("8.3.1", "an :authority with a space", malformed(), request(but(":authority", "a b")))
sends("8.3.1", "an :authority with a slash", malformed(), request(but(":authority", "a/b")))
sends("8.5", "CONNECT with :path and :scheme", malformed(), request(but(":method", "CONNECT")))
sends("8.5", "CONNECT without :authority", malformed(), request([(":method", "CONNECT")]))
sends("8.5", "CONNECT", refused().also("RST CONNECT_ERROR"),
      request([(":method", "CONNECT"), (":authority", "a.example:443")]))

# RFC 8441: extended CONNECT.

sends("RFC 8441 4", ":protocol without CONNECT", malformed(), request(GET + [(":protocol", "websocket")]))
sends("RFC 8441 4", "extended CONNECT without :path", malformed(),
      request([(":method", "CONNECT"), (":protocol", "websocket"), (":scheme", "http"), (":authority", "a")]))

# RFC 7541: HPACK.

for label, payload in [
    ("2.3.3 index 0", b"\x80"), ("2.3.3 an index beyond the tables", b"\xfe"),
    ("2.3.3 a name's index beyond the tables", b"\x7f\x20\1x"),
    ("4.2 a table size that was not allowed", integer(4097, 5, 0x20) + b"\x82\x86\x84"),
    ("4.2 a table size behind a field", b"\x82\x20\x86\x84"), ("5.1 an integer without an end", b"\xff" + b"\xff" * 12),
    ("5.2 a text that is cut", b"\0\5ab"), ("5.2 eight bits of padding", b"\0\1a\x82\x1f\xff"),
    ("5.2 padding that is not of ones", b"\0\1a\x81\x18"), ("5.2 the end of text within a text", b"\0\1a\x84\xff\xff\xff\xff"),
]:
    sends(f"RFC 7541 {label.split()[0]}", label.split(maxsplit=1)[1], connection_error(COMPRESSION),
          frame(HEADERS, 5, 1, payload))
sends("RFC 7541 6.1", "fields by index", answered(),
      frame(HEADERS, 5, 1, b"\x82\x86\x84\x41" + text("conformance.example")))
sends("RFC 7541 6.2.1", "a field that the table keeps, by index afterwards", answered(),
      frame(HEADERS, 5, 1, b"\x82\x86\x84\x41" + text("a.example")) + frame(HEADERS, 5, 3, b"\x82\x86\x84\xbe"), stream=3)
sends("RFC 7541 6.2.3", "a field that is never kept", answered(),
      frame(HEADERS, 5, 1, b"\x82\x86\x84\x11" + text("a.example")))
sends("RFC 7541 5.2", "Huffman coding", answered(),
      frame(HEADERS, 5, 1, b"\x82\x86\x84\x41\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff"))
sends("RFC 7541 4.2", "a table of no size", answered(), frame(HEADERS, 5, 1, b"\x20" + block(GET)))
sends("RFC 7541 2.3.2", "a header block that was refused still counts for the table", answered(),
      frame(HEADERS, 5, 1, b"\x82\x86\x84\x40" + text("x-a") + text("1") + b"\x00" + text("Upper") + text("1") + b"\x41"
            + text("a.example")) + frame(HEADERS, 5, 3, b"\x82\x86\x84\xbe"), stream=3)

# Section 10.5: what a client may not do for ever. The end of the connection, a reset or a refusal is right.


@case("10.5.1", "a head of a mebibyte", refused(), must=False)
def _(c):
    c.send(frame(HEADERS, END_STREAM, 1, block(GET)))
    for number in range(70):
        c.send(frame(CONTINUATION, END_HEADERS if number == 69 else 0, 1, block([(f"x-{number}", "x" * 15000)])))


def flood(title, *pieces, before=b"", rounds=4000):
    """A frame, many times: RFC 9113 lets a server end the connection."""
    @case("10.5", title, connection_error(CALM, PROTOCOL, NO_ERROR), stream=99, must=False)
    def _(c):
        c.send(before)
        for number in range(rounds // 50):
            c.send(b"".join(piece(50 * number + step) for step in range(50) for piece in pieces))
            c.take(time.monotonic() + 0.0005)
            if c.is_over():
                break


flood("4 000 SETTINGS", lambda _: settings())
flood("4 000 PING", lambda _: frame(PING, 0, 0, b"x" * 8))
flood("4 000 empty DATA", lambda _: data(1), before=OPEN)
flood("4 000 streams that are reset", lambda n: headers(2 * n + 1, GET) + reset(2 * n + 1))
flood("4 000 streams that are malformed", lambda n: headers(2 * n + 1, GET + [("Upper", "1")]))
flood("4 000 empty CONTINUATION", lambda _: frame(CONTINUATION, 0, 1), before=frame(HEADERS, END_STREAM, 1, block(GET)))
flood("4 000 PRIORITY", lambda n: frame(PRIORITY, 0, 2 * n + 1, PRIORITY_FIELDS))
flood("4 000 WINDOW_UPDATE", lambda _: window(0, 1))


@case("10.5", "a bomb of table references", refused(), must=False)
def _(c):
    planted = b"\x40" + text("a") + text("b" * 3900)
    c.send(frame(HEADERS, 5, 1, block(GET) + planted + b"\xbe" * 10000))


# Section 9.1: connections.


@case("9.1", "three requests one after the other", answered(), stream=5)
def _(c):
    for stream in (1, 3):
        c.send(headers(stream, GET))
        done(c, stream)
    c.send(headers(5, GET))


@case("9.1", "fifty requests at a time", answered())
def _(c):
    c.send(b"".join(headers(2 * number + 1, GET) for number in range(50)))
    c.wait(lambda: len(c.ended) == 50 or c.is_over())
    return f"{sum(status == 200 for status in c.statuses.values())} answers" if len(c.ended) < 50 else None


@case("9.1", "a body that comes by byte", answered())
def _(c):
    for byte in OPEN + data(1, b"hello", END_STREAM):
        c.send(bytes([byte]))
