"""Imports from other systems and from files, through the API."""
