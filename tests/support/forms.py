"""Forms of a page, as a browser would send them."""

from __future__ import annotations

import html5lib
from flask.testing import FlaskClient


def hidden(html: str) -> dict[str, str]:
    """The hidden fields of all forms of a page."""
    tree = html5lib.parse(html, namespaceHTMLElements=False)
    return {
        field.attrib["name"]: field.attrib["value"]
        for field in tree.iter("input")
        if field.attrib.get("type") == "hidden"
    }


def opened(client: FlaskClient, address: str, **typed: str) -> dict[str, str]:
    """The form at an address, filled in, for sending it now or later."""
    page = client.get(address)
    assert page.status_code == 200
    return hidden(page.text) | typed
