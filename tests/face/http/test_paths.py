"""Which route answers a path."""

from __future__ import annotations

import pytest

from horae.face.http.errors import HttpError
from horae.face.http.paths import Paths
from tests.support.cases import each_of

ROUTES = ("/", "/s", "/s/{id}", "/s/new", "/s/{id}/runs", "/s/{id}/runs/{run}", "/p/{rest}", "/p/known")


def paths() -> Paths[str]:
    """A tree of these routes."""
    paths = Paths[str]()
    for each in ROUTES:
        paths.add(each, "GET", each)
    return paths


@each_of(
    ("path", "route", "values"),
    [
        ("/", "/", []),
        ("", "/", []),
        ("/s", "/s", []),
        ("/s/", "/s", []),
        ("//s//", "/s", []),
        ("/s/x", "/s/{id}", ["x"]),
        ("/s/new", "/s/new", []),
        ("/s/a%2Fb/runs", "/s/{id}/runs", ["a%2Fb"]),
        ("/s/x/runs/..", "/s/{id}/runs/{run}", ["x", ".."]),
        ("/s/{id}", "/s/{id}", ["{id}"]),
        ("/p/known", "/p/known", []),
        ("/p/a/b//c/", "/p/{rest}", ["a/b/c"]),
    ],
)
def test_a_word_goes_before_a_parameter_and_slashes_only_separate(path: str, route: str, values: list[str]):
    place, found = paths().find(path)
    assert (place.endpoints, found) == ({"GET": route}, values)


@each_of("path", ["/x", "/s/new/runs", "/s/x/nothing", "/s/x/runs/y/z", "/p", "/p/known/more", "/S"])
def test_any_other_path_leads_nowhere(path: str):
    with pytest.raises(HttpError) as raised:
        paths().find(path)
    assert raised.value.status == 404


def test_a_route_is_declared_once():
    tree = paths()
    tree.add("/s", "POST", "another method")
    assert tree.find("/s")[0].allowed == "GET, HEAD, OPTIONS, POST"
    with pytest.raises(ValueError, match="is declared twice"):
        tree.add("/s/{other}", "GET", "the same place")
