import dataclasses
import enum
import uuid
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import msgspec
import pytest

from treppe import ConfigError, Context, InvalidJob
from treppe.app.arguments import Arguments, readable


@dataclasses.dataclass
class Line:
    sku: str
    n: int = 1


class Customer(TypedDict):
    name: str


class Order(msgspec.Struct):
    id: int
    lines: list[Line]
    customer: Customer


class Colour(enum.Enum):
    RED = "red"


class Size(enum.IntEnum):
    SMALL = 1


class Place(NamedTuple):
    x: int
    y: int


def arguments(function: Any) -> Arguments:
    return Arguments(function, "shop.task")


def there_and_back(function: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
    made = arguments(function)
    return made.decode(made.encode(args, kwargs))


ORDER = Order(7, [Line("bolt", 2), Line("nut")], {"name": "Ada"})
MOMENT = datetime(2026, 11, 27, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (str, "ü€\U0001f600\0"),
        (int, 2**63),
        (float, 0.1),
        (float, 3),
        (bool, True),
        (bytes, b"\0\xff"),
        (None, None),
        (int | None, None),
        (list[int], [1, 2]),
        (tuple[int, str], (1, "a")),
        (set[str], {"a", "b"}),
        (dict[str, list[int]], {"a": [1]}),
        (dict[int, str], {1: "a"}),
        (Line, Line("bolt", 2)),
        (Customer, {"name": "Ada"}),
        (Order, ORDER),
        (Place, Place(1, 2)),
        (datetime, MOMENT),
        (datetime, datetime(2026, 11, 27, 9)),  # noqa: DTZ001 - one without a zone stays one
        (date, date(2026, 11, 27)),
        (timedelta, timedelta(minutes=90)),
        (Decimal, Decimal("9.90")),
        (uuid.UUID, uuid.UUID(int=7)),
        (Colour, Colour.RED),
        (Size, Size.SMALL),
        (Literal["a", "b"], "b"),
        (Annotated[int, msgspec.Meta(ge=1)], 1),
        (Any, {"a": [1, None, "x"]}),
        (object, [1]),
    ],
)
def test_what_json_can_hold_comes_back_as_it_was(hint, value):
    def task(value: hint) -> None: ...

    found = there_and_back(task, value)["value"]
    assert found == value
    assert type(found) is type(value) or hint is float


def test_arguments_without_annotations_are_plain_data():
    def task(a, b=2): ...

    assert there_and_back(task, Line("bolt")) == {"a": {"sku": "bolt", "n": 1}, "b": 2}


def test_defaults_are_those_of_the_code_that_runs():
    def task(a: int, b: str = "as it was then", *, c: list[int] = [1]) -> None: ...  # noqa: B006

    made = arguments(task)
    assert made.encode((1,), {}) == b'{"a":1}'
    assert made.decode(b'{"a":1}') == {"a": 1, "b": "as it was then", "c": [1]}
    assert made.decode(made.encode((1, "x"), {"c": []})) == {"a": 1, "b": "x", "c": []}


def test_a_call_is_stored_alike_however_it_was_written():
    def task(a: int, b: int) -> None: ...

    made = arguments(task)
    assert made.encode((1, 2), {}) == made.encode((), {"b": 2, "a": 1}) == b'{"a":1,"b":2}'


def test_what_is_given_by_name_only_is_never_taken_by_place():
    def task(a: int = 1, *, b: int, c: int = 3) -> None: ...

    made = arguments(task)
    assert made.encode((5,), {"c": 1, "b": 2}) == b'{"a":5,"b":2,"c":1}'
    assert made.encode((), {"b": 2}) == b'{"b":2}'
    with pytest.raises(InvalidJob, match="missing a required argument: 'b'"):
        made.encode((1,), {})
    with pytest.raises(InvalidJob, match="too many positional arguments"):
        made.encode((1, 2), {})
    with pytest.raises(InvalidJob, match="too many positional arguments"):
        made.encode((1, 2, 3), {})


def test_the_context_is_no_argument():
    def task(ctx: Context, a: int) -> None: ...

    made = arguments(task)
    assert made.takes_context
    assert made.names == {"a"}
    assert made.encode((1,), {}) == b'{"a":1}'


def test_a_context_elsewhere_than_in_front_is_refused():
    def task(a: int, ctx: Context) -> None: ...

    with pytest.raises(ConfigError, match=r"ctx: the context must be the first parameter. Move ctx to the front"):
        arguments(task)


