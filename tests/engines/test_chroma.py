"""What this project expects from a Chroma server, tested on the one in the Python package."""

import uuid
from importlib.metadata import files, version
from pathlib import Path

import chromadb
from chromadb.api import ClientAPI
from chromadb.config import Settings

from tests.engines.servers import ChromaServer, get_json
from tools import engines

CONSTRAINTS = Path(__file__).parents[2] / "constraints.txt"


def installed_files(package: str) -> list[Path]:
    return [Path(str(file.locate())) for file in files(package) or []]


def connect(server: ChromaServer) -> ClientAPI:
    return chromadb.HttpClient(host=server.host, port=server.port, settings=Settings(anonymized_telemetry=False))


def test_server_and_client_are_one_package_of_the_pinned_version(chroma_server: ChromaServer) -> None:
    """A 1.5 server answers "1.0.0" in every release, so only the package shows the release."""
    assert get_json(f"{chroma_server.url}/api/v2/version") == "1.0.0"
    program = engines.find("chroma")
    assert program is not None
    assert program.resolve() in {path.resolve() for path in installed_files("chromadb")}
    assert f"chromadb=={version('chromadb')}" in CONSTRAINTS.read_text(encoding="utf-8").splitlines()


def test_server_takes_batches_of_its_advertised_size(chroma_server: ChromaServer) -> None:
    client = connect(chroma_server)
    collection = client.create_collection(f"batch-{uuid.uuid4().hex}", embedding_function=None)
    size = client.get_max_batch_size()
    collection.upsert(ids=[str(number) for number in range(size)], embeddings=[[0.0, 1.0]] * size)
    assert collection.count() == size
    client.delete_collection(collection.name)
