"""The rows that count CPU for each request."""

import dataclasses
import json
import statistics

import candidates
import proxies
from bench import best_of, get, ratios
from candidates import MANY, haproxy, haproxy_spliced, martlet, nginx, nginx_unbuffered
from machine import CANDIDATE_CORE, LOAD_CORE, Failed, Unavailable, free_port, run
from row import Row, microseconds

UNSEEN = 8000
# Requests per second of a round.
ROTATED = 40000


def compare(title, figures, peers, bar):
    """A row that compares Martlet with the best of several peers."""
    peer = best_of(figures, peers)
    ratio = ratios(figures["Martlet"], figures[peer])
    return Row(
        title, microseconds(figures["Martlet"]), f"{peer} {microseconds(figures[peer])}", ratio,
        f"≤ {bar:.2f} × {' or '.join(sorted({name.split(',')[0] for name in peers}))}", ratio[0] <= bar, figures=figures)


def saturated(bench, group, url, **options):
    """CPU of each candidate of a group under wrk, after a warm-up."""
    # A second more for each thousand connections: that many are opened in every load.
    more = options.get("connections", 0) // 1000
    for candidate in group:
        bench.load.wrk(url(candidate), 1 + more, **options)
    return bench.interleaved(
        group,
        lambda candidate: bench.cpu(candidate, lambda: bench.load.wrk(url(candidate), bench.seconds + more, **options)))


def join(bench, group, starts, load):
    """Starts further peers, puts those that serve a first load into the group, and returns why the others do not."""
    absent = {}
    for name, start in starts.items():
        try:
            candidate = start(bench)
            load(candidate, 1)
            group.append(candidate)
        except (Failed, Unavailable, OSError) as error:
            absent[name] = str(error)
    return absent


def beside(figures, names, absent, mark=""):
    """A row for each further peer, with the reason where it is absent."""
    mine = figures["Martlet"]
    for name in names:
        yield Row(f"· beside {name}{mark}", microseconds(mine), microseconds(figures[name]), ratios(mine, figures[name]))
    for name, why in absent.items():
        yield Row(f"· beside {name}{mark}", "–", why)


def known(bench):
    """One token that is in every cache, all candidates."""
    group, token = [martlet(bench), nginx(bench), haproxy(bench)], bench.tokens.one()

    def load(candidate, seconds):
        return bench.load.wrk(candidate.url(), seconds, token=token)

    for candidate in group:
        load(candidate, 1)
    absent = join(bench, group, proxies.TODAY, load)
    failed = join(bench, group, bench.peers, load)
    figures = bench.interleaved(group, lambda candidate: bench.cpu(candidate, lambda: load(candidate, bench.seconds)))
    bench.by_candidate = {name: statistics.median(values) for name, values in figures.items()}
    failed |= {name: why for name, why in bench.absent.items() if name != "Martlet"}
    return [
        compare("one known token: CPU per request", figures, ["nginx"], 0.70),
        *beside(figures, [name for name in figures if name in ("HAProxy", *proxies.TODAY)], absent),
        *beside(figures, [name for name in figures if name in bench.peers], failed, ", verifying"),
    ]


def asking_nginx(bench, name, port):
    """nginx in front of the origin, which asks a port about each request."""
    location = (
        "location = /asked { internal; proxy_pass http://asked/auth/check; proxy_pass_request_body off; "
        'proxy_set_header Content-Length ""; proxy_set_header Connection ""; '
        "proxy_set_header X-Original-URI $request_uri; proxy_set_header X-Original-Method $request_method; }")
    upstream = f"upstream asked {{ server 127.0.0.1:{port}; keepalive 256; keepalive_requests {MANY}; keepalive_time 24h; }}"
    return nginx(bench, name, "auth_request /asked;", location, http=upstream)


def checks(bench):
    """Checks of one known token for another proxy, beside a proxied request and beside nginx with a static 200 as response;
    and what nginx itself needs for asking either."""
    asked = martlet(bench, server="  trusted_proxies: [127.0.0.1/32]")
    proxying = martlet(bench, "Martlet, proxying")
    static = nginx(bench, "nginx, static 200", server="location = /auth/check { return 200; }")
    fronts = [
        asking_nginx(bench, "nginx, asking Martlet", asked.port),
        asking_nginx(bench, "nginx, asking for a static 200", static.port),
    ]
    group, token = [asked, proxying, static, *fronts], bench.tokens.one()

    def load(candidate, seconds):
        is_asked = candidate in (asked, static)
        described = ["X-Original-URI: /1k", "X-Original-Method: GET"] if is_asked else []
        url = candidate.url("/auth/check" if is_asked else "/1k")
        return bench.load.wrk(url, seconds, token=token, headers=described)

    try:
        for candidate in group:
            load(candidate, 1)
        figures = bench.interleaved(group, lambda candidate: bench.cpu(candidate, lambda: load(candidate, bench.seconds)))
    finally:
        bench.stop(*group)
    rows = [compare("one known token, checked: CPU per check", figures, [proxying.name], 1.00)]
    for other in (static, *fronts):
        rows.append(Row(
            f"· beside {other.name}", microseconds(figures["Martlet"]), microseconds(figures[other.name]),
            ratios(figures["Martlet"], figures[other.name])))
    return rows


