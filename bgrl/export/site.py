"""The playable page: a static folder with the client, the bots of a bundle, and the runtime."""

import http.server
import os
import shutil
from functools import partial
from pathlib import Path

from bgrl.errors import BgrlError
from bgrl.files import atomic_dir
from bgrl.players.bundle import BUNDLE_FILE, open_bundle

CLIENT = Path(__file__).resolve().parent / "client"
RUNTIME = ("ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")


def build_site(bundle: str | os.PathLike, folder: str | os.PathLike) -> Path:
    """Publish the page with the bots of ``bundle`` as the static ``folder``, replacing such a one.

    Any web server can serve it, and no cross-origin headers are needed. onnxruntime-web is copied
    in where the client's packages are installed; without it the page evaluates in plain
    TypeScript.

    Raises as :func:`bgrl.players.bundle.open_bundle` does, and BgrlError if the client is not
    compiled or ``folder`` holds something else.
    """
    opened = open_bundle(bundle)
    folder = Path(folder)
    if folder.exists() and any(folder.iterdir()) and not (folder / "bots" / BUNDLE_FILE).is_file():
        raise BgrlError(f"{folder} holds something other than the page")
    compiled = CLIENT / "dist"
    if not (compiled / "web" / "page.js").is_file():
        raise BgrlError(f"the client is not compiled: run `npm ci && npm run build` in {CLIENT}")
    with atomic_dir(folder) as beside:
        for name in ("index.html", "style.css"):
            shutil.copyfile(CLIENT / "web" / name, beside / name)
        for part in ("src", "web"):
            (beside / "client" / part).mkdir(parents=True)
            for script in (compiled / part).glob("*.js"):
                shutil.copyfile(script, beside / "client" / part / script.name)
        (beside / "bots").mkdir()
        for name in (BUNDLE_FILE, *opened.record["files"]):
            (beside / "bots" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(opened.folder / name, beside / "bots" / name)
        runtime = CLIENT / "node_modules" / "onnxruntime-web" / "dist"
        if all((runtime / name).is_file() for name in RUNTIME):
            (beside / "runtime").mkdir()
            for name in RUNTIME:
                shutil.copyfile(runtime / name, beside / "runtime" / name)
    return folder


def serve(folder: str | os.PathLike, port: int) -> http.server.ThreadingHTTPServer:
    """A server of ``folder`` on this machine alone, not yet running; port 0 takes a free one.

    Raises BgrlError if the port is taken.
    """
    handler = partial(_Handler, directory=os.fspath(folder))
    try:
        return http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
    except (OSError, OverflowError) as error:
        raise BgrlError(f"cannot serve on port {port}: {error}") from error


class _Handler(http.server.SimpleHTTPRequestHandler):
    # Browsers refuse modules of the wrong type, and systems differ in what they know.
    extensions_map = http.server.SimpleHTTPRequestHandler.extensions_map | {
        ".js": "text/javascript",
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
    }

    def log_message(self, *arguments: object) -> None:
        """Serve quietly."""
