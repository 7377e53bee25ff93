"""Hosts, tokens, sessions, the headers of every response, and what errors reveal."""

import logging
import re
import socket
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from chunksink.search.legs import Legs
from chunksink.search.page import pages
from chunksink.search.page.app import make_app
from chunksink.search.page.callers import Caller, Sessions, Tokens
from chunksink.search.page.security import HEADERS, Hosts
from tests.search.page.support import LegAnswers, bearer, client_of, served, site_over

CANARY = "canary-41bd"
TOKEN = "canary-token-5d1f"
OPEN_PATHS = [
    "/healthz",
    "/readyz",
    "/sign-in",
    "/static/page.css",
    "/static/page.js",
    "/static/theme.js",
    "/static/icon.svg",
]
PATHS = [
    "/",
    "/?q=cat",
    "/chunk?id=x",
    "/status",
    "/api/search?q=cat",
    "/api/chunk?id=x",
    "/api/openapi.json",
    "/nowhere",
]


@pytest.fixture(scope="module")
def guarded(legs: Legs) -> Iterator[TestClient]:
    with client_of(make_app(site_over(LegAnswers(legs), tokens={TOKEN: "*"}))) as client:
        yield client


@pytest.fixture(autouse=True)
def signed_out(guarded: TestClient) -> None:
    guarded.cookies.clear()


