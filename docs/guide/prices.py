"""A service that tells prices over HTTP. It grows with every day: docs/guide.md finds out by what."""
import functools
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


def read_catalogue():
    return {f"item-{number}": 100 + number % 900 for number in range(20_000)}


CATALOGUE = read_catalogue()


@functools.cache
def offer(item, customer):
    price = CATALOGUE[item]
    table = [{"count": count, "price": price * count * 0.97} for count in range(1, 40)]
    return json.dumps({"item": item, "customer": customer, "offers": table})


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        item, customer = self.path.strip("/").split("/")
        body = offer(item, customer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *unused):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
Path("prices.port").write_text(str(server.server_port))
server.serve_forever()
