"""Signals at random moments of the command's life: the short form of rigs/signals.py."""

from __future__ import annotations

from random import Random

from rigs import signals


def test_signals_at_random_moments_end_the_command_with_its_report_and_without_a_traceback(
    tmp_path,
):
    # At other moments each time: what is wrong is told with the moments.
    rig, found = signals.struck(tmp_path, 40, 30, Random().randrange(10**6))
    assert found == []
    assert rig.signals >= 40
