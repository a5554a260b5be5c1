"""A small web application on the standard library's threading server: a thread for every request. Prints its port;
/end ends it."""

import collections
import hashlib
import http.server
import json
import threading

SESSIONS = 500
sessions = collections.OrderedDict()
lock = threading.Lock()


def remember(name):
    """A cache of limited size, as applications have them."""
    with lock:
        sessions[name] = {"name": name, "seen": sessions.get(name, {}).get("seen", 0) + 1, "notes": bytearray(2000)}
        sessions.move_to_end(name)
        while len(sessions) > SESSIONS:
            sessions.popitem(last=False)
        return sessions[name]["seen"]


def ranking(number):
    players = [{"name": f"player {i}", "points": i * number % 1009} for i in range(300)]
    return sorted(players, key=lambda player: -player["points"])


def page(number):
    rows = "".join(f"<tr><td>{row['name']}</td><td>{row['points']}</td></tr>" for row in ranking(number))
    return f"<table>{rows}</table>" * 3


def digest(number):
    data = bytes(number % 200_000)
    return {"size": len(data), "digest": hashlib.sha256(data).hexdigest()}


class Application(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        kind, number = self.path[1:].split("/")
        seen = remember(f"visitor {int(number) % 2000}")
        if kind == "page":
            text = page(int(number))
        elif kind == "digest":
            text = json.dumps(digest(int(number)))
        else:
            text = json.dumps({"seen": seen, "ranking": ranking(int(number))})
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())
        if kind == "end":
            threading.Thread(target=self.server.shutdown).start()

    def log_message(self, *arguments):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128


server = Server(("127.0.0.1", 0), Application)
print(server.server_port, flush=True)
server.serve_forever()
