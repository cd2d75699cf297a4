"""The peers that verify tokens: each is started by its own function, which reports the reason if it cannot.

Each is configured as a careful user would: a cache of verified tokens where the peer has one, the issuer and the audience
checked, the identity as `x-auth-subject` and `x-auth-email`, and the token itself removed for the upstream.
"""

import json
import os
import pathlib
import subprocess

import install
from candidates import NGINX_MODULES, Candidate, haproxy, nginx
from machine import CANDIDATE_CORE, Failed, Unavailable, free_port
from tokens import AUDIENCE, ISSUER, KEY_ID

HERE = pathlib.Path(__file__).resolve().parent
DEBIAN_PYTHON = "/usr/bin/python3"


def need_files(*paths):
    for path in paths:
        if not os.path.exists(path):
            raise Unavailable(f"{path} is not there")


def nginx_lua(bench):
    modules = [f"{NGINX_MODULES}/{name}.so" for name in ("ndk_http_module", "ngx_http_lua_module")]
    need_files(*modules)
    settings = (
        "set $subject ''; set $email ''; access_by_lua_block { require('verify').access() } "
        "proxy_set_header x-auth-subject $subject; proxy_set_header x-auth-email $email; proxy_set_header Authorization '';")
    http = f"""lua_package_path "{HERE}/?.lua;/usr/share/lua/5.1/?.lua;;";
      lua_package_cpath "/usr/lib/x86_64-linux-gnu/lua/5.1/?.so;/usr/lib/aarch64-linux-gnu/lua/5.1/?.so;;";
      init_worker_by_lua_block {{ require("verify").configure("{bench.tokens.public}", "{ISSUER}", "{AUDIENCE}") }}"""
    return nginx(bench, "nginx with Lua", settings, head="".join(f"load_module {path};" for path in modules), http=http)


def haproxy_jwt(bench):
    frontend = f"""
  http-request set-var(txn.token) http_auth_bearer
  http-request set-var(txn.now) date()
  http-request deny deny_status 401 unless {{ var(txn.token) -m found }}
  http-request deny deny_status 401 unless {{ var(txn.token),jwt_header_query('$.alg') -m str RS256 }}
  http-request deny deny_status 401 unless {{ var(txn.token),jwt_verify("RS256","{bench.tokens.public}") -m int 1 }}
  http-request deny deny_status 401 unless {{ var(txn.token),jwt_payload_query('$.iss') -m str {ISSUER} }}
  http-request deny deny_status 401 unless {{ var(txn.token),jwt_payload_query('$.aud') -m str {AUDIENCE} }}
  http-request set-var(txn.left) var(txn.token),jwt_payload_query('$.exp','int'),sub(txn.now)
  http-request deny deny_status 401 unless {{ var(txn.left) -m int gt 0 }}
  http-request set-header x-auth-subject %[var(txn.token),jwt_payload_query('$.sub')]
  http-request set-header x-auth-email %[var(txn.token),jwt_payload_query('$.email')]
  http-request del-header authorization"""
    return haproxy(bench, "HAProxy jwt_verify", frontend=frontend)


