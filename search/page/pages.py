"""The pages for people: search, a passage with its context, status, and signing in."""

import asyncio
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from chunksink.search.access import Access
from chunksink.search.answer import Answer, Surrounded
from chunksink.search.excerpt import keeps_lines
from chunksink.search.explanation import facts, value_text
from chunksink.search.facets import IN_EVERY_DOCUMENT
from chunksink.search.page import views
from chunksink.search.page.callers import SESSION_SECONDS, Caller, Sessions
from chunksink.search.page.drawer import drawers
from chunksink.search.page.form import SearchForm, read
from chunksink.search.page.security import COOKIE, caller_of, is_own_form, session_id
from chunksink.search.page.site import HttpProblem, Site, unanswered
from chunksink.search.page.workers import SECONDS, SideWorker, Workers
from chunksink.search.question import MAX_CONTEXT, MAX_HITS
from chunksink.sinks.document import CUSTOM

TEMPLATES = Path(__file__).with_name("templates")
_FORM_BYTES = 8192
_FORM_SECONDS = 10.0


def environment() -> Environment:
    """Templates escape everything, and an unknown name is an error. All are read at the start, because templates of a
    later upgrade would not fit the running code."""
    templates = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    templates.filters |= {
        "coded": coded,
        "facts": facts,
        "keeps_lines": keeps_lines,
        "label": views.label_of,
        "passage_url": views.chunk_url,
        "pieces": views.pieces_of,
        "place": views.place_of,
        "value_text": value_text,
    }
    for name in templates.list_templates():
        templates.get_template(name)
    return templates


