"""For all tests: Hypothesis without deadlines, since a busy machine is not a bug."""

from hypothesis import settings

settings.register_profile("sampan", deadline=None, print_blob=True)
settings.load_profile("sampan")
