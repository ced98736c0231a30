"""Where FLARE is altered: what is altered is there, and does what it is altered for."""

import pytest

pytest.importorskip("nvflare")
from nvflare.fuel.f3.streaming.blob_streamer import BlobStream, BlobTask

from cosilo.engines.flare import alterations


def test_what_came_is_not_written_out_for_a_log():
    alterations.tell_no_contents()
    came = BlobTask(None, BlobStream(b"abcdef", None), preserve_chunks=True).buffer  # as messages arrive
    came.append(b"abc")
    came.append(b"def")
    assert f"{came}" == "6 bytes"
