"""Simulates the services that a gateway uses: an issuer of keys, WeChat, and the upstream. One process, one loop.

    simulators.py FOLDER

It listens on ports chosen by the system and writes them to FOLDER/ports.json. The issuer serves the current FOLDER/keys.json,
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
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


def response(body):
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body


async def skip_body(reader, head):
    if b"\r\ntransfer-encoding:" in head.lower():
        while size := int(await reader.readline() or b"0", 16):
            await reader.readexactly(size + 2)
        await reader.readuntil(b"\r\n")
    elif length := LENGTH.search(head):
        await reader.readexactly(int(length.group(1)))


class Simulators:
    """The three servers, with the number of requests to the issuer and WeChat."""

    def __init__(self, folder):
        self.folder = folder
        self.calls = {"issuer": 0, "wechat": 0}

    async def keys(self, head):
        self.calls["issuer"] += 1
        await asyncio.sleep(float((self.folder / "delay").read_text()))
        return response((self.folder / "keys.json").read_bytes())

    async def wechat(self, head):
        if b"/calls " in head:
            return response(json.dumps(self.calls).encode())
        self.calls["wechat"] += 1
        await asyncio.sleep(WECHAT_DELAY)
        if b"code=good" in head or b"/userinfo" in head:
            said = {"openid": "o" * 28, "access_token": "t", "scope": "snsapi_userinfo", "nickname": "Ada", "unionid": "u" * 28}
        else:
            said = {"errcode": 40029, "errmsg": "invalid code"}
        return response(json.dumps(said).encode())

    async def upstream(self, head):
        return response(b'{"orders":[]}')

    def serve(self, respond):
        async def connection(reader, writer):
            try:
                while True:
                    head = await reader.readuntil(b"\r\n\r\n")
                    await skip_body(reader, head)
                    writer.write(await respond(head))
            except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, ValueError):
                pass
            finally:
                writer.close()

        return asyncio.start_server(connection, "127.0.0.1", 0, backlog=4096)

    async def run(self):
        servers = {name: await self.serve(getattr(self, name)) for name in ("keys", "wechat", "upstream")}
        ports = {name: server.sockets[0].getsockname()[1] for name, server in servers.items()}
        (self.folder / "ports.new").write_text(json.dumps(ports))
        os.replace(self.folder / "ports.new", self.folder / "ports.json")
        await asyncio.gather(*(server.serve_forever() for server in servers.values()))


if __name__ == "__main__":
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    asyncio.run(Simulators(pathlib.Path(sys.argv[1])).run())
