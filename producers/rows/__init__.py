"""Rows, one document each, become chunks as the Markdown, the page or the text that theirs is.

separated (CSV), names, row -> markup (what its text is), about (what it says beside) -> (the cutter of the Markdown
producer) -> records -> reader. Whoever only asks whether something is a row imports no more than that.
"""
