"""Prompt with multi-line editing, colors, completion and history.

Only this module imports prompt_toolkit.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from prompt_toolkit import PromptSession, prompt
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import has_focus, is_searching
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.formatted_text.utils import split_lines
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.styles import Style
from rich.console import Console as Printer
from rich.text import Text

from asterism.cli.console import history
from asterism.cli.console.completion import SchemaNameCache, candidates
from asterism.cli.console.scripts import ScriptError
from asterism.cli.console.session import (
    LANGUAGES,
    Console,
    QuitConsole,
    StatementDeclined,
    suggestion,
)
from asterism.cli.console.tokens import is_blank, statement_spans, tokenize
from asterism_proto.errors import AsterismError, Unavailable

try:
    import termios
except ImportError:  # on Windows
    termios = None  # type: ignore[assignment]

_NO_ANSWER = "no answer from "
"""Beginning of the message of a call that did not reach the service, or got no reply."""
_STYLE = Style.from_dict(
    {
        "keyword": "ansiblue bold",
        "text": "ansigreen",
        "open": "ansigreen",
        "quoted": "ansiyellow",
        "number": "ansicyan",
        "parameter": "ansimagenta",
        "comment": "ansibrightblack",
        "command": "bold",
        "prompt": "bold",
    }
)


class _TokenLexer(Lexer):
    """Colors each token of the input by its kind."""

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        text = document.text
        if text.lstrip().startswith(":"):
            styled: StyleAndTextTuples = [("class:command", text)]
        else:
            styled = [
                (f"class:{token.kind}", text[token.start : token.end]) for token in tokenize(text)
            ]
        lines = list(split_lines(styled))
        return lambda line_number: lines[line_number] if line_number < len(lines) else []


class _StatementCompleter(Completer):
    """Completes words of the language and names of the schema."""

    def __init__(self, console: Console, name_cache: SchemaNameCache) -> None:
        self._console, self._names = console, name_cache

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        schema_names = self._names.names()
        seen: set[str] = set()
        for candidate in candidates(
            document.text_before_cursor,
            schema_names,
            tuple(self._console.parameters),
            self._console.language,
        ):
            if candidate.text not in seen:
                seen.add(candidate.text)
                yield Completion(
                    candidate.text,
                    start_position=-candidate.prefix_length,
                    display_meta=candidate.kind,
                )


class _FilteredHistory(FileHistory):
    """History file without the statements that may not be stored; these stay in memory."""

    def store_string(self, string: str) -> None:
        if history.may_be_stored(string):
            try:
                super().store_string(string)
            except OSError:
                return  # the console stays usable if the disk is full


def is_complete(text: str, language: str) -> bool:
    """Return whether Enter runs the input.

    It runs a colon command, text that ends with ``;`` or an empty line, or a line of a language
    without ``;``.
    """
    if (
        is_blank(text)
        or text.lstrip().startswith(":")
        or text.strip().lower() in ("exit", "quit", "help")
        or text.endswith("\n")
    ):
        return True
    tokens = [token for token in tokenize(text) if token.kind not in ("blank", "comment")]
    return tokens[-1].kind == "end" or (language != LANGUAGES[0] and tokens[-1].kind != "open")


def _bindings(console: Console) -> KeyBindings:
    bindings = KeyBindings()
    typing = has_focus(DEFAULT_BUFFER) & ~is_searching

    @bindings.add("enter", filter=typing)
    def _(event: KeyPressEvent) -> None:
        buffer: Buffer = event.current_buffer
        if (
            buffer.complete_state is not None
            and buffer.complete_state.current_completion is not None
        ):
            buffer.complete_state = None  # accept the selected completion
        elif is_complete(buffer.text, console.language):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    @bindings.add("escape", "enter", filter=typing)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    return bindings


def split_statements(text: str) -> list[str]:
    """Return the statements of the input, in order."""
    if text.lstrip().startswith(":"):
        return [text.strip()]
    complete_spans, rest_start = statement_spans(text)
    statements = [text[start:end] for start, end in complete_spans]
    return statements if is_blank(text[rest_start:]) else [*statements, text[rest_start:].strip()]


def run_prompt(console: Console, history_file: Path | None, greeting: str) -> None:
    """Read statements and run them, until the user leaves.

    Parameters
    ----------
    console : Console
        Console that runs them.
    history_file : Path, optional
        File of the history; None: keep the history in memory only.
    greeting : str
        First line to print.
    """
    console.confirm = _confirm
    name_cache = SchemaNameCache(console.client, lambda: console.space)
    console.on_schema_change = name_cache.invalidate
    file = None if history_file is None else history.prepare_file(history_file)
    past_statements: History = InMemoryHistory() if file is None else _FilteredHistory(str(file))
    session: PromptSession[str] = PromptSession(
        history=past_statements,
        lexer=_TokenLexer(),
        completer=_StatementCompleter(console, name_cache),
        complete_while_typing=True,
        multiline=True,
        key_bindings=_bindings(console),
        prompt_continuation=lambda width, *_: [("class:prompt", "...> ".rjust(width))],
        style=_STYLE,
        enable_history_search=False,
        search_ignore_case=True,
    )
    console.print_note(greeting)
    incomplete = ""
    try:
        with _keys_between_prompts():
            while True:
                name_cache.names()
                try:
                    text = session.prompt(lambda: _prompt_text(console), default=incomplete)
                except KeyboardInterrupt:
                    incomplete = ""
                    continue
                except EOFError:
                    return
                incomplete = _run_statements(console, text)
    except QuitConsole:
        return
    finally:
        name_cache.stop()


@contextlib.contextmanager
def _keys_between_prompts() -> Iterator[None]:
    """Leave keys that are typed while a statement runs to the next prompt.

    A terminal in line mode would replace Ctrl-D by a NUL, which no prompt takes for an end, and
    Enter by a line feed, and would print keys among the results. Ctrl-C stays a signal.
    """
    if termios is None or not sys.stdin.isatty():
        yield
        return
    saved = termios.tcgetattr(sys.stdin)
    settings = termios.tcgetattr(sys.stdin)
    settings[0] &= ~termios.ICRNL  # input modes
    settings[3] &= ~(termios.ICANON | termios.ECHO)  # local modes
    termios.tcsetattr(sys.stdin, termios.TCSANOW, settings)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSANOW, saved)


def _prompt_text(console: Console) -> Any:
    language = "" if console.language == LANGUAGES[0] else f" {console.language}"
    return [("class:prompt", f"{console.space or 'asterism'}{language}> ")]


def _run_statements(console: Console, text: str) -> str:
    """Run the input; return it if its last statement is incomplete, and otherwise \"\"."""
    statements = split_statements(text)
    for statement in statements:
        try:
            console.run(statement)
        except KeyboardInterrupt:
            _print_error(console, "cancelled")
            return ""
        except StatementDeclined as declined:
            _print_error(console, str(declined))
            return ""
        except Unavailable as error:
            _print_error(console, _lost_connection(error.message))
            return ""
        except AsterismError as error:
            if (
                statement is statements[-1]
                and error.place is not None
                and error.place.incomplete
                and not text.rstrip().endswith(";")
            ):
                return text.rstrip("\n") + "\n"
            meant = suggestion(statement, error.place)
            hint = f"\n  did you mean {meant}?" if meant else ""
            _print_error(console, error.message + hint)
            return ""
        except (ScriptError, OSError) as error:
            _print_error(console, str(error))
            return ""
    return ""


def _lost_connection(message: str) -> str:
    """Return the sentence to print for a statement that got no answer from the service.

    Clients connect again with each call, so nothing is left to do at the prompt.
    """
    if not message.startswith(_NO_ANSWER):
        return message  # the service is there, and a daemon or a partition is not
    cause = message.removesuffix("; is it running there?")
    return f"not connected: {cause}; the next statement connects again"


def _confirm(question: str) -> bool:
    """Ask a question at the terminal; the end of the input is a no."""
    try:
        return prompt(f"{question} [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False


def _print_error(console: Console, message: str) -> None:
    console.out.flush()
    Printer(file=console.out, highlight=False).print(Text(message, style="red"), soft_wrap=True)