@pytest.mark.parametrize("path", [*PATHS, *OPEN_PATHS, "/api/nowhere", "//example.org"])
def test_responses_have_all_security_headers(client: TestClient, guarded: TestClient, path: str) -> None:
    for answer in (client.get(path), guarded.get(path), client.post(path), client.get(path, headers={"Host": "evil"})):
        assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS
        assert answer.headers["cache-control"] in ("no-store", "no-cache")
    assert "unsafe" not in HEADERS["Content-Security-Policy"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("wrong", ["", "other", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "é"])
def test_request_without_the_token_is_refused(guarded: TestClient, path: str, wrong: str) -> None:
    headers: dict[str, str | bytes] = {"Authorization": f"Bearer {wrong}".encode()} if wrong else {}
    answer = guarded.get(path, headers=headers)  # type: ignore[arg-type]
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert "cat sleeps" not in answer.text
    assert ("Authorization: Bearer TOKEN" in answer.text) == path.startswith("/api/")
    assert ('type="password"' in answer.text) != path.startswith("/api/")


@pytest.mark.parametrize("path", PATHS)
def test_request_with_the_token_is_answered(guarded: TestClient, client: TestClient, path: str) -> None:
    assert guarded.get(path, headers=bearer(TOKEN)).status_code == client.get(path).status_code != 401


@pytest.mark.parametrize("path", OPEN_PATHS)
def test_paths_that_reveal_nothing_need_no_token(guarded: TestClient, path: str) -> None:
    assert guarded.get(path).status_code in (200, 401 if path == "/sign-in" else 503 if path == "/readyz" else 200)


def test_sign_in_sets_a_session_and_sign_out_ends_it(guarded: TestClient) -> None:
    refused = guarded.get("/?q=cat&filter=language%3Den")
    target = re.search('name="target" value="([^"]*)"', refused.text)
    assert target is not None
    assert target[1] == "/?q=cat&amp;filter=language%3Den"
    wrong = guarded.post("/sign-in", data={"token": "other", "target": "/"})
    assert (wrong.status_code, "notice bad" in wrong.text) == (401, True)
    assert "set-cookie" not in wrong.headers
    answer = guarded.post("/sign-in", data={"token": TOKEN, "target": "/?q=cat&filter=language%3Den"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/?q=cat&filter=language%3Den")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert TOKEN not in cookie
    assert guarded.get("/?q=cat").status_code == 200
    assert guarded.get("/api/search?q=cat").status_code == 200
    session = guarded.cookies["chunksink"]
    guarded.post("/sign-out")
    assert guarded.get("/?q=cat", headers={"Cookie": f"chunksink={session}"}).status_code == 401


def test_sign_in_that_does_not_arrive_completely_ends(
    legs: Legs, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with served(make_app(site_over(LegAnswers(legs), tokens={TOKEN: "*"}))) as address:
        host, _, port = address.removeprefix("http://").partition(":")
        begun = f"POST /sign-in HTTP/1.1\r\nHost: {host}\r\nContent-Length: 99\r\n\r\ntoken={TOKEN}".encode()
        with socket.create_connection((host, int(port))) as aborted:
            aborted.sendall(begun)
        monkeypatch.setattr(pages, "_FORM_SECONDS", 0.2)
        with socket.create_connection((host, int(port)), timeout=9) as unfinished:
            unfinished.sendall(begun)
            assert unfinished.recv(99).startswith(b"HTTP/1.1 401")
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


@pytest.mark.parametrize(("proto", "secure"), [(None, False), ("http", False), ("https", True)])
def test_session_behind_a_proxy_with_tls_is_sent_over_tls_only(
    guarded: TestClient, proto: str | None, secure: bool
) -> None:
    headers = {"X-Forwarded-Proto": proto} if proto else {}
    answer = guarded.post("/sign-in", data={"token": TOKEN, "target": "/"}, headers=headers)
    assert ("; secure" in answer.headers["set-cookie"].lower()) is secure


def test_session_is_found_among_cookies_of_other_programs(guarded: TestClient) -> None:
    """Other programs on the same host may set any cookies."""
    answer = guarded.post("/sign-in", data={"token": TOKEN, "target": "/"})
    session = answer.headers["set-cookie"].partition("=")[2].partition(";")[0]
    for others in ('prefs={"a":1}; ', "a b; ", "=; ", "chunksink2=x; ", "ä=ö; "):
        sent = f"{others}chunksink={session}".encode()
        assert guarded.get("/", headers=[(b"Cookie", sent)]).status_code == 200


def test_token_in_the_address_or_cookie_is_ignored(guarded: TestClient) -> None:
    for name in ("token", "access_token", "key", "chunksink"):
        assert guarded.get(f"/?q=cat&{name}={TOKEN}").status_code == 401
    assert guarded.get("/", headers={"Cookie": f"chunksink={TOKEN}"}).status_code == 401
    assert guarded.get(f"/sign-in?token={TOKEN}").status_code == 401


def test_form_of_another_site_is_refused(guarded: TestClient) -> None:
    form = {"token": TOKEN, "target": "/"}
    assert guarded.post("/sign-in", data=form, headers={"Origin": "http://evil.example"}).status_code == 401
    assert guarded.post("/sign-in", data=form, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 401
    signed_in = guarded.post("/sign-in", data=form, headers={"Origin": "http://127.0.0.1:8765"})
    assert signed_in.status_code == 303
    guarded.post("/sign-out", headers={"Origin": "http://evil.example"})
    session = signed_in.headers["set-cookie"].partition("=")[2].partition(";")[0]
    assert guarded.get("/", headers={"Cookie": f"chunksink={session}"}).status_code == 200


@pytest.mark.parametrize(
    "target", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)", "", "/\tx"]
)
def test_sign_in_never_redirects_to_another_site(guarded: TestClient, target: str) -> None:
    answer = guarded.post("/sign-in", data={"token": TOKEN, "target": target})
    assert answer.headers["location"] == "/"


def test_form_that_is_too_large_is_not_read(guarded: TestClient) -> None:
    assert guarded.post("/sign-in", data={"token": TOKEN, "more": "x" * 100_000}).status_code == 401
    many = {"token": TOKEN, **{f"more{number}": "x" for number in range(20)}}
    assert guarded.post("/sign-in", data=many).status_code == 401


@pytest.mark.parametrize(
    ("bound", "names", "header", "served"),
    [
        ("127.0.0.1", (), "localhost:8765", True),
        ("127.0.0.1", (), "LOCALHOST", True),
        ("127.0.0.1", (), "[::1]:8765", True),
        ("127.0.0.1", (), "127.0.0.1.evil.example", False),
        ("127.0.0.1", (), "localhost@evil.example", False),
        ("127.0.0.1", (), "evil.example#localhost", False),
        ("127.0.0.1", (), "", False),
        ("127.0.0.1", (), "[::1", False),
        ("0.0.0.0", (), "10.0.0.7:8765", True),
        ("0.0.0.0", (), "evil.example", False),
        ("0.0.0.0", ("Search.example.org",), "search.example.org", True),
        ("box.example.org", (), "box.example.org:80", True),
    ],
)
def test_hosts_serves_only_its_names(bound: str, names: tuple[str, ...], header: str, served: bool) -> None:
    assert Hosts(bound, names).serves(header) is served


def test_request_for_a_foreign_host_is_refused(client: TestClient) -> None:
    for path in (*PATHS, *OPEN_PATHS):
        answer = client.get(path, headers={"Host": "evil.example"})
        assert answer.status_code == 421
        assert "cat" not in answer.text


def test_bug_is_logged_without_the_query_and_reveals_nothing(legs: Legs, caplog: pytest.LogCaptureFixture) -> None:
    def bug() -> None:
        raise RuntimeError(f"{CANARY} in a message of a library")

    with client_of(make_app(site_over(LegAnswers(legs, before=bug)))) as client, caplog.at_level(logging.DEBUG):
        for path in ("/?q=", "/api/search?q=", "/chunk?id="):
            answer = client.get(f"{path}{CANARY}")
            ready = client.get("/readyz")
            assert (ready.status_code, ready.json()["reason"]) in ((503, "starting"), (503, "error"))
            assert client.get("/healthz").status_code == 200
            assert answer.status_code == 500
            assert CANARY not in answer.text
    assert "RuntimeError while answering /api/search" in caplog.text
    assert "test_security.py" in caplog.text
    messages = [
        record.getMessage() for record in caplog.records if not record.name.startswith("httpx")
    ]  # the client of this test
    assert not [message for message in messages if CANARY in message]


def test_session_ends_when_it_is_old_or_one_of_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Tokens({}).caller(TOKEN) is None
    sessions = Sessions()
    first = sessions.begin(Caller("acme"))
    assert sessions.caller(first) == Caller("acme")
    for _ in range(1000):
        sessions.begin(Caller())
    assert sessions.caller(first) is None, "the oldest session is dropped"
    late = sessions.begin(Caller())
    monkeypatch.setattr("chunksink.search.page.callers.monotonic", lambda: 1e12)
    assert sessions.caller(late) is None
