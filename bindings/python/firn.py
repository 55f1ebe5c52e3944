"""
firn for Python: one module over libfirn, libfirn-client and libfirn-node by ctypes, with nothing to build.

    import firn
    firn.uuid7(); firn.ulid()
    with firn.Node("postgres://db/app") as node:      # IDs made here, on a slot leased from a store
        node.next()
    with firn.Client("firn://127.0.0.1:9001/?mode=prefetch") as client:   # IDs from firnd servers
        client.next(); client.next_n(1000)
    async with firn.Prefetch(client) as ids:          # asyncio: fetched ahead, the loop never waits
        await ids.next()

The libraries are looked for in LIBFIRN_PATH (folders, separated by ":"), then where the system looks.
All functions may be called from any thread. Errors are firn.Error, with the code's name and the library's text.
"""
from __future__ import annotations

import asyncio
import ctypes as c
import os
import uuid as _uuid
from collections import deque
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from typing import Any, Deque, Dict, List, Optional

__all__ = ["Client", "Error", "Node", "Prefetch", "Reading", "decode", "encode", "read", "time", "ulid", "uuid7"]

_SOVERSION = 0
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class Error(Exception):
    """A firn function failed: `name` is its code ("FIRN_EIO"), the text says the cause and the cure."""

    def __init__(self, code: int, detail: str = "") -> None:
        lib = _library("firn")
        self.code = code
        self.name: str = lib.firn_error_name(code).decode()
        super().__init__(f"{detail or lib.firn_error_message(code).decode()} ({self.name})")


class _Diag(c.Structure):
    _fields_ = [("column", c.c_size_t), ("text", c.c_char * 192)]


class _Codec(c.Structure):
    _fields_ = [("name", c.c_char_p)]  # its other members are not read here


class _U128(c.Structure):
    _fields_ = [("hi", c.c_uint64), ("lo", c.c_uint64)]


class _Kind(c.Structure):
    _fields_ = [("name", c.c_char_p), ("about", c.c_char_p), ("flags", c.c_uint32), ("bits", c.c_uint32)]


class _Layout(c.Structure):
    _fields_ = [("field", c.c_uint8 * 10), ("flags", c.c_uint32), ("tick_us", c.c_uint64), ("epoch_ms", c.c_int64)]


class _Field(c.Structure):
    _fields_ = [("name", c.c_char * 12), ("value", c.c_char * 64), ("bit", c.c_uint8), ("bits", c.c_uint8)]


class _Reading(c.Structure):
    _fields_ = [("kind", c.POINTER(_Kind)), ("layout", c.c_char * 16), ("has_time", c.c_int32), ("score", c.c_int32),
                ("unix_us", c.c_int64), ("number", c.c_uint64), ("text", c.c_char * 128), ("bytes", c.c_uint8 * 20),
                ("bytes_len", c.c_uint32), ("fields_n", c.c_uint32), ("field", _Field * 8)]


class _NodeOpts(c.Structure):
    _fields_ = [("size", c.c_uint32), ("wait_ms", c.c_uint32), ("layout", c.c_char_p), ("name", c.c_char_p),
                ("timeout_ms", c.c_uint32), ("init", c.c_uint32), ("accept_clock", c.c_uint32),
                ("manual_fence", c.c_uint32), ("reserved", c.c_uint64 * 4)]


_P = c.c_void_p
_SIGNATURES: Dict[str, Dict[str, Any]] = {  # library: function: result, arguments
    "firn": {
        "firn_error_name": (c.c_char_p, c.c_int),
        "firn_error_message": (c.c_char_p, c.c_int),
        "firn_uuid_v7_now": (c.c_int, _P),
        "firn_ulid_now_text": (c.c_int, c.c_char_p),
        "firn_codec_find": (c.POINTER(_Codec), c.c_char_p, c.c_size_t),
        "firn_codec_encode64": (c.c_int, c.POINTER(_Codec), c.c_uint64, c.c_char_p, c.c_size_t, _P),
        "firn_codec_decode64": (c.c_int, c.POINTER(_Codec), c.c_char_p, c.c_size_t, _P),
        "firn_codec_encode128": (c.c_int, c.POINTER(_Codec), _U128, c.c_char_p, c.c_size_t, _P),
        "firn_codec_decode128": (c.c_int, c.POINTER(_Codec), c.c_char_p, c.c_size_t, _P),
        "firn_kind_find": (c.POINTER(_Kind), c.c_char_p, c.c_size_t),
        "firn_layout_parse": (c.c_int, c.c_char_p, c.c_size_t, c.c_int64, _P, _P),
        "firn_read": (c.c_int, c.POINTER(_Kind), c.c_char_p, c.c_size_t, _P, _P, _P),
    },
    "firn-client": {
        "firn_client_open": (c.c_int, c.c_char_p, _P, _P),
        "firn_client_close": (None, _P),
        "firn_client_next_n": (c.c_int, _P, _P, c.c_size_t, _P),
        "firn_client_next_keyed": (c.c_int, _P, c.c_char_p, _P, _P),
        "firn_client_next_text": (c.c_int, _P, c.c_char_p, c.c_char_p, c.c_size_t, _P),
    },
    "firn-node": {
        "firn_node_open": (c.c_int, c.c_char_p, _P, _P, _P),
        "firn_node_close": (None, _P),
        "firn_node_fill": (c.c_int, _P, _P, c.c_size_t, _P),
    },
}


