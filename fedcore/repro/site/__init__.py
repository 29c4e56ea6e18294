"""The report of a run as a static site: `build.write` makes it from the folder of results.

`model` gathers what the pages show; the templates say how. Pages need no network and no server.
"""
