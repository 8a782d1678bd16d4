"""The campaign: real nodes on a real database, disturbed by a seed for as long as asked, and a checker that counts.

``python -m tests.chaos --seconds 1800 --seed 7 --store both``. ``fleet.py`` has the schedules, ``plan.py`` what goes wrong and when,
``node.py`` is the program that is disturbed, ``clock.py`` its clock, ``store.py`` its database, ``campaign.py`` does what the plan says,
``evidence.py`` is what was seen, ``checker.py`` judges it, ``report.py`` prints it.
"""
