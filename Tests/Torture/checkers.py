"""What has to hold after a run, whatever has failed in it. Each checker returns what it has found, in words."""

import json
import re

from session import EXIT, RECOVERY, START, surplus

# A call that was interrupted, came too early or moved fewer bytes has not failed: nothing of it may be visible.
EINTR = 4
SHORT = 0
EAGAIN = 11
# The exit codes of Operations.md that a start may have, other than 0.
DOCUMENTED_EXITS = (69, 70, 78)
# The calls whose manual page says that a signal may interrupt them. The others are never interrupted, so an EINTR of
# theirs is an error like others.
# Nor are openat of a file on a disk and fdatasync, which c-ares and SQLite do not repeat.
INTERRUPTIBLE = ("accept4", "close", "epoll_wait", "ftruncate", "getrandom", "poll", "pread64", "pwrite64", "read",
                 "recvfrom", "sendmsg", "sendto", "splice", "write", "writev")
IDENTITY = re.compile(r"^x-(user-id|auth-subject)=(.*)$")


def crash(facts):
    """No signal, and no trap of Swift: those end a program with a signal too."""
    if facts.status is not None and facts.status >= 128:
        return [f"ended by signal {facts.status - 128}: {last_words(facts)}"]
    return []


def hang(facts):
    """It starts or ends, and ends after SIGTERM."""
    found = []
    if facts.ready is None and facts.terminated is not None:
        found.append(f"neither serves nor ends within {START} s of its start")
    if facts.status is None:
        found.append(f"still runs {EXIT} s after SIGTERM" if facts.terminated else "does not end")
    return found


def exit_status(facts):
    """0 after SIGTERM; at the start also a documented one, with a message that gives the reason."""
    if facts.status is None or facts.status >= 128:
        return []
    if facts.terminated is not None:
        return [] if facts.status == 0 else [f"exit status {facts.status} after SIGTERM: {last_words(facts)}"]
    if facts.ready is not None:
        return [f"ended by itself while it served, with status {facts.status}: {last_words(facts)}"]
    if facts.injected is None:
        return [f"does not start: status {facts.status}: {last_words(facts)}"]
    if facts.status not in DOCUMENTED_EXITS:
        return [f"exit status {facts.status} at the start is not documented: {last_words(facts)}"]
    return [] if facts.log.strip() else [f"exit status {facts.status} without a message"]


def identity(facts):
    """The upstream sees the user's own subject on requests that proved it, and none on any other."""
    found, proofs = [], {one.path: one for one in facts.exchanges}
    for seen in facts.seen:
        proof = proofs.get(seen.path)
        proved = proof is not None and proof.credential == "valid"
        for header in seen.identities:
            name = IDENTITY.match(header)
            if not proved:
                found.append(f"{seen.step} {seen.path}: the upstream got {header}")
            elif name and name[2] not in facts.subjects:
                found.append(f"{seen.step} {seen.path}: the upstream got {header} of another user")
        if proved and seen.path.startswith("/v1/") and not any(map(IDENTITY.match, seen.identities)):
            found.append(f"{seen.step} {seen.path}: the upstream got no identity")
        if proof is not None and proof.credential in ("wrong", "ended"):
            found.append(f"{seen.step} {seen.path}: forwarded with {article(proof.credential)} token")
    return found


def acceptance(facts):
    """No token that is wrong, absent or ended gets anything but a rejection, or an outage."""
    return [f"{one.step}: {one.status} with {article(one.credential)} token" for one in facts.exchanges
            if one.credential in ("wrong", "ended") and one.status and one.status != 401 and one.status < 500]


def rejection(facts):
    """An outage is never a rejection: what is valid gets no 4xx."""
    return [f"{one.step}: {one.status} {code_of(one)} although the request is valid" for one in facts.exchanges
            if one.credential not in ("wrong", "ended") and 400 <= one.status < 500
            and not (one.credential == "unknown" and one.status == 401)
            and not (is_unknown_address(facts) and code_of(one) == "local_only")]


def responses(facts):
    """Every request gets one well-formed response, or a closed connection."""
    return [f"{one.step}: malformed: {one.fault}" for one in facts.exchanges if one.outcome == "malformed"]


def silence(facts):
    """Nothing waits for ever."""
    return [f"{one.step}: no response and no end within {one.ended - one.began:.1f} s" for one in facts.exchanges
            if one.outcome == "silence"]


def cause(facts):
    """Nothing goes wrong before the call has failed, nor because of one that has not."""
    found = []
    transparent = facts.injected is None or is_transparent(facts)
    for one in facts.exchanges:
        if one.outcome != "response" or one.status >= 500:
            if transparent or one.ended < facts.injected:
                found.append(f"{one.step}: {one.status or one.fault} {code_of(one)} {one.outcome} without a cause")
    return found


