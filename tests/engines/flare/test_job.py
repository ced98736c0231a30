import pytest

from cosilo.engines.flare.job import task_requests


@pytest.mark.parametrize(("silos", "seconds"), [(1, 0.1), (3, 0.3), (10, 1.0), (20, 2.0), (1000, 2.0)])
def test_silos_ask_flare_for_tasks_ten_times_a_second_in_all_or_as_rarely_as_flare_has_it(silos, seconds):
    assert task_requests(silos) == {"server": {"task_request_interval": pytest.approx(seconds)}}