def envoy(bench):
    """Envoy with `jwt_authn` and its cache of tokens."""
    program = install.proxy("envoy")
    port, path = free_port(), bench.work / "envoy.json"
    kind = "type.googleapis.com/envoy.extensions"
    verification = {
        "@type": f"{kind}.filters.http.jwt_authn.v3.JwtAuthentication",
        "providers": {"apple": {
            "issuer": ISSUER, "audiences": [AUDIENCE], "forward": False, "clock_skew_seconds": 1,
            "local_jwks": {"filename": str(bench.tokens.document)}, "jwt_cache_config": {"jwt_cache_size": 20000},
            "claim_to_headers": [
                {"header_name": "x-auth-subject", "claim_name": "sub"},
                {"header_name": "x-auth-email", "claim_name": "email"},
            ],
        }},
        "rules": [{"match": {"prefix": "/"}, "requires": {"provider_name": "apple"}}],
    }
    filters = [
        {"name": "envoy.filters.http.jwt_authn", "typed_config": verification},
        {"name": "envoy.filters.http.router",
         "typed_config": {"@type": f"{kind}.filters.http.router.v3.Router", "dynamic_stats": False}},
    ]
    route = {"match": {"prefix": "/"}, "route": {"cluster": "origin", "timeout": "0s"}}
    manager = {
        "@type": f"{kind}.filters.network.http_connection_manager.v3.HttpConnectionManager", "stat_prefix": "bench",
        "generate_request_id": False, "http_filters": filters,
        "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [route]}]},
    }
    def address(number):
        return {"socket_address": {"address": "127.0.0.1", "port_value": number}}

    path.write_text(json.dumps({"static_resources": {
        "listeners": [{
            "name": "all", "address": address(port),
            "filter_chains": [{"filters": [
                {"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}]}],
        "clusters": [{
            "name": "origin", "type": "STATIC",
            "load_assignment": {"cluster_name": "origin", "endpoints": [
                {"lb_endpoints": [{"endpoint": {"address": address(bench.origin)}}]}]}}],
    }}))
    command = [program, "-c", path, "--concurrency", 1, "--disable-hot-restart", "--log-level", "warning"]
    process = bench.processes.start("envoy", command, CANDIDATE_CORE)
    bench.processes.await_port(process, port)
    return Candidate("Envoy jwt_authn", process, {"http": port})


APACHE = """
ServerRoot {folder}
ServerName bench.example
PidFile {folder}/pid
ErrorLog {folder}/error.log
LogLevel error
DefaultRuntimeDir {folder}
Mutex file:{folder} default
{modules}
{user}
StartServers 1
ServerLimit 1
ThreadLimit 128
ThreadsPerChild 128
MaxRequestWorkers 128
MaxConnectionsPerChild 0
KeepAlive On
MaxKeepAliveRequests 0
KeepAliveTimeout 3600
Listen 127.0.0.1:{port}
OIDCOAuthVerifyCertFiles {key_id}#{certificate}
OIDCOAuthRemoteUserClaim sub
OIDCOAuthTokenExpiryClaim exp absolute mandatory
OIDCCacheType shm
OIDCCacheShmEntrySizeMax 66560
<Location />
  AuthType oauth20
  <RequireAll>
    Require claim iss:{issuer}
    Require claim aud:{audience}
  </RequireAll>
  RequestHeader set x-auth-subject "expr=%{{REMOTE_USER}}"
  RequestHeader set x-auth-email "%{{OIDC_CLAIM_email}}e"
  RequestHeader unset Authorization
  ProxyPass http://127.0.0.1:{origin}/ keepalive=On
</Location>
"""


def apache(bench):
    folder, modules = bench.work / "apache", "/usr/lib/apache2/modules"
    names = ["mpm_event", "authn_core", "authz_core", "authz_user", "headers", "proxy", "proxy_http", "auth_openidc"]
    need_files("/usr/sbin/apache2", *(f"{modules}/mod_{name}.so" for name in names))
    folder.mkdir(exist_ok=True)
    port = free_port()
    (folder / "apache.conf").write_text(APACHE.format(
        folder=folder, port=port, origin=bench.origin, key_id=KEY_ID, certificate=bench.tokens.certificate,
        modules="\n".join(f"LoadModule {name}_module {modules}/mod_{name}.so" for name in names),
        user="User www-data\nGroup www-data" if os.getuid() == 0 else "", issuer=ISSUER, audience=AUDIENCE))
    process = bench.processes.start(
        "apache", ["/usr/sbin/apache2", "-D", "FOREGROUND", "-f", folder / "apache.conf"], CANDIDATE_CORE)
    try:
        bench.processes.await_port(process, port)
    except Failed as error:
        log = folder / "error.log"
        raise Failed(f"{error} {log.read_text()[-300:] if log.exists() else ''}") from None
    return Candidate("Apache mod_auth_openidc", process, {"http": port})


def python_gateway(bench):
    found = subprocess.run([DEBIAN_PYTHON, "-c", "import aiohttp, jwt, cryptography"], capture_output=True, text=True)
    if found.returncode != 0:
        raise Unavailable(f"Debian's Python says: {found.stderr.strip().splitlines()[-1]}")
    port = free_port()
    process = bench.processes.start(
        "python", [DEBIAN_PYTHON, HERE / "gateway.py", port, bench.origin, bench.tokens.public, ISSUER, AUDIENCE],
        CANDIDATE_CORE)
    bench.processes.await_port(process, port)
    return Candidate("Python with aiohttp", process, {"http": port})


VERIFYING = {
    "nginx with Lua": nginx_lua,
    "HAProxy jwt_verify": haproxy_jwt,
    "Envoy jwt_authn": envoy,
    "Apache mod_auth_openidc": apache,
    "Python with aiohttp": python_gateway,
}
