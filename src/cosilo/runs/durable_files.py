"""Files that are either whole or absent, and a disk that may be full."""

import errno
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

import xxhash

from cosilo.errors import RunError

#: The key under which files and lines of logs carry their own checksum.
_CHECKSUM = "checksum"
#: Longer JSON, in characters, is for programs only.
_READABLE = 2**18
_DECODER = json.JSONDecoder()
#: Bytes of a file that are read at a time.
_BLOCK = 2**20


@contextmanager
def explain_write_errors(path: Path) -> Iterator[None]:
    """Turn a failed write into one line that says what to do; completed steps are kept."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            reason = "the disk is full; free some space"
        elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            reason = "writing is not allowed; check the folder's permissions"
        elif error.errno in (errno.ENOTDIR, errno.ENOENT, errno.EEXIST):
            raise RunError(f"{path}: cannot be written ({error.strerror}); choose another folder") from error
        else:
            raise
        raise RunError(f"{path}: {reason}, then resume the run; completed steps are kept") from error


def write(path: Path, *data: bytes, over: Path | None = None) -> None:
    """Write a file so that a reader, now or after a crash, sees all of it or none.

    `over` is a file that is no longer needed, if there is one: to make a file takes many times as long as to
    write over one. It goes; where it has another name too, it is needed there.
    """
    temporary = f"{path}.part"
    with explain_write_errors(path):
        try:
            if over is not None:
                with suppress(FileNotFoundError):
                    if os.stat(over).st_nlink == 1:  # noqa: PTH116 - done for every step, as the rest
                        os.replace(over, temporary)  # noqa: PTH105
                    else:
                        os.unlink(over)  # noqa: PTH108
            _put(temporary, os.O_RDWR | os.O_CREAT, data, cut=over is not None)
            os.replace(temporary, path)  # noqa: PTH105
        except OSError:
            with suppress(FileNotFoundError):
                os.unlink(temporary)  # noqa: PTH108
            raise


def _put(path: str, flags: int, data: Iterable[bytes], *, start: int = 0, cut: bool = False) -> None:
    """Write into a file; `cut`: what it had beyond that goes."""
    file = os.open(path, flags, 0o666)
    try:
        if start:
            os.lseek(file, start, os.SEEK_SET)
        for part in data:
            view = memoryview(part)
            while len(view):
                view = view[os.write(file, view) :]
        if cut:
            os.ftruncate(file, os.lseek(file, 0, os.SEEK_CUR))
    finally:
        os.close(file)


def append(path: Path, *data: bytes, after: int) -> None:
    """Write at the end of a file that has `after` bytes; what an unfinished write left beyond them goes."""
    with explain_write_errors(path):
        _put(str(path), os.O_WRONLY | os.O_CREAT, [b"".join(data)], start=after, cut=True)


def link(source: Path, target: Path) -> bool:
    """Give a file, which is never written again, a second name; False where the file system cannot."""
    with suppress(FileNotFoundError):
        target.unlink()
    try:
        os.link(source, target)
    except OSError:
        return False
    return True


def write_json(path: Path, value: Any, *, checked: bool = True, indent: int | None = 1) -> None:
    """Write JSON for people and programs, whole or not at all; what has keys gets one with a checksum.

    Without an indent it takes less than half of the time.
    """
    if checked and isinstance(value, dict):
        value = {**value, _CHECKSUM: _checksum(value)}
    text = json.dumps(value, ensure_ascii=False)
    if indent is not None and len(text) < _READABLE:
        text = json.dumps(value, indent=indent, ensure_ascii=False)
    write(path, f"{text}\n".encode())


def read_json(path: Path) -> Any:
    """Read what `write_json` wrote; the error for any other file is one line that names it.

    A file without a checksum, of an earlier version or of somebody else, is taken as it is.
    """
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise RunError(f"{path}: is missing; the run directory is incomplete") from None
    except (ValueError, RecursionError):
        raise RunError(f"{path}: is damaged (not JSON); restore it or start a new run") from None
    if not _as_written(found):
        raise RunError(f"{path}: is damaged (its checksum differs); restore it or start a new run")
    return found


def _checksum(value: dict[str, Any]) -> str:
    # SHA-256, as in runs of earlier versions, which are still read; it is short.
    text = json.dumps(value, sort_keys=True, ensure_ascii=True)
    return sha256(text.encode()).hexdigest()[:16]


def _as_written(value: Any) -> bool:
    """Return whether a value is what its checksum says, and take the checksum off; without one, it is.

    A key in which one bit differs is that of a damaged checksum.
    """
    if not isinstance(value, dict):
        return True
    if _CHECKSUM not in value:
        return not any(_differ_in_one_bit(key, _CHECKSUM) for key in value)
    told = value.pop(_CHECKSUM)
    return bool(told == _checksum(value))


def _differ_in_one_bit(one: str, other: str) -> bool:
    if len(one) != len(other):
        return False
    return sum((ord(a) ^ ord(b)).bit_count() for a, b in zip(one, other, strict=True)) == 1


def checksum(*parts: bytes) -> str:
    """Tells damage by accident, and not by somebody who means it: a thirtieth of SHA-256's time."""
    found = xxhash.xxh3_128()
    for part in parts:
        found.update(part)
    return found.hexdigest()


