"""Targets, versions and what has which feature (PTX ISA 11.1.2)."""

import pytest

from ptxgen.instr.model.targets import (
    ALL,
    Availability,
    Target,
    TargetError,
    parse_target,
    parse_version,
    runs_on,
    target_problem,
    version_problem,
)
from ptxgen.toolchain import AssemblerError, assemble_many

#: pattern, targets that have it, targets that have not
PATTERNS = [
    ("sm_80+", "sm_80 sm_86 sm_90a sm_100f sm_120", "sm_75"),
    ("sm_90a", "sm_90a", "sm_90 sm_100a sm_80"),
    ("sm_100f", "sm_100f sm_100a sm_103a sm_103f", "sm_100 sm_103 sm_110a sm_120a sm_90a"),
    ("sm_103f", "sm_103a sm_103f", "sm_100a sm_100f sm_103"),
    ("sm_100f sm_110f", "sm_100a sm_110f", "sm_120f sm_110"),
    (ALL, "sm_20 sm_90a sm_121f", ""),
]


@pytest.mark.parametrize(("pattern", "has", "has_not"), PATTERNS)
def test_patterns(pattern: str, has: str, has_not: str) -> None:
    availability = Availability("1.0", pattern)
    assert [name for name in has.split() if not availability.has_target(parse_target(name))] == []
    assert [name for name in has_not.split() if availability.has_target(parse_target(name))] == []


def test_versions_compare_as_numbers() -> None:
    availability = Availability("8.6", ALL)
    assert [v for v in ("8.5", "8.6", "8.10", "10.0") if availability.has_version(parse_version(v))] == [
        "8.6",
        "8.10",
        "10.0",
    ]


def test_names() -> None:
    assert parse_target("sm_100a") == Target(100, "a")
    assert str(parse_target("sm_90a")) == "sm_90a"
    assert parse_target("sm_103f").major == 10
    assert sorted(map(parse_target, ["sm_100", "sm_90a", "sm_90"])) == [Target(90), Target(90, "a"), Target(100)]


@pytest.mark.parametrize("text", ["", "sm_9", "sm_90b", "sm_90 ", "SM_90"])
def test_bad_target(text: str) -> None:
    with pytest.raises(TargetError, match=r"is not a target; write it like sm_90a"):
        parse_target(text)


def test_compute_is_a_synonym() -> None:
    assert parse_target("compute_90a") == Target(90, "a")


@pytest.mark.parametrize("text", ["", "8", "8.6.1", "v8.6"])
def test_bad_version(text: str) -> None:
    with pytest.raises(TargetError, match=r"is not a PTX ISA version; write it like 8.6"):
        parse_version(text)


def test_bad_pattern() -> None:
    with pytest.raises(TargetError, match="'sm_x' is not a target pattern"):
        Availability("1.0", "sm_x").has_target(Target(90))


def test_first_version_of_each_target_is_that_of_ptxas() -> None:
    plain = ("sm_75", "sm_80", "sm_86", "sm_87", "sm_88", "sm_89", "sm_90", "sm_90a")
    blackwell = (100, 103, 110, 120, 121)
    targets = [*plain, *(f"sm_{number}{suffix}" for number in blackwell for suffix in ("", "f", "a"))]
    versions = ["6.3", "7.0", "7.1", "7.4", "7.5", "7.8", "8.0", "8.6", "8.7", "8.8", "9.0"]
    cases = [(target, version) for target in targets for version in versions]
    texts = [f".version {version}\n.target {target}\n.entry k() {{ ret; }}\n" for target, version in cases]
    answers = assemble_many(texts)
    wrong = [
        f"{target} with {version}: {answer}"
        for (target, version), answer in zip(cases, answers, strict=True)
        if isinstance(answer, AssemblerError) != bool(target_problem(parse_target(target), parse_version(version)))
    ]
    assert wrong == []


def test_target_problem_names_the_version() -> None:
    assert target_problem(Target(100, "f"), (8, 6)) == ".target sm_100f requires PTX ISA 8.8 or later, .version is 8.6"
    assert target_problem(Target(80, "a"), (8, 6)) == (
        ".target sm_80a does not exist; the a targets begin with sm_90a, the f targets with sm_100f"
    )
    assert target_problem(Target(200), (8, 6)) is None, "a later architecture is not ours to refuse"
    assert target_problem(Target(91), (8, 6)) == ".target sm_91 does not exist; the nearest is sm_90"


def test_version_problem_names_the_last_of_its_kind() -> None:
    assert version_problem((8, 9)) == ".version 8.9 does not exist; the last 8.x is 8.8"
    assert version_problem((0, 1)) == ".version 0.1 does not exist; the last 1.x is 1.5"
    assert version_problem((12, 0)) is None


def test_sm_101_is_sm_110_under_its_first_name() -> None:
    assert Availability("9.0", "sm_110f").has_target(Target(101, "a"))
    assert not Availability("8.6", "sm_100f").has_target(Target(101, "a"))


@pytest.mark.parametrize(
    ("target", "on", "not_on"),
    [
        ("sm_80", "sm_80 sm_90a sm_100a", "sm_75"),
        ("sm_90a", "sm_90a sm_90", "sm_89 sm_100a sm_120a"),
        ("sm_100f", "sm_100a sm_103a sm_100", "sm_90a sm_110a sm_120a"),
        ("sm_103f", "sm_103a", "sm_100a sm_120a"),
        ("sm_101a", "sm_110a", "sm_100a"),
    ],
)
def test_what_runs_where(target: str, on: str, not_on: str) -> None:
    assert [name for name in on.split() if not runs_on(parse_target(target), parse_target(name))] == []
    assert [name for name in not_on.split() if runs_on(parse_target(target), parse_target(name))] == []
