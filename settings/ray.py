"""The table `[ray]`: workers on Ray, which compute vectors."""

from typing import Annotated

import msgspec


class RayOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Workers on Ray. Without an address, Ray starts on this machine for each run that needs it."""

    address: Annotated[str, msgspec.Meta(min_length=1)] | None = None
    """The address of a cluster; `auto` for the cluster that this machine belongs to."""
    workers: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """By default one for each processor, or, with `gpus_per_worker`, as many as the GPUs have room for."""
    gpus_per_worker: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    segments: Annotated[str, msgspec.Meta(min_length=1)] | None = None
    """Folder or bucket of the vectors that workers have computed; by default `segments` in the home."""
