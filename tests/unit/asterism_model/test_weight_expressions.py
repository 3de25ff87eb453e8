from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from asterism_graphkit.arrays import fdlibm
from asterism_graphkit.evaluate.weight_expressions import evaluate, evaluate_weights
from asterism_model.weight_expressions import FUNCTIONS, MAX_LENGTH, parse
from asterism_proto.errors import InvalidRequest

X = np.array([0.0, 0.5, 1.0, 3.0, 7.25, 1e6])
Y = np.array([2.0, 1.0, 0.25, 9.0, 4.0, 1e-3])
COLUMNS = {"x": X, "y": Y, "n-clicks": Y * 2, "a.b": X + 1, "log": X * 3, "if": Y, "weight": Y}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x", X),
        ("2", np.full(6, 2.0)),
        (" 1.5e-1 * x\n+ .5", 0.15 * X + 0.5),
        ("x - y - 1", (X - Y) - 1),
        ("x / y / 2", (X / Y) / 2),
        ("2 ** x ** 0.5", 2 ** (X**0.5)),
        ("-x ** 2", -(X**2)),
        ("2 ** -y", 2 ** (-Y)),
        ("+x - -y", X + Y),
        ("(x + y) * 2", (X + Y) * 2),
        ("pow(x, 0.75)", X**0.75),
        ("log1p(x) + sqrt(y)", np.log1p(X) + np.sqrt(Y)),
        ("min(x, y, 3)", np.minimum(np.minimum(X, Y), 3)),
        ("max(x, y)", np.maximum(X, Y)),
        ("clip(x, 0.6, y)", np.minimum(np.maximum(X, 0.6), Y)),
        ("abs(x - y) * exp(-y)", np.abs(X - Y) * np.exp(-Y)),
        ("`n-clicks` * a.b", Y * 2 * (X + 1)),
        ("log + log (y)", X * 3 + np.log(Y)),
        ("if * weight", Y * Y),
        ("`x`", X),
    ],
)
def test_expressions_are_evaluated_as_in_python(text: str, expected: np.ndarray) -> None:
    assert np.allclose(evaluate(parse(text), COLUMNS, 6), expected, rtol=4e-16, atol=0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected a text of 1 to 1000 characters"),
        ("  ", "expected a text of 1 to 1000 characters"),
        (
            "pow(x",
            r"character 6: found the end, expected an operator \(\+ - \* / \*\*\), ',' or '\)'",
        ),
        ("(x", r"character 3: found the end, expected an operator \(\+ - \* / \*\*\) or '\)'"),
        ("x)", r"character 2: found '\)', expected an operator \(\+ - \* / \*\*\) or the end"),
        ("pow(x)", "character 1: found pow of 1, expected 2 arguments"),
        ("min(x)", "character 1: found min of 1, expected 2 arguments or more"),
        ("sqrt()", r"character 6: found '\)', expected a number, a column, a function or '\('"),
        ("x y", "character 3: found 'y', expected an operator"),
        ("x, y", "character 2: found ','"),
        ("min(x, y,)", r"character 10: found '\)', expected a number"),
        ("x * * y", r"character 5: found '\*', expected a number"),
        ("x **", "character 5: found the end, expected a number"),
        ("3x", "character 2: found 'x', expected a space or an operator after a number"),
        ("1_000", "character 2: found '_'"),
        ("0x10", "character 2: found 'x'"),
        ("1.2.3", "character 4: found '.'"),
        ("1e999", "character 1: found 1e999, expected a number that fits float64"),
        (
            "where(x, y)",
            "character 1: found 'where' called as a function, expected one of min, max, pow",
        ),
        ("x if y else 2", "character 3: found 'if'"),
        ("x.__class__()", "character 1: found 'x.__class__' called as a function"),
        ("__import__('os')", 'character 12: found "\'"'),
        ("x @ y", "character 3: found '@'"),
        ("x % y", "character 3: found '%'"),
        ("x == y", "character 3: found '='"),
        ("lambda: x", "character 7: found ':'"),
        ("[x]", r"character 1: found '\['"),
        ("x\\\n+ y", r"character 2: found '\\\\'"),
        ("ｘ", "character 1: found 'ｘ'"),
        ("``", "character 1: found '``', expected a column's name between backticks"),
        ("`x", "character 1: found '`'"),
        ("+".join(["x"] * 150), "at most 199 numbers, names and operators"),
    ],
)
def test_invalid_expression_is_refused_with_position_and_hint(text: str, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        parse(text)


def test_deepest_allowed_expression_is_parsed() -> None:
    deep = "(" * 99 + "x" + ")" * 99
    assert parse(deep).columns == ("x",)
    assert len(parse("-" * 198 + "x").instructions) == 199
    assert len(parse("2**" * 99 + "x").instructions) == 199


_TOKENS = [
    "x",
    "y",
    "weight",
    "`n-c`",
    "1",
    "2.5",
    "1e3",
    "0",
    "(",
    ")",
    ",",
    "+",
    "-",
    "*",
    "/",
    "**",
    " ",
    "if",
    "lambda",
    ":",
    "'",
    "[",
    "#",
    "_",
    ".",
]
OPERATIONS = {"number", "column", "+", "-", "*", "/", "negative", *FUNCTIONS}


@given(
    st.one_of(
        st.text(max_size=60),
        st.lists(st.sampled_from([*_TOKENS, *FUNCTIONS]), max_size=40).map("".join),
    )
)
@example("x" * MAX_LENGTH)
@example("\x00")
@example("\ud800")
@example("9" * 900)
def test_parsed_text_contains_only_arithmetic(text: str) -> None:
    try:
        expression = parse(text)
    except InvalidRequest:
        return
    depth = 0
    for step in expression.instructions:
        assert step.operation in OPERATIONS
        assert step.operation != "column" or step.column.isascii()
        assert step.operation != "number" or math.isfinite(step.number)
        assert step.arity <= depth
        depth += 1 - step.arity
    assert depth == 1
    values = evaluate(expression, dict.fromkeys(expression.columns, np.ones(3)), 3)
    assert (values.dtype, values.shape) == (np.float64, (3,))


_LEAVES = st.one_of(
    st.sampled_from(["x", "y"]), st.floats(0.01, 9.0).map(lambda v: repr(round(v, 3)))
)
_TREES = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "**"]), inner).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        ),
        st.tuples(inner, st.sampled_from(["+", "-", "*"]), inner).map(
            lambda t: f"{t[0]}{t[1]}{t[2]}"
        ),
        inner.map(lambda t: f"-({t})"),
        inner.map(lambda t: f"log1p(abs({t}))"),
        st.tuples(inner, inner).map(lambda t: f"max({t[0]}, {t[1]})"),
    ),
    max_leaves=8,
)


