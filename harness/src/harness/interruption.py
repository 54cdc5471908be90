"""Ctrl-C and its kind, taken as a wish: whatever waits asks for it, and whatever cleans up does not. An exception that
a signal raises wherever it happens to arrive could end the cleaning itself, and blocking signals would not keep it from
that: the kernel hands them to any thread, and Python runs their handlers in the main one, whatever that one blocks."""

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

# Each is a wish to end, SIGINT too where a script that runs this in the background has it ignored.
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interruption:
    """Whether somebody wants the campaign to end."""

    def __init__(self) -> None:
        self._wished = False

    def check(self) -> None:
        """Raises KeyboardInterrupt where an end is wished for: for all places that may end there."""
        if self._wished:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def noted(self) -> Iterator[None]:
        """Notes the signals that arrive meanwhile, and does nothing else about them. In the main thread alone."""

        def note(number: int, frame: FrameType | None) -> None:
            self._wished = True

        before = {number: signal.signal(number, note) for number in _ENDING}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
