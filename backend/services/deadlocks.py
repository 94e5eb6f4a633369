"""PostgreSQL ends one of two transactions that wait for each other. What is safe to do again is done again."""

import random
import time
from collections.abc import Callable
from typing import TypeVar

from django.db import OperationalError, connection
from psycopg import errors

_TIMES = 4
_T = TypeVar("_T")


def again(do: Callable[[], _T]) -> _T:
    """What `do` returns, tried again after a deadlock. `do` opens its own transactions, and may be begun anew whichever
    of them had been committed. Inside a transaction there is nothing to begin anew: it is raised."""
    for number in range(1, _TIMES):
        try:
            return do()
        except OperationalError as error:
            if connection.in_atomic_block or not isinstance(error.__cause__, errors.DeadlockDetected):
                raise
        time.sleep(0.05 * number * random.uniform(0.5, 1.5))  # noqa: S311  spreads them, keeps no secret
    return do()
