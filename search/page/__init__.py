"""The search page and its API: one application, asked by people with a browser and by programs.

`app.make_app` puts it together from what it is given; it knows no engine and no configuration.
"""
