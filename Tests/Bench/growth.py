"""How the cost of a request grows with routes, providers, claims, header fields, bodies, connections and sessions.

User instructions come from callgrind and hardly vary; CPU, which includes the kernel's part, is the median of a few rounds.
A large copy counts as one instruction for each byte, because callgrind counts `rep movsb` in this way: use the CPU of bodies.
"""

import http.client
import json
import statistics

from candidates import martlet
from machine import Failed
from publication import table
from rows_counts import Counted
from rows_cpu import SESSION, start_redis
from tokens import AUDIENCE

ROUNDS = 5
SESSIONS = (1, 1000, 10_000)
# As many as one user may have unless configured otherwise.
SESSIONS_OF_USER = 10
# Of every user, at bcrypt's lowest cost: there are 10,000 logins.
SECRET, HASH = "correct horse", "$2b$04$HIu6OgWM5eky67M1xCtAx.7pBcaG0VfyJ7UFxaIPY0F1tAYvgsJpm"
CLAIMS = ("sub", "email", "iss", "aud", "email_verified", "is_private_email", "auth_time", "real_user_status")


def routes(count):
    """The given number of routes, of which the last one is requested."""
    others = "".join(
        f'  - {{ name: r{number}, match: {{ path: /r{number}/** }}, auth: none, upstream: origin }}\n'
        for number in range(count - 1))
    return others + '  - { name: all, match: { path: "/**" }, auth: { providers: [apple] }, upstream: origin }'


def providers(bench, count):
    """One route with the given number of providers, of which the last one accepts the token."""
    names = [f"p{number}" for number in range(1, count)]
    others = "".join(
        f'  {name}: {{ kind: oidc, issuer: "https://{name}.bench.example", audiences: [{AUDIENCE}], '
        f'jwks_url: "http://127.0.0.1:{bench.origin}/keys" }}\n' for name in names)
    route = (
        f'  - {{ name: all, match: {{ path: "/**" }}, auth: {{ providers: [{", ".join([*names, "apple"])}] }}, '
        'upstream: origin }')
    return {"providers": others, "routes": route}


def sessions(bench, count=max(SESSIONS), cached="1m", of_user=SESSIONS_OF_USER, more=""):
    """A configuration with sessions in Redis, a file with the access tokens of them, and Redis's port."""
    users, tokens = bench.work / "users", bench.work / "sessions"
    names = [f"user{number}" for number in range(count // of_user)]
    users.write_text("".join(f"{name}:{HASH}\n" for name in names))
    _, redis = start_redis(bench)
    # Valid for the whole of a run.
    settings = {
        "more": f'store: {{ url: "redis://127.0.0.1:{redis}/0" }}\n'
        f'sessions: {{ cache_ttl: {cached}, access_ttl: 12h }}\n{more}',
        "providers": f'  password: {{ kind: password, users: "htpasswd:{users}" }}', "routes": SESSION["routes"]}
    gateway = martlet(bench, **settings)
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=10)
    try:
        with open(tokens, "w") as file:
            for number in range(count):
                body = json.dumps({"username": names[number % len(names)], "password": SECRET})
                connection.request("POST", "/auth/login/password", body, {"Content-Type": "application/json"})
                response = connection.getresponse()
                said = response.read()
                if response.status != 200:
                    raise Failed(f"login {number} got {response.status}: {said[:100]!r}")
                file.write(json.loads(said)["access_token"] + "\n")
    finally:
        connection.close()
        bench.stop(gateway)
    return settings, tokens, redis


def claims(count):
    """One route that sets the given number of headers from claims."""
    headers = ", ".join(
        f'X-Claim-{number}: {{ claim: {CLAIMS[number % len(CLAIMS)]}, default: "" }}' for number in range(count))
    return (
        '  - { name: all, match: { path: "/**" }, auth: { providers: [apple] }, upstream: origin, '
        f'headers: {{ set: {{ {headers} }} }} }}')


def fields(count):
    return [f"X-Field-{number}: some text of usual length" for number in range(count)]


def scenarios(bench):
    """The parameter that grows, its value, the configuration, the load."""
    for count in (1, 100, 10_000):
        yield "routes", f"{count:,}", {"routes": routes(count)}, {}
    for count in (1, 2, 4, 8):
        yield "providers of the route", count, providers(bench, count), {}
    for count in (1, 4, 16):
        yield "claims injected", count, {"routes": claims(count)}, {}
    for count in (4, 16, 64):
        yield "header fields of the request", count, {}, {"headers": fields(count)}
    for path, name in (("/0k", "0"), ("/1k", "1 KiB"), ("/64k", "64 KiB"), ("/1m", "1 MiB")):
        yield "response", name, {}, {"path": path}
    for size, name in ((1024, "1 KiB"), (65536, "64 KiB"), (1 << 20, "1 MiB")):
        yield "upload", name, {}, {"path": "/sink", "body": size}
    for count in (1, 64, 1000, 4000):
        yield "connections", f"{count:,}", {}, {"connections": count}
    # They stay cached for the whole of a load.
    settings, tokens, _ = sessions(bench)
    for count in SESSIONS:
        yield "sessions, known, in turn", f"{count:,}", settings, {"tokens": tokens, "distinct": count}


def large(load):
    return load.get("path") == "/1m" or load.get("body", 0) > 100_000


def counted(bench, settings, load):
    # Each connection and each token has the same share of both loads.
    turns = max(load.get("connections", 0), load.get("distinct", 0))
    few, many = (100, 600) if large(load) else (max(2000, turns), max(10000, 3 * turns))
    with Counted(bench, **settings) as gateway:
        return gateway.per_request(**{"few": few, "many": many, **load})


def timed(bench, settings, load):
    """Microseconds of CPU for each request."""
    # Opening the connections, which every load does, costs less than a request in fifty.
    count = 1500 if large(load) else max(15000, 50 * load.get("connections", 0))
    gateway = martlet(bench, **settings)
    try:
        def once():
            return bench.load.exact(gateway.port, **{"count": count, **load})["requests"]
        once()
        return statistics.median(bench.cpu(gateway, once) for _ in range(ROUNDS))
    finally:
        bench.stop(gateway)


def measure(bench, say):
    """The table of all scenarios, as Markdown."""
    lines, first = [], {}
    for what, value, settings, load in scenarios(bench):
        say(f"measuring {what}: {value}")
        instructions, cpu = counted(bench, settings, load), timed(bench, settings, load)
        base = first.setdefault(what, (instructions, cpu))
        lines.append([
            what, value, f"{instructions:,.0f}", f"{instructions - base[0]:+,.0f}" if base[0] != instructions else "",
            f"{cpu:.1f} µs", f"{cpu - base[1]:+.1f} µs" if base[1] != cpu else ""])
    head = ["What grows", "To", "User instructions per request", "More than the first", "CPU per request", "More"]
    return table(head, lines)
