"""Decide which requests are answered: method, Host header, token. Adds security headers to each answer."""

import hmac
import secrets
from collections.abc import Iterable
from hashlib import sha256
from ipaddress import ip_address
from urllib.parse import parse_qs, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mplab.analysis.report.htmlpage import script_hash
from mplab.format.names import is_loopback

COOKIE = "mplab-dashboard"
"""Start of the cookie's name."""
TOKEN = "token"  # noqa: S105 - the name of the parameter
_NOWHERE = "base-uri 'none'; frame-ancestors 'none'"
PAGE_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; "
    f"{_NOWHERE}"
)
"""Policy of the dashboard's own pages."""
RUN_FILE_POLICY = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; script-src 'self' 'unsafe-inline'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; media-src 'self'; "
    f"form-action 'none'; {_NOWHERE}"
)
"""Policy of files of run directories. They may come from other users, so they get a separate origin: their scripts
can neither read the dashboard nor send requests."""
SCRIPTED_POLICY = (
    f"default-src 'none'; script-src '{script_hash()}'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; "
    f"{_NOWHERE}"
)
"""Policy of pages of the analysis, also if another user wrote them: only the script of the analysis runs."""
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": f"default-src 'none'; {_NOWHERE}",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Access:
    """Rules of access of one server.

    Args:
        token: secret that a request must have; "": none is needed, which is allowed on loopback only.
        names: host names, in addition to addresses and localhost, by which browsers may call the server.
        only_loopback: True if the server listens on a loopback address: other addresses in the Host header are refused.
    """

    def __init__(self, token: str, names: Iterable[str] = (), *, only_loopback: bool) -> None:
        self._token = token
        self._names = frozenset(name.lower() for name in names)
        self._only_loopback = only_loopback
        self._key = sha256(b"mplab dashboard\0" + token.encode()).digest() if token else secrets.token_bytes(32)

    @property
    def token_needed(self) -> bool:
        """Return whether requests must have the token."""
        return bool(self._token)

    @property
    def cookie(self) -> str:
        """Return the value of the cookie that replaces the token; it does not contain the token."""
        return self._signature("cookie")

    @property
    def cookie_name(self) -> str:
        """Return the name of the cookie. It differs between tokens: browsers send cookies to all ports of a host."""
        return f"{COOKIE}-{self._signature('name')[:8]}"

    def run_key(self, run: str) -> str:
        """Return the secret part of the URLs of a run's files. It gives access to the files of this run only.

        Pages of runs have a separate origin, so that browsers send no cookie with their requests.
        """
        return self._signature(f"run {run}")[:32]

    def is_run_key(self, run: str, key: str) -> bool:
        """Return whether `key` is the `run_key` of a run."""
        return _same(key, self.run_key(run))

    def is_token(self, given: str) -> bool:
        """Return whether `given` is the token, in constant time."""
        return bool(self._token) and _same(given, self._token)

    def allows(self, headers: Headers) -> bool:
        """Return whether a request has the token: as cookie, or as ``Authorization: Bearer TOKEN``."""
        if not self._token:
            return True
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self.is_token(given.strip()):
            return True
        cookies = (cookie.strip().partition("=") for cookie in ";".join(headers.getlist("cookie")).split(";"))
        return any(name == self.cookie_name and _same(value, self.cookie) for name, _, value in cookies)

    def is_ours(self, hosts: list[str]) -> bool:
        """Return whether the values of the Host header name this server.

        With DNS rebinding, the host name of a foreign page resolves to this machine, and the page's requests have that
        name in the header. Any port is accepted, because an SSH tunnel may use another one.
        """
        if len(hosts) != 1:
            return False
        name = _host_of(hosts[0].strip().lower())
        if is_loopback(name) or name in self._names:
            return True
        if self._only_loopback:
            return False
        try:
            ip_address(name)
        except ValueError:
            return False
        return True  # a foreign page with DNS rebinding has a name, not an address

    def _signature(self, about: str) -> str:
        return hmac.new(self._key, about.encode(), sha256).hexdigest()


class Guard:
    """ASGI application that checks each request before it passes it to `app`.

    A request with the token as parameter of the URL gets the cookie, and is redirected to the URL without the token.

    Args:
        app: the application.
        access: rules of access.
        open_paths: beginnings of paths that need no token, since they contain a secret.
    """

    def __init__(self, app: ASGIApp, access: Access, open_paths: tuple[str, ...]) -> None:
        self._app = app
        self._access = access
        self._open_paths = open_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        answer = self._refusal(scope)
        await (answer or self._app)(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if scope["method"] not in {"GET", "HEAD"}:
            close = {"Allow": "GET, HEAD", "Connection": "close"}
            return PlainTextResponse("this server only answers GET and HEAD\n", 405, close)
        if not self._access.is_ours(headers.getlist("host")):
            return PlainTextResponse("the Host header does not name this server\n", 421)
        if scope["path"].startswith(self._open_paths) or self._access.allows(headers):
            return None
        query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = query.pop(TOKEN, [""])[0]
        if not self._access.is_token(given):
            text = "open the URL that 'mplab serve' has printed, or send 'Authorization: Bearer TOKEN'\n"
            return PlainTextResponse(text, 401, {"WWW-Authenticate": "Bearer"})
        rest = urlencode(query, doseq=True)
        path = "/" + scope["path"].lstrip("/")  # "//host" would be another server
        answer = RedirectResponse(path + (f"?{rest}" if rest else ""), 303)
        answer.set_cookie(self._access.cookie_name, self._access.cookie, httponly=True, samesite="strict", path="/")
        return answer


def _same(given: str, secret: str) -> bool:
    return hmac.compare_digest(given.encode(errors="replace"), secret.encode())


def _host_of(header: str) -> str:
    """Return the host of a Host header without brackets and port; "": the header is wrong."""
    if header.startswith("["):
        inside, bracket, port = header[1:].partition("]")
        valid = bracket and (not port or (port[0] == ":" and port[1:].isdigit()))
        return inside if valid else ""
    name, colon, port = header.partition(":")
    return name if not colon or port.isdigit() else ""
