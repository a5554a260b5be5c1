"""A Chromium without a window, steered through its debugging pipe: JSON messages that end with a zero byte."""

import fcntl
import json
import os
import select
import subprocess
import time


def high_pipe():
    """A pipe whose ends are out of the way of 3 and 4."""
    ends = os.pipe()
    moved = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
    for end in ends:
        os.close(end)
    return moved


class Browser:
    """Begins in `folder`, which it fills with its profile. To be closed."""

    def __init__(self, command, folder, patience, *more_options):
        self.patience = patience
        self.count = 0
        self.rest = b""
        self.listeners = {}  # by session: functions that are told of events
        its_input, self.input = high_pipe()
        self.output, its_output = high_pipe()
        options = [
            "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run",
            f"--user-data-dir={folder}", *more_options,
        ]  # fmt: skip
        # It reads from 3 and writes to 4.
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{its_input} 4>&{its_output}', "bash", command, *options, "about:blank"],
            pass_fds=(its_input, its_output),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(its_input)
        os.close(its_output)

    def close(self):
        self.process.terminate()
        self.process.wait()
        os.close(self.input)
        os.close(self.output)

    def read_message(self, deadline):
        while b"\0" not in self.rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.output], [], [], left)[0]:
                raise TimeoutError("the browser does not answer")
            data = os.read(self.output, 1 << 20)
            if not data:
                raise EOFError("the browser has ended")
            self.rest += data
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, session=None, **parameters):
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.input, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + self.patience
        while True:
            answer = self.read_message(deadline)
            if answer.get("id") == self.count:
                assert "result" in answer, answer
                return answer["result"]
            if "method" in answer and answer.get("sessionId") in self.listeners:
                self.listeners[answer["sessionId"]](answer["method"], answer["params"])

    def open(self, url):
        """A page, as a function that evaluates an expression in it and waits for what it promises."""
        target = self.call("Target.createTarget", url=url)["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

        def evaluate(expression):
            answer = self.call(
                "Runtime.evaluate", session, expression=expression, returnByValue=True, awaitPromise=True
            )
            assert "exceptionDetails" not in answer, answer
            return answer["result"].get("value")

        return evaluate
