"""Simulates the services that a gateway uses: an issuer of keys, WeChat, and the upstream. One process, one loop.

    simulators.py FOLDER NAME

It listens on ports chosen by the system and writes them to FOLDER/NAME.json. The issuer serves the current FOLDER/keys.json,
so changing the file changes the issuer's keys; FOLDER/delay is its response time in seconds.
WeChat responds after 30 ms and knows the codes that begin with `good`.
"""

import asyncio
import json
import os
import pathlib
import re
import resource
import sys

WECHAT_DELAY = 0.03
SLOW = 5
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


def response(body):
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body


async def read_body(reader, head):
    """:returns: the body, unless it is chunked: then it is skipped."""
    if b"\r\ntransfer-encoding:" in head.lower():
        while size := int(await reader.readline() or b"0", 16):
            await reader.readexactly(size + 2)
        await reader.readuntil(b"\r\n")
    elif length := LENGTH.search(head):
        return await reader.readexactly(int(length.group(1)))
    return b""


class Simulators:
    """The three servers, with the number of requests to the issuer and WeChat."""

    def __init__(self, folder, name):
        self.folder, self.name = folder, name
        self.calls = {"issuer": 0, "wechat": 0}

    async def keys(self, head, body):
        self.calls["issuer"] += 1
        await asyncio.sleep(float((self.folder / "delay").read_text()))
        return response((self.folder / "keys.json").read_bytes())

    async def wechat(self, head, body):
        if b"/calls " in head:
            return response(json.dumps(self.calls).encode())
        self.calls["wechat"] += 1
        await asyncio.sleep(WECHAT_DELAY)
        if b"code=good" in head or b"/userinfo" in head:
            said = {"openid": "o" * 28, "access_token": "t", "scope": "snsapi_userinfo", "nickname": "Ada", "unionid": "u" * 28}
        else:
            said = {"errcode": 40029, "errmsg": "invalid code"}
        return response(json.dumps(said).encode())

    async def upstream(self, head, body):
        if b"/slow " in head:
            await asyncio.sleep(SLOW)
        elif b"/verify " in head:
            await asyncio.sleep(WECHAT_DELAY)
            return response(b'{"active":true,"subject":"partner"}' if b"pt_good" in body else b'{"active":false}')
        return response(b'{"orders":[]}')

    def serve(self, respond):
        async def connection(reader, writer):
            try:
                while True:
                    head = await reader.readuntil(b"\r\n\r\n")
                    body = await read_body(reader, head)
                    writer.write(await respond(head, body))
            except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, ValueError):
                pass
            finally:
                writer.close()

        return asyncio.start_server(connection, "127.0.0.1", 0, backlog=4096)

    async def run(self):
        servers = {name: await self.serve(getattr(self, name)) for name in ("keys", "wechat", "upstream")}
        ports = {name: server.sockets[0].getsockname()[1] for name, server in servers.items()}
        incomplete = self.folder / f"{self.name}.new"
        incomplete.write_text(json.dumps(ports))
        os.replace(incomplete, self.folder / f"{self.name}.json")
        await asyncio.gather(*(server.serve_forever() for server in servers.values()))


if __name__ == "__main__":
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    asyncio.run(Simulators(pathlib.Path(sys.argv[1]), sys.argv[2]).run())