@given(_TREES)
def test_random_expressions_have_their_value_in_python(text: str) -> None:
    def as_float64(value: float) -> np.float64:
        return np.float64(value)

    names = {"abs": np.abs, "log1p": np.log1p, "max": np.maximum}
    with np.errstate(all="ignore"):
        for x, y in ((0.5, 3.0), (2.0, 0.125)):
            try:
                expected = eval(
                    text, {"__builtins__": {}}, {**names, "x": as_float64(x), "y": as_float64(y)}
                )
            except (OverflowError, ZeroDivisionError):
                continue  # Python raises for its own floats, if both sides are literals
            if isinstance(expected, complex):
                continue
            actual = evaluate(parse(text), {"x": np.array([x]), "y": np.array([y])}, 1)[0]
            if np.isfinite(expected) and abs(expected) < 1e200:
                assert actual == pytest.approx(float(expected), rel=1e-9, abs=1e-9)


def _ulps(actual: np.ndarray, expected: np.ndarray) -> float:
    with np.errstate(all="ignore"):
        return float(np.max(np.abs(actual - expected) / np.spacing(np.abs(expected))))


def test_log_exp_and_powers_are_within_two_ulps() -> None:
    rng = np.random.default_rng(4)
    wide = np.exp(rng.uniform(-700, 700, 50_000))
    near_zero = np.concatenate([rng.uniform(-0.999, 5, 20_000), rng.normal(0, 1e-8, 20_000)])
    exponents = rng.uniform(-745, 709, 50_000)
    base, power = np.exp(rng.uniform(-300, 300, 50_000)), rng.uniform(-2.3, 2.3, 50_000)
    for function, expected, arguments in (
        (fdlibm.log_array, np.log, (wide,)),
        (fdlibm.log1p_array, np.log1p, (near_zero,)),
        (fdlibm.exp_array, np.exp, (exponents,)),
        (fdlibm.power_array, np.power, (base, power)),
    ):
        out = np.empty_like(arguments[0])
        function(*arguments, out)
        assert _ulps(out, expected(*arguments)) <= 2.0


def test_the_special_values_are_those_of_c99() -> None:
    special = np.array(
        [
            0.0,
            -0.0,
            1.0,
            -1.0,
            2.0,
            -2.0,
            0.5,
            -0.5,
            3.0,
            -3.0,
            np.inf,
            -np.inf,
            np.nan,
            5e-324,
            1.7e308,
            2.0**53 - 1,
            -(2.0**70),
        ]
    )
    x, y = (axis.ravel() for axis in np.meshgrid(special, special))
    with np.errstate(all="ignore"):
        for function, expected, arguments in (
            (fdlibm.power_array, np.power, (x, y)),
            (fdlibm.log_array, np.log, (special,)),
            (fdlibm.log1p_array, np.log1p, (special,)),
            (fdlibm.exp_array, np.exp, (special,)),
        ):
            out = np.empty_like(arguments[0])
            function(*arguments, out)
            assert np.allclose(out, expected(*arguments), rtol=1e-15, atol=0, equal_nan=True)
            assert np.array_equal(
                np.signbit(out)[out == 0], np.signbit(expected(*arguments))[out == 0]
            )


def test_weights_are_rounded_to_float32_once() -> None:
    columns = {"x": np.array([0.1, 1e39, 1e-46, 16777217.0])}
    assert evaluate_weights(parse("x"), columns, 4).tolist() == [
        float(np.float32(0.1)),
        float("inf"),
        0.0,
        16777216.0,
    ]
    assert evaluate_weights(parse("x * 10"), {"x": np.array([0.1], np.float32)}, 1)[
        0
    ] == np.float32(np.float64(np.float32(0.1)) * 10)