@lru_cache(maxsize=None)
def _library(name: str) -> c.CDLL:
    file = f"lib{name}.so.{_SOVERSION}"
    folders = [f for f in os.environ.get("LIBFIRN_PATH", "").split(":") if f]
    found = [os.path.join(f, file) for f in folders if os.path.exists(os.path.join(f, file))]
    try:
        lib = c.CDLL(found[0] if found else file)
    except OSError as e:
        raise ImportError(f"{file} cannot be loaded ({e}): install it, or name its folder in LIBFIRN_PATH") from e
    for function, (result, *arguments) in _SIGNATURES[name].items():
        f = getattr(lib, function)
        f.restype, f.argtypes = result, arguments
    return lib


def _check(code: int, diag: Optional[_Diag] = None) -> None:
    if code < 0:
        raise Error(code, diag.text.decode(errors="replace") if diag else "")


# --- formats ---


def uuid7() -> _uuid.UUID:
    """A UUID of version 7; those of one thread rise."""
    raw = c.create_string_buffer(16)
    _check(_library("firn").firn_uuid_v7_now(raw))
    return _uuid.UUID(bytes=raw.raw)


def ulid() -> str:
    """A ULID; those of one thread rise."""
    text = c.create_string_buffer(27)
    _check(_library("firn").firn_ulid_now_text(text))
    return text.value.decode()


def _codec(name: str) -> Any:
    raw = name.encode()
    codec = _library("firn").firn_codec_find(raw, len(raw))
    if not codec:
        raise ValueError(f"there is no codec {name!r}: see firn_codec_list(3), for instance base62 or crockford")
    return codec


def encode(value: int, codec: str, bits: int = 64) -> str:
    """A number of 64 or 128 bits as text."""
    if bits not in (64, 128) or not 0 <= value < 1 << bits:
        raise ValueError(f"{value} is not a number of {bits} bits, or {bits} is neither 64 nor 128")
    lib, text = _library("firn"), c.create_string_buffer(40)
    if bits == 64:
        _check(lib.firn_codec_encode64(_codec(codec), value, text, 40, None))
    else:
        _check(lib.firn_codec_encode128(_codec(codec), _U128(value >> 64, value & (1 << 64) - 1), text, 40, None))
    return text.value.decode()


def decode(text: str, codec: str, bits: int = 64) -> int:
    """The number that a text stands for. Strict: anything else is an Error."""
    if bits not in (64, 128):
        raise ValueError(f"{bits} is neither 64 nor 128")
    lib, raw = _library("firn"), text.encode()
    if bits == 64:
        small = c.c_uint64()
        _check(lib.firn_codec_decode64(_codec(codec), raw, len(raw), c.byref(small)))
        return small.value
    wide = _U128()
    _check(lib.firn_codec_decode128(_codec(codec), raw, len(raw), c.byref(wide)))
    return wide.hi << 64 | wide.lo


@dataclass(frozen=True)
class Reading:
    """What an ID says."""

    kind: str
    text: str  # the canonical one
    number: int  # of a 64-bit kind, otherwise 0
    raw: bytes  # the binary form; empty if there is none
    unix_us: Optional[int]  # when it was made
    fields: Dict[str, str]  # in the order of the bits

    @property
    def time(self) -> Optional[datetime]:
        return None if self.unix_us is None else _EPOCH + timedelta(microseconds=self.unix_us)


def read(text: str, kind: str = "snowflake", layout: str = "firn") -> Reading:
    """Read a text as one kind of ID; `layout` (a preset's name or a layout text) is for kind snowflake."""
    lib, raw, name, shape = _library("firn"), text.encode(), kind.encode(), layout.encode()
    row = lib.firn_kind_find(name, len(name))
    if not row:
        raise ValueError(f"there is no kind {kind!r}: `firn gen` lists them")
    diag, parsed, out = _Diag(), _Layout(), _Reading()
    _check(lib.firn_layout_parse(shape, len(shape), 0, c.byref(parsed), c.byref(diag)), diag)
    _check(lib.firn_read(row, raw, len(raw), c.byref(parsed), c.byref(out), c.byref(diag)), diag)
    return Reading(out.kind.contents.name.decode(), out.text.decode(), out.number, bytes(out.bytes[:out.bytes_len]),
                   out.unix_us if out.has_time else None,
                   {f.name.decode(): f.value.decode() for f in out.field[:out.fields_n]})


