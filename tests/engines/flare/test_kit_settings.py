"""What a kit knows of this machine."""

import pytest

from cosilo.engines.flare.kit_settings import KitSettings, read_kit_settings, write_kit_settings
from cosilo.errors import ConfigError


def test_settings_are_read_back(tmp_path):
    (tmp_path / "local").mkdir()
    for settings in (KitSettings("/runs"), KitSettings("/runs", "/north.toml")):
        write_kit_settings(tmp_path, settings)
        assert read_kit_settings(tmp_path) == settings


def test_a_kit_that_was_never_started_here_is_one_line(tmp_path):
    with pytest.raises(ConfigError, match="was never started on this machine; start it: cosilo coordinator"):
        read_kit_settings(tmp_path)
