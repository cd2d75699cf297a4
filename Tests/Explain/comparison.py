"""What the gateway did otherwise than explained."""

import wire

OWN_FIELDS = ("x-auth-", "x-kind", "x-role", "x-teams", "x-claims", "x-name")
# What an upstream gets of these is not the client's, whatever happens to it.
FRAMING = {"host", "authorization", "connection", "content-length", "transfer-encoding", "upgrade", "expect", "cookie"}


def stand_route(stand, document):
    """The generated route that was explained, if one was found."""
    return next((one for one in stand.routes if document["route"] and one.name == document["route"]["name"]), None)


class Limiter:
    """The rate limits of a configuration, whose tokens do not come back within a run."""

    def __init__(self, stand):
        self.stand = stand
        self.left = {}

    def exceeded(self, request, document, is_check):
        """The limit that rejects the request, if there is one; takes its tokens otherwise."""
        route, decision = stand_route(self.stand, document), document["decision"]
        if route is None or decision.get("reason") == "request.body_too_large" or decision["outcome"] == "answered_here":
            return None
        takes = [(name, *self.stand.limits[name]) for name in route.rate]
        passes = route.kind not in (("redirect", "respond") if is_check else ("checks",)) and decision["outcome"] in ("forwarded", "responded") or decision.get("reason") in (
            "request.loop_detected", "router.bad_rewrite", "router.bad_redirect")
        needs_caller = [one for one in takes if "subject" in one[1] or "provider" in one[1]]
        taken = []
        for name, keys, burst in [one for one in takes if one not in needs_caller] + (needs_caller if passes else []):
            bucket = (name, *self.values(keys, request, document, route, is_check))
            if self.left.setdefault(bucket, burst) < 1:
                for one in taken:
                    self.left[one] += 1
                return name
            self.left[bucket] -= 1
            taken.append(bucket)
        return None

    def values(self, keys, request, document, route, is_check):
        principal = document["principal"] or {}
        known = {
            "address": "unix" if is_check else "127.0.0.1", "host": request.host.split(":")[0].lower(), "route": route.name,
            "header:X-Device": next((value for name, value in request.fields if name == "X-Device"), None),
            "subject": principal.get("subject"), "provider": principal.get("provider")}
        return [known[key.strip("\" ")] for key in keys.strip("[]").split(",")]