SESSION = {
    "more": 'store: {{ url: "redis://127.0.0.1:{redis}/0" }}\naccounts: {{ url: "sqlite:accounts.db" }}',
    "providers": "  password: { kind: password, users: accounts }",
    "routes": '  - { name: all, match: { path: "/**" }, auth: { providers: [apple, password] }, upstream: origin }',
}
PASSWORD = "correct horse battery"


def start_redis(bench):
    """A separate Redis on the load's core: its process and its port."""
    port = free_port()
    process = bench.processes.start(
        "redis", ["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"], LOAD_CORE)
    bench.processes.await_port(process, port)
    return process, port


def session_gateway(bench, redis, name="Martlet"):
    settings = {**SESSION, "more": SESSION["more"].format(redis=redis)}
    folder, _ = candidates.write_martlet(bench, name, **settings)
    run([bench.binary, "user", "add", "ada"], cwd=folder, input=PASSWORD + "\n")
    return martlet(bench, name, **settings)


def log_in(gateway):
    """The access token of a session."""
    status, body = get(
        gateway.port, "/auth/login/password", {"Content-Type": "application/json"}, "POST",
        json.dumps({"username": "ada", "password": PASSWORD}))
    if status != 200:
        raise Failed(f"the login got {status}: {body[:100]}")
    return json.loads(body)["access_token"]


def session(bench):
    """A session's token compared with Apple's, at the same gateway."""
    redis, port = start_redis(bench)
    gateway = session_gateway(bench, port)
    try:
        tokens = {"Apple token": bench.tokens.one(), "session": log_in(gateway)}
        for token in tokens.values():
            bench.load.wrk(gateway.url(), 1, token=token)
        figures = {name: [] for name in tokens}
        for number in range(bench.rounds):
            for name in sorted(tokens, reverse=number % 2 == 1):
                figures[name].append(bench.cpu(
                    gateway, lambda: bench.load.wrk(gateway.url(), bench.seconds, token=tokens[name])))
    finally:
        bench.stop(gateway)
        bench.processes.stop(redis)
    ratio = ratios(figures["session"], figures["Apple token"])
    return [Row(
        "session token, known: CPU per request", microseconds(figures["session"]),
        f"Apple token {microseconds(figures['Apple token'])}", ratio, "≤ 1.05 × Apple token", ratio[0] <= 1.05,
        figures=figures)]


def rotation(bench):
    """10,000 tokens in turn, all of them cached."""
    group = [martlet(bench), nginx(bench)]
    try:
        for candidate in group:
            bench.load.exact(candidate.port, distinct=10000, count=20000)
        # Not by wrk: its script for each request loads its core more than the candidate's.
        count = max(int(bench.seconds * ROTATED), 10000)
        figures = bench.interleaved(group, lambda candidate: bench.cpu(
            candidate, lambda: bench.load.exact(candidate.port, distinct=10000, count=count)["requests"]))
    finally:
        bench.stop(*group)
    return [compare("10,000 known tokens in turn: CPU per request", figures, ["nginx"], 0.80)]


def verification_time(core):
    """Microseconds of one RSA-2048 verification, measured by OpenSSL on the candidates' core."""
    said = run(["taskset", "-c", core, "openssl", "speed", "-seconds", "1", "rsa2048"])
    last = said.strip().splitlines()[-1].split()
    return 1_000_000 / float(last[-1])


def unseen(bench):
    """Tokens that are sent for the first time, each of them once."""
    group = [martlet(bench), nginx(bench)]
    verify, position = [], 1
    try:
        for candidate in group:
            bench.load.exact(candidate.port, count=UNSEEN)

        def measure(candidate):
            nonlocal position
            first = position
            if candidate is group[0]:
                position += UNSEEN
                verify.append(verification_time(CANDIDATE_CORE))
            return bench.cpu(
                candidate, lambda: bench.load.exact(candidate.port, first=first, distinct=UNSEEN, count=UNSEEN)["requests"])
        figures = bench.interleaved(group, measure)
    finally:
        bench.stop(*group)
    floor = [plain + 1.25 * one for plain, one in zip(figures["nginx"], verify)]
    ratio = ratios(figures["Martlet"], floor)
    return [Row(
        "unseen tokens, each verified once: CPU per request", microseconds(figures["Martlet"]),
        f"nginx {microseconds(figures['nginx'])}, verify {microseconds(verify)}", ratio,
        "≤ nginx + 1.25 × RSA-2048 verify", ratio[0] <= 1, figures={**figures, "verify": verify})]


