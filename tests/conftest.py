"""What all tests share: how many examples a property is tried with."""

import os

from hypothesis import HealthCheck, settings

# `make soak` asks for many; the default keeps a run of all tests within a few minutes.
settings.register_profile(
    "horae",
    max_examples=int(os.environ.get("HORAE_EXAMPLES", "150")),
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("horae")