def bodies(facts):
    """A body is right, or visibly cut: also what the upstream gets."""
    found = []
    for one in facts.exchanges:
        if one.expected is None or one.status not in (101, 200):
            continue
        if one.outcome == "response" and one.body != one.expected:
            found.append(f"{one.step}: {len(one.body)} bytes, not the {len(one.expected)} that were expected")
        elif one.outcome == "cut" and not one.expected.startswith(one.body):
            found.append(f"{one.step}: cut, and different before that")
    return found


def recovery(facts):
    """Everything is served again soon after the failure."""
    if facts.ready is None or facts.terminated is None:
        return []
    found = [] if facts.recovered else [f"no sign-in and request succeeds within {RECOVERY} s of the failure"]
    return found + ([] if facts.reloaded else [f"no reload takes effect within {RECOVERY} s"])


def access(facts):
    """Each response has its line in the access log, and no request has two."""
    if facts.terminated is None or facts.status != 0:
        return []
    lines, found = {}, []
    for line in facts.access:
        try:
            entry = json.loads(line)
            lines.setdefault(entry["path"], []).append(entry["status"])
        except (ValueError, KeyError):
            if not is_about_log(facts):
                found.append(f"a line that is none: {line[:80]!r}")
    for one in facts.exchanges:
        if not one.path.startswith(("/public/", "/v1/")):
            continue
        count = len(lines.get(one.path, []))
        if count > 1:
            found.append(f"{one.step}: {count} access lines")
        elif one.outcome == "response" and count == 0 and not is_about_log(facts) and not is_refused(facts, one):
            found.append(f"{one.step}: no access line")
        elif one.outcome == "response" and count == 1 and lines[one.path] != [one.status]:
            found.append(f"{one.step}: the access line says {lines[one.path][0]}, not {one.status}")
    return found


def leaks(facts, reference):
    """Once nobody is connected, no more is open than in a run without a failure."""
    if facts.terminated is None or facts.ready is None:
        return []
    more = surplus(facts.descriptors, reference)
    # OpenSSL reads this file where getrandom fails, and keeps it open for the next time.
    if facts.call is not None and facts.call[1] == "getrandom" and more.get("urandom") == 1:
        del more["urandom"]
    return [f"{count} more {name} open" for name, count in more.items()]


def events(facts):
    """What was confirmed is recorded: the end of a session is delivered or stored, or the log says that it is not."""
    if not facts.logged_out or any(facts.session in event for event in facts.events):
        return []
    # While the account store is unavailable a session ends all the same: Events.md.
    return [] if '"level":"error"' in facts.log else [f"no event of the end of {facts.session}"]


def descriptors(facts):
    """No call is about a descriptor that is closed: it may have become another file of another thread."""
    return [f"{count} times {call} of a closed descriptor in {thread}" for (thread, call, about), count in facts.calls.items()
            if about == "closed"]


def rest(facts):
    """What has nothing to do uses no processor time: normally a hundredth, and a third where a thread spins."""
    if facts.busy is None or facts.busy < 0.15:
        return []
    return [f"uses {facts.busy:.0%} of a processor while one request waits for the upstream"]


CHECKERS = (crash, hang, exit_status, identity, acceptance, rejection, responses, silence, cause, bodies, recovery, access,
            events, descriptors, rest)


def check(facts, reference):
    """:returns: (checker, finding) for each checker that has found anything, with its first finding."""
    everything = [(checker.__name__, checker(facts)) for checker in CHECKERS] + [("leaks", leaks(facts, reference))]
    return [(name, found[0] + (f" and {len(found) - 1} more" if len(found) > 1 else "")) for name, found in everything
            if found]


def is_unknown_address(facts):
    """Operators come from this machine: a connection whose addresses the system does not say is not taken for one."""
    return facts.call is not None and facts.call[1] in ("getsockname", "getpeername")


def is_refused(facts, exchange):
    """A connection for which there is no descriptor gets 503 before its request is read: a metric counts it."""
    return facts.call is not None and facts.call[1] == "accept4" and code_of(exchange) == "overloaded"


def is_transparent(facts):
    """Whether what was done to the call is no failure."""
    return facts.error in (SHORT, EAGAIN) and facts.call[1] != "clone3" or (
        facts.error == EINTR and facts.call[1] in INTERRUPTIBLE)


def is_about_log(facts):
    """Lines that cannot be written are lost and counted: Operations.md, Access lines in a file."""
    return facts.call is not None and facts.call[2] == "access.log" and not is_transparent(facts)


def article(credential):
    return {"wrong": "a wrong", "ended": "an ended"}[credential]


def code_of(exchange):
    found = re.search(rb'"code":"([^"]*)"', exchange.body)
    return found[1].decode() if found else ""


def last_words(facts):
    lines = facts.log.strip().splitlines()
    return lines[-1][:300] if lines else "nothing was printed"
