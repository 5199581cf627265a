"""Tools of the benches: the cheapest asynchronous and the cheapest plain one."""


async def nothing(n: int = 0) -> int:
    """Return the input."""
    return n


def nothing_in_a_thread(n: int = 0) -> int:
    """Return the input."""
    return n
