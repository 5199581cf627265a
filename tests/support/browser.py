"""A real browser without a window, driven through its debugging pipe; for pages that must work."""

import itertools
import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

PATIENCE_S = 60
CHROMIUM = Path("/usr/bin/chromium")


class Browser:
    """One page in headless Chromium; use it in a `with`."""

    def __init__(self, page: Path, profile: Path, *, dark: bool = False) -> None:
        """Load a file."""
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--window-size=1200,900"]
        command = [str(CHROMIUM), *flags, f"--user-data-dir={profile}", "about:blank"]
        shell = f'exec 3<&{to_browser} 4>&{from_browser}; exec "$0" "$@"'  # it reads on 3 and writes on 4
        self._process = subprocess.Popen(
            ["bash", "-c", shell, *command], pass_fds=(to_browser, from_browser), stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": str(profile)},
        )  # fmt: skip
        os.close(to_browser)
        os.close(from_browser)
        self._received = b""
        self._ids = itertools.count(1)
        self._lifecycle: list[dict[str, Any]] = []
        self._session: str | None = None
        try:
            self._open(page, "dark" if dark else "light")
        except BaseException:
            self.__exit__()
            raise

    def _open(self, page: Path, scheme: str) -> None:
        """Make a page of our own, since the first one may not be there yet, and wait until it has loaded the file."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Network.enable")
        self.call("Page.enable")
        self.call("Page.setLifecycleEventsEnabled", enabled=True)
        loader = self.call("Page.navigate", url=page.as_uri())["loaderId"]
        self._hear(lambda event: event.get("loaderId") == loader and event.get("name") == "load")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._write)
        os.close(self._read)

    def call(self, method: str, **params: Any) -> Any:
        """Send one command and return its result; lifecycle events in between are kept."""
        number = next(self._ids)
        message = {"id": number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = json.loads(self._next())
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]
            self._note(answer)

    def _note(self, message: dict[str, Any]) -> None:
        if message.get("method") == "Page.lifecycleEvent":
            self._lifecycle.append(message["params"])

    def _hear(self, is_it: Callable[[dict[str, Any]], bool]) -> None:
        """Wait for a lifecycle event; it may have come before the answer to what brought it about."""
        while not any(map(is_it, self._lifecycle)):
            self._note(json.loads(self._next()))

    def value(self, expression: str) -> Any:
        """Evaluate an expression in the page."""
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def until(self, expression: str) -> None:
        """Ask until it holds; each question waits for the browser's answer."""
        deadline = time.monotonic() + PATIENCE_S
        while not self.value(expression):
            assert time.monotonic() < deadline, f"never became so: {expression}"

    def hover(self, selector: str) -> None:
        """Move the pointer to the middle of an element."""
        box = self.value(
            f"(() => {{ const b = document.querySelector({selector!r}).getBoundingClientRect();"
            " return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=box[0], y=box[1])

    def _next(self) -> bytes:
        while b"\0" not in self._received:
            data = os.read(self._read, 1 << 16)
            assert data, "the browser ended"
            self._received += data
        message, _, self._received = self._received.partition(b"\0")
        return message
