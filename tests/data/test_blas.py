from __future__ import annotations

from threading import Event, Thread

from threadpoolctl import threadpool_info, threadpool_limits

from marginbayes.data.blas import matrix_threads


def blas_threads() -> list[int]:
    return [found["num_threads"] for found in threadpool_info() if found["user_api"] == "blas"]


def started(work: object) -> Thread:
    thread = Thread(target=work)
    thread.start()
    return thread


def test_limits_that_overlap_leave_the_number_of_threads_as_it_was() -> None:
    usual = blas_threads()[0]
    started(lambda: threadpool_limits(2, user_api="blas")).join()  # a thread that is gone leaves it to others
    inside, second_is_in, first_is_gone = list[list[int]](), Event(), Event()

    def first() -> None:
        with matrix_threads(1):
            inside.append(blas_threads())
            second_is_in.wait()

    def second() -> None:
        with matrix_threads(1):
            second_is_in.set()
            first_is_gone.wait()

    before = blas_threads()
    one = started(first)
    while not inside:
        pass
    other = started(second)
    one.join()
    first_is_gone.set()
    other.join()
    after = blas_threads()
    started(lambda: threadpool_limits(usual, user_api="blas")).join()
    assert inside == [[1] * len(before)]
    assert after == before == [2] * len(before)
