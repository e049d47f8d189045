"""Stands before the real setuptools while an sdist of text is downloaded; see build_meta.py."""
