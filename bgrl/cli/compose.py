"""From a stage's YAML and `key=value` overrides to a checked, typed config."""

import dataclasses
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, get_args, get_origin, get_type_hints

from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf import MISSING, DictConfig, OmegaConf
from omegaconf.errors import ConfigKeyError, OmegaConfBaseException

from bgrl.cli.config import CONFIGS
from bgrl.cli.limits import check_limits
from bgrl.cli.main import suggestion
from bgrl.errors import BgrlError
from bgrl.files import shipped


@dataclass(frozen=True)
class Launch:
    """One checked command line."""

    stage: str
    overrides: tuple[str, ...]
    config: Any
    """The stage's dataclass of bgrl.cli.config, with absolute paths."""
    resolved: dict[str, Any]
    """The same as plain data that JSON takes."""


def compose(stage: str, overrides: list[str]) -> Launch:
    """Compose and check the config of a stage.

    Raises BgrlError with one line naming the stage and the key for an unknown key, a value of the
    wrong type, a missing value, an unknown choice of a group, an override that is no key=value, a
    number out of range, or a name that is no folder's.
    """
    config = _compose(stage, overrides)
    for key, value in _leaves(_values(config)).items():
        if value == MISSING:
            raise BgrlError(f"{stage}: {key} must be given: {key}=…")
    try:
        typed = _absolute(OmegaConf.to_object(config))
    except OmegaConfBaseException as error:
        raise BgrlError(f"{stage}: {_first_line(error)}") from error
    resolved = _plain(typed)
    check_limits(stage, _leaves(resolved))
    # A name is that of a folder in the one for runs, or below such a folder.
    name = resolved.get("name", "x")
    if not {"", ".", ".."}.isdisjoint(name.split("/")):
        raise BgrlError(f"{stage}: name is {name!r}, expected the name of a folder")
    return Launch(stage, tuple(overrides), typed, resolved)


def positional(stage: str, key: str, argument: str) -> str:
    """The override that sets `key` to a bare argument, which may hold any character."""
    name, equals, _ = argument.partition("=")
    if equals and name in _options(stage):
        return argument
    return f"{key}={_escaped(argument)}"


def to_yaml(resolved: dict[str, Any]) -> str:
    """The config as YAML."""
    return OmegaConf.to_yaml(OmegaConf.create(resolved))


def stage_help(stage: str, summary: str, overrides: list[str]) -> str:
    """The text of `bgrl <stage> --help`: every option with its value and its comment."""
    text = (shipped("configs") / f"{stage}.yaml").read_text()
    examples = re.match(r"(?:# .*\n)*", text)
    assert examples is not None
    lines = [f"bgrl {stage}: {summary}", ""]
    lines += [line.removeprefix("# ") for line in examples.group().splitlines()]
    lines += ["", "Options, with their values" + (":" if overrides else " unless given:"), ""]
    rows = list(_rows(_values(_compose(stage, overrides))))
    comments = yaml_comments(text)
    width = min(max(len(row) for _, row in rows), 44)
    for key, row in rows:
        lines.append(f"  {row:<{width}}  # {comments[key]}" if key in comments else f"  {row}")
    for group, choices in groups(stage).items():
        lines += ["", f"Presets: {group}=" + "|".join(choices)]
    return "\n".join(lines)


def yaml_comments(text: str) -> dict[str, str]:
    """The comment behind each `key:` of a YAML text, by dotted key."""
    comments: dict[str, str] = {}
    path: list[tuple[int, str]] = []
    for line in text.splitlines():
        match = re.match(r"( *)(\w+):(?:[^#]*?)(?: +# (.*))?$", line)
        if match is None:
            continue
        indent = len(match[1])
        path = [(column, name) for column, name in path if column < indent] + [(indent, match[2])]
        if match[3]:
            comments[".".join(name for _, name in path)] = match[3]
    return comments


def groups(stage: str) -> dict[str, list[str]]:
    """The config groups that a stage's defaults list offers, with their choices."""
    folder = shipped("configs")
    stage_config = cast(DictConfig, OmegaConf.load(folder / f"{stage}.yaml"))
    names = [
        str(name) for entry in stage_config.defaults if OmegaConf.is_dict(entry) for name in entry
    ]
    return {name: sorted(path.stem for path in (folder / name).glob("*.yaml")) for name in names}


def _options(stage: str) -> set[str]:
    """The names of a stage's options and sections."""
    return {field.name for field in dataclasses.fields(CONFIGS[stage])}


def _compose(stage: str, overrides: list[str]) -> DictConfig:
    offered = groups(stage)
    # Hydra takes every key that names a folder of configs for a choice from it. A stage with an
    # option of that name and no such choice (level of export) gets it set afterwards.
    own: dict[str, Any] = {}
    chosen: dict[str, str] = {}
    rest: list[str] = []
    for override in overrides:
        match = re.match(r"([^\W\d][\w.]*)=(.*)", override, re.DOTALL)
        if match is None:
            raise BgrlError(f"{stage}: {override!r} is not key=value")
        key, value = match.groups()
        if not key.isascii():
            raise BgrlError(f"{stage}: {_unknown(stage, key)}")
        if not value:
            raise BgrlError(f"{stage}: {key} is empty")
        if key in offered:
            if value not in (*offered[key], "null"):
                near = suggestion(value, offered[key])
                raise BgrlError(f"{stage}: no {key} {value!r}{near}; there are {offered[key]}")
            chosen[key] = value
        elif key in _options(stage) and (shipped("configs") / key).is_dir():
            own[key] = OverridesParser.create().parse_override(_override(stage, key, value)).value()
        else:
            rest.append(_override(stage, key, value))
    # No choice is what every group's defaults say, and what Hydra has no override for.
    rest += [f"{group}={choice}" for group, choice in chosen.items() if choice != "null"]
    store = ConfigStore.instance()
    for name, schema in CONFIGS.items():
        store.store(f"{name}_schema", schema)
    try:
        with initialize_config_dir(str(shipped("configs")), version_base="1.3"):
            config = hydra_compose(stage, rest)
            for key, value in own.items():
                OmegaConf.update(config, key, value)
            OmegaConf.resolve(config)
    except (HydraException, OmegaConfBaseException, ValueError) as error:
        raise BgrlError(f"{stage}: {_explain(stage, error)}") from error
    # Hydra takes `hydra.…` for its own settings, which mean nothing here.
    for override in overrides:
        if override.startswith("hydra."):
            raise BgrlError(f"{stage}: unknown key {override.split('=')[0]!r}")
    return config