@pytest.mark.parametrize(
    ("args", "kwargs", "sentence"),
    [
        ((), {}, "cannot be called like that: missing a required argument: 'a'"),
        ((1, "x", 3), {}, "cannot be called like that: too many positional arguments"),
        ((1,), {"c": 3}, "cannot be called like that: got an unexpected keyword argument 'c'"),
        ((1,), {"a": 3}, "cannot be called like that: multiple values for argument 'a'"),
        (("1",), {}, "an argument cannot be stored: Expected int, got str at a"),
        ((True,), {}, "an argument cannot be stored: Expected int, got bool at a"),
        ((1, object()), {}, "an argument cannot be stored: Encoding objects of type object is unsupported"),
        ((1, "\ud800"), {}, "an argument cannot be stored: 'utf-8' codec can't encode character"),
    ],
)
def test_what_does_not_fit_the_function_is_refused_with_a_sentence(args, kwargs, sentence):
    def task(a: int, b: str = "") -> None: ...

    with pytest.raises(InvalidJob) as refused:
        arguments(task).encode(args, kwargs)
    assert str(refused.value).startswith(f'task "shop.task"{" " if sentence.startswith("cannot") else ": "}{sentence}')


def test_what_is_no_number_in_json_is_refused():
    def task(a: float) -> None: ...

    with pytest.raises(InvalidJob, match="Expected float, got null at a"):
        arguments(task).encode((float("nan"),), {})


def test_what_holds_itself_is_refused():
    def task(a: Any) -> None: ...

    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(InvalidJob, match="holds itself, or is nested too deeply"):
        arguments(task).encode((endless,), {})


@pytest.mark.parametrize(
    ("payload", "sentence"),
    [
        (b'{"order": {"id": "x", "lines": [], "customer": {"name": "a"}}}', "Expected int, got str at order.id"),
        (b'{"order": {"id": 1, "lines": [{"sku": 1}], "customer": {"name": "a"}}}', "got int at order.lines[0].sku"),
        (b"{}", "Object missing required field order"),
        (b'{"order": null, "other": 1}', "Expected object, got null at order"),
        (b'{"other": 1}', "Object contains unknown field other"),
        (b"[]", "Expected object, got array"),
        (b"", "Input data was truncated"),
        (b"\xff", "JSON is malformed"),
    ],
)
def test_a_payload_that_no_longer_fits_says_where(payload, sentence):
    def task(order: Order) -> None: ...

    with pytest.raises(ValueError, match=r".") as refused:
        arguments(task).decode(payload)
    assert sentence in readable(refused.value)


def test_a_check_of_the_users_own_counts():
    @dataclasses.dataclass
    class Positive:
        n: int

        def __post_init__(self) -> None:
            if self.n < 1:
                raise ValueError("n must be positive")

    def task(a: Positive) -> None: ...

    made = arguments(task)
    with pytest.raises(InvalidJob, match="n must be positive at a"):
        made.encode((), {"a": {"n": 0}})


@pytest.mark.parametrize("hint", [Path, complex, list[Path], dict[str, complex], Line | Order, type])
def test_a_type_that_json_cannot_hold_is_refused_when_the_task_is_made(hint):
    def task(value: hint) -> None: ...

    with pytest.raises(ConfigError, match=r'task "shop.task": value: its type cannot be stored: .*Use what JSON'):
        arguments(task)


@pytest.mark.parametrize(
    "function", [lambda *values: None, lambda **values: None, eval("lambda values, /: None")], ids=["*", "**", "/"]
)
def test_parameters_without_a_name_are_refused(function):
    with pytest.raises(ConfigError, match=r"values: this parameter cannot be stored by its name. Use ordinary named"):
        arguments(function)


def test_an_annotation_that_cannot_be_resolved_is_refused_with_the_cure():
    def task(order: "Nowhere") -> None: ...  # noqa: F821

    with pytest.raises(ConfigError, match=r"name 'Nowhere' is not defined.*not only under TYPE_CHECKING"):
        arguments(task)


def test_a_field_that_cannot_be_resolved_is_refused_too():
    @dataclasses.dataclass
    class Holder:
        order: "Nowhere"  # noqa: F821

    def task(holder: Holder) -> None: ...

    with pytest.raises(ConfigError, match="holder: its type cannot be stored: name 'Nowhere' is not defined"):
        arguments(task)
