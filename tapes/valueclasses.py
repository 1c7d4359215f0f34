"""Dataclasses that cost a start next to nothing: `dataclass` here makes what the standard library's makes.

The library compiles up to eight functions for each class, 0.6 ms, and a replay loads sixty classes: a fifth of its
start. All but one of these functions can be the same for all classes, and that one, `__init__`, is compiled when the
first object is made. Type checkers see the library's decorator. What nobody here needs is missing: `order`, `init`,
`repr`, `unsafe_hash` and `weakref_slot` of a class, and InitVar.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    from dataclasses import _FIELD, MISSING, Field, FrozenInstanceError, field
    from functools import cache
    from operator import attrgetter
    from reprlib import recursive_repr
    from typing import ClassVar, get_origin

    def dataclass(cls=None, /, *, frozen=False, slots=False, kw_only=False, eq=True):
        """As the standard library's."""
        if cls is None:
            return lambda cls: _make(cls, frozen, slots, kw_only, eq)
        return _make(cls, frozen, slots, kw_only, eq)

    def _make(cls, frozen, slots, kw_only, eq):
        fields = {}
        for base in reversed(cls.__mro__[1:]):
            fields |= getattr(base, "__dataclass_fields__", {})
        names = [name for name, kind in cls.__annotations__.items() if get_origin(kind) is not ClassVar]
        own = {name: _field(cls, name, kw_only) for name in names}
        own_slots = tuple(name for name in names if name not in fields)
        fields |= own
        given = {name: value for name, value in cls.__dict__.items() if name not in own}
        added = _shared(frozen, slots, eq and "__eq__" not in given)
        added = {name: value for name, value in added.items() if name not in given}
        added["__dataclass_fields__"] = fields
        added["__match_args__"] = tuple(one.name for one in fields.values() if one.init and not one.kw_only)
        made = _with_slots(cls, given | added, own_slots) if slots else _without_slots(cls, added, own)
        if "__init__" not in given:
            made.__init__ = _first_init(made)
        return made

    def _with_slots(cls, members, slots):
        # A class can't be given slots: it has to be made again.
        members = {name: value for name, value in members.items() if name not in ("__dict__", "__weakref__")}
        made = type(cls)(cls.__name__, cls.__bases__, members | {"__slots__": slots})
        made.__qualname__ = cls.__qualname__
        return made

    def _without_slots(cls, members, own):
        for name, one in own.items():
            if one.default is not MISSING:
                setattr(cls, name, one.default)
            elif name in cls.__dict__:
                delattr(cls, name)
        for name, value in members.items():
            setattr(cls, name, value)
        return cls

    def _field(cls, name, kw_only):
        default = cls.__dict__.get(name, MISSING)
        one = default if isinstance(default, Field) else field(default=default)
        one.name, one.type, one._field_type = name, cls.__annotations__[name], _FIELD
        if one.kw_only is MISSING:
            one.kw_only = kw_only
        return one

    def _shared(frozen, slots, eq):
        functions = {"__repr__": _repr}
        if eq:
            functions |= {"__eq__": _eq, "__hash__": _hash if frozen else None}
        if frozen:
            functions |= {"__setattr__": _no_change, "__delattr__": _no_removal}
        if frozen and slots:
            functions |= {"__getstate__": _get_state, "__setstate__": _set_state}
        return functions

    def _first_init(cls):
        def init(self, *args, **values):
            cls.__init__ = _compile_init(cls)
            cls.__init__(self, *args, **values)

        return init

    def _compile_init(cls):
        given = {"_absent": MISSING, "_set": object.__setattr__}
        parameters, keywords, lines = ["self"], [], []
        for one in cls.__dataclass_fields__.values():
            name = value = one.name
            default = ""
            if one.default_factory is not MISSING:
                given[f"_make_{name}"] = one.default_factory
                value = f"_make_{name}() if {name} is _absent else {name}" if one.init else f"_make_{name}()"
                default = "=_absent"
            elif one.default is not MISSING:
                given[f"_default_{name}"] = one.default
                value = name if one.init else f"_default_{name}"
                default = f"=_default_{name}"
            elif not one.init:
                continue
            if one.init:
                (keywords if one.kw_only else parameters).append(name + default)
            if cls.__setattr__ is not _no_change:
                lines.append(f"self.{name} = {value}")
            elif hasattr(slot := getattr(cls, name, None), "__set__"):
                given[f"_set_{name}"] = slot.__set__
                lines.append(f"_set_{name}(self, {value})")
            else:
                lines.append(f"_set(self, {name!r}, {value})")
        if hasattr(cls, "__post_init__"):
            lines.append("self.__post_init__()")
        signature = ", ".join([*parameters, *(["*", *keywords] if keywords else [])])
        exec(f"def __init__({signature}):\n  " + "\n  ".join(lines or ["pass"]), given)
        made = given["__init__"]
        made.__qualname__ = f"{cls.__qualname__}.__init__"
        return made

    @cache
    def _values(cls):
        names = [one.name for one in cls.__dataclass_fields__.values() if one.compare]
        return attrgetter(*names) if len(names) > 1 else lambda self: tuple(getattr(self, name) for name in names)

    def _eq(self, other):
        if other.__class__ is not self.__class__:
            return NotImplemented
        values = _values(self.__class__)
        return values(self) == values(other)

    def _hash(self):
        return hash(_values(self.__class__)(self))

    @recursive_repr()
    def _repr(self):
        shown = [one.name for one in self.__dataclass_fields__.values() if one.repr]
        return f"{self.__class__.__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    def _no_change(_self, name, _value):
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def _no_removal(_self, name):
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def _get_state(self):
        return [getattr(self, name) for name in self.__dataclass_fields__]

    def _set_state(self, state):
        for name, value in zip(self.__dataclass_fields__, state, strict=True):
            object.__setattr__(self, name, value)