# A list's entry: quoted, or anything up to a comma that begins no list or quotation of its own.
_ENTRY = r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|[^\s,'"\[\]{}](?:[^,]*[^\s,])?"""
_LIST = re.compile(rf"\[\s*(?:(?:{_ENTRY})(?:\s*,\s*(?:{_ENTRY}))*)?\s*\]")


def _override(stage: str, key: str, value: str) -> str:
    """`key=value` as Hydra's parser takes it.

    Names and paths are quoted: unquoted, 1e3 and true would be no text, and many characters that
    file names have are part of its grammar.
    """
    kind = _type(stage, key)
    plain = f"{key}={value}"
    if not (_holds(kind, str) or _holds(kind, Path)):
        try:
            OverridesParser.create().parse_override(plain)
            return plain
        except HydraException:
            pass  # As text it is refused by the option's type, in words that name the option.
    if _holds(kind, list) and _LIST.fullmatch(value):
        return f"{key}=[{','.join(map(_quoted, re.findall(_ENTRY, value[1:-1])))}]"
    return plain if value[0] in "[{" else f"{key}={_quoted(value)}"


def _quoted(text: str) -> str:
    """`text` in quotation marks, unless it is null or has them already."""
    if text.lower() == "null" or re.fullmatch(r"'.*'|\".*\"", text, re.DOTALL):
        return text
    return _escaped(text)


def _escaped(text: str) -> str:
    """Any text in quotation marks, within which a backslash counts only before such a mark."""
    inner = re.sub(r"(\\*)('|\Z)", lambda m: 2 * m[1] + (m[2] and "\\'"), text)
    return f"'{inner}'"


def _type(stage: str, key: str) -> Any:
    """The declared type of an option, by dotted key; None where there is none."""
    kind: Any = CONFIGS[stage]
    for name in key.split("."):
        kind = get_type_hints(kind).get(name) if dataclasses.is_dataclass(kind) else None
    return kind


def _holds(kind: Any, wanted: type) -> bool:
    """Whether `wanted` is `kind` or a part of it, such as str of list[str] | None."""
    return wanted in (kind, get_origin(kind)) or any(_holds(k, wanted) for k in get_args(kind))


def _explain(stage: str, error: BaseException) -> str:
    """The root of a composition error, naming the key."""
    cause = error
    while cause.__cause__ is not None and not isinstance(cause, OmegaConfBaseException):
        cause = cause.__cause__
    key = getattr(cause, "full_key", None)
    if isinstance(cause, ConfigKeyError) or type(cause).__name__ == "ConfigAttributeError":
        return _unknown(stage, str(key))
    if key:
        return f"{key}: {_first_line(cause)}"
    return _first_line(cause)


def _unknown(stage: str, key: str) -> str:
    known = list(_leaves(_values(_compose(stage, []))))
    return f"unknown key {key!r}{suggestion(key, known)}"


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _leaves(config: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Every value of a config that isn't a section, by dotted key."""
    found: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, dict):
            found |= _leaves(value, f"{prefix}{key}.")
        else:
            found[prefix + key] = value
    return found


def _rows(config: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """(dotted key, "key: value" as indented YAML) of every line of a config."""
    indent = "  " * prefix.count(".")
    for key, value in config.items():
        if isinstance(value, dict):
            yield prefix + key, f"{indent}{key}:"
            yield from _rows(value, f"{prefix}{key}.")
        else:
            yield prefix + key, f"{indent}{key}: {_scalar(value)}"


def _values(config: DictConfig) -> dict[str, Any]:
    """The config as plain data, with MISSING where a value is missing."""
    return cast(dict[str, Any], OmegaConf.to_container(config, resolve=True))


def _scalar(value: Any) -> str:
    """A value as YAML on one line."""
    if isinstance(value, list):
        return "[" + ", ".join(map(_scalar, value)) + "]"
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _absolute(config: Any) -> Any:
    """The dataclass with each Path made absolute: no run may depend on where a worker stands."""
    changes: dict[str, Any] = {}
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if isinstance(value, Path):
            changes[field.name] = _absolute_path(value)
        elif isinstance(value, list) and value and isinstance(value[0], Path):
            changes[field.name] = list(map(_absolute_path, value))
        elif dataclasses.is_dataclass(value):
            changes[field.name] = _absolute(value)
    return dataclasses.replace(config, **changes)


def _absolute_path(path: Path) -> Path:
    """Where it is seen from here; a shipped checkpoint is found from anywhere."""
    found = Path.cwd() / path.expanduser()
    if path.parts[:1] == ("checkpoints",) and not found.exists():
        there = shipped("checkpoints").joinpath(*path.parts[1:])
        return there if there.exists() else found
    return found


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value
