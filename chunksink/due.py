"""Whether a rebuild is due: whether it would make another index than the live one is."""

from pathlib import Path
from typing import TYPE_CHECKING

from chunksink.settings.config import Config
from chunksink.wiring import encoder_settings

if TYPE_CHECKING:
    from chunksink.rebuild.state import Generation, State


def rebuild_due(config: Config, state: "State", live: "Generation") -> str | None:
    """Why a rebuild would use another model than the live index has, as far as settings and files tell."""
    from chunksink.embeddings.settings import same_encoder

    wanted = encoder_settings(config)
    if not live.holds_vectors:
        return None
    if same_encoder(wanted, live.encoder):
        return _files_changed(state, live)
    if wanted.model != live.encoder.model:
        return f"the live index was made with {live.encoder.model}, configured is {wanted.model}"
    return f"the live index was made with other settings of {wanted.model} than are configured"


def _files_changed(state: "State", live: "Generation") -> str | None:
    """Of a model that was found on this machine, and is there still."""
    from chunksink.embeddings.fingerprint import digest_of_files, signature_of_files

    folder = Path(live.model.source.partition(":")[2])
    if not live.model.files or not folder.is_dir():
        return None
    signature = signature_of_files(folder)
    digest = state.digest_of_model(signature)
    if digest is None:
        digest = digest_of_files(folder)
        state.note_model(signature, digest)
    if digest == live.model.files:
        return None
    return f"files of the model {live.model.name} in {folder} are others than those that made the live index"
