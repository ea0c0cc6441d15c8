"""3,000 requests of all operations, errors included, are answered as they were when recorded.

After a wanted change: `RECORD_ANSWERS=1 ./test tests/test_recorded_answers.py -n 0`, and say in
CHANGELOG.md what changed for clients; the test's message shows each difference.
"""

import gzip
import json
import os
from collections.abc import Iterator
from ipaddress import ip_network
from typing import Any

import pytest
from django.test import override_settings

from tests.recorded_world import RecordedWorld
from tests.services import ROOT
from tests.world import clock_at_now

FILE = ROOT / "tests" / "recorded_answers.jsonl.gz"
PARTS = 12
SHOWN = 20  # differences


def read_records() -> list[dict[str, Any]]:
    with gzip.open(FILE, "rt") as lines:
        return [json.loads(line) for line in lines]


def write_records(records: list[dict[str, Any]]) -> None:
    with gzip.GzipFile(FILE, "wb", mtime=0) as file:
        for record in records:
            file.write(json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode())
            file.write(b"\n")


RECORDS = read_records()


@pytest.fixture(scope="module")
def recorded_world(module_transaction: None) -> Iterator[RecordedWorld]:
    loopback = [ip_network("127.0.0.0/8")]
    hooks = {"WEBHOOK_ALLOWED_NETWORKS": loopback, "WEBHOOK_HTTPS_ONLY": False}
    with clock_at_now(), override_settings(**hooks):
        yield RecordedWorld()


def describe_difference(record: dict[str, Any], answer: dict[str, Any]) -> str:
    request, expected = record["request"], record["answer"]
    lines = [f"{request['caller']}: {request['method']} {request['path']} {request['headers']}"]
    lines.append(f"    body {json.dumps(request['body'])[:300]}")
    for name in ("status", "headers", "body"):
        if answer[name] != expected[name]:
            lines += [
                f"  - {name} {str(expected[name])[:600]}",
                f"  + {name} {answer[name]!s:.600}",
            ]
    return "\n".join(lines)


@pytest.mark.parametrize("part", range(PARTS))
def test_answers_are_as_recorded(
    part: int, recorded_world: RecordedWorld, db: None, clock: Any
) -> None:
    found = [(record, recorded_world.send(record["request"])) for record in RECORDS[part::PARTS]]

    if "RECORD_ANSWERS" in os.environ:
        for record, answer in found:
            record["answer"] = answer
        write_records(RECORDS)
    differences = [
        describe_difference(record, answer)
        for record, answer in found
        if answer != record["answer"]
    ]
    assert not differences, "\n".join([f"{len(differences)} differ:", *differences[:SHOWN]])


def test_all_operations_and_errors_are_recorded() -> None:
    statuses = {record["answer"]["status"] for record in RECORDS}

    assert len(RECORDS) == 3000
    assert statuses == {200, 201, 204, 400, 401, 403, 404, 405, 406, 409, 413, 415, 422}