class Comparison:
    """One request, with what was explained and what came of it."""

    def __init__(self, stand, request, document, response, limit=None, check=None):
        self.stand, self.request, self.document, self.response, self.limit, self.check = stand, request, document, response, limit, check
        self.decision = document["decision"]
        self.route = stand_route(stand, document)
        self.line = {}
        self.got = stand.upstreams.got.pop(response.id, [])

    @property
    def outcome(self):
        """What happened, for the table."""
        kind = "check: " if self.check else ""
        if self.limit:
            return kind + "limited 429 throttled"
        if not self.check and self.serves_checks_only:
            return "checks only 404 router.checks_only"
        name = self.decision["outcome"]
        if name == "forwarded" and self.response.status == 101:
            name = "switched"
        parts = [name, str(self.response.status), self.decision.get("reason", "")]
        return kind + " ".join(part for part in parts if part)

    def differences(self):
        if self.decision.get("reason") == "session.store_not_shared":
            return
        if self.limit:
            yield from self.limited()
        elif self.check:
            yield from self.checked()
        elif self.serves_checks_only:
            yield from self.same("checks only", (404, []), (self.response.status, self.got))
            yield from self.same("reason", "router.checks_only", self.line.get("reason"))
            return
        elif self.decision["outcome"] == "answered_here":
            if self.got:
                yield "served here, but forwarded"
        elif self.decision["outcome"] == "forwarded":
            yield from self.forwarded()
        else:
            yield from self.responded()
        if not self.check and not self.limit:
            yield from self.fields_of_response()
            yield from self.logged()

    @property
    def serves_checks_only(self):
        """Whether the route has nothing to forward to; what is decided about a check of the request is explained."""
        return self.route is not None and self.route.kind == "checks" and self.decision["outcome"] != "preflight" and \
            not self.decision.get("reason", "").startswith(("request.", "upgrade."))

    def limited(self):
        status = 403 if self.check and self.denies_alike else 429
        if self.response.status != status or not self.response.values("retry-after"):
            yield f"limit {self.limit} is exceeded, but {self.response}"

    def same(self, what, explained, got):
        if explained != got:
            yield f"{what} {explained!r}, but {got!r}"

    # Requests that reach an upstream

    def forwarded(self):
        if self.response.status not in (200, 101) or len(self.got) != 1:
            yield f"forwarded, but {self.response} and {len(self.got)} requests upstream"
            return
        got, upstream = self.got[0], self.document["upstream"]
        if upstream["name"]:
            yield from self.same("upstream", upstream["name"], self.stand.names[got["port"]])
        if upstream["endpoint"]:
            yield from self.same("endpoint", upstream["endpoint"], f"http://127.0.0.1:{got['port']}")
        yield from self.same("target", self.target(upstream["path"]), got["target"])
        yield from self.identity(got["fields"])
        yield from self.client_fields(got["fields"])

    def target(self, path):
        """With the client's query, whose bytes beyond ASCII are encoded."""
        _, mark, query = self.request.target.partition("?")
        query = "".join(one if one.isascii() else "".join(f"%{byte:02X}" for byte in one.encode()) for one in query)
        if "?" in path:
            return path + (f"&{query}" if query else "")
        return path + mark + query

    def identity(self, fields):
        got = sorted((name.lower(), value) for name, value in fields if name.lower().startswith(OWN_FIELDS))
        explained = sorted((one["name"].lower(), one["value"]) for one in self.document["headers"])
        # The account of somebody who was not here before has no subject until it is made, and an assertion is signed anew.
        unknown = {name for name, value in explained if value == "usr_(new)"} | {"x-auth-assertion"}

        def blurred(fields):
            return [(name, "…" if name in unknown else value) for name, value in fields]

        yield from self.same("headers", blurred(explained), blurred(got))

    def client_fields(self, fields):
        removed = [name.lower() for name in self.document["removed_headers"]]
        for name, value in self.request.sent_fields:
            key = name.lower()
            if key in FRAMING:
                continue
            is_kept = any(other.lower() == key and text == value for other, text in fields)
            if is_kept == (key in removed):
                yield f"{name} {'removed' if key in removed else 'kept'}, but {[one for one in fields if one[0].lower() == key]}"
        cookies = self.request.has("cookie"), any(name.lower() == "cookie" for name, _ in fields)
        if cookies[0] and cookies[1] == ("cookie" in removed) and len([1 for name, _ in self.request.fields if name == "Cookie"]) == 1:
            yield f"Cookie {'removed' if 'cookie' in removed else 'kept'}, but {[one for one in fields if one[0].lower() == 'cookie']}"
        is_consumed = "Authorization, which the gateway consumes" in self.document.get("text", "") or "authorization" in removed
        if "text" in self.document and self.request.has("authorization") and is_consumed == any(name.lower() == "authorization" for name, _ in fields):
            yield f"Authorization {'consumed' if is_consumed else 'forwarded'}, but otherwise"

    # Responses of the gateway

    def responded(self):
        if self.got:
            yield f"{self.decision}, but forwarded"
        if self.decision["status"] != self.response.status:
            yield f"{self.decision}, but {self.response}"
            return
        location = self.response.values("location")
        yield from self.same("location", self.decision.get("location"), location[0] if location else None)
        if self.decision["outcome"] in ("responded", "preflight"):
            return
        code = self.response.document.get("code")
        if code is not None:
            yield from self.same("code", self.decision["code"], code)
        for name, key in (("www-authenticate", "www_authenticate"), ("allow", "allow")):
            explained = self.decision.get(key) or []
            yield from self.same(name, sorted([explained] if isinstance(explained, str) else explained), sorted(self.response.values(name)))

    def fields_of_response(self):
        """The fields that the route sets or removes, and the cookies that are deleted."""
        # The command prints it alone.
        if "text" not in self.document:
            return
        lines = [line.split("sets ", 1)[1] for line in self.document["text"].splitlines() if "sets " in line and ": " in line.split("sets ", 1)[1]]
        explained = self.decision.get("set_cookie", [])
        for line in lines:
            name, _, value = line.partition(": ")
            if name == "Set-Cookie":
                explained = explained + [value]
            elif not line.endswith(", by cors") and self.response.status != 101:
                if value not in self.response.values(name.lower()) and not (name == "Cache-Control" and self.decision["outcome"] != "forwarded"):
                    yield f"sets {line}, but {self.response.values(name.lower())}"
        if self.decision["outcome"] == "answered_here":
            return
        if self.response.values("x-frame-options") and "X-Frame-Options: DENY" not in lines and not self.response.values("content-security-policy"):
            yield f"no X-Frame-Options, but {self.response.values('x-frame-options')}"
        yield from self.same("cookies", deletions(explained), deletions(self.response.values("set-cookie")))
        yield from self.cross_origin()

    def cross_origin(self):
        def of_cors(lines):
            return sorted(line for line in lines if line.lower().startswith("access-control-"))

        if not self.document["cors"]:
            return
        yield from self.same("cors", of_cors(self.document["cors"]), of_cors(f"{name}: {value}" for name, value in self.response.fields))
        if "Vary: Origin" in self.document["cors"] and "origin" not in ", ".join(self.response.values("vary")).lower():
            yield f"Vary: Origin, but {self.response.values('vary')}"

    def logged(self):
        if not self.line or self.decision["outcome"] == "answered_here":
            return
        yield from self.same("route", self.document["route"]["name"] if self.document["route"] else "-", self.line["route"])
        reason = self.decision.get("reason", "ok")
        # A proof is not looked at, which would use it up.
        if self.response.status != 101 and not (reason == "auth.proof_missing" and self.line["reason"].startswith("dpop.")):
            yield from self.same("reason", reason, self.line["reason"])
        yield from self.same("condition", self.decision.get("condition"), self.line.get("condition"))
        if self.document["principal"] and self.line.get("subject") and not self.document["principal"]["new_account"]:
            yield from self.same("subject", self.document["principal"]["subject"], self.line["subject"])

    # Checks

    @property
    def denies_alike(self):
        return self.check.deny or "deny: 403" in self.stand.text

    def checked(self):
        """A check has the decision about the request as its own status, without what only a response to a client has."""
        name, status = self.decision["outcome"], self.decision.get("status")
        redirects = self.check.redirects or "forward_auth: { browser: true" in self.stand.text or ", browser: true }" in self.stand.text
        if self.got:
            yield "a check, but forwarded"
        route = self.route
        if name == "answered_here" or route and route.kind in ("redirect", "respond"):
            yield from self.same("check of what is served here", 403, self.response.status)
            return
        elif self.decision.get("reason") == "router.bad_rewrite":
            # The path for an upstream is the proxy's to write.
            yield from self.same("check", 200, self.response.status)
        elif name == "forwarded":
            yield from self.same("check", 200, self.response.status)
            if self.response.status == 200:
                fields = [(key, value) for key, value in self.response.fields if value]
                yield from self.identity(fields)
        elif status == 302 and not redirects:
            yield from self.same("check", 401, self.response.status)
        elif status in (404, 405) or status in (400, 429, 503, 414, 431) and self.denies_alike and status in (400, 429, 503):
            yield from self.same("check", 403, self.response.status)
        elif not (redirects and self.response.status == 302 and status == 401):
            yield from self.same("check", status, self.response.status)
        code = self.response.document.get("code")
        if code and name == "refused" and status != 302 and self.response.status != 302:
            yield from self.same("code", self.decision["code"], code)


def deletions(cookies):
    return sorted(one.split("=")[0] for one in cookies if "Max-Age=0" in one)