def coded(text: str) -> Markup:
    """Text between backticks becomes code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return escape(text)
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if place % 2 else part for place, part in enumerate(parts)
    )


class HtmlPages:
    def __init__(self, site: Site, workers: Workers, sessions: Sessions) -> None:
        self._site = site
        self._workers = workers
        self._sessions = sessions
        self._reports = SideWorker(SECONDS)
        self._templates = environment()

    async def search(self, request: Request) -> Response:
        caller = caller_of(request)
        form = SearchForm(q=request.query_params.get("q", ""), mode=self._site.default_mode)
        answer: Answer | None = None
        updated_at = ""
        problem: HttpProblem | None = None
        try:
            form = read(request.query_params.multi_items(), strict=False, default_mode=self._site.default_mode)
            found, updated_at = await self._workers.do(self._search, caller, form)
            problem = None if found is None else unanswered(found)
            answer = None if problem else found
        except Exception as error:
            problem = self._site.problem(error, caller)
        values = self._values(form, answer, updated_at)
        return self._page("search.html", caller, problem.status if problem else 200, problem=problem, **values)

    def _search(self, caller: Caller, form: SearchForm) -> tuple[Answer | None, str]:
        """The answer (None if the form is empty), and when the index was last updated."""
        access = caller.access(form.tenant, required=self._site.tenants_required)
        custom = [f"{CUSTOM}{name}" for name in self._site.fields.choices()]
        question = form.question(self._site.fields, (*views.FACETS, *custom, IN_EVERY_DOCUMENT))
        answer = None if form.is_empty else self._site.search(question, access, caller)
        return answer, self._site.service.updated_at()

    def _values(self, form: SearchForm, answer: Answer | None, updated_at: str) -> dict[str, Any]:
        # `if answer` would be false for an answer without hits.
        facets = views.facet_views(answer, form, self._site.fields.choices()) if answer is not None else []
        listed = {choice.condition for facet in facets for choice in facet.choices}
        further = form.offset + form.limit
        return {
            "form": form,
            "answer": answer,
            "modes": views.modes(form) if self._site.default_mode == "hybrid" else [],
            "hits": list(zip(answer.hits, drawers(answer), strict=True)) if answer is not None else [],
            "outcome": views.outcome(answer, form) if answer is not None else "",
            "suggestions": views.suggestions(answer, form) if answer is not None else [],
            "updated": views.ago(updated_at) if answer is not None else "",
            "facets": facets,
            "orders": views.sort_choices(self._site.fields.sortable(), form),
            "unlisted": [condition for condition in form.filter if condition not in listed],
            "previous": form.url(offset=max(0, form.offset - form.limit)) if form.offset else None,
            "next": form.url(offset=further)
            if answer is not None and answer.more and further + form.limit <= MAX_HITS
            else None,
        }

    async def chunk(self, request: Request) -> Response:
        caller = caller_of(request)
        chunk_id = request.query_params.get("id", "")
        form, shown, problem = SearchForm(), None, None
        try:
            form = read(request.query_params.multi_items(), strict=False, default_mode=self._site.default_mode)
            access = caller.access(form.tenant, required=self._site.tenants_required)
            shown = await self._workers.do(self._shown, chunk_id, access, form)
        except Exception as error:
            problem = self._site.problem(error, caller)
        if shown is None:
            problem = problem or HttpProblem(404, "This passage does not exist, or no longer exists.")
            return self._page("message.html", caller, problem.status, title="No passage", problem=problem)
        found, passages = shown
        wider = min(form.context + 3, MAX_CONTEXT)
        whole = len(found.before) < form.context and len(found.after) < form.context
        return self._page(
            "chunk.html",
            caller,
            place=views.place_of(found.document, self._site.source_url),
            form=form,
            passages=passages,
            back=None if form.is_empty else form.url(context=0),
            wider=None if whole or wider == form.context else views.chunk_url(chunk_id, form, wider),
        )

    def _shown(
        self, chunk_id: str, access: Access, form: SearchForm
    ) -> tuple[Surrounded, list[views.PassageView]] | None:
        found = self._site.service.get(chunk_id, access, form.context, form.q)
        return None if found is None else (found, views.passages(found))

    async def status(self, request: Request) -> Response:
        """Only for callers who may see all tenants: it names sources and counts everybody's documents."""
        caller = caller_of(request)
        if not caller.sees_all:
            problem = HttpProblem(403, "The status covers all tenants, so it needs a token for all of them (`*`).")
            return self._page("message.html", caller, 403, title="Status", problem=problem)
        try:
            report = await self._reports.do(self._site.report)
        except Exception as error:
            problem = self._site.problem(error, caller)
            return self._page("message.html", caller, problem.status, title="Status", problem=problem)
        return self._page("status.html", caller, report=report)

    def not_found(self, request: Request) -> Response:
        problem = HttpProblem(404, "There is no page at this address.")
        caller = request.state.caller
        return self._page("message.html", caller, 404, title="Not found", problem=problem)

    def sign_in_form(self, target: str, *, refused: str = "") -> Response:
        page = self._templates.get_template("sign_in.html")
        text = page.render(target=target, refused=refused, caller=None, site=self._site)
        return HTMLResponse(text, 401, headers={"WWW-Authenticate": "Bearer"})

    async def ask_to_sign_in(self, request: Request) -> Response:
        if not self._site.tokens.required:
            return RedirectResponse("/", 303)
        return self.sign_in_form("/")

    async def sign_in(self, request: Request) -> Response:
        form = await _form(request)
        target = _on_this_site(form.get("target", "/"))
        if not is_own_form(request):
            return self.sign_in_form(target, refused="That form came from another page. Please sign in here.")
        caller = self._site.tokens.caller(form.get("token", ""))
        if caller is None:
            return self.sign_in_form(target, refused="This token is unknown.")
        answer = RedirectResponse(target, 303)
        answer.set_cookie(
            COOKIE,
            self._sessions.begin(caller),
            max_age=int(SESSION_SECONDS),
            httponly=True,
            samesite="strict",
            secure=request.headers.get("x-forwarded-proto", request.url.scheme).startswith("https"),
        )
        return answer

    async def sign_out(self, request: Request) -> Response:
        if is_own_form(request):
            self._sessions.end(session_id(request))
        answer = RedirectResponse("/", 303)
        answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return answer

    def _page(self, name: str, caller: Caller | None, status: int = 200, **values: Any) -> Response:
        text = self._templates.get_template(name).render(caller=caller, site=self._site, **values)
        return HTMLResponse(text, status)


async def _form(request: Request) -> dict[str, str]:
    """The fields of a small form. None of a larger body, or of one that does not arrive completely in time."""
    body = b""
    try:
        async with asyncio.timeout(_FORM_SECONDS):
            async for part in request.stream():
                body += part
                if len(body) > _FORM_BYTES:
                    return {}
    except (TimeoutError, ClientDisconnect):
        return {}
    try:
        fields = parse_qs(body.decode("utf-8", "replace"), max_num_fields=20)
    except ValueError:
        return {}
    return {name: values[-1] for name, values in fields.items()}


def _on_this_site(target: str) -> str:
    """The address if it is on this site, otherwise the start page."""
    is_local = target.startswith("/") and not target.startswith(("//", "/\\")) and target.isprintable()
    return target if is_local else "/"
