"""Plain proxies that people run today, besides nginx and HAProxy: Caddy and Traefik, and for HTTP/2 h2o and nghttpx.

None of them verifies a token by itself: Caddy needs a plugin for that, and Traefik its commercial edition. Each has one
worker, keeps its connections to the origin, writes no access log, and takes HTTP/1.1 and HTTP/2 in clear text and over TLS 1.3.
"""

import json
import os
import pathlib
import time

import install
from bench import get
from candidates import Candidate
from machine import CANDIDATE_CORE, Failed, Unavailable, free_port

# Go starts a thread of its scheduler for each core that it may use.
ONE_THREAD = ["env", "GOMAXPROCS=1"]
KEPT = 8192
H2O, NGHTTPX = pathlib.Path("/usr/bin/h2o"), pathlib.Path("/usr/sbin/nghttpx")


def prepared(bench, name):
    """An empty folder, a port for clear text and one for TLS."""
    folder = bench.work / name
    folder.mkdir(exist_ok=True)
    return folder, free_port(), free_port()


def started(bench, name, command, plain, secure):
    process = bench.processes.start(name.lower(), command, CANDIDATE_CORE)
    bench.processes.await_port(process, plain)
    bench.processes.await_port(process, secure)
    await_route(process, plain)
    return Candidate(name, process, {"http": plain, "h2c": plain, "tls": secure, "h2tls": secure})


def await_route(process, port, seconds=10):
    """Waits for the first 200: Traefik accepts before it has its routes."""
    end = time.monotonic() + seconds
    while get(port, "/1k")[0] != 200:
        if time.monotonic() > end:
            raise Failed(f"{process.name} does not forward")
        time.sleep(0.05)


def caddy(bench):
    program = install.proxy("caddy")
    folder, plain, secure = prepared(bench, "caddy")
    forwarding = {
        "handler": "reverse_proxy", "upstreams": [{"dial": f"127.0.0.1:{bench.origin}"}],
        "transport": {"protocol": "http", "keep_alive": {"max_idle_conns_per_host": KEPT, "idle_timeout": "1h"}},
    }

    def server(port, more):
        return {"listen": [f"127.0.0.1:{port}"], "routes": [{"handle": [forwarding]}], "idle_timeout": "1h",
                "automatic_https": {"disable": True}, **more}

    (folder / "caddy.json").write_text(json.dumps({
        "admin": {"disabled": True}, "logging": {"logs": {"default": {"level": "ERROR"}}},
        "storage": {"module": "file_system", "root": str(folder)},
        "apps": {
            "http": {"servers": {
                "plain": server(plain, {"protocols": ["h1", "h2c"]}),
                "secure": server(secure, {
                    "protocols": ["h1", "h2"],
                    # Clients that connect to an address name no host.
                    "tls_connection_policies": [{"protocol_min": "tls1.3", "default_sni": "localhost"}]}),
            }},
            "tls": {"certificates": {"load_files": [
                {"certificate": str(bench.certificate), "key": str(bench.certificate_key)}]}},
        },
    }))
    # Without a folder of its own it would write into the user's.
    homes = [f"XDG_CONFIG_HOME={folder}", f"XDG_DATA_HOME={folder}"]
    return started(bench, "Caddy", [*ONE_THREAD, *homes, program, "run", "--config", folder / "caddy.json"], plain, secure)


def traefik(bench):
    program = install.proxy("traefik")
    folder, plain, secure = prepared(bench, "traefik")
    # Its configurations are YAML, which JSON is as well.
    (folder / "dynamic.yaml").write_text(json.dumps({
        "http": {
            "routers": {
                "plain": {"entryPoints": ["plain"], "rule": "PathPrefix(`/`)", "service": "origin"},
                "secure": {"entryPoints": ["secure"], "rule": "PathPrefix(`/`)", "service": "origin", "tls": {}},
            },
            "services": {"origin": {"loadBalancer": {
                "servers": [{"url": f"http://127.0.0.1:{bench.origin}"}], "serversTransport": "kept"}}},
            "serversTransports": {"kept": {
                "maxIdleConnsPerHost": KEPT, "forwardingTimeouts": {"idleConnTimeout": "1h"}}},
        },
        "tls": {
            "options": {"default": {"minVersion": "VersionTLS13"}},
            "stores": {"default": {"defaultCertificate": {
                "certFile": str(bench.certificate), "keyFile": str(bench.certificate_key)}}},
        },
    }))
    lasting = {"respondingTimeouts": {"idleTimeout": "1h"}}
    (folder / "traefik.yaml").write_text(json.dumps({
        "global": {"checkNewVersion": False, "sendAnonymousUsage": False}, "log": {"level": "ERROR"},
        "entryPoints": {
            "plain": {"address": f"127.0.0.1:{plain}", "transport": lasting},
            "secure": {"address": f"127.0.0.1:{secure}", "transport": lasting},
        },
        "providers": {"file": {"filename": str(folder / "dynamic.yaml"), "watch": False}},
    }))
    return started(bench, "Traefik", [*ONE_THREAD, program, f"--configfile={folder}/traefik.yaml"], plain, secure)


def h2o(bench):
    if not H2O.exists():
        raise Unavailable("the package h2o is not installed")
    folder, plain, secure = prepared(bench, "h2o")
    secured = {
        "certificate-file": str(bench.certificate), "key-file": str(bench.certificate_key), "minimum-version": "TLSv1.3",
        "ocsp-update-interval": 0}
    listeners = {"plain": {"port": plain}, "secure": {"port": secure, "ssl": secured}}
    paths = {"/": {"proxy.reverse.url": f"http://127.0.0.1:{bench.origin}/", "proxy.timeout.keepalive": 3_600_000}}
    # Two hosts, because each may have one listener; its configuration is YAML, which JSON is as well.
    (folder / "h2o.conf").write_text(json.dumps({
        **({"user": "root"} if os.getuid() == 0 else {}),
        "num-threads": 1, "max-connections": 15000, "http1-request-timeout": 3600, "http2-idle-timeout": 3600,
        "hosts": {
            name: {"listen": {"host": "127.0.0.1", **listener}, "paths": paths} for name, listener in listeners.items()},
    }))
    return started(bench, "h2o", [H2O, "-m", "worker", "-c", folder / "h2o.conf"], plain, secure)


def nghttpx(bench):
    if not NGHTTPX.exists():
        raise Unavailable("the package nghttp2-proxy is not installed")
    folder, plain, secure = prepared(bench, "nghttpx")
    return started(bench, "nghttpx", [
        NGHTTPX, "--conf=/dev/null", "--workers=1", "--single-process", "--no-ocsp", f"--pid-file={folder}/pid",
        f"--frontend=127.0.0.1,{plain};no-tls", f"--frontend=127.0.0.1,{secure}", f"--backend=127.0.0.1,{bench.origin}",
        "--backend-keep-alive-timeout=1h", "--frontend-keep-alive-timeout=1h", "--tls-min-proto-version=TLSv1.3",
        "--log-level=ERROR", bench.certificate_key, bench.certificate], plain, secure)


TODAY = {"Caddy": caddy, "Traefik": traefik}
HTTP2 = {**TODAY, "h2o": h2o, "nghttpx": nghttpx}
