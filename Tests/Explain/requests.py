"""Requests for a configuration, most of which reach a decision of their route."""

import base64

import fixtures
import wire

NAVIGATION = [("Accept", "text/html"), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "document")]
SOCKET = [("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="), ("Sec-WebSocket-Version", "13")]
ENDPOINTS = [("GET", "/auth/account"), ("GET", "/auth/session"), ("POST", "/auth/refresh"), ("GET", "/auth/sign-in"), ("GET", "/auth/nowhere"),
             ("POST", "/auth/nonce"), ("GET", "/auth/check"), ("DELETE", "/auth/account"), ("GET", "/.well-known/jwks.json")]
CRUDE = [("TRACE", "/a/x"), ("get", "/a/x"), ("GET", "/a/./x"), ("GET", "/a//x"), ("GET", "/a/%2e%2e/b"), ("GET", "/a/x%2fy"), ("GET", "/a/%25x"),
         ("GET", "/a/%zz"), ("GET", "/a;/x"), ("GET", "/a/x%00"), ("GET", "/" + "a" * 9000), ("GET", "/a/\\x"), ("G T", "/a/x")]
BROKEN = [("Host", "other.example"), ("Content-Length", "1x"), ("Transfer-Encoding", "gzip"), ("Bad Name", "x"), ("X-Long", "y" * 20_000), ("Expect", "magic"),
          ("X-Control", "a\tb"), ("Cookie", "martlet=a; martlet=b")]


