"""Checks that verifying candidates verify: a figure for a gateway that accepts every token would be meaningless."""

import time

from bench import get
from machine import Failed, Unavailable, run
from tokens import Signer, subject_of

SPOOFED = "somebody-else"


def forged_token(bench):
    """The claims of a valid token with a signature by another key."""
    stranger = bench.work / "stranger.pem"
    if not stranger.exists():
        run(["openssl", "genrsa", "-out", stranger, "2048"])
    return Signer(stranger).token(0, int(time.time()) - 1)


def check(bench, candidate):
    """The findings about one candidate: the request, the response, and whether it is correct."""
    now = int(time.time())
    signer = Signer(bench.tokens.key)
    spoof = {"x-auth-subject": SPOOFED}
    cases = [
        ("good token", {"Authorization": f"Bearer {signer.token(0, now - 1)}"}, (200,)),
        ("forged signature", {"Authorization": f"Bearer {forged_token(bench)}"}, (401,)),
        ("no token", {}, (401,)),
        ("expired token", {"Authorization": f"Bearer {signer.token(0, now - 7200, exp=now - 3600)}"}, (401,)),
        ("another app's token", {"Authorization": f"Bearer {signer.token(0, now - 1, aud='com.example.other')}"}, (401, 403)),
    ]
    findings = {}
    for name, headers, wanted in cases:
        status, _ = get(candidate.port, "/echo", {**headers, **spoof})
        findings[name] = (str(status), status in wanted)
    status, subject = get(candidate.port, "/echo", {**cases[0][1], **spoof})
    right = status == 200 and subject.endswith(subject_of(0)) and SPOOFED not in subject
    findings["spoofed identity"] = ("replaced" if right else f"upstream saw '{subject[:40]}'", right)
    return findings


def check_all(bench, starts):
    """Checks every verifying candidate in turn.

    :returns: the table as lines, and the candidates that failed or are missing, with the reason."""
    lines, out = [], {}
    for name, start in starts.items():
        try:
            candidate = start(bench)
        except (Failed, Unavailable, OSError) as error:
            out[name] = f"not available: {error}"
            lines.append((name, None, out[name]))
            continue
        try:
            findings = check(bench, candidate)
        except (OSError, Failed) as error:
            findings = {"any request": (str(error), False)}
        finally:
            bench.stop(candidate)
        if not all(right for _, right in findings.values()):
            out[name] = "does not verify: " + ", ".join(
                f"{case} gave {what}" for case, (what, right) in findings.items() if not right)
        lines.append((name, findings, out.get(name)))
    return lines, out
