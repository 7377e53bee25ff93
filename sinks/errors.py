"""Errors of the sinks. Each docstring is the sentence its reader needs; messages add the facts.

    SinkError
    ├── Transient            the engine may take the same call later: wait and repeat it
    │   ├── Unreachable      nobody answers at the engine's address
    │   └── NotConfirmed     the engine took the work but did not say in time that it is done
    └── Refused              the engine will never take this call: repeating it cannot help
        ├── WrongKey         the engine does not know the key, or the key may not do this
        ├── BuildMissing     the build is not there (dropped, or never made)
        ├── BuildBroken      the build is there and cannot be read: rebuild it
        ├── OutOfResources   this machine is short of open files, memory or room: nothing is broken
        └── InvalidFilter    a filter names a field that cannot be filtered, or asks what the field cannot answer

Adapters translate foreign exceptions into these once, where they call the engine. Whatever else comes out
of a sink is a bug and keeps its traceback. A single document that an engine refuses is no exception: it is
returned by `flush` as a `RefusedDocument`.
"""

from chunksink.chunkbus.errors import ChunksinkError

MEND = "`chunksink verify --repair` makes it anew, nothing is lost"
"""What to do about a build that is broken."""
MAKE_ANEW = "run `chunksink sync`, which makes it anew"
"""What to do about one that is gone."""


class SinkError(ChunksinkError):
    """Something about a sink that its reader can act on."""


class Transient(SinkError):
    """The engine could not do it now; the same call may go through later."""


class Unreachable(Transient):
    """Nobody answers there: start the engine, or correct its address."""


class NotConfirmed(Transient):
    """The engine did not confirm the work in time; what it has done is unknown until it is asked again."""


class Refused(SinkError):
    """The engine refuses this, and would refuse it again."""


class WrongKey(Refused):
    """The engine does not accept the key; set the right one."""


class BuildMissing(Refused):
    """There is no such build in this sink; make it anew with a rebuild."""


class BuildBroken(Refused):
    """The build cannot be read any more; rebuild it. Nothing is lost: indexes are made from the chunks."""


class OutOfResources(Refused):
    """This machine is short of something; nothing is broken. Do what the message says, then run it again."""


class InvalidFilter(Refused):
    """The filter cannot be answered; use a field that can be filtered."""