def time(number: int, layout: str = "firn") -> datetime:
    """When a 64-bit ID was made."""
    found = read(str(number), "snowflake", layout).time
    assert found is not None  # every layout has a time field
    return found


# --- sources of IDs ---


class _Source:
    """A handle that is closed once; a context manager."""

    _handle: Optional[int] = None

    def _open(self) -> int:
        if self._handle is None:
            raise ValueError(f"this {type(self).__name__} is closed")
        return self._handle

    def __enter__(self) -> Any:
        self._open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        raise NotImplementedError

    def next_n(self, n: int) -> List[int]:
        raise NotImplementedError

    def next(self) -> int:
        """One ID."""
        return self.next_n(1)[0]


class Client(_Source):
    """IDs from firnd servers: firn://HOST[:PORT],…/?mode=remote|prefetch|leased, see libfirn-client(3)."""

    def __init__(self, url: str) -> None:
        handle, diag = _P(), _Diag()
        _check(_library("firn-client").firn_client_open(url.encode(), c.byref(handle), c.byref(diag)), diag)
        self._handle = handle.value

    def close(self) -> None:
        """Give a lease back. No other thread may be in a call."""
        handle, self._handle = self._handle, None
        _library("firn-client").firn_client_close(handle)

    def next_n(self, n: int) -> List[int]:
        """`n` IDs, all or none."""
        ids, diag = (c.c_uint64 * n)(), _Diag()
        _check(_library("firn-client").firn_client_next_n(self._open(), ids, n, c.byref(diag)), diag)
        return list(ids)

    def next_keyed(self, key: str) -> int:
        """The number that `key` stands for: the same each time."""
        out, diag = c.c_uint64(), _Diag()
        _check(_library("firn-client").firn_client_next_keyed(self._open(), key.encode(), c.byref(out),
                                                              c.byref(diag)), diag)
        return out.value

    def next_text(self, key: Optional[str] = None) -> str:
        """One ID of the URL's kind as text."""
        text, diag = c.create_string_buffer(320), _Diag()
        _check(_library("firn-client").firn_client_next_text(self._open(), key.encode() if key else None, text, 320,
                                                             c.byref(diag)), diag)
        return text.value.decode()


class Node(_Source):
    """IDs made in this process, on a worker slot that it leases from a store; libfirn-node(3)."""

    def __init__(self, url: str, *, layout: Optional[str] = None, name: Optional[str] = None, wait_ms: int = 0,
                 init: bool = False) -> None:
        opts = _NodeOpts(size=c.sizeof(_NodeOpts), wait_ms=wait_ms, layout=layout.encode() if layout else None,
                         name=name.encode() if name else None, init=int(init))
        handle, diag = _P(), _Diag()
        _check(_library("firn-node").firn_node_open(url.encode(), c.byref(opts), c.byref(handle), c.byref(diag)), diag)
        self._handle = handle.value

    def close(self) -> None:
        """Give the slot back. No other thread may be in a call."""
        handle, self._handle = self._handle, None
        _library("firn-node").firn_node_close(handle)

    def next_n(self, n: int) -> List[int]:
        """`n` IDs, rising."""
        ids: List[int] = []
        while len(ids) < n:
            some, got = (c.c_uint64 * (n - len(ids)))(), c.c_size_t()
            _check(_library("firn-node").firn_node_fill(self._open(), some, len(some), c.byref(got)))
            ids += some[:got.value]
        return ids


class Prefetch:
    """
    IDs for asyncio, fetched `ahead` at a time by a thread while the loop runs; a new block is asked for when half
    of the last one is used. Belongs to one loop. The source stays the caller's: close it after this.
    """

    def __init__(self, source: _Source, ahead: int = 1000) -> None:
        if ahead < 1:
            raise ValueError("ahead is the number of IDs per block: at least 1")
        self._source, self._ahead = source, ahead
        self._ids: Deque[int] = deque()
        self._fetching: Optional["asyncio.Task[None]"] = None

    async def _fetch(self) -> None:
        self._ids.extend(await asyncio.to_thread(self._source.next_n, self._ahead))

    async def next(self) -> int:
        """One ID. An Error of the source is raised when there is none left to give, and the next call asks again."""
        while True:
            if len(self._ids) <= self._ahead // 2 and (self._fetching is None or self._fetching.done()):
                if self._fetching is not None and not self._ids:
                    failed, self._fetching = self._fetching, None
                    failed.result()
                self._fetching = asyncio.create_task(self._fetch())
            if self._ids:
                return self._ids.popleft()
            assert self._fetching is not None
            await asyncio.wait([self._fetching])  # shared by all who wait: one that is cancelled ends only itself

    async def __aenter__(self) -> "Prefetch":
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._fetching is not None:
            await asyncio.wait([self._fetching])
            if not self._fetching.cancelled():
                self._fetching.exception()  # nobody waits for it any more
