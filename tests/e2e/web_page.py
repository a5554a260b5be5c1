"""The HTML page in a real browser, as the tests and the pictures use it: what it shows, says and asks for."""

import base64
import json
import shutil
import tempfile
import time
from pathlib import Path

import browser

PATIENCE = 120
# Key codes that the browser wants beside the names.
KEYS = {"Enter": 13, "Escape": 27, "Backspace": 8, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40,
        "Tab": 9, "Home": 36}


def find():
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser(browser.Browser):
    """with Browser() as running: page = running.open_page(path)"""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="malloscope-browser-")
        super().__init__(find(), self.folder, PATIENCE, "--hide-scrollbars", "--force-color-profile=srgb")

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def open_page(self, path, fragment="", **options):
        return Page(self, Path(path).resolve().as_uri() + fragment, **options)


class Page:
    """A page, and what it has said and asked for."""

    def __init__(self, browser, address, width=1280, height=900, dark=False, scale=1):
        self.browser = browser
        self.complaints, self.requests = [], []
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        browser.listeners[self.session] = self.take_event
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale,
                  mobile=False)
        self.send("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
                            {"name": "prefers-reduced-motion", "value": "reduce"}])
        self.address = address
        self.send("Page.navigate", url=address)
        self.wait("document.documentElement?.dataset.ready === 'true'")

    def send(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def take_event(self, method, parameters):
        if method == "Runtime.exceptionThrown":
            self.complaints.append(parameters["exceptionDetails"].get("exception", {}).get("description", "exception"))
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(str([argument.get("value") for argument in parameters["args"]]))
        elif method == "Log.entryAdded":
            self.complaints.append(parameters["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])

    def evaluate(self, expression):
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, f"{expression}: {answer['exceptionDetails']}"
        return answer["result"].get("value")

    def wait(self, condition):
        deadline = time.monotonic() + PATIENCE
        while not self.evaluate(condition):
            assert time.monotonic() < deadline, f"{condition} did not become true; {self.complaints}"
            time.sleep(0.02)

    def text(self, selector):
        return self.evaluate(f"document.querySelector({json.dumps(selector)}).textContent")

    def click(self, selector):
        """A click with the mouse into the middle of an element."""
        place = json.dumps(selector)
        x, y = self.evaluate(
            f"(() => {{ const e = document.querySelector({place}); e.scrollIntoView({{block: 'center'}});"
            " const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()")
        self.click_at(x, y)

    def mouse(self, kind, x, y, **more):
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click_at(self, x, y):
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, button="left", clickCount=1)
        self.mouse("mouseReleased", x, y, button="left", clickCount=1)

    def drag(self, start, end, steps=5):
        self.mouse("mouseMoved", *start)
        self.mouse("mousePressed", *start, button="left", clickCount=1)
        for i in range(1, steps + 1):
            x, y = (a + (b - a) * i / steps for a, b in zip(start, end))
            self.mouse("mouseMoved", x, y, button="left", buttons=1)
        self.mouse("mouseReleased", *end, button="left", clickCount=1)

    def key(self, key):
        text = key if len(key) == 1 else "\r" if key == "Enter" else ""
        code = KEYS.get(key, ord(key[0].upper()))
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, text=text, windowsVirtualKeyCode=code)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def type(self, text):
        self.send("Input.insertText", text=text)

    def screenshot(self, path, whole=False):
        options = {}
        if whole:
            size = self.send("Page.getLayoutMetrics")["cssContentSize"]
            options = {"captureBeyondViewport": True,
                       "clip": {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}}
        data = self.send("Page.captureScreenshot", format="png", **options)["data"]
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(base64.b64decode(data))

    def settle(self):
        """Waits until what has been changed is on the screen, which only the page in front is."""
        self.send("Page.bringToFront")
        self.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")