def basic(name, password):
    return ("Authorization", "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode())


def credentials(stand, route):
    """Those that the route accepts, each with how often it is taken."""
    shared, found = stand.shared, []
    if "password" in route.providers:
        if route.kinds != "direct":
            found += [[("Authorization", f"Bearer {token}")] for token in stand.sessions]
            found += [[("Cookie", stand.cookie)], [("Cookie", f"a=1; {stand.cookie}; b=2")], [("Cookie", stand.cookie), *NAVIGATION]] if stand.cookie else []
        if route.kinds != "session":
            found.append([basic("ada", fixtures.PASSWORD)])
    if route.kinds == "session":
        return found
    if "keys" in route.providers:
        found += [[form(key)] for key in shared.good_keys for form in (lambda key: ("X-Api-Key", key), lambda key: ("Authorization", f"Bearer {key}"))]
    if "company" in route.providers:
        found += [[("Authorization", f"Bearer {token}")] for token in shared.good_tokens]
    return found


def other_credentials(stand):
    """Those that no route accepts, or few."""
    shared = stand.shared
    found = [[("Authorization", f"Bearer {one}")] for one in shared.bad_tokens + shared.bad_keys + shared.good_tokens[:1] + shared.good_keys[:1]]
    found += [[("Authorization", f"Bearer {token}")] for token in stand.sessions] + [[("X-Api-Key", one)] for one in shared.bad_keys + [""]]
    found += [[("Authorization", value)] for value in ("Bearer mat_unknown", "Bearer mat_" + "A" * 75, "Digest x", "Bearer", "Basic x", "Bearer a b", "DPoP " + shared.good_tokens[0])]
    found += [[basic("ada", "wrong")], [basic("bob", fixtures.PASSWORD)], [basic("nobody", "x")]]
    found += [[("Cookie", value)] for value in ("a=1; martlet=mct_unknown", "martlet=" + "mct_" + "A" * 75, "martlet=a; martlet=b", "a=1", "martlet=")]
    if stand.blocked:
        found += [[("Authorization", f"Bearer {stand.blocked}")]] * 2
    if stand.bound:
        found += [[("Authorization", f"{scheme} {stand.bound}"), *proof] for scheme in ("DPoP", "Bearer") for proof in ([], [("DPoP", "x.y.z")])]
    if stand.cookie:
        found += [[("Cookie", stand.cookie), ("Authorization", "Bearer x")], [("Cookie", stand.cookie), ("X-Api-Key", shared.good_keys[0])]]
    found += [[("X-Api-Key", shared.good_keys[0]), ("Authorization", f"Bearer {shared.good_keys[0]}")]]
    return found


def matching_target(chance, route):
    pattern = route.match.get("path", "")
    if "path_regex" in route.match:
        path = route.prefix + chance.choice(["/x", "/12", "/abc"])
    elif pattern.endswith("/**"):
        path = route.prefix + chance.choice(["/x", "/x/y", "/x/y/z", "", "/", "/x/", "/%78", "/é", "/a%20b", "/x?"])
    else:
        path = route.prefix + chance.choice(["/x", "/x", "/x", "/xy"])
    query = chance.choice(["", "", "", "?q=1", "?q=2&r=%2F", "?return_to=%2F", "?é"])
    if "query" in route.match:
        query = "" if "present: false" in route.match["query"] else "?q=1"
    return path.split("?")[0] + ("?" if path.endswith("?") and not query else query)


def matching_fields(chance, route):
    condition = route.match.get("headers", "")
    if not condition or "present: false" in condition:
        return []
    return [("X-Version", "v2" if "prefix" in condition else "2")]


def ornaments(stand, chance, method):
    """Fields that have a meaning for some route, or must not reach an upstream."""
    one = chance.choice
    fields = [("X-Device", one(["1", "2", "3"]))] if chance.random() < 0.5 else []
    if chance.random() < 0.3:
        fields += one([NAVIGATION, NAVIGATION, [("Accept", "text/html,*/*;q=0.8")], [("Sec-Fetch-Mode", "cors"), ("Sec-Fetch-Site", "same-origin")]])
    if chance.random() < 0.15:
        fields.append(("Sec-Fetch-Site", one(["cross-site", "same-site", "none"])))
    if chance.random() < 0.25:
        fields.append(("Origin", one(["https://web.example.com", "https://a.web.example.com", "https://evil.example", "null", f"http://127.0.0.1:{stand.clear}"])))
    if chance.random() < 0.3:
        fields.append(one([("X-Auth-Subject", "root"), ("X_Kind", "forged"), ("X-Debug", "1"), ("X-Forwarded-For", "9.9.9.9"), ("X-Real-IP", "9.9.9.9"),
                           ("X-HTTP-Method-Override", "DELETE"), ("Forwarded", "for=9.9.9.9"), ("X-Request-Id", "mine"), ("X-Mirrored", "1"), ("TE", "trailers"),
                           ("X-Forwarded-Host", "evil.example"), ("X-Forwarded-Proto", "https"), ("Client-Cert", ":AAAA:"), ("Accept-Language", "zh-CN"),
                           ("X-Token", "mat_" + "A" * 75), ("Cookie", "c=3"), ("Proxy-Authorization", "Basic x"), ("Keep-Alive", "5"), ("X-Auth-Assertion", "x")]))
    if chance.random() < 0.03:
        fields += [("Connection", "X-Debug, close"), ("X-Debug", "hop")]
    if chance.random() < 0.03 and stand.via:
        fields.append(("Via", one([stand.via, "1.1 other, " + stand.via, "1.1 martlet-00000000"])))
    if method == "GET" and chance.random() < 0.1 and not any(name == "Connection" for name, _ in fields):
        fields += one([SOCKET, SOCKET, SOCKET, SOCKET, [("Connection", "Upgrade"), ("Upgrade", "acme/2")], [("Connection", "Upgrade"), ("Upgrade", "h2c")],
                       SOCKET[:2], SOCKET[:3] + [("Sec-WebSocket-Version", "8")], [("Connection", "Upgrade"), ("Upgrade", "other")]])
    return fields


def aimed(stand):
    """A request that is meant for one of the routes, with a credential that it accepts more often than not."""
    chance = stand.chance
    route = chance.choice(stand.routes)
    method = chance.choice(route.methods) if route.methods and chance.random() < 0.85 else chance.choice(["GET", "GET", "GET", "POST", "HEAD", "DELETE", "OPTIONS", "PATCH"])
    host = chance.choice(["api.example.com", "API.example.com:8080"]) if route.hosts and chance.random() < 0.9 else chance.choice(["127.0.0.1", "www.example.com", "127.0.0.1:80"])
    fields = matching_fields(chance, route) if chance.random() < 0.9 else []
    draw = chance.random()
    accepted = credentials(stand, route)
    if draw < 0.65 and accepted and route.mode != "none":
        fields += chance.choice(accepted)
    elif draw < 0.9:
        fields += chance.choice(other_credentials(stand))
    fields += ornaments(stand, chance, method)
    request = wire.Request(method, matching_target(chance, route), host, fields)
    if method in ("POST", "PUT", "PATCH", "DELETE"):
        request.body = b"x" * chance.choice([0, 0, 10, 60, 120, 200])
        request.is_chunked = 0 < len(request.body) < 100 and chance.random() < 0.3
    return request


def preflight(stand):
    chance = stand.chance
    route = chance.choice([one for one in stand.routes if "cors" in one.lines] or stand.routes)
    fields = [("Origin", chance.choice(["https://web.example.com", "https://a.b.example.com", "https://evil.example"]))]
    fields += [("Access-Control-Request-Method", chance.choice(route.methods or ["GET", "POST", "PUT", "PATCH"]))] if chance.random() < 0.9 else []
    host = "api.example.com" if route.hosts else "127.0.0.1"
    request = wire.Request("OPTIONS", matching_target(chance, route), host, fields + matching_fields(chance, route))
    request.body = b"x" * chance.choice([0, 0, 0, 120, 200])
    return request


def crude(stand):
    """A request that is rejected before routing by most configurations."""
    chance = stand.chance
    method, target = chance.choice(CRUDE)
    fields = []
    if chance.random() < 0.5:
        method, target, fields = "GET", chance.choice(stand.routes).prefix + "/x", [chance.choice(BROKEN)]
    elif chance.random() < 0.3:
        method, target, fields = "GET", "/a/x", [(f"X-{number}", "x") for number in range(chance.choice([30, 150]))]
    return wire.Request(method, target, "127.0.0.1", fields)


def built_in(stand):
    method, target = stand.chance.choice(ENDPOINTS + ([("GET", stand.health), ("POST", stand.health)] if stand.health else []))
    return wire.Request(method, target, "127.0.0.1", [])


def nowhere(stand):
    return wire.Request("GET", stand.chance.choice(["/nowhere", "/", "/ab", "/auth.x"]), "127.0.0.1", stand.chance.choice([[], NAVIGATION]))


def make(stand):
    """The next request."""
    maker = stand.chance.choices([aimed, preflight, crude, built_in, nowhere], [85, 5, 5, 3, 2])[0]
    request = maker(stand)
    request.is_crude = maker is crude
    request.is_secure = stand.chance.random() < (0.7 if stand.redirects else 0.2)
    if request.is_secure and maker is aimed and stand.chance.random() < 0.15:
        request.certificate = stand.chance.choice(["client", "client", "stranger"])
        # Beside another credential it counts for nothing.
        if stand.chance.random() < 0.7:
            request.fields = [field for field in request.fields if field[0] not in ("Authorization", "Cookie", "X-Api-Key")]
    return request


# Checks

def check(stand, request):
    """The check with which a proxy asks about a request."""
    chance = stand.chance
    host, scheme = request.host, "https" if request.is_secure else "http"
    kind = chance.choice(["forwarded", "original", "path"])
    query = chance.choice(["", "", "?deny=403", "?browser=1"]) if kind != "path" else ""
    if kind == "forwarded":
        fields = [("X-Forwarded-Method", request.method), ("X-Forwarded-Proto", scheme), ("X-Forwarded-Host", host), ("X-Forwarded-Uri", request.target)]
        found = wire.Request("GET", "/auth/check" + query, "auth.internal", fields + request.fields)
    elif kind == "original":
        fields = [("X-Original-URI", request.target), ("X-Original-Method", request.method)]
        found = wire.Request("GET", "/auth/check" + query, host, fields + request.fields)
    else:
        found = wire.Request(request.method, "/auth/check" + request.target, host, request.fields)
    found.deny, found.redirects = "deny=403" in query, "browser=1" in query
    return found


def may_be_checked(stand, request):
    """Whether a check describes it: without a body, and without what a trusted proxy says about itself."""
    if request.is_crude or stand.health and request.target.split("?")[0] == stand.health:
        return False
    names = {name.lower() for name, _ in request.fields}
    own = {"x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "forwarded", "client-cert", "upgrade", "via", "connection", "x-real-ip", "x-request-id", "expect"}
    return not request.body and not request.certificate and not names & own and request.target.isascii() and request.method != "OPTIONS" \
        and request.target.split("?")[0].startswith(("/a", "/b", "/c", "/d")) and not request.has("transfer-encoding") and not request.has("content-length")
