"""Exceptions and warnings of this package."""


class MalloscopeError(RuntimeError):
    """The base of all errors of this package."""


class StateError(MalloscopeError):
    """The call is not allowed in the profiler's present state; nothing has changed."""


class RecordingError(MalloscopeError, OSError):
    """The system refused: the recording or a copy of it could not be written."""


class CommandError(MalloscopeError):
    """The malloscope command failed; its own message is part of this one."""


class FewSamplesWarning(UserWarning):
    """An answer rests on fewer than 100 samples, and is rough."""
