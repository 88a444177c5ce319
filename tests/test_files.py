"""Files are whole or absent."""

import errno
import json
import os
import subprocess
import sys

import pytest

from bgrl.errors import BgrlError, CorruptFile
from bgrl.files import (
    atomic_dir,
    atomic_file,
    atomic_write_bytes,
    atomic_write_json,
    exclusive,
    is_integer,
    is_number,
    read_json,
    read_object,
    remove_temporaries,
    sha256_file,
)


def test_json_round_trip_replaces(tmp_path):
    path = tmp_path / "new" / "a.json"
    atomic_write_json(path, {"é": 1})
    atomic_write_json(path, {"é": [2, None]})
    assert read_json(path) == {"é": [2, None]}
    assert os.listdir(path.parent) == ["a.json"]


def test_json_refuses_nan_and_keeps_the_old_file(tmp_path):
    path = tmp_path / "a.json"
    atomic_write_json(path, 1)
    with pytest.raises(ValueError, match="nan"):
        atomic_write_json(path, float("nan"))
    assert read_json(path) == 1
    assert os.listdir(tmp_path) == ["a.json"]


def test_a_failing_writer_leaves_nothing(tmp_path):
    def half_a_file():
        with atomic_file(tmp_path / "a") as temporary:
            temporary.write_text("half")
            assert temporary.name.startswith("_tmp.")
            raise RuntimeError

    def half_a_folder():
        with atomic_dir(tmp_path / "b") as folder:
            (folder / "half").write_text("half")
            raise RuntimeError

    for write in (half_a_file, half_a_folder):
        with pytest.raises(RuntimeError):
            write()
        assert os.listdir(tmp_path) == []


def test_a_full_disk_is_said_of_the_file(tmp_path):
    path = tmp_path / "net.json"
    with pytest.raises(OSError, match=r"No space left on device: .*/net\.json"), atomic_file(path):
        raise OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(FileNotFoundError, match="other"), atomic_file(path):
        (tmp_path / "other").read_bytes()
    assert list(tmp_path.iterdir()) == []


def test_folder_replaces_a_folder(tmp_path):
    for content in ("one", "two"):
        with atomic_dir(tmp_path / "d") as folder:
            (folder / content).write_text(content)
    assert os.listdir(tmp_path) == ["d"]
    assert os.listdir(tmp_path / "d") == ["two"]


def test_leftovers_of_a_killed_writer_are_removed(tmp_path):
    (tmp_path / "_tmp.a.json.1").write_text("{")
    (tmp_path / "_tmp.d.1").mkdir()
    (tmp_path / "a.json").write_text("{}")
    assert len(remove_temporaries(tmp_path)) == 2
    assert os.listdir(tmp_path) == ["a.json"]


def test_a_folder_in_use_is_refused_until_its_user_dies(tmp_path):
    code = (
        "import sys, time; from bgrl.files import exclusive\n"
        "with exclusive(sys.argv[1]): print('in', flush=True); time.sleep(60)"
    )
    user = subprocess.Popen([sys.executable, "-c", code, tmp_path / "d"], stdout=subprocess.PIPE)
    assert user.stdout is not None
    with user:
        user.stdout.readline()
        with pytest.raises(BgrlError, match=r"d is in use"), exclusive(tmp_path / "d"):
            pass
        user.kill()
    with exclusive(tmp_path / "d"):
        pass


def test_sha256(tmp_path):
    atomic_write_bytes(tmp_path / "a", b"abc")
    assert sha256_file(tmp_path / "a").startswith("ba7816bf8f01cfea")


def test_read_json_says_what_is_wrong(tmp_path):
    with pytest.raises(BgrlError, match=r"no\.json: No such file"):
        read_json(tmp_path / "no.json")
    (tmp_path / "half.json").write_text('{"a":\n 1,')
    with pytest.raises(CorruptFile, match=r"half\.json: not JSON: .* at line 2 column 4"):
        read_json(tmp_path / "half.json")
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe")
    with pytest.raises(CorruptFile, match=r"bytes\.json: not JSON: not UTF-8 at byte 0"):
        read_json(tmp_path / "bytes.json")


def test_an_object_is_asked_for(tmp_path):
    atomic_write_json(tmp_path / "a.json", {"a": 1})
    assert read_object(tmp_path / "a.json") == {"a": 1}
    for other in ([], None, 1, "a"):
        atomic_write_json(tmp_path / "a.json", other)
        with pytest.raises(CorruptFile, match=r"a\.json: not a JSON object"):
            read_object(tmp_path / "a.json")


def test_numbers_of_json():
    values = json.loads(
        '[0, -3, 2.5, true, "1", null, NaN, -Infinity, [], 1e400, 1%s]' % ("0" * 400)
    )
    assert [value for value in values if is_integer(value)] == [0, -3, 10**400]
    assert [value for value in values if is_number(value)] == [0, -3, 2.5]
