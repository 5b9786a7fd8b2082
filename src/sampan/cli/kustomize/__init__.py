"""Kustomizations: objects that are read, generated, changed and named anew, as kustomize does it."""
