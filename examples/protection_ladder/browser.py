"""Opens a page in headless Chromium at several widths, in light and dark, and looks whether it holds together.

Usage: browser.py PAGE DIRECTORY

Fails where the page is wider than the screen, says something on the console, asks for anything but itself, or has a
drawing whose words reach out of it. Screenshots go to DIRECTORY. Needs Python's standard library alone: the browser is spoken to over a pipe.
"""

import base64
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

WIDTHS = (360, 1200)
SCHEMES = ("light", "dark")
# A page that has not answered by then will not.
ANSWER_SECONDS_MAX = 60

# Wider than the screen; words of a drawing beyond its right edge; drawings that are open, so that there is something to look at.
MEASURE = """(() => {
  const page = document.documentElement;
  const beyond = [...document.querySelectorAll('details[open] svg')].flatMap(svg => {
    const right = svg.getBoundingClientRect().right + 0.5;
    return [...svg.querySelectorAll('text')].filter(text => text.getBoundingClientRect().right > right).map(text => text.textContent);
  });
  return { scroll: page.scrollWidth, client: page.clientWidth, beyond, drawings: document.querySelectorAll('details[open] svg').length };
})()"""


class Browser:
    """A browser process, spoken to in JSON messages that end with a zero byte."""

    def __init__(self, program, home):
        to_browser, self.write_end = os.pipe()
        self.read_end, from_browser = os.pipe()
        wiring = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
        arguments = [program, "--headless=new", "--disable-gpu", "--no-sandbox", "--no-first-run", "--disable-background-networking",
                     f"--user-data-dir={home}", "--remote-debugging-pipe", "about:blank"]
        self.process = subprocess.Popen(
            ["bash", "-c", wiring, "bash", *arguments], pass_fds=(to_browser, from_browser),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        os.set_blocking(self.read_end, True)
        self.unread = b""
        self.last = 0
        self.events = []
        self.session = None

    def message(self):
        while b"\0" not in self.unread:
            piece = os.read(self.read_end, 1 << 16)
            if not piece:
                raise SystemExit("error: the browser ended")
            self.unread += piece
        text, self.unread = self.unread.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **parameters):
        self.last += 1
        request = {"id": self.last, "method": method, "params": parameters}
        if self.session:
            request["sessionId"] = self.session
        text = json.dumps(request).encode() + b"\0"
        while text:
            text = text[os.write(self.write_end, text):]
        while True:
            message = self.message()
            if message.get("id") == self.last:
                if "error" in message:
                    raise SystemExit(f"error: {method}: {message['error']}")
                return message["result"]
            self.events.append(message)

    def wait_for(self, method):
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self.message())

    def close(self):
        self.session = None
        self.call("Browser.close")
        self.process.wait(ANSWER_SECONDS_MAX)


def look(browser, page, width, scheme, shot):
    """What is wrong with the page at this width."""
    browser.events = []
    height = 800
    browser.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.call("Page.navigate", url=page.resolve().as_uri())
    browser.wait_for("Page.loadEventFired")
    found = browser.call("Runtime.evaluate", expression=MEASURE, returnByValue=True)["result"]["value"]
    picture = browser.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
    shot.write_bytes(base64.b64decode(picture["data"]))
    wrong = []
    if found["scroll"] > found["client"]:
        wrong.append(f"it is {found['scroll']} wide")
    if found["drawings"] == 0:
        wrong.append("no drawing is shown")
    wrong += [f"words reach out of their drawing: {text}" for text in found["beyond"]]
    for event in browser.events:
        method, parameters = event.get("method"), event.get("params", {})
        if method in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
            wrong.append(f"the console says {json.dumps(parameters)}")
        if method == "Network.requestWillBeSent" and parameters["request"]["url"] != page.resolve().as_uri():
            wrong.append(f"it asks for {parameters['request']['url']}")
    return wrong


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    page, directory = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    directory.mkdir(parents=True, exist_ok=True)
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if not program:
        raise SystemExit("error: no chromium; on Debian: apt-get install chromium")
    failed = False
    with tempfile.TemporaryDirectory() as home:
        browser = Browser(program, home)
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        browser.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            browser.call(f"{domain}.enable")
        for width in WIDTHS:
            for scheme in SCHEMES:
                shot = directory / f"{width}-{scheme}.png"
                wrong = look(browser, page, width, scheme, shot)
                failed |= bool(wrong)
                print(f"{width} px, {scheme}: {'ok' if not wrong else '; '.join(wrong)}  ({shot})")
        browser.close()
    return 1 if failed else 0


sys.exit(main())
