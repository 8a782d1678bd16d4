"""Static files: read once, served under a name that changes with their content, so that browsers keep them for good."""

from __future__ import annotations

import hashlib
import mimetypes
from pathlib import Path
from typing import NamedTuple

from horae.face.console.security import headers_of
from horae.face.http.errors import HttpError
from horae.face.http.requests import Request
from horae.face.http.responses import Response
from horae.face.http.routes import get
from horae.face.service.route_helpers import ANONYMOUS

_HERE = Path(__file__).parent
_NAMES = {
    "console.css": "static/console.css",
    "console.js": "static/console.js",
    "favicon.svg": "static/favicon.svg",
    "htmx.js": "vendor/htmx-2.0.11.min.js",
    "sse.js": "vendor/htmx-ext-sse-2.2.4.min.js",
    "morph.js": "vendor/idiomorph-ext-0.8.0.min.js",
}
_FOR_GOOD = "public, max-age=31536000, immutable"


class Asset(NamedTuple):
    """A static file, and the digest of its content."""

    content: bytes
    media_type: str
    digest: str


def _read(path: Path) -> Asset:
    content = path.read_bytes()
    media_type = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return Asset(content, media_type, hashlib.sha256(content).hexdigest()[:12])


ASSETS = {name: _read(_HERE / path) for name, path in _NAMES.items()}


def asset_url(name: str) -> str:
    """Where a static file is, by its content."""
    return f"/console/static/{ASSETS[name].digest}/{name}"


@get("/static/{digest}/{name}", marks=ANONYMOUS)
async def static_file(request: Request, digest: str, name: str) -> Response[bytes]:
    """A static file. Under another digest it is served too, but not kept."""
    found = ASSETS.get(name)
    if found is None:
        raise HttpError(404)
    kept = _FOR_GOOD if digest == found.digest else "no-cache"
    tag = f'"{found.digest}"'
    headers = headers_of({"Cache-Control": kept, "ETag": tag})
    if request.headers.get("if-none-match") == tag:
        return Response(b"", status_code=304, headers=headers)
    return Response(found.content, headers=headers, media_type=found.media_type)
