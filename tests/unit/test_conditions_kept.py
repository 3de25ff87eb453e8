"""What storaged keeps of conditions: within its bound, made once, gone with its version, gone on with where it was cut off."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest
from tests.kit.images import Edges, Nodes, hosted, version_of
from tests.kit.waiting import HANG_S

from asterism_proto.condition import Term, parse
from asterism_proto.errors import Deadline, InvalidRequest, Stale
from asterism_proto.schema import EdgeType, Feature, NodeType, Schema
from storaged import draw

SIZE, PARTS = 4000, 4


def version() -> draw.Version:
    rng = np.random.default_rng(1)
    schema = Schema(
        node_types=(NodeType(name="n", weighted=True, features=(Feature(name="x", dtype="float64"),)),),
        edge_types=(EdgeType(src_type="n", relation="e", dst_type="n", features=(Feature(name="y", dtype="float64"),)),),
        parts=PARTS,
    )
    nodes = Nodes(ids=np.arange(SIZE), weights=rng.random(SIZE).astype(np.float32), features={"x": (np.arange(SIZE) + 0.5) / SIZE})
    edges = Edges(src=rng.integers(0, SIZE, SIZE), dst=rng.integers(0, SIZE, SIZE), features={"y": rng.random(SIZE)})
    return version_of(schema, {"n": nodes}, {"n:e:n": edges})


def where(text: str, element: int = draw.NODE) -> draw.Where:
    return draw.Where(text=parse(text).canonical, element=element, types=(0,))


class Looks:
    """Counts the blocks that are looked at; raises at one of them."""

    def __init__(self, stop_at: int = -1) -> None:
        self.count, self._stop_at = 0, stop_at

    def __call__(self) -> None:
        self.count += 1
        if self.count == self._stop_at:
            raise Deadline("the time is up")


def test_a_condition_is_looked_at_once_and_another_request_finds_it() -> None:
    conditions, held, first, second = draw.Conditions(1 << 20), version(), Looks(), Looks()
    shares = conditions.shares(held, where("x < 0.5"), [0, 3], first)
    assert first.count == PARTS  # a block each
    assert {key: share.count for key, share in shares.items()} == {(draw.NODE, 0, 0): SIZE // 2 // PARTS, (draw.NODE, 0, 3): SIZE // 2 // PARTS}
    every = conditions.shares(held, where("0.5 > x"), list(range(PARTS)), second)
    made = conditions.version(held, where("x < 0.5"), every, second)
    assert conditions.version(held, where("x < 0.5"), dict(every), second) is made
    assert second.count == 0


def test_what_was_looked_at_before_the_time_was_up_is_not_looked_at_again() -> None:
    conditions, held, cut, rest = draw.Conditions(1 << 20), version(), Looks(stop_at=3), Looks()
    with pytest.raises(Deadline):
        conditions.shares(held, where("x < 0.5"), [0], cut)
    conditions.shares(held, where("x < 0.5"), [0], rest)
    assert rest.count == PARTS - 2


def test_a_request_whose_time_is_up_does_not_wait_for_another_that_looks() -> None:
    conditions, held = draw.Conditions(1 << 20), version()
    looking, go_on = threading.Event(), threading.Event()

    def slowly() -> None:
        looking.set()
        assert go_on.wait(HANG_S)

    other = threading.Thread(target=conditions.shares, args=(held, where("x < 0.5"), [0], slowly))
    other.start()
    try:
        assert looking.wait(HANG_S)
        with pytest.raises(Deadline):
            conditions.shares(held, where("x < 0.5"), [0], Looks(stop_at=1))
    finally:
        go_on.set()
        other.join(HANG_S)
    assert conditions.shares(held, where("x < 0.5"), [0], Looks(stop_at=1))[draw.NODE, 0, 0].count == SIZE // 2 // PARTS


def test_what_was_not_asked_for_for_the_longest_time_goes_first() -> None:
    held, one = version(), SIZE * 20 + SIZE
    conditions = draw.Conditions(2 * one)
    texts = ("x < 1", "x < 2", "x < 3")
    for text in (texts[0], texts[1], texts[0], texts[2]):
        conditions.shares(held, where(text), [0], Looks())
    looked = {text: Looks() for text in texts}
    for text in (texts[0], texts[2], texts[1]):
        conditions.shares(held, where(text), [0], looked[text])
    assert [looked[text].count for text in texts] == [0, PARTS, 0]


def test_a_condition_that_has_no_room_by_itself_is_refused_and_a_narrower_one_is_not() -> None:
    conditions, held = draw.Conditions(SIZE * 10), version()
    with pytest.raises(InvalidRequest, match=r"condition 'x < 0.9': what satisfies it takes \d+ bytes or more .* keeps 40000; narrow it, or raise"):
        conditions.shares(held, where("x < 0.9"), [0], Looks())
    assert conditions.shares(held, where("x < 0.1"), [0], Looks())[draw.NODE, 0, 0].count == SIZE // 10 // PARTS


def test_what_is_kept_goes_with_its_version() -> None:
    conditions, held = draw.Conditions(1 << 20), version()
    shares = conditions.shares(held, where("x < 0.5"), list(range(PARTS)), Looks())
    made = conditions.version(held, where("x < 0.5"), shares, Looks())
    image = weakref.ref(made.image(0).nodes[0].table.hot)
    gc.disable()
    try:
        del made, held
        assert image() is None
    finally:
        gc.enable()


def test_features_that_others_hold_are_stale_until_they_have_told() -> None:
    whole = version()
    near, far = hosted(whole, [0, 1]), hosted(whole, [2, 3])
    conditions, text = draw.Conditions(1 << 20), "y < 0.5 and dst.x < 0.5"
    with pytest.raises(Stale, match=r"'y < 0\.5' is not known here"):
        conditions.shares(near, where(text, draw.EDGE), [0], Looks())
    told = {}
    for held in (near, far):
        for part in held.parts:
            for word, own, element in (("y < 0.5", "y < 0.5", draw.EDGE), ("dst.x < 0.5", "x < 0.5", draw.NODE)):
                term = parse(own).tree
                assert isinstance(term, Term)
                told[0, word, part] = draw.judged(held, part, element, 0, term, Looks())
    found = conditions.shares(near, where(text, draw.EDGE), [0, 1], Looks(), draw.Foreign(found=told))
    expected = draw.Conditions(1 << 20).shares(whole, where(text, draw.EDGE), [0, 1], Looks())
    assert found == expected
    assert 0 < found[draw.EDGE, 0, 0].count < SIZE
