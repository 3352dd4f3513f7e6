"""The reference of the program's JSON in Markdown, from `vramscope schema COMMAND`."""

from __future__ import annotations

import json
import re
import subprocess
import textwrap
from typing import Any

HEAD = """\
# The program's JSON

Every command answers in JSON with `--format json`: one object, with the name and version of its
form in `schema`. `vramscope schema COMMAND` prints the form as a JSON Schema, from which this page
is generated.

- Bytes, microseconds and counts are integers. Addresses are `"0x.."`.
- A stack is a list of frames, innermost first. Lists of blocks, segments and events have each stack
  once, in `stacks`: `.stacks[.blocks[0].stack]`.
- Lists have all rows unless `--limit N` is given. `omitted` counts the others.
- Each field of an answer and each row of its lists is on a line of its own.
- Within a version, fields may be added. No field is removed or changes its meaning.
- A field marked `?` may be absent. `or null`: its value may be null.

[The numbers](numbers.md) have their meaning.
"""


def ask(program: str, *arguments: str) -> str:
    """What the program prints."""
    command = [program, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def commands(program: str) -> list[str]:
    """Commands that have a schema, as the help of `schema` lists them."""
    said = ask(program, "schema", "--help")
    listed = re.search(r"\[possible values: ([^\]]+)\]", said)
    if listed:
        return re.split(r",\s*", listed[1])
    return re.findall(r"^ {10}- ([a-z-]+)", said, re.MULTILINE)


def name_of(reference: str) -> str:
    return reference.rpartition("/")[2]


def is_object(schema: dict[str, Any]) -> bool:
    return "properties" in schema


def variants(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """Alternatives of a schema."""
    return [*schema.get("oneOf", []), *schema.get("anyOf", []), *schema.get("allOf", [])]


def is_value(schema: dict[str, Any]) -> bool:
    """Whether a schema is a list of words."""
    words = [part for part in variants(schema) if "const" in part or "enum" in part]
    return "enum" in schema or "const" in schema or bool(words) and words == variants(schema)


def names_others(schema: dict[str, Any]) -> bool:
    """Whether a schema has nothing but references to several others."""
    parts = variants(schema)
    return len(parts) > 1 and all("$ref" in part for part in parts) and not is_object(schema)


class Reference:
    """All schemas, with each record once."""

    def __init__(self, schemas: dict[str, dict[str, Any]]) -> None:
        self.schemas = schemas
        self.records: dict[str, dict[str, Any]] = {}
        #: Names of records by command and name in its schema.
        self.names: dict[tuple[str, str], str] = {}
        for command, schema in schemas.items():
            for name, record in schema.get("$defs", {}).items():
                own = name
                # `None` of one command may differ from that of another, also by what they refer to.
                if own in self.records and self.records[own] != record:
                    own = f"{name} of {command}"
                if own.lower() in schemas:
                    own = f"{own} record"
                self.records[own] = record
                self.names[command, name] = own
        self.command = ""

    def link(self, name: str) -> str:
        own = self.names[self.command, name]
        record = self.records[own]
        if is_object(record) or variants(record) or is_value(record):
            return f"[{own}](#{own.lower().replace(' ', '-')})"
        return self.type_of(record)

    def type_of(self, schema: Any) -> str:
        """The type in words."""
        if schema is True or schema == {}:
            return "any"
        if "$ref" in schema:
            return self.link(name_of(schema["$ref"]))
        if "const" in schema:
            return f"`{json.dumps(schema['const'])}`"
        if "enum" in schema:
            return " or ".join(f"`{json.dumps(word)}`" for word in schema["enum"])
        if variants(schema):
            kinds = [self.type_of(part) for part in variants(schema)]
            return " or ".join(dict.fromkeys(kinds))
        kinds = schema.get("type", "any")
        kinds = kinds if isinstance(kinds, list) else [kinds]
        return " or ".join(self.simple(kind, schema) for kind in kinds)

    def simple(self, kind: str, schema: dict[str, Any]) -> str:
        if kind == "array" and "prefixItems" in schema:
            return f"[{', '.join(self.type_of(item) for item in schema['prefixItems'])}]"
        if kind == "array":
            return f"list of {self.type_of(schema.get('items', True))}"
        if kind == "object" and "additionalProperties" in schema:
            return f"object of {self.type_of(schema['additionalProperties'])}"
        if kind == "object" and is_object(schema):
            return "{" + ", ".join(f"`{name}`" for name in schema["properties"]) + "}"
        return kind

    def forms(self, schema: dict[str, Any]) -> list[dict[str, Any]]:
        """The variants, with those of a variant that only names others in its place."""
        forms = []
        for part in variants(schema):
            target = self.record(part)
            forms += self.forms(target) if names_others(target) else [part]
        return forms

    def record(self, part: dict[str, Any]) -> dict[str, Any]:
        name = name_of(part.get("$ref", ""))
        return self.records[self.names[self.command, name]] if name else {}

    def fields(self, schema: dict[str, Any]) -> list[str]:
        required = schema.get("required", [])
        lines = ["| field | type | |", "|---|---|---|"]
        for name, field in sorted(schema["properties"].items()):
            if name == "schema" and "version" in field.get("description", ""):
                continue
            mark = "" if name in required else "?"
            about = in_line(field.get("description", ""))
            lines.append(f"| `{name}`{mark} | {self.type_of(field)} | {about} |")
        return lines

    def body(self, schema: dict[str, Any]) -> list[str]:
        """Description and fields, values or forms."""
        lines = paragraph(schema.get("description", ""))
        if is_object(schema):
            return [*lines, *self.fields(schema), ""]
        if is_value(schema):
            parts = variants(schema) or [schema]
            values = [
                (word, in_line(part.get("description", "")))
                for part in parts
                for word in part.get("enum", [part.get("const")])
            ]
            if not any(about for _, about in values):
                words = ", ".join(f"`{word}`" for word, _ in values)
                return [*lines, *paragraph(f"One of {words}.")]
            rows = [f"| `{word}` | {about} |" for word, about in values]
            return [*lines, "| value | |", "|---|---|", *rows, ""]
        for number, part in enumerate(self.forms(schema), 1):
            if is_object(part):
                lines += [f"Form {number}:", "", *self.body(part)]
            else:
                about = in_line(part.get("description", ""))
                lines += [f"Form {number}: {self.type_of(part)}. {about}".rstrip(), ""]
        return lines

    def text(self) -> str:
        lines = [HEAD]
        lines += paragraph(
            "Commands: " + ", ".join(f"[`{name}`](#{name})" for name in self.schemas) + "."
        )
        for command, schema in self.schemas.items():
            self.command = command
            lines += [f"## {command}", "", *self.body(schema)]
        lines += ["## Records", ""]
        owner = {own: command for (command, _), own in reversed(self.names.items())}
        for name, record in sorted(self.records.items()):
            if names_others(record):
                continue
            if is_object(record) or variants(record) or is_value(record):
                self.command = owner[name]
                lines += [f"### {name}", "", *self.body(record)]
        return "\n".join(lines).rstrip() + "\n"


def in_line(text: str) -> str:
    """A description in a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def paragraph(text: str) -> list[str]:
    if not text:
        return []
    return [*textwrap.wrap(in_line(text), 100, break_long_words=False, break_on_hyphens=False), ""]


def reference(program: str) -> str:
    """The reference of all answers of a program."""
    schemas = {name: json.loads(ask(program, "schema", name)) for name in commands(program)}
    return Reference(schemas).text()
