"""A TLS server without a trusted certificate receives no text and no key."""

import datetime
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from chunksink.embeddings.errors import EndpointDenied
from chunksink.embeddings.settings import EncoderSettings, open_encoder
from chunksink.sinks.chroma.server import Server as ChromaServer
from chunksink.sinks.errors import Unreachable
from chunksink.sinks.meilisearch.connection import Connection


class Impostor:
    """A server with a self-signed certificate for 127.0.0.1 that counts accepted connections."""

    def __init__(self, folder: Path) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(_signed_by_itself(folder))
        self.closed = False
        self.believed = 0
        self.refused = 0
        self._listener = context.wrap_socket(socket.create_server(("127.0.0.1", 0)), server_side=True)
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def close(self) -> None:
        self.closed = True
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", self.port)).close()
        self._thread.join(20)
        self._listener.close()

    def _serve(self) -> None:
        while not self.closed:
            try:
                connection, _ = self._listener.accept()
            except (ssl.SSLError, ConnectionError):
                self.refused += 1
                continue
            with connection, suppress(OSError):
                connection.settimeout(5)
                self.believed += bool(connection.recv(10))


def _signed_by_itself(folder: Path) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(
        now + datetime.timedelta(days=1)
    )
    certificate = builder.sign(key, hashes.SHA256())
    path = folder / "impostor.pem"
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    return path


@pytest.fixture
def impostor(tmp_path: Path) -> Iterator[Impostor]:
    impostor = Impostor(tmp_path)
    yield impostor
    if not impostor.closed:
        impostor.close()


def ask_meilisearch(url: str) -> None:
    _ = Connection(url, "a-key", timeout=5).http


def ask_chroma(url: str) -> None:
    ChromaServer(url, prefix="p", token="a-key", timeout=5).version()


def ask_endpoint(url: str) -> None:
    with closing(open_encoder(EncoderSettings("model", endpoint=url))) as encoder:
        encoder.encode(["a text"])


@pytest.mark.parametrize("scheme", ["https", "HTTPS"])
@pytest.mark.parametrize("ask", [ask_meilisearch, ask_chroma, ask_endpoint])
def test_server_with_an_untrusted_certificate_receives_nothing(
    impostor: Impostor, ask: Callable[[str], None], scheme: str
) -> None:
    with pytest.raises((Unreachable, EndpointDenied)):
        ask(f"{scheme}://127.0.0.1:{impostor.port}")
    impostor.close()
    assert impostor.believed == 0
    assert impostor.refused