def connections(bench):
    """A new connection for each request."""
    group = [martlet(bench), nginx(bench), haproxy(bench)]
    options = {"token": bench.tokens.one(), "headers": ["Connection: close"]}
    try:
        figures = saturated(bench, group, lambda candidate: candidate.url(), **options)
    finally:
        bench.stop(*group)
    return [compare("a new connection for each request: CPU per request", figures, ["nginx"], 0.85)]


def bodies(bench, title, path, **options):
    """CPU for each request of 1 MiB, compared with the better settings of both peers."""
    group = [martlet(bench), nginx(bench), nginx_unbuffered(bench), haproxy(bench), haproxy_spliced(bench)]
    try:
        figures = saturated(
            bench, group, lambda candidate: candidate.url(path), token=bench.tokens.one(), connections=16, **options)
    finally:
        bench.stop(*group)
    return [compare(title, figures, [candidate.name for candidate in group[1:]], 1.0)]


def responses(bench):
    return bodies(bench, "responses of 1 MiB: CPU per MiB", "/1m")


def uploads(bench):
    return bodies(bench, "uploads of 1 MiB: CPU per MiB", "/sink", body=1 << 20)


def tls(bench):
    """TLS 1.3 on kept-alive connections."""
    group = [martlet(bench), nginx(bench)]
    try:
        figures = saturated(bench, group, lambda candidate: candidate.url(listener="tls"), token=bench.tokens.one())
    finally:
        bench.stop(*group)
    return [compare("TLS 1.3, kept connections: CPU per request", figures, ["nginx"], 0.85)]


def http2(bench):
    """HTTP/2 with 100 streams on each connection, in clear text and over TLS."""
    return [
        *framed(bench, "HTTP/2, 100 streams", "h2c"), *framed(bench, "HTTP/2 over TLS 1.3, 100 streams", "h2tls")]


def framed(bench, title, listener):
    group, token = [martlet(bench), nginx(bench)], bench.tokens.one()

    def load(candidate, seconds):
        return bench.load.h2load(candidate.url(listener=listener), seconds, token)

    for candidate in group:
        load(candidate, 1)
    absent = join(bench, group, proxies.HTTP2, load)
    try:
        figures = bench.interleaved(group, lambda candidate: bench.cpu(candidate, lambda: load(candidate, bench.seconds)))
    finally:
        bench.stop_candidates()
    return [
        compare(f"{title}: CPU per request", figures, ["nginx"], 0.85),
        *beside(figures, [name for name in figures if name in proxies.HTTP2], absent),
    ]


FORWARDED = 64


def forward2(bench):
    """The same number of requests at a time over HTTP/1.1 and over HTTP/2, from clients and to the upstream, at Martlet."""
    gateways = {"HTTP/1.1": martlet(bench), "h2c": martlet(
        bench, "Martlet to h2c", endpoint=f"h2c://127.0.0.1:{bench.origin_framed}")}
    group, token = [], bench.tokens.one()
    for protocol, connections in (("HTTP/1.1", FORWARDED), ("HTTP/2", 4)):
        for upstream, gateway in gateways.items():
            group.append(Forwarding(f"{protocol} to {upstream}", gateway, connections))

    def load(forwarding, seconds):
        return bench.load.h2load(
            forwarding.gateway.url(), seconds, token, forwarding.connections, FORWARDED // forwarding.connections)

    try:
        for forwarding in group:
            load(forwarding, 1)
        figures = bench.interleaved(
            group, lambda forwarding: bench.cpu(forwarding.gateway, lambda: load(forwarding, bench.seconds)))
    finally:
        bench.stop(*gateways.values())
    plain, framed = figures["HTTP/1.1 to HTTP/1.1"], figures["HTTP/2 to h2c"]
    ratio = ratios(framed, plain)
    rows = [Row(
        "forwarded over HTTP/2 to h2c: CPU per request", microseconds(framed), f"HTTP/1.1 to HTTP/1.1 {microseconds(plain)}",
        ratio, "≤ 1.30 × HTTP/1.1 to HTTP/1.1", ratio[0] <= 1.3, figures=figures)]
    for name in ("HTTP/2 to HTTP/1.1", "HTTP/1.1 to h2c"):
        rows.append(Row(
            f"· {name}", microseconds(figures[name]), f"HTTP/1.1 to HTTP/1.1 {microseconds(plain)}",
            ratios(figures[name], plain)))
    return rows


@dataclasses.dataclass
class Forwarding:
    """A gateway, and how it is requested: one stream for each connection is HTTP/1.1."""

    name: str
    gateway: candidates.Candidate
    connections: int
