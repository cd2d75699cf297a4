"""What stands in for everybody that a gateway talks to: an issuer of keys, WeChat, and the upstream. One process, one loop.

    standins.py FOLDER

It takes ports that the system gives and writes them to FOLDER/ports.json. The issuer answers with FOLDER/keys.json as it is
at that moment, so whoever changes the file has changed the issuer's keys; FOLDER/delay is how many seconds it is away.
WeChat is 30 ms away and knows the codes that begin with `good`.
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


def answer(body):
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body


async def skip_body(reader, head):
    if b"\r\ntransfer-encoding:" in head.lower():
        while size := int(await reader.readline() or b"0", 16):
            await reader.readexactly(size + 2)
        await reader.readuntil(b"\r\n")
    elif length := LENGTH.search(head):
        await reader.readexactly(int(length.group(1)))


class StandIns:
    """The three servers, with how often the issuer and WeChat were asked."""

    def __init__(self, folder):
        self.folder = folder
        self.calls = {"issuer": 0, "wechat": 0}

    async def keys(self, head):
        self.calls["issuer"] += 1
        await asyncio.sleep(float((self.folder / "delay").read_text()))
        return answer((self.folder / "keys.json").read_bytes())

    async def wechat(self, head):
        if b"/calls " in head:
            return answer(json.dumps(self.calls).encode())
        self.calls["wechat"] += 1
        await asyncio.sleep(WECHAT_DELAY)
        if b"code=good" in head or b"/userinfo" in head:
            said = {"openid": "o" * 28, "access_token": "t", "scope": "snsapi_userinfo", "nickname": "Ada", "unionid": "u" * 28}
        else:
            said = {"errcode": 40029, "errmsg": "invalid code"}
        return answer(json.dumps(said).encode())

    async def upstream(self, head):
        return answer(b'{"orders":[]}')

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
    asyncio.run(StandIns(pathlib.Path(sys.argv[1])).run())
