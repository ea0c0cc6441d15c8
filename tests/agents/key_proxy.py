"""A proxy that adds a key to each request, for programs that can send none."""

import contextlib
import http.client
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

PER_CONNECTION = ("connection", "content-length", "transfer-encoding")


@contextlib.contextmanager
def key_proxy(url: str, key: str) -> Iterator[str]:
    """Yield the address that stands for the service's."""
    service = urlsplit(url).netloc

    class Handler(BaseHTTPRequestHandler):
        def pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            named = {
                name: value.replace(own, service) if name in ("Host", "Origin") else value
                for name, value in self.headers.items()
                if name.lower() not in PER_CONNECTION
            }
            named["Authorization"] = f"Bearer {key}"
            connection = http.client.HTTPConnection(service)
            with contextlib.closing(connection):
                connection.request(self.command, self.path, body, named)
                answer = connection.getresponse()
                content = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in PER_CONNECTION:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_DELETE = pass_on

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    own = f"127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://{own}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
