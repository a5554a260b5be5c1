"""A client of keys.rs that sets a thousand keys again and again, until it is ended or the server is."""
import itertools
import socket
import time
from pathlib import Path

while not Path("keys.port").exists():
    time.sleep(0.05)
with socket.create_connection(("127.0.0.1", int(Path("keys.port").read_text()))) as server:
    answers = server.makefile()
    for number in itertools.count():
        server.sendall(f"SET key-{number % 1000} {'value ' * 60}{number}\n".encode())
        answers.readline()
