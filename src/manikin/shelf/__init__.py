"""Demonstrations and trained policies as packages that others can get: files, with a manifest that says what they are.

A package is a folder with a ``manifest.json`` and the files that it names. Packages lie in a folder, on a web server,
or on the Hugging Face hub (:mod:`manikin.shelf.places`).
"""

from manikin.shelf.manifest import KINDS, Package, describe, read_manifest
from manikin.shelf.moves import get, listing, push
from manikin.shelf.places import shelf_of
from manikin.shelf.verify import Verdict, verify

__all__ = ["KINDS", "Package", "Verdict", "describe", "get", "listing", "shelf_of", "push", "read_manifest", "verify"]
