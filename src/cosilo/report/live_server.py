"""Serves the page of a run on loopback while the run goes on, and its report when it is finished."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cosilo.errors import ConfigError, CosiloError
from cosilo.report.live_page import live_page, live_part
from cosilo.report.run_page import write_report
from cosilo.runs.run import RunDirectory
from cosilo.text import cause

#: What a browser on this machine may call it; others, such as a page that was led here, are refused.
_HOSTS = {"127.0.0.1", "localhost"}


class LiveServer:
    """Serves a run directory on 127.0.0.1 from `__enter__` to `__exit__`; it only reads."""

    def __init__(self, folder: Path, port: int = 0) -> None:
        self._folder = folder
        try:
            self._server = ThreadingHTTPServer(("127.0.0.1", port), self._handler())
        except OSError as error:
            raise ConfigError(f"--port {port}: cannot listen there ({cause(error)})") from None
        self._server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}/"

    def __enter__(self) -> "LiveServer":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        folder = self._folder

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                """Answer with the page, or the part of it that changes."""
                if (self.headers.get("Host") or "").partition(":")[0] not in _HOSTS:
                    self.send_error(403)
                elif self.path not in ("/", "/part"):
                    self.send_error(404)
                else:
                    self._answer(*page(folder, whole=self.path == "/"))

            def _answer(self, text: str, status: str) -> None:
                body = text.encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Cache-Control", "no-store")
                self.send_header("X-Run", status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Nobody wants to read of every look."""

        return Handler


def page(folder: Path, *, whole: bool) -> tuple[str, str]:
    """What is served, and the status of the run."""
    try:
        run = RunDirectory(folder)
        if run.status == "finished":
            return (write_report(run).read_text("utf-8") if whole else ""), "finished"
        return (live_page(run) if whole else live_part(run)), run.status
    except CosiloError:  # it has not begun to write yet, or is writing just now
        waiting = "<p>The run has not begun yet.</p>"
        script = "<script>setTimeout(() => location.reload(), 1000)</script>" if whole else ""
        return waiting + script, "waiting"
