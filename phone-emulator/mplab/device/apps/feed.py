"""Use a social network without a screen: load stories, list nearby places and friends, publish posts.

This program imports nothing of mplab. Its server is ``proxy-docker/mplab/services/feed``.

``feed.py URL refresh --pictures URL`` loads stories, then their pictures. It prints ``texts=N`` when the stories have
arrived, and ``pictures=N bytes=B`` when all pictures have arrived. ``feed.py URL nearby`` prints the first place and
the first friend: ``place=… friend=…``. ``feed.py URL post KIND TEXT [--photo FILE] [--place P --friend F]`` publishes a
post, and prints its id and the hash of the photo: ``post=ID sha256=…``.
"""

import argparse
import hashlib
import json
import ssl
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

_TIMEOUT_S = 60.0
_AT_A_TIME = 6


class FeedClient:
    """Client of the social network's server, for one account."""

    def __init__(self, url: str, account: str, cacert: str) -> None:
        self._url = url.rstrip("/")
        self._account = urllib.parse.quote(account)
        handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
        if self._url.startswith("https:"):
            handlers.append(urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=cacert or None)))
        self._opener = urllib.request.build_opener(*handlers)

    def ask(self, path: str, *, body: bytes | None = None, method: str = "GET") -> Any:  # noqa: ANN401 - any JSON
        """Send a request for ``/api/<path>``, and return the parsed JSON answer. Raises OSError, ValueError."""
        between = "&" if "?" in path else "?"
        url = f"{self._url}/api/{path}{between}account={self._account}"
        return json.loads(self.get(urllib.request.Request(url, data=body, method=method)))  # noqa: S310 - http(s)

    def get(self, request: "urllib.request.Request | str") -> bytes:
        """Send a request, and return the complete body of the answer. Raises OSError."""
        with self._opener.open(request, timeout=_TIMEOUT_S) as answer:
            content: bytes = answer.read()
            return content


def main() -> int:
    """Run the program. Return the exit code: 0, or 1 after an error."""
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--account", default="phone")
    parser.add_argument("--cacert", default="")
    actions = parser.add_subparsers(dest="action", required=True)
    refresh = actions.add_parser("refresh")
    refresh.add_argument("--pictures", required=True)
    refresh.add_argument("--number", type=int, default=1)
    refresh.add_argument("--stories", type=int, default=10)
    actions.add_parser("nearby")
    post = actions.add_parser("post")
    post.add_argument("kind", choices=["status", "photo", "check-in"])
    post.add_argument("text")
    post.add_argument("--photo", default="")
    post.add_argument("--place", default="")
    post.add_argument("--friend", default="")
    options = parser.parse_args()
    network = FeedClient(options.url, options.account, options.cacert)
    try:
        if options.action == "refresh":
            do_refresh(network, options.pictures.rstrip("/"), options.number, options.stories)
        elif options.action == "nearby":
            nearby = network.ask("nearby")
            _tell(f"place={nearby['places'][0]['name']} friend={nearby['friends'][0]['name']}")
        else:
            do_post(network, vars(options))
    except (OSError, ValueError, KeyError, IndexError) as error:
        _tell(str(error) or type(error).__name__)
        return 1
    return 0


def do_refresh(network: FeedClient, pictures: str, number: int, count: int) -> None:
    """Load `count` stories, then their pictures, several in parallel; print numbers and bytes.

    Args:
        network: client of the server.
        pictures: URL of the picture host.
        number: number of the refresh, which selects the stories.
        count: number of stories.

    Raises:
        OSError: a request failed.
        ValueError: a picture has another length than announced.
    """
    stories = network.ask(f"feed?refresh={number}&stories={count}")["stories"]
    _tell(f"texts={len(stories)}")
    wanted = [(story, part) for story in stories for part in ("avatar", "picture") if story[part]]

    def load(entry: tuple[Mapping[str, Any], str]) -> int:
        story, part = entry
        came = len(network.get(f"{pictures}/{story[part]['path']}?story={story['id']}"))
        if came != story[part]["bytes"]:
            raise ValueError(f"{story[part]['path']}: {came} of {story[part]['bytes']} bytes came")
        return came

    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        _tell(f"pictures={len(wanted)} bytes={sum(pool.map(load, wanted))}")


def do_post(network: FeedClient, post: Mapping[str, Any]) -> None:
    """Publish a post, and print its id. Raises ValueError if the server's copy differs from the sent post."""
    sent = {"kind": post["kind"], "text": post["text"], "place": post["place"], "friend": post["friend"]}
    sha256 = ""
    if post["photo"]:
        content = Path(post["photo"]).read_bytes()
        photo = network.ask("photos", body=content, method="PUT")
        sha256 = hashlib.sha256(content).hexdigest()
        if photo["sha256"] != sha256:
            raise ValueError(f"the server has another photo ({photo['bytes']} bytes) than was sent")
        sent["photo"] = photo["id"]
    answer = network.ask("posts", body=json.dumps(sent).encode(), method="POST")
    if answer["text"] != post["text"]:
        raise ValueError("the server has another text than was sent")
    _tell(f"post={answer['id']} sha256={sha256}")


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
