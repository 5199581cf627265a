"""The completer that prompt-toolkit asks while one types: what fits where the cursor stands."""

import json
from collections.abc import Callable, Iterable, Iterator

from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document

from codemode.core.errors import InvalidInput
from codemode.core.names import is_identifier
from codemode.render.words import printable
from codemode.repl.commands import COMMANDS, Argument, find_command
from codemode.repl.index import Index, Word
from codemode.repl.inputs import keys_at, values_at
from codemode.repl.place import Place, locate
from codemode.repl.vocabulary import Vocabulary

_TEXTS: dict[tuple[str, ...], str] = {("tools", "call"): "ids", ("tools", "describe"): "ids", ("API", "read"): "files"}
_commands = Index([Word(command.name, command.about) for command in COMMANDS])


class CellCompleter(Completer):
    """Completes cells from the vocabulary of the session, and `:commands` from their table.

    Contract: repl:completion:names, repl:completion:keys, repl:completion:commands
    """

    def __init__(self, vocabulary: Vocabulary, arguments: Callable[[Argument], Iterable[Word]]) -> None:
        """Take what there is; `arguments` gives what fits a command's argument."""
        self._vocabulary = vocabulary
        self._arguments = arguments
        self._paths = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """Yield what fits, the likeliest first."""
        text = document.text_before_cursor
        if text.startswith(":"):
            yield from self._in_command(text[1:], complete_event)
            return
        place = locate(text)
        if place is not None:
            yield from self._at(place, is_asked=complete_event.completion_requested)

    def _at(self, place: Place, *, is_asked: bool) -> Iterator[Completion]:
        match place.kind:
            case "name" if place.prefix or is_asked:
                yield from _completions(self._vocabulary.names(place.prefix), place.prefix)
            case "member":
                yield from _completions(self._vocabulary.members(place.path).find(place.prefix), place.prefix)
            case "text":
                yield from _completions(self._texts(place).find(place.prefix), place.prefix)
            case "key":
                yield from self._keys(place)
            case "value":
                yield from self._values(place, is_asked=is_asked)

    def _texts(self, place: Place) -> Index:
        """Return the texts that a function takes as its first argument."""
        if place.path[-1:] == ("$api",) and len(place.path) == 3:
            return self._vocabulary.members(place.path[:2])
        kind = _TEXTS.get(place.path)
        return Index(()) if kind is None else self._vocabulary.ids if kind == "ids" else self._vocabulary.files

    def _keys(self, place: Place) -> Iterator[Completion]:
        words = keys_at(self._schema(place), place.keys)
        for word in _holding([word for word in words if word.text not in place.taken], place.prefix):
            name = word.text + place.quote if place.quote or is_identifier(word.text) else json.dumps(word.text)
            yield _completion(word, place.prefix, f"{name}: ")

    def _values(self, place: Place, *, is_asked: bool) -> Iterator[Completion]:
        words = values_at(self._schema(place), place.keys)
        if place.quote:
            texts = [Word(word.text[1:-1]) for word in words if word.text.startswith('"')]
            yield from _completions(_holding(texts, place.prefix), place.prefix)
            return
        yield from _completions(_holding(words, place.prefix), place.prefix)
        if place.prefix or is_asked:
            yield from _completions(self._vocabulary.names(place.prefix), place.prefix)

    def _schema(self, place: Place) -> object:
        return self._vocabulary.schema(place.path, place.tool_id)

    def _in_command(self, text: str, event: CompleteEvent) -> Iterator[Completion]:
        name, space, argument = text.partition(" ")
        if not space:
            yield from _completions(_commands.find(name), name)
            return
        try:
            command = find_command(name)
        except InvalidInput:
            return
        if command.argument == "path":
            yield from self._paths.get_completions(Document(argument.lstrip()), event)
        elif command.argument:
            yield from _completions(self._argument(command.argument).find(argument.strip()), argument.lstrip())

    def _argument(self, kind: Argument) -> Index:
        if kind == "tool":
            return self._vocabulary.all_ids
        return self._vocabulary.servers if kind == "server" else Index(list(self._arguments(kind)))


class SafeCompleter(Completer):
    """Offers nothing where another completer breaks, and tells of it once for each kind of fault.

    Contract: repl:completion:broken
    """

    def __init__(self, inner: Completer, on_fault: Callable[[str], None]) -> None:
        """Guard a completer; `on_fault` gets a sentence."""
        self._inner = inner
        self._on_fault = on_fault
        self._told: set[str] = set()

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """Yield what the other one yields, as long as it does."""
        try:
            yield from self._inner.get_completions(document, complete_event)
        except Exception as error:  # noqa: BLE001  # whatever it was, a menu is not worth a session
            sentence = f"completion broke: {type(error).__name__}: {error}"
            if sentence not in self._told:
                self._told.add(sentence)
                self._on_fault(sentence)


def _holding(words: list[Word], typed: str) -> list[Word]:
    """Return the words that hold what is typed, the likeliest first; all of them in their own order if nothing is."""
    return Index(words).find(typed) if typed else words


def _completions(words: Iterable[Word], typed: str) -> Iterator[Completion]:
    return (_completion(word, typed, word.text) for word in words)


def _completion(word: Word, typed: str, inserted: str) -> Completion:
    return Completion(
        inserted, start_position=-len(typed), display=printable(word.text), display_meta=printable(word.meta)
    )
