"""Work for several processes whose results come back in order, with little in memory."""

import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from threading import Thread
from typing import TypeVar

from soubench.builders.errors import BuildError

Job = TypeVar("Job")
Result = TypeVar("Result")
IN_FLIGHT_PER_WORKER = 4


def in_order(
    function: Callable[[Job], Result], jobs: Iterable[Job], *, workers: int
) -> Iterator[Result]:
    """Yield ``function(job)`` for each job, in order.

    Args:
        function: A function of a module; its jobs and results are pickled.
        jobs: Drawn as they are needed: a few per worker are under way at a time.
        workers: Processes; 1 does the work in this process.

    Raises:
        BuildError: A worker process died.
    """
    if workers <= 1:
        yield from map(function, jobs)
        return
    # spawn: the parent may hold threads (Arrow), which a forked child would inherit in any state.
    context = get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_end_with_parent) as pool:
        waiting: deque[Future[Result]] = deque()
        try:
            for job in jobs:
                waiting.append(pool.submit(function, job))
                if len(waiting) >= workers * IN_FLIGHT_PER_WORKER:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool as error:
            raise BuildError(
                "A worker process died, most likely for want of memory. Run again with fewer "
                f"--workers than {workers}. (A script that builds must guard its entry with "
                "if __name__ == '__main__', since workers import it.)"
            ) from error
        finally:
            for future in waiting:
                future.cancel()


def _end_with_parent() -> None:
    """Let a worker end when the process that started it is killed; else it would wait for ever.

    An interrupt from the keyboard reaches workers too; it is for the parent to say so, once.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:
        sentinel = parent.sentinel

        def watch() -> None:
            wait([sentinel])
            os._exit(1)

        Thread(target=watch, daemon=True).start()


def chunks(values: Sequence[Job], size: int) -> Iterator[tuple[Job, ...]]:
    """Cut ``values`` into pieces of ``size``, the last one shorter where it must be."""
    for start in range(0, len(values), size):
        yield tuple(values[start : start + size])
