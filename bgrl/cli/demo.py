"""`bgrl demo`: play against exported bots in the browser."""

from bgrl.cli.compose import Launch
from bgrl.cli.config import DemoConfig
from bgrl.export.site import build_site, serve


def run(config: DemoConfig, launch: Launch) -> None:
    """Build the page and serve it until interrupted."""
    folder = build_site(config.bundle, config.folder)
    with serve(folder, config.port) as server:
        print(f"{folder} at http://127.0.0.1:{server.server_address[1]}/ (Ctrl-C ends)", flush=True)
        server.serve_forever()
