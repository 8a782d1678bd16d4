"""Finds the route of a path. A word of a route goes before a parameter, and a parameter before the rest of a path."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

from horae.face.http.errors import HttpError
from horae.face.http.routes import REST, words_of

E = TypeVar("E")


class Place(Generic[E]):
    """A place in the tree of all paths: the paths that go on from here, and by method what answers here."""

    def __init__(self) -> None:
        self.words: dict[str, Place[E]] = {}
        self.parameter: Place[E] | None = None
        self.rest: Place[E] | None = None
        self.endpoints: dict[str, E] = {}

    def child(self, word: str) -> Place[E]:
        """The place that a word of a route leads to, made if there is none yet."""
        if not word.startswith("{"):
            return self.words.setdefault(word, Place())
        if word == REST:
            self.rest = self.rest or Place()
            return self.rest
        self.parameter = self.parameter or Place()
        return self.parameter

    @property
    def allowed(self) -> str:
        """The methods that are answered here, for the header ``Allow``."""
        head = {"HEAD"} if "GET" in self.endpoints else set()
        return ", ".join(sorted({*self.endpoints, *head, "OPTIONS"}))


class Paths(Generic[E]):
    """What answers, by path and method. Paths are matched undecoded, so that an id may contain an encoded slash."""

    def __init__(self) -> None:
        self._root = Place[E]()

    def add(self, path: str, method: str, endpoint: E) -> None:
        """Let requests of a method and a path be answered."""
        place = self._root
        for word in words_of(path):
            place = place.child(word)
        if place.endpoints.setdefault(method, endpoint) is not endpoint:
            raise ValueError(f"{method} {path} is declared twice")

    def find(self, path: str) -> tuple[Place[E], list[str]]:
        """The place of a path, and the values of its parameters, in their order."""
        place, values = self._root, list[str]()
        words = words_of(path)
        for index, word in enumerate(words):
            if word in place.words:
                place = place.words[word]
            elif place.parameter is not None:
                place = place.parameter
                values.append(word)
            elif place.rest is not None:
                place = place.rest
                values.append("/".join(words[index:]))
                break
            else:
                raise HttpError(404)
        if not place.endpoints:
            raise HttpError(404)
        return place, values


def parameters_in(path: str) -> Iterable[str]:
    """The names of the parameters in the path of a route."""
    return [word[1:-1] for word in words_of(path) if word.startswith("{")]
