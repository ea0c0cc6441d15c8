"""A webhook receiver at minimal cost: python -m benchmarks.sink PORT DELAY_MS

Answers every request with 200 after the delay. GET /seen returns when each webhook-id first
arrived, as JSON, and clears the record.
"""

import asyncio
import json
import re
import sys
import time

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
ID = re.compile(rb"webhook-id: *([^\r]+)", re.IGNORECASE)


class Sink(asyncio.Protocol):
    delay = 0.0
    seen: dict[str, float] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.received = b""

    def data_received(self, data: bytes) -> None:
        self.received += data
        while b"\r\n\r\n" in self.received:
            head, rest = self.received.split(b"\r\n\r\n", 1)
            length = LENGTH.search(head)
            size = int(length[1]) if length else 0
            if len(rest) < size:
                return
            self.received = rest[size:]
            self.answer(head)

    def answer(self, head: bytes) -> None:
        if head.startswith(b"GET /seen"):
            body = json.dumps(self.seen).encode()
            self.seen.clear()
            self.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            return
        if identifier := ID.search(head):
            self.seen.setdefault(identifier[1].decode(), time.time())
        if self.delay:
            asyncio.get_running_loop().call_later(self.delay, self.write, OK)
        else:
            self.write(OK)

    def write(self, answer: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(answer)


async def serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Sink, "127.0.0.1", port, backlog=512)
    await server.serve_forever()


if __name__ == "__main__":
    Sink.delay = float(sys.argv[2]) / 1000
    asyncio.run(serve(int(sys.argv[1])))
