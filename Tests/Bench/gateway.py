#!/usr/bin/python3
"""A small gateway of the kind that teams write themselves: aiohttp on both sides, PyJWT in between, and a dictionary as the
cache.

    gateway.py PORT UPSTREAM-PORT KEY-FILE ISSUER AUDIENCE
"""

import sys
import time

import aiohttp
import aiohttp.web
import jwt

HOP = {"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "content-length", "host", "authorization"}


class Gateway:
    def __init__(self, upstream, key, issuer, audience):
        self.upstream, self.key, self.issuer, self.audience = upstream, key, issuer, audience
        self.verified = {}

    def caller(self, field):
        """The claims of a valid token; None for any other."""
        if not field.startswith("Bearer "):
            return None
        token = field[7:]
        claims = self.verified.get(token)
        if claims is None:
            try:
                claims = jwt.decode(token, self.key, algorithms=["RS256"], audience=self.audience, issuer=self.issuer)
            except jwt.PyJWTError:
                return None
            self.verified[token] = claims
        return claims if claims["exp"] > time.time() else None

    async def handle(self, request):
        claims = self.caller(request.headers.get("Authorization", ""))
        if claims is None:
            return aiohttp.web.Response(status=401)
        headers = {
            name: value for name, value in request.headers.items()
            if name.lower() not in HOP and not name.lower().startswith("x-auth-")
        }
        headers["X-Auth-Subject"], headers["X-Auth-Email"] = claims["sub"], claims.get("email", "")
        async with self.session.request(
            request.method, f"http://127.0.0.1:{self.upstream}{request.path_qs}", headers=headers, data=await request.read()
        ) as response:
            return aiohttp.web.Response(status=response.status, body=await response.read(), content_type=response.content_type)

    async def clients(self, application):
        async with aiohttp.ClientSession() as self.session:
            yield


def main():
    port, upstream, key, issuer, audience = sys.argv[1:]
    gateway = Gateway(upstream, open(key).read(), issuer, audience)
    application = aiohttp.web.Application()
    application.cleanup_ctx.append(gateway.clients)
    application.router.add_route("*", "/{path:.*}", gateway.handle)
    aiohttp.web.run_app(application, host="127.0.0.1", port=int(port), access_log=None, print=None)


if __name__ == "__main__":
    main()
