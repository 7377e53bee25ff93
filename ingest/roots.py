"""Named roots: the registered folder around a source determines the source's name.

The first ingest of a folder registers its absolute path and a label. The names of all files below it begin with the
label, and stay the same if later runs name a file, a subfolder or a parent folder. The list is `roots.json` in the bus
root, so that it survives if the home is deleted.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from chunksink.chunkbus.errors import StorageConflict
from chunksink.chunkbus.layout import BusRoot
from chunksink.ingest.errors import IngestBusy, IngestRefused
from chunksink.ingest.formats.markdown.policy import DEFAULT_POLICY, POLICIES, Policy

FILE_NAME = "roots.json"
_MAX_SAVE_ATTEMPTS = 20


@dataclass(frozen=True, slots=True)
class Root:
    """A registered folder. `path` is its real path. The names of its files begin with `label`, which is empty for the
    folder of `--base`.

    `files_only`: only single files of the folder were ingested, so its subfolders do not belong to it. `policy` is the
    chunking policy of its files.
    """

    label: str
    path: Path
    files_only: bool = False
    policy: Policy = DEFAULT_POLICY

    @property
    def prefix(self) -> str:
        return f"{self.label}/" if self.label else ""

    def name_of(self, path: Path) -> str:
        """The name of a file or folder below this root."""
        return str(PurePosixPath(self.label, *path.relative_to(self.path).parts))

    def names_files_in(self, folder: Path) -> bool:
        """Whether the files in a real folder are named by this root."""
        return folder == self.path if self.files_only else folder.is_relative_to(self.path)

    def clashes_with(self, other: "Root") -> bool:
        """Whether the two could name the same file, or give two files the same name."""
        paths = self.path.is_relative_to(other.path) or other.path.is_relative_to(self.path)
        return self != other and (paths or self.prefix.startswith(other.prefix) or other.prefix.startswith(self.prefix))


@dataclass(frozen=True, slots=True)
class Scope:
    """A folder with links resolved, and the sources that it contains or contained: those whose names begin with one of
    `included` (or are equal to it without its final `/`), and with none of `excluded`."""

    path: Path
    included: tuple[str, ...]
    excluded: tuple[str, ...] = ()

    def contains(self, name: str) -> bool:
        return f"{name}/".startswith(self.included) and not name.startswith(self.excluded)


class Roots:
    """The registered roots of a bus."""

    def __init__(self, bus: BusRoot) -> None:
        self._storage = bus.storage
        self._version: str | None = None
        self._saved = self._read()
        self._roots = list(self._saved)

    def _read(self) -> list[Root]:
        try:
            data, self._version = self._storage.read_version(FILE_NAME)
            return [
                Root(one["label"], Path(one["path"]), one.get("files_only", False), POLICIES[one["chunking"]])
                for one in json.loads(data)["roots"]
            ]
        except FileNotFoundError:
            return []
        except (ValueError, KeyError, TypeError) as error:
            raise IngestRefused(
                f"{self._storage.address}/{FILE_NAME} cannot be read ({error}): restore it from a copy. If there is "
                "none, delete it and ingest every folder again, subfolders before their parents, so that sources keep "
                "their names"
            ) from error

    def __iter__(self) -> Iterator[Root]:
        return iter(self._roots)

    def of(self, folder: Path) -> Root | None:
        """The innermost registered root that names the files in a real folder."""
        around = [root for root in self._roots if root.names_files_in(folder)]
        return max(around, key=lambda root: len(root.path.parts), default=None)

    def prefix_of(self, folder: Path) -> str:
        """The prefix of the names of files in a real folder. Raises IngestRefused if another root uses it."""
        root = self.of(folder)
        assert root is not None  # discovery has registered the named folder around it
        prefix = _as_prefix(root.name_of(folder))
        owner = self._owner_of(prefix)
        if owner is not None and owner != root:
            raise IngestRefused(
                f"files in {folder} would get the same names as files in {owner.path}; nothing was written. Name "
                f"sources by a folder further up: --base {root.path.parent}"
            )
        return prefix

    def _owner_of(self, name: str) -> Root | None:
        """The root with the longest label that the name begins with."""
        owners = [root for root in self._roots if name.startswith(root.prefix)]
        return max(owners, key=lambda root: len(root.prefix), default=None)

    def path_of(self, name: str) -> Path | None:
        """Where a source of this name is, or was; None if no root matches."""
        owner = self._owner_of(name)
        return None if owner is None else owner.path / name.removeprefix(owner.prefix)

    def policy_of(self, name: str) -> Policy:
        """The chunking policy of a source."""
        owner = self._owner_of(name)
        return owner.policy if owner else DEFAULT_POLICY

    def set_policy(self, path: Path, policy: Policy) -> None:
        """Sets the policy of the root that names a real folder or file, and of the roots within the folder."""
        around = self.of(path if path.is_dir() else path.parent)
        for number, root in enumerate(self._roots):
            if (root == around or root.path.is_relative_to(path)) and root.policy != policy:
                self._roots[number] = replace(root, policy=policy)

    def within(self, folder: Path) -> Scope:
        """The scope of a real folder. It covers names given by the root around it and by roots inside it."""
        below = [root.prefix for root in self._roots if root.path.is_relative_to(folder)]
        root = self.of(folder)
        included = {*below, *([_as_prefix(root.name_of(folder))] if root else [])}
        others = (root.prefix for root in self._roots if root.prefix not in below)
        excluded = {prefix for prefix in others if any(prefix.startswith(one) and prefix != one for one in included)}
        return Scope(folder, tuple(sorted(included)), tuple(sorted(excluded)))

    def nested(self) -> list[tuple[str, str]]:
        """For each root inside another one: the prefix of its names, and the prefix that they would have if only the
        outermost root were registered."""
        prefixes = []
        for root in self._roots:
            outer = min(
                (one for one in self._roots if one.names_files_in(root.path)), key=lambda one: len(one.path.parts)
            )
            if outer != root:
                prefixes.append((root.prefix, _as_prefix(outer.name_of(root.path))))
        return prefixes

    def register(self, folder: Path, base: Path | None = None, *, files_only: bool = False) -> Root:
        """Returns the registered root around a folder, else registers the folder. `files_only`: a file in it was named.

        Raises IngestRefused if the folder is registered and `base` would rename its sources. Raises it also if another
        folder has the same label, unless that folder no longer exists and `base` is given: then it counts as moved.
        """
        real = real_path(folder)
        own_name = Path(os.path.abspath(folder)).name or "root"  # noqa: PTH100 (a link keeps its own name)
        label = own_name if base is None else _below(base, folder)
        registered = former = self.of(real)
        if registered is not None and base is not None and (name := registered.name_of(real)) != (label or "."):
            raise IngestRefused(
                f"{folder} is registered with the name {name!r}, and --base {base} would name it {label or '.'!r}; "
                "nothing was written. Leave --base out: a registered folder keeps its names"
            )
        if registered is not None and (files_only or not registered.files_only):
            return registered
        label = registered.label if registered else label
        for other in [root for root in self._roots if root.label == label and root.path != real]:
            if other.path.exists() or base is None:
                raise IngestRefused(_same_label(folder, real, other))
            self._roots.remove(other)
            former = other
        policy = former.policy if former else DEFAULT_POLICY
        root = Root(label, real, files_only, policy)
        self._roots = [other for other in self._roots if other.path != real] + [root]
        return root

    def save(self) -> None:
        """Writes the list if this run has changed it. Changes that other ingests have saved meanwhile are kept.

        Raises IngestBusy if one of them may change the names that this run has used.
        """
        for _ in range(_MAX_SAVE_ATTEMPTS):
            if self._roots == self._saved:
                return
            try:
                self._storage.write_if_unchanged(FILE_NAME, _encoded(self._roots), self._version)
            except StorageConflict:
                before, self._saved = self._saved, self._read()
                self._roots = self._merged(before)
            else:
                self._saved = list(self._roots)
                return
        raise self._busy()

    def _merged(self, before: list[Root]) -> list[Root]:
        """The list that is saved now, with the changes that this run has made since `before`."""
        ours = [root for root in self._roots if root not in before]
        theirs = [root for root in self._saved if root not in before]
        if any(one.clashes_with(other) for one in ours for other in theirs):
            raise self._busy()
        changed = {root.path for root in (*before, *ours) if root in ours or root not in self._roots}
        return [root for root in self._saved if root.path not in changed] + ours

    def _busy(self) -> IngestBusy:
        return IngestBusy(f"another ingest registered a folder in {self._storage.address} meanwhile; run again")


def _encoded(roots: list[Root]) -> bytes:
    entries = [
        {"label": root.label, "path": str(root.path), "chunking": root.policy.name}
        | ({"files_only": True} if root.files_only else {})
        for root in sorted(roots, key=lambda root: root.label)
    ]
    return (json.dumps({"roots": entries}, indent=2, ensure_ascii=True) + "\n").encode()


def _same_label(folder: Path, real: Path, other: Root) -> str:
    remedy = f"If {other.path} was moved to {real}, add --base {real.parent}"
    if other.path.exists():
        remedy = f"To keep both, name sources by a folder further up: --base {real.parent.parent}"
    return f"{folder} and {other.path} would both be named {other.label!r}; nothing was written. {remedy}"


def _as_prefix(name: str) -> str:
    return "" if name == "." else f"{name}/"


def real_path(path: Path) -> Path:
    """The path with links resolved, except that a file keeps its own name."""
    return path.resolve() if path.is_dir() else path.parent.resolve() / path.name


def _below(base: Path, folder: Path) -> str:
    real, top = real_path(folder), real_path(base)
    if not real.is_relative_to(top):
        raise IngestRefused(f"{folder} is not below the base folder {base}")
    return "" if real == top else str(PurePosixPath(*real.relative_to(top).parts))