def checksum_of_file(path: Path) -> str:
    """The same of a file, which is not in memory as a whole."""
    found, buffer = xxhash.xxh3_128(), memoryview(bytearray(_BLOCK))
    with path.open("rb", buffering=0) as file:
        while size := file.readinto(buffer):
            found.update(buffer[:size])
    return found.hexdigest()


def append_line(path: Path, value: Any) -> None:
    """Add one JSON line to a log."""
    with explain_write_errors(path):
        _put(str(path), os.O_WRONLY | os.O_APPEND | os.O_CREAT, [as_line(value).encode()])


def add_line(file: IO[str], value: Any) -> None:
    """Add one JSON line to an open log; it has left this process when the call returns."""
    with explain_write_errors(Path(file.name)):
        file.write(as_line(value))
        file.flush()


def as_line(value: dict[str, Any]) -> str:
    """A line of JSON that carries its checksum."""
    return json.dumps({**value, _CHECKSUM: _checksum(value)}, ensure_ascii=False) + "\n"


def from_line(line: bytes) -> dict[str, Any]:
    """What `as_line` was given; a ValueError for anything else.

    A line without a checksum, of a log of an earlier version, is taken as it is.
    """
    try:
        found = json.loads(line)
    except RecursionError:
        found = None
    if not isinstance(found, dict) or not _as_written(found):
        raise ValueError("its checksum differs")
    return found


def is_cut_short(line: bytes) -> bool:
    """Return whether a line is what a crash leaves of one: its beginning.

    A whole line that ends in anything but a line break is damaged, and so is all that follows it.
    """
    if line.endswith(b"\n"):
        return False
    text = line.decode("utf-8", "replace")
    try:
        _, end = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        return True
    return bool(end == len(text))


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The whole lines of a log; a last line that a crash cut short is not one."""
    if not path.exists():
        return []
    *lines, rest = path.read_bytes().split(b"\n")
    if rest and not is_cut_short(rest):
        raise _damaged_line(path, len(lines) + 1)
    found = []
    for number, line in enumerate(lines, start=1):
        try:
            found.append(from_line(line))
        except ValueError:
            raise _damaged_line(path, number) from None
    return found


def _damaged_line(path: Path, number: int) -> RunError:
    return RunError(
        f"{path}: line {number} is damaged, not as it was written; restore the file from a copy, or "
        "move it away and resume the run"
    )


def drop_partial_line(path: Path) -> None:
    """Cut off a last line that a crash left unfinished, so that the next entry starts on its own line."""
    if not path.exists():
        return
    data = path.read_bytes()
    whole = data.rfind(b"\n") + 1
    if whole == len(data):
        return
    if not is_cut_short(data[whole:]):
        raise _damaged_line(path, data.count(b"\n") + 1)
    write(path, data[:whole])


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A folder that appears at `path` only when the body has filled it."""
    temporary = path.with_name(path.name + ".part")
    with explain_write_errors(path):
        if temporary.exists():
            shutil.rmtree(temporary)
        temporary.mkdir(parents=True)
        try:
            yield temporary
            temporary.rename(path)
        except OSError:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
