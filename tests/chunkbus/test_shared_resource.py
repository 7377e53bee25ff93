"""A resource in use is not closed when it is replaced."""

import threading

import pytest

from chunksink.chunkbus.shared_resource import Shared


class Thing:
    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


def test_resource_when_unused_is_closed_by_replace() -> None:
    old, new = Thing(), Thing()
    shared = Shared(old)
    shared.replace(new)
    assert (old.closed, new.closed) == (1, 0)
    shared.close()
    shared.close()
    assert (old.closed, new.closed) == (1, 1)
    with shared.use() as nothing:
        assert nothing is None


def test_resource_when_replaced_after_close_is_closed() -> None:
    late: Thing = Thing()
    shared = Shared(Thing())
    shared.close()
    with pytest.raises(RuntimeError):
        shared.replace(late)
    assert late.closed == 1


def test_resource_when_replaced_in_use_is_closed_by_its_last_user() -> None:
    old, new = Thing(), Thing()
    shared = Shared(old)
    with shared.use() as first:
        with shared.use() as second:
            shared.replace(new)
            assert first is second is old
            with shared.use() as third:
                assert third is new
        assert old.closed == 0
    assert (old.closed, new.closed) == (1, 0)


def test_resource_when_used_by_many_threads_is_never_closed_in_use() -> None:
    """No thread gets a closed resource, and each is closed once."""
    things = [Thing() for _ in range(300)]
    shared = Shared(things[0])
    given_closed: list[Thing] = []
    done = threading.Event()

    def use() -> None:
        while not done.is_set():
            with shared.use() as one:
                if one is None or one.closed:
                    given_closed.append(things[0])

    users = [threading.Thread(target=use) for _ in range(4)]
    for user in users:
        user.start()
    for thing in things[1:]:
        shared.replace(thing)
    done.set()
    for user in users:
        user.join()
    shared.close()
    assert given_closed == []
    assert [thing.closed for thing in things] == [1] * len(things)
