from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Batch(_message.Message):
    __slots__ = ("cluster", "node", "boot_id", "spool_id", "sequence", "sent_at_nanoseconds", "agent_version", "tables")
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    BOOT_ID_FIELD_NUMBER: _ClassVar[int]
    SPOOL_ID_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    SENT_AT_NANOSECONDS_FIELD_NUMBER: _ClassVar[int]
    AGENT_VERSION_FIELD_NUMBER: _ClassVar[int]
    TABLES_FIELD_NUMBER: _ClassVar[int]
    cluster: str
    node: str
    boot_id: str
    spool_id: str
    sequence: int
    sent_at_nanoseconds: int
    agent_version: str
    tables: _containers.RepeatedCompositeFieldContainer[Table]
    def __init__(self, cluster: _Optional[str] = ..., node: _Optional[str] = ..., boot_id: _Optional[str] = ..., spool_id: _Optional[str] = ..., sequence: _Optional[int] = ..., sent_at_nanoseconds: _Optional[int] = ..., agent_version: _Optional[str] = ..., tables: _Optional[_Iterable[_Union[Table, _Mapping]]] = ...) -> None: ...

class Table(_message.Message):
    __slots__ = ("name", "row_count", "arrow_stream")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ROW_COUNT_FIELD_NUMBER: _ClassVar[int]
    ARROW_STREAM_FIELD_NUMBER: _ClassVar[int]
    name: str
    row_count: int
    arrow_stream: bytes
    def __init__(self, name: _Optional[str] = ..., row_count: _Optional[int] = ..., arrow_stream: _Optional[bytes] = ...) -> None: ...

class Answer(_message.Message):
    __slots__ = ("boot_id", "spool_id", "sequence", "outcome", "reason")
    class Outcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        UNKNOWN: _ClassVar[Answer.Outcome]
        STORED: _ClassVar[Answer.Outcome]
        REFUSED: _ClassVar[Answer.Outcome]
        LATER: _ClassVar[Answer.Outcome]
    UNKNOWN: Answer.Outcome
    STORED: Answer.Outcome
    REFUSED: Answer.Outcome
    LATER: Answer.Outcome
    BOOT_ID_FIELD_NUMBER: _ClassVar[int]
    SPOOL_ID_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    boot_id: str
    spool_id: str
    sequence: int
    outcome: Answer.Outcome
    reason: str
    def __init__(self, boot_id: _Optional[str] = ..., spool_id: _Optional[str] = ..., sequence: _Optional[int] = ..., outcome: _Optional[_Union[Answer.Outcome, str]] = ..., reason: _Optional[str] = ...) -> None: ...
