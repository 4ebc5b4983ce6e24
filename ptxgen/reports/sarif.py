"""SARIF 2.1.0 (OASIS, Static Analysis Results Interchange Format), as code scanning of GitHub and others read it.

Sections in comments are those of the standard. A result carries the manual's section and the fix; the rule has both in
its help. A place in the repository is relative to `%SRCROOT%`, which the reader replaces by its checkout.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ptxgen.reports.model import Failure, Place, Report, Result
from ptxgen.reports.paths import in_repository, uri
from ptxgen.reports.rules import Rule, rule_of

Json = dict[str, object]

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def sarif(report: Report) -> Json:
    """The log of one run, as JSON takes it."""
    from ptxgen import __version__

    rules: dict[str, Rule] = {}
    for each in report.results:
        rules.setdefault(each.code, rule_of(each))
    index = {code: number for number, code in enumerate(rules)}
    driver: Json = {
        "name": "ptxgen",
        "semanticVersion": __version__,
        "version": __version__,
        "rules": [_rule(each) for each in rules.values()],
    }
    invocation: Json = {"executionSuccessful": not report.failures}
    if report.failures:
        invocation["toolExecutionNotifications"] = [_notification(each) for each in report.failures]
    run: Json = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [invocation],
        "results": [_result(each, index, report.subject) for each in report.results],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(rule: Rule) -> Json:
    """A reportingDescriptor (3.49)."""
    section = f"PTX ISA {rule.section}" if rule.section else ""
    words = [rule.text, f"Fix: {rule.fix}" if rule.fix else "", f"Manual: {section}." if section else ""]
    bold = [rule.text, f"**Fix:** {rule.fix}" if rule.fix else "", f"**Manual:** {section}" if section else ""]
    properties: Json = {"tags": ["ptx"], "precision": "very-high"}
    if section:
        properties["section"] = section
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": rule.title[:1].upper() + rule.title[1:]},
        "fullDescription": {"text": rule.text},
        "help": {"text": "\n\n".join(filter(None, words)), "markdown": "\n\n".join(filter(None, bold))},
        "defaultConfiguration": {"level": rule.level},
        "properties": properties,
    }


def _result(each: Result, index: Mapping[str, int], subject: str) -> Json:
    """A result (3.27). Code scanning requires a location with a line (github/codeql-action, issue 1738)."""
    text = f"{each.message}\nfix: {each.fix}" if each.fix else each.message
    made: Json = {
        "ruleId": each.code,
        "ruleIndex": index[each.code],
        "level": each.level,
        "message": {"text": text},
        "partialFingerprints": {"ptxgen/v1": _fingerprint(each)},
    }
    place = each.place or Place(subject)
    made["locations"] = [_location(place if place.line is not None else replace(place, line=1))]
    if each.related:
        made["relatedLocations"] = [
            {"id": number, **_location(place), "message": {"text": what}}
            for number, (place, what) in enumerate(each.related, 1)
        ]
    if each.replacement is not None:
        made["fixes"] = [_fix(each)]
    if each.accepted:  # 3.35: what somebody has reviewed is not shown, but counted
        kind = "inSource" if each.in_source else "external"
        made["suppressions"] = [{"kind": kind, "status": "accepted", "justification": each.accepted}]
    properties = {**each.properties, **({"fix": each.fix} if each.fix else {})}
    if properties:
        made["properties"] = properties
    return made


def _fingerprint(each: Result) -> str:
    """The same for the same result when lines move: its code, file, and words without numbers."""
    path = in_repository(each.place.path) if each.place is not None else ""
    words = "".join(character for character in each.message if not character.isdigit())
    return hashlib.sha256("\0".join((each.code, path, words)).encode(errors="replace")).hexdigest()[:32]


def _location(place: Place) -> Json:
    """A location (3.28)."""
    physical: Json = {"artifactLocation": _artifact(place)}
    if place.line is not None:
        physical["region"] = _region(place)
    return {"physicalLocation": physical}


def _artifact(place: Place) -> Json:
    found = uri(place.path)
    return {"uri": found} if found.startswith("file:") else {"uri": found, "uriBaseId": "%SRCROOT%"}


def _region(place: Place) -> Json:
    made: Json = {"startLine": max(place.line or 1, 1)}
    if place.column is not None:
        made["startColumn"] = place.column
        if place.end_column is not None and place.end_column > place.column:
            made["endColumn"] = place.end_column
    return made


def _fix(each: Result) -> Json:
    """A fix (3.55): the text that replaces a region."""
    assert each.replacement is not None
    place = each.replacement.place
    replacement: Json = {"deletedRegion": _region(place), "insertedContent": {"text": each.replacement.text}}
    changes: Sequence[Json] = [{"artifactLocation": _artifact(place), "replacements": [replacement]}]
    return {"description": {"text": f"replace by {each.replacement.text}"}, "artifactChanges": changes}


def _notification(each: Failure) -> Json:
    """A notification (3.58)."""
    made: Json = {"level": "error", "message": {"text": each.message}}
    if each.place is not None:
        made["locations"] = [_location(each.place)]
    return made
