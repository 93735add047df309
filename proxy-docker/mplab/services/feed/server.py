"""Serve a social network: stories, places to check in at, and accounts that publish posts and photos.

The server speaks plain HTTP/1.1 on loopback, behind nginx. It keeps posts in memory until it ends. Of each photo
it keeps only length and SHA-256.

    server.py PORT INDEX

INDEX is a JSON file with the files of the picture host: ``{"avatars": {path: bytes}, "pictures": {path: bytes}}``.
"""

import hashlib
import http.server
import json
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TypedDict
from urllib.parse import parse_qs, urlsplit

PICTURE_IN_STORIES = 0.6
"""Share of the stories that have a picture."""
MAX_STORIES = 50
MAX_BODY_BYTES = 20_000_000
PLACES = 20
FRIENDS = 20
_TEXT = """
about after again air all along also an and another any around as asked at away back be because been before
below between book both but by came can city come could country day did different do down each end even every
few find first food for found four friend from get give go good great had hand has have head help her here
high him his home house how if important in into is it its just keep kind know land last learn left letter
life light line little live long look made make man many may me mean men might more most mother move much must
my name near
"""
_WORDS = _TEXT.split()


class Picture(TypedDict):
    """Path and size of a picture file, which nginx serves under another host name."""

    path: str
    bytes: int


class Story(TypedDict):
    """A post of another user in the feed."""

    id: str
    author: str
    text: str
    likes: int
    avatar: Picture
    picture: Picture | None


class CheckInPlace(TypedDict):
    """A place at which a user can check in; `metres` is its distance."""

    id: str
    name: str
    metres: int


class Friend(TypedDict):
    """A friend with whom a user can check in."""

    id: str
    name: str


class Nearby(TypedDict):
    """Answer to ``/api/nearby``: the places and friends from which a user chooses for a check-in."""

    places: list[CheckInPlace]
    friends: list[Friend]


class Photo(TypedDict):
    """Length and SHA-256 of a photo that the server received."""

    id: str
    bytes: int
    sha256: str


class Post(TypedDict):
    """A post as the server stores it. `time` is a unix time in s; `sha256` is the hash of the text."""

    id: str
    kind: str
    text: str
    time: float
    sha256: str
    photo: Photo | None
    place: object
    friend: object


@dataclass
class Account:
    """The photos and posts that one account has sent."""

    photos: dict[str, Photo] = field(default_factory=dict)
    posts: list[Post] = field(default_factory=list)


class Feed:
    """Content and state of the social network.

    Args:
        index: parsed INDEX file: kind → path → bytes of the picture files.
    """

    def __init__(self, index: Mapping[str, Mapping[str, int]]) -> None:
        self._avatars = sorted(index["avatars"].items())
        self._pictures = sorted(index["pictures"].items())
        self._accounts: dict[str, Account] = {}

    def stories(self, refresh: int, count: int) -> list[Story]:
        """Return `count` stories for the refresh number `refresh`. The same arguments always give the same stories."""
        rng = Random(f"stories {refresh}")  # noqa: S311 - repeatable, not secret
        with_picture = set(rng.sample(range(count), round(count * PICTURE_IN_STORIES)))
        avatars = self._pick(rng, self._avatars, count)
        pictures = iter(self._pick(rng, self._pictures, len(with_picture)))
        return [
            {
                "id": f"{refresh}-{number}",
                "author": _name(rng),
                "text": _sentence(rng, 15, 60),
                "likes": rng.randrange(1000),
                "avatar": avatars[number],
                "picture": next(pictures) if number in with_picture else None,
            }
            for number in range(count)
        ]

    def nearby(self) -> Nearby:
        """Return the places, the nearest first, and the friends. The answer is always the same."""
        rng = Random("nearby")  # noqa: S311 - repeatable, not secret
        places: list[CheckInPlace] = [
            {"id": f"place-{number}", "name": _sentence(rng, 2, 4).title(), "metres": rng.randrange(10, 900)}
            for number in range(PLACES)
        ]
        return {
            "places": sorted(places, key=lambda place: place["metres"]),
            "friends": [{"id": f"friend-{number}", "name": _name(rng)} for number in range(FRIENDS)],
        }

    def add_photo(self, account: str, body: bytes) -> Photo:
        """Store length and hash of a photo of an account. Return them with a new id, so that the sender can compare."""
        photos = self._account(account).photos
        photo: Photo = {
            "id": f"photo-{len(photos) + 1}",
            "bytes": len(body),
            "sha256": hashlib.sha256(body).hexdigest(),
        }
        photos[photo["id"]] = photo
        return photo

    def add_post(self, account: str, sent: Mapping[str, object]) -> Post:
        """Store a post of an account, and return it as stored.

        Args:
            account: name of the account.
            sent: the post as received: ``kind``, ``text``, and depending on the kind ``photo``, ``place``, ``friend``.

        Raises:
            ValueError: `sent` has no valid kind or no text, or names a photo that the account did not send.
        """
        known = self._account(account)
        kind, text = sent.get("kind"), sent.get("text")
        if not isinstance(kind, str) or kind not in {"status", "photo", "check-in"} or not isinstance(text, str):
            raise ValueError("a post has a kind (status, photo, check-in) and a text")
        if kind == "photo" and sent.get("photo") not in known.photos:
            raise ValueError(f"there is no photo {sent.get('photo')!r}")
        post: Post = {
            "id": f"post-{len(known.posts) + 1}",
            "kind": kind,
            "text": text,
            "time": time.time(),
            "sha256": hashlib.sha256(text.encode()).hexdigest(),
            "photo": known.photos.get(str(sent.get("photo"))),
            "place": sent.get("place"),
            "friend": sent.get("friend"),
        }
        known.posts.append(post)
        return post

    def _account(self, name: str) -> Account:
        return self._accounts.setdefault(name, Account())

    @staticmethod
    def _pick(rng: Random, files: list[tuple[str, int]], count: int) -> list[Picture]:
        """Return `count` of the picture files at random. A file is repeated only if there are fewer than `count`."""
        repeats, remainder = divmod(count, len(files))
        chosen = [*files * repeats, *rng.sample(files, remainder)]
        return [{"path": path, "bytes": size} for path, size in chosen]


