"""The search page and its API: one application, for people with a browser and for programs.

`app.make_app` builds it from a `Site`. It depends on no engine and no configuration.
"""
