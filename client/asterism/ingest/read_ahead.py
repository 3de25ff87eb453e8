"""Read-ahead: one chunk is parsed while another is written."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")

_POLL_S = 0.1


class ReadAhead(Generic[T]):
    """Iterator that runs in its own thread, a few items ahead of its consumer.

    An error of the iterator is raised in the consumer, in the place of the item. Leaving the
    context stops the thread.

    Parameters
    ----------
    items : iterator
        Iterator to run ahead.
    depth : int, default 2
        Largest number of waiting items; one more may be in progress.
    """

    def __init__(self, items: Iterator[T], *, depth: int = 2) -> None:
        self._items = items
        self._queue: queue.Queue[tuple[T] | BaseException | None] = queue.Queue(depth)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="asterism-read-ahead", daemon=True)

    def __enter__(self) -> Iterator[T]:
        self._thread.start()
        return self._items_in_order()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            for item in self._items:
                if not self._put((item,)):
                    return
            self._put(None)
        except BaseException as error:  # raised again in the consumer's thread
            self._put(error)

    def _put(self, item: tuple[T] | BaseException | None) -> bool:
        while not self._stop.is_set():
            try:
                self._queue.put(item, timeout=_POLL_S)
            except queue.Full:
                continue
            return True
        return False

    def _items_in_order(self) -> Iterator[T]:
        while True:
            item = self._queue.get()
            if item is None:
                return
            if isinstance(item, BaseException):
                raise item
            yield item[0]