def _name(rng: Random) -> str:
    return " ".join(rng.choices(_WORDS, k=2)).title()


def _sentence(rng: Random, least: int, most: int) -> str:
    return " ".join(rng.choices(_WORDS, k=rng.randint(least, most)))


class FeedHandler(http.server.BaseHTTPRequestHandler):
    """Handler of the HTTP requests on one connection."""

    protocol_version = "HTTP/1.1"
    feed: Feed

    def do_GET(self) -> None:
        """Answer GET requests for ``/api/feed``, ``/api/nearby`` and the health check ``/api/health``."""
        path, query = self._target()
        if path == "/api/feed":
            refresh, count = query.get("refresh", ""), query.get("stories", "")
            if not (refresh.isdecimal() and count.isdecimal() and 1 <= int(count) <= MAX_STORIES):
                self._answer(400, {"error": f"refresh and stories (1 to {MAX_STORIES}) are needed"})
                return
            self._answer(200, {"stories": self.feed.stories(int(refresh), int(count))})
        elif path == "/api/nearby":
            self._answer(200, self.feed.nearby())
        elif path == "/api/health":
            self._answer(200, {"ok": True})
        else:
            self._answer(404, {"error": f"there is no {path}"})

    def do_PUT(self) -> None:
        """Receive a photo (PUT ``/api/photos``), and answer with its id, length and hash."""
        path, query = self._target()
        body = self._body()
        if body is None:
            return
        if path != "/api/photos" or not query.get("account"):
            self._answer(404, {"error": f"there is no {path}"})
            return
        self._answer(200, self.feed.add_photo(query["account"], body))

    def do_POST(self) -> None:
        """Store a post (POST ``/api/posts``), and answer with the stored post."""
        path, query = self._target()
        body = self._body()
        if body is None:
            return
        if path != "/api/posts" or not query.get("account"):
            self._answer(404, {"error": f"there is no {path}"})
            return
        try:
            self._answer(200, self.feed.add_post(query["account"], json.loads(body)))
        except (ValueError, AttributeError) as error:
            self._answer(400, {"error": str(error)})

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the name in the base class
        """Print a log message of the base class as one line of JSON, with the event ``request``."""
        record = {"t": round(time.time(), 6), "event": "request", "what": format % arguments}
        print(json.dumps(record), flush=True)  # the log

    def _target(self) -> tuple[str, dict[str, str]]:
        parts = urlsplit(self.path)
        return parts.path, {name: values[-1] for name, values in parse_qs(parts.query).items()}

    def _body(self) -> bytes | None:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > MAX_BODY_BYTES:
            self.close_connection = True
            self._answer(413, {"error": f"a body of at most {MAX_BODY_BYTES} bytes is needed"})
            return None
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            self.close_connection = True
            self.log_message("%s", f"cut after {len(body)} of {length} bytes")
            return None
        return body

    def _answer(self, status: int, content: Mapping[str, object]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class FeedServer(http.server.ThreadingHTTPServer):
    """HTTP server of the social network, with one thread for each connection."""

    daemon_threads = True
    request_queue_size = 64


def make_server(port: int, index: Path) -> FeedServer:
    """Return a server that listens on 127.0.0.1:`port`; 0: any free port. Its `serve_forever` answers the requests."""
    FeedHandler.feed = Feed(json.loads(index.read_text()))
    return FeedServer(("127.0.0.1", port), FeedHandler)


if __name__ == "__main__":
    with make_server(int(sys.argv[1]), Path(sys.argv[2])) as server:
        server.serve_forever()
