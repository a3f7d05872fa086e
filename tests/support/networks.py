"""A forward proxy and certificates of one's own, to meet networks as they are."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import subprocess
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from support.local_index import Serving

HOST = "index.invalid"
"""A name that only the proxy knows (RFC 6761): whoever reaches it came through the proxy."""


class Proxy(Serving):
    """A forward proxy that tunnels to `HOST` and nowhere else."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        """`host:port` of every tunnel, in the order they came."""
        outer = self

        class Handler(_Handler):
            proxy = outer

        super().__init__(Handler)
        self.url = f"http://127.0.0.1:{self.port}"


class _Handler(BaseHTTPRequestHandler):
    proxy: Proxy

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_CONNECT(self) -> None:
        """Carry bytes both ways until one side has had enough."""
        self.proxy.asked.append(self.path)
        host, _, port = self.path.partition(":")
        if host != HOST:
            self.send_error(403)
            return
        with socket.create_connection(("127.0.0.1", int(port))) as far:
            self.send_response(200)
            self.end_headers()
            near = self.connection
            with contextlib.suppress(OSError):
                while True:
                    for ready in select.select([near, far], [], [], 30)[0]:
                        data = ready.recv(1 << 16)
                        if not data:
                            return
                        (far if ready is near else near).sendall(data)
        self.close_connection = True


class Certificates:
    """An authority, a server's certificate for `HOST` and 127.0.0.1, and a client's."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self.authority = self._make("authority", "subjectAltName=DNS:authority.invalid", ca=True)
        names = f"subjectAltName=DNS:{HOST},DNS:localhost,IP:127.0.0.1"
        self.server = self._make("server", names)
        self.client = self._make("client", "subjectAltName=DNS:client.invalid")
        self.expired = self._make("expired", names, days="0")

    def context(self, *, client: bool = False, expired: bool = False) -> ssl.SSLContext:
        """Return what a server needs; with `client` it wants to know who asks."""
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.load_cert_chain(self.expired if expired else self.server)
        if client:
            made.verify_mode = ssl.CERT_REQUIRED
            made.load_verify_locations(self.authority)
        return made

    def _make(self, name: str, names: str, *, ca: bool = False, days: str = "2") -> Path:
        """Make a certificate with its key in one file, signed by the authority or by itself."""
        key, request = self._folder / f"{name}.key", self._folder / f"{name}.csr"
        made = self._folder / f"{name}.pem"
        options = self._folder / f"{name}.ext"
        use = "keyCertSign,cRLSign" if ca else "digitalSignature"
        lines = [names, f"basicConstraints=critical,CA:{str(ca).upper()}"]
        # Python 3.13 and newer check as RFC 5280 says: without these a certificate is refused.
        lines += [f"keyUsage=critical,{use}", "subjectKeyIdentifier=hash"]
        lines += [] if ca else ["authorityKeyIdentifier=keyid"]
        options.write_text("\n".join(lines) + "\n")
        self._run("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", str(key))
        self._run("req", "-new", "-key", str(key), "-subj", f"/CN={name}", "-out", str(request))
        signer = ["-signkey", str(key)]
        if not ca:
            signer = ["-CA", str(self.authority), "-CAkey", str(self._folder / "authority.key")]
            signer += ["-CAcreateserial"]
        common = ["x509", "-req", "-in", str(request), "-days", days, "-extfile", str(options)]
        self._run(*common, *signer, "-out", str(made))
        if not ca:
            made.write_text(made.read_text() + key.read_text())
        return made

    @staticmethod
    def _run(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], check=True, capture_output=True)
