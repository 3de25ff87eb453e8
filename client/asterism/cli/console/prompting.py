"""The prompt: editing over several lines, colours, completion, history. prompt_toolkit's one door."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from prompt_toolkit import PromptSession
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
from asterism.cli.console.completing import Live, words
from asterism.cli.console.running import LANGUAGES, Console, Quit
from asterism.cli.console.scanning import is_blank, pieces, split
from asterism.cli.console.scripts import ScriptFailed
from asterism_proto.errors import AsterismError

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


class _Colours(Lexer):
    """Each piece of what is typed in the colour of its kind."""

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        text = document.text
        if text.lstrip().startswith(":"):
            shown: StyleAndTextTuples = [("class:command", text)]
        else:
            shown = [(f"class:{piece.kind}", text[piece.start : piece.end]) for piece in pieces(text)]
        lines = list(split_lines(shown))
        return lambda number: lines[number] if number < len(lines) else []


class _Words(Completer):
    """What is known of the language and the schema."""

    def __init__(self, console: Console, live: Live) -> None:
        self._console, self._live = console, live

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        known = self._live.known()
        seen: set[str] = set()
        for word in words(document.text_before_cursor, known, tuple(self._console.parameters), self._console.language):
            if word.text not in seen:
                seen.add(word.text)
                yield Completion(word.text, start_position=-word.back, display_meta=word.kind)


class _Kept(FileHistory):
    """A file of what was typed, but for what may not be kept: that is known for as long as the console runs."""

    def store_string(self, string: str) -> None:
        if history.is_kept(string):
            try:
                super().store_string(string)
            except OSError:
                return  # a disk that is full keeps nobody from working


def is_whole(text: str, language: str) -> bool:
    """Whether Enter runs what is typed: a colon command, what ends with ``;`` or an empty line, and a line of a language that has no ``;``."""
    if is_blank(text) or text.lstrip().startswith(":") or text.strip().lower() in ("exit", "quit") or text.endswith("\n"):
        return True
    said = [piece for piece in pieces(text) if piece.kind not in ("blank", "comment")]
    return said[-1].kind == "end" or (language != LANGUAGES[0] and said[-1].kind != "open")


def _bindings(console: Console) -> KeyBindings:
    bindings = KeyBindings()
    typing = has_focus(DEFAULT_BUFFER) & ~is_searching

    @bindings.add("enter", filter=typing)
    def _(event: KeyPressEvent) -> None:
        buffer: Buffer = event.current_buffer
        if buffer.complete_state is not None and buffer.complete_state.current_completion is not None:
            buffer.complete_state = None  # it is taken as it stands
        elif is_whole(buffer.text, console.language):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    @bindings.add("escape", "enter", filter=typing)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    return bindings


def statements_in(text: str) -> list[str]:
    """What is run of what was typed, one after the other."""
    if text.lstrip().startswith(":"):
        return [text.strip()]
    ended, rest = split(text)
    found = [text[start:end] for start, end in ended]
    return found if is_blank(text[rest:]) else [*found, text[rest:].strip()]


def interact(console: Console, kept: Path | None, greeting: str) -> None:
    """Ask for statements and run them, until somebody has enough.

    Parameters
    ----------
    console : Console
        What runs them.
    kept : Path, optional
        The file of the history; None: it is forgotten with the console.
    greeting : str
        The first line.
    """
    live = Live(console.client, lambda: console.space)
    console.changed = live.forget
    file = None if kept is None else history.prepared(kept)
    remembered: History = InMemoryHistory() if file is None else _Kept(str(file))
    session: PromptSession[str] = PromptSession(
        history=remembered,
        lexer=_Colours(),
        completer=_Words(console, live),
        complete_while_typing=True,
        multiline=True,
        key_bindings=_bindings(console),
        prompt_continuation=lambda width, *_: [("class:prompt", "...> ".rjust(width))],
        style=_STYLE,
        enable_history_search=False,
        search_ignore_case=True,
    )
    console.tell(greeting)
    begun = ""
    try:
        while True:
            live.known()
            try:
                text = session.prompt(lambda: _asked(console), default=begun)
            except KeyboardInterrupt:
                begun = ""
                continue
            except EOFError:
                return
            begun = _run(console, text)
    except Quit:
        return
    finally:
        live.stop()


def _asked(console: Console) -> Any:
    language = "" if console.language == LANGUAGES[0] else f" {console.language}"
    return [("class:prompt", f"{console.space or 'asterism'}{language}> ")]


def _run(console: Console, text: str) -> str:
    """Run what was typed; give it back where it goes on."""
    wanted = statements_in(text)
    for statement in wanted:
        try:
            console.run(statement)
        except KeyboardInterrupt:
            _complain(console, "cancelled")
            return ""
        except AsterismError as error:
            if statement is wanted[-1] and error.place is not None and error.place.incomplete and not text.rstrip().endswith(";"):
                return text.rstrip("\n") + "\n"
            _complain(console, error.message)
            return ""
        except (ScriptFailed, OSError) as error:
            _complain(console, str(error))
            return ""
    return ""


def _complain(console: Console, message: str) -> None:
    console.out.flush()
    Printer(file=console.out, highlight=False).print(Text(message, style="red"), soft_wrap=True)
