import pytest

from marginbayes.solvers.interrupt import is_interrupt, kernel_interrupts


def wrapped(cause, depth=2):
    """What compiled code makes of an exception that was set while it returned."""
    for _ in range(depth):
        error = SystemError("returned a result with an exception set")
        error.__cause__ = cause
        cause = error
    return cause


def test_an_interrupt_that_compiled_code_hid_is_an_interrupt():
    assert is_interrupt(wrapped(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt), kernel_interrupts():
        raise wrapped(KeyboardInterrupt())


def test_other_errors_stay_what_they_are():
    assert not is_interrupt(wrapped(ValueError("x")))
    with pytest.raises(SystemError), kernel_interrupts():
        raise wrapped(ValueError("x"))
    with pytest.raises(ValueError, match="x"), kernel_interrupts():
        raise ValueError("x")
