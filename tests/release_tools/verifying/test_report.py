"""The findings of a verification, and its exit code."""

from __future__ import annotations

import pytest

from release_tools.distribution.manifest_location import ManifestLocation
from release_tools.manifest.parser import parse
from release_tools.reporting import overall_exit_code
from release_tools.verifying.policy import Finding
from release_tools.verifying.report import CheckedArtefact, ReleaseReport
from tests.support.manifests import document, encode

LOCATION = ManifestLocation("u")
ARTEFACT = parse(encode(document())).artefacts[0]


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        *(([], 0), (["E_SIG"], 1), (["E_ANYTHING_NEW"], 1), (["E_SCHEMA"], 3)),
        *((["E_SCHEMA_VERSION"], 4), (["E_UNREADABLE"], 5), (["E_SLOW"], 5)),
        *((["E_UNREADABLE", "E_HASH"], 1), (["E_SCHEMA", "E_COMMENT"], 1)),
        (["E_SCHEMA", "E_UNREADABLE"], 5),
    ],
)
def test_the_exit_code_is_that_of_the_worst_finding(codes: list[str], expected: int) -> None:
    report = ReleaseReport(LOCATION, findings=[Finding(code, "w", "m") for code in codes])
    assert report.exit_code == expected
    spread = ReleaseReport(LOCATION)
    spread.artefacts = [
        CheckedArtefact(ARTEFACT, "x", (Finding(code, "w", "m"),)) for code in codes
    ]
    assert spread.exit_code == expected
    reports = [ReleaseReport(LOCATION, findings=[Finding(code, "w", "m")]) for code in codes]
    assert overall_exit_code(reports) == expected


def test_a_warning_leaves_the_exit_code_zero() -> None:
    warning = Finding("E_FREEZE", "w", "m", warning=True)
    report = ReleaseReport(LOCATION, findings=[warning])
    report.artefacts = [CheckedArtefact(ARTEFACT, None, (warning,))]
    assert report.exit_code == 0
    assert report.errors == []
    assert report.all_findings == [warning, warning]


def test_the_findings_of_the_release_come_first() -> None:
    own, of_artefact = Finding("E_FUTURE", "w", "m"), Finding("E_HASH", "w", "m")
    report = ReleaseReport(LOCATION, findings=[own])
    report.artefacts = [CheckedArtefact(ARTEFACT, "x", (of_artefact,))]
    assert report.all_findings == report.errors == [own, of_artefact]
