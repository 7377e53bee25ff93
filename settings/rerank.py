"""The table `[rerank]`: a model that reranks the best hits of each search."""

from typing import Annotated

import msgspec

_Name = Annotated[str, msgspec.Meta(min_length=1)]


class RerankOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model that reranks the best hits of each search."""

    model: _Name = "cross-encoder/ms-marco-MiniLM-L6-v2"
    url: _Name | None = None
    key_variable: _Name | None = None
    top: Annotated[int, msgspec.Meta(ge=2, le=50)] = 20
    deadline: Annotated[float, msgspec.Meta(gt=0)] = 2.0

    def __post_init__(self) -> None:
        if self.key_variable is not None and self.url is None:
            raise ValueError("`key_variable` needs `url`: a model on this machine has no key")
