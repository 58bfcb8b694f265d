"""A client of completions that tells apart how a stream ended."""
import asyncio
import json
import time


class Result:
    def __init__(self):
        self.status = 0
        self.replica = None  # as X-Replica names it; None: no reply came
        self.tokens = 0
        self.first_seconds = None  # until the first token
        self.done = False  # [DONE] came, and no error before it
        self.ended = False
        self.error = ""

    @property
    def ok(self):
        return self.status == 200 and self.done


class Stream:
    def __init__(self, port, body, session):
        self.port, self.body, self.session = port, body, session
        self.result = Result()

    async def run(self):
        try:
            await asyncio.wait_for(self._run(), 240)
        except (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError, ValueError) as error:
            self.result.error = self.result.error or f"{type(error).__name__}: {error}"
        self.result.ended = True
        if not self.result.ok and not self.result.error:
            self.result.error = f"status {self.result.status}, {self.result.tokens} tokens"
        return self.result

    async def _run(self):
        began = time.monotonic()
        body = json.dumps(self.body).encode()
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            header = f"X-Session-Id: {self.session}\r\n" if self.session is not None else ""
            writer.write((f"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n{header}"
                          f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
                          f"Connection: close\r\n\r\n").encode() + body)
            await self._read(reader, began)
        finally:
            writer.close()

    async def _read(self, reader, began):
        result = self.result
        result.status = int((await reader.readuntil(b"\r\n")).split()[1])
        chunked = False
        while True:
            line = (await reader.readuntil(b"\r\n")).decode().strip()
            if not line:
                break
            name, _, value = line.partition(":")
            if name.lower() == "x-replica":
                # nginx lists all that it tried.
                result.replica = value.split(",")[-1].strip()
            chunked |= name.lower() == "transfer-encoding" and "chunked" in value
        if result.status != 200 or not chunked:
            result.error = (await reader.read(2000)).decode(errors="replace")[:200]
            return
        text = b""
        while True:
            size = int((await reader.readuntil(b"\r\n")).strip(), 16)
            text += (await reader.readexactly(size + 2))[:size]
            *lines, text = text.split(b"\n")
            for line in lines:
                self._take(line, began)
            if size == 0:
                return

    def _take(self, line, began):
        result = self.result
        if line == b"data: [DONE]":
            result.done = not result.error
        elif line.startswith(b"data: "):
            event = json.loads(line[6:])
            if "error" in event:
                result.error = json.dumps(event["error"])
            elif event.get("choices"):
                if result.tokens == 0:
                    result.first_seconds = time.monotonic() - began
                result.tokens += 1


async def stream(port, body, session):
    return await Stream(port, body, session).run()
