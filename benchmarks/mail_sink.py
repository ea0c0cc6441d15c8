"""A mail server at minimal cost: python -m benchmarks.mail_sink PORT

Accepts every message and forgets it.
"""

import asyncio
import sys

REPLIES = {b"DATA": b"354 Go on\r\n", b"QUIT": b"221 Bye\r\n"}
OK = b"250 OK\r\n"


async def receive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"220 benchmark\r\n")
    command = b""
    while command != b"QUIT" and (line := await reader.readline()):
        command = line[:4].upper()
        writer.write(REPLIES.get(command, OK))
        if command == b"DATA":
            await reader.readuntil(b"\r\n.\r\n")
            writer.write(OK)
    writer.close()


async def serve(port: int) -> None:
    server = await asyncio.start_server(receive, "127.0.0.1", port, backlog=512)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
