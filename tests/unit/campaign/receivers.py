"""Receivers of messages on loopback: an HTTP server and an SMTP server that a test controls."""

import base64
import contextlib
import socketserver
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Posted:
    """One request."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class HttpReceiver:
    """Answers with `statuses`, repeating the last one; waits for `slow` first, if it is set."""

    statuses: list[int] = field(default_factory=lambda: [200])
    slow: threading.Event | None = None
    headers: dict[str, str] = field(default_factory=dict)
    posted: list[Posted] = field(default_factory=list)
    port: int = 0

    def status(self) -> int:
        return self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]


@contextlib.contextmanager
def http_receiver(receiver: HttpReceiver, context: ssl.SSLContext | None = None) -> Iterator[HttpReceiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.posted.append(Posted(self.path, dict(self.headers.items()), body))
            if receiver.slow is not None:
                receiver.slow.wait()
            self.send_response(receiver.status())
            for name, value in receiver.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(self.path.encode())  # repeats a part of the request, as receivers may

        def log_message(self, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *args: object) -> None:
            pass  # the client has hung up

    server = Server(("127.0.0.1", 0), Handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    receiver.port = server.server_address[1]
    with _served(server):
        yield receiver
        if receiver.slow is not None:
            receiver.slow.set()


@dataclass
class SmtpReceiver:
    """Answers commands; `answers`: verb → other answers, once each, the last one repeated."""

    context: ssl.SSLContext | None = None
    """Context for STARTTLS."""
    password: str = ""
    answers: dict[str, list[str]] = field(default_factory=dict)
    mails: list[str] = field(default_factory=list)
    recipients: list[list[str]] = field(default_factory=list)
    encrypted: list[bool] = field(default_factory=list)
    port: int = 0

    def answer(self, verb: str, usual: str, line: str) -> str:
        answers = self.answers.get(verb)
        if not answers:
            return usual
        return (answers.pop(0) if len(answers) > 1 else answers[0]).replace("LINE", line)


class _SmtpHandler(socketserver.StreamRequestHandler):
    receiver: SmtpReceiver

    def say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())

    def line(self) -> str:
        return self.rfile.readline().decode().rstrip("\r\n")

    def handle(self) -> None:
        receiver, encrypted, to = self.receiver, False, list[str]()
        self.say(receiver.answer("CONNECT", "220 lab", ""))
        while line := self.line():
            verb = line.split(" ")[0].upper()
            usual = "250 ok"
            if verb == "EHLO":
                more = "250-STARTTLS\r\n" if receiver.context is not None and not encrypted else ""
                usual = f"250-lab\r\n{more}250 AUTH PLAIN"
            elif verb == "AUTH":
                password = base64.b64decode(line.split(" ")[2]).decode().split("\0")[-1]
                usual = "235 ok" if password == receiver.password else "535 no"
            elif verb == "DATA":
                usual = "354 go on"
            elif verb == "STARTTLS":
                usual = "220 go on"
            elif verb == "QUIT":
                usual = "221 bye"
            answer = receiver.answer(verb, usual, line)
            self.say(answer)
            if verb == "RCPT" and answer.startswith("250"):
                to.append(line)
            if verb == "QUIT":
                return
            if verb == "STARTTLS" and receiver.context is not None:
                self.start_tls(receiver.context)
                encrypted = True
            if verb == "DATA" and answer.startswith("354"):
                mail = "\n".join(iter(self.line, "."))
                self.say("250 taken")
                receiver.mails.append(mail)
                receiver.recipients.append(to)
                receiver.encrypted.append(encrypted)

    def finish(self) -> None:
        super().finish()
        self.connection.close()  # the server itself only knows the socket below TLS

    def start_tls(self, context: ssl.SSLContext) -> None:
        self.connection = context.wrap_socket(self.connection, server_side=True)
        self.rfile = self.connection.makefile("rb")
        self.wfile = self.connection.makefile("wb", buffering=0)


@contextlib.contextmanager
def smtp_receiver(receiver: SmtpReceiver) -> Iterator[SmtpReceiver]:
    class Handler(_SmtpHandler):
        pass

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        block_on_close = False

        def handle_error(self, *args: object) -> None:
            pass  # the client has hung up

    Handler.receiver = receiver
    server = Server(("127.0.0.1", 0), Handler)
    receiver.port = server.server_address[1]
    with _served(server):
        yield receiver


@contextlib.contextmanager
def silent_server() -> Iterator[int]:
    """Yield a port that accepts connections and never answers."""
    over = threading.Event()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            over.wait()

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    server = Server(("127.0.0.1", 0), Handler)
    with _served(server):
        yield server.server_address[1]
        over.set()


@contextlib.contextmanager
def _served(server: socketserver.BaseServer) -> Iterator[None]:
    serve: Callable[[], None] = lambda: server.serve_forever(poll_interval=0.05)  # noqa: E731
    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
