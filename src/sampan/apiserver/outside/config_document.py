"""The versions in which this server reads its configuration documents.

Job: one constant. How they are read: api/configuration.py.
"""

VERSIONS = tuple(f"apiserver.config.k8s.io/{item}" for item in ("v1", "v1beta1", "v1alpha1"))
