"""Faults of walks by p and q, and of what they look at before they search."""

from __future__ import annotations

from tests.law.faults import Mutant, change

WALK, STEPS = "graphd.walk", "storaged.draw.walk"
BIAS, SIEVE, TOGETHER = "storaged.kernel.bias", "storaged.kernel.sieve", "storaged.kernel.biased_walk"

MUTANTS: tuple[Mutant, ...] = (
    change(
        "joined taken for not joined elsewhere",
        "tempting",
        WALK,
        ("== (self._how.q > 1.0)", "== (self._how.q < 1.0)"),
        check="walks_with_p_and_q_are_node2vecs",
    ),
    change(
        "p and q after a restart",
        "tempting",
        WALK,
        ("return np.where(via >= 0, self._nodes[rows, last], -1), self._near[via]", "return self._nodes[rows, last], self._near[via]"),
        check="walks_with_p_and_q_are_node2vecs",
    ),
    change(
        "restarts to where the host met the walk",
        "tempting",
        WALK,
        ('sections["starts"] = self._starts[rows]', 'sections["starts"] = self.current[rows]'),
        check="walks_follow_their_steps",
    ),
    change(
        "a step back by q",
        "tempting",
        STEPS,
        ("back=np.float64(1.0 / rules.p / most)", "back=np.float64(1.0 / rules.q / most)"),
        check="walks_with_p_and_q_are_node2vecs",
    ),
    change(
        "p and q not looked at",
        "tempting",
        STEPS,
        ("sure=np.float64(min(1.0, away) / most)", "sure=np.float64(1.0)"),
        check="walks_with_p_and_q_are_node2vecs",
    ),
    change(
        "bias over less than the largest",
        "classic",
        STEPS,
        ("return max(1.0, 1.0 / rules.q)", "return 1.0"),
        check="walks_back_take_each_of_parallel_edges_by_its_weight",
    ),
    change(
        "a step back twice over",
        "tempting",
        STEPS,
        ("fold=np.float64(_fold(rules))", "fold=np.float64(_fold(rules) and _fold(rules) + 1.0)"),
        check="walks_back_take_each_of_parallel_edges_by_its_weight",
    ),
    change(
        "a step back is folded away",
        "KnightKing",
        STEPS,
        ("fold=np.float64(_fold(rules))", "fold=np.float64(0.0)"),
        check="walks_with_p_and_q_are_node2vecs",
    ),
    change(
        "parallel edges back count once",
        "tempting",
        BIAS,
        ("            slot += 1", "            slot = end"),
        check="walks_back_take_each_of_parallel_edges_by_its_weight",
    ),
    change(
        "as if there were an edge back",
        "tempting",
        BIAS,
        ("    lanes[lane, FATE], left = REFUSED, share * whole", "    lanes[lane, FATE], left = TAKEN, share * whole"),
        check="walks_with_p_and_q_are_node2vecs",
    ),
    change(
        "edges back alike by weight",
        "tempting",
        BIAS,
        ("left -= 1.0 if way.uniform or ", "left -= 1.0 if way.uniform or table[line, SUMS] != 0 or "),
        check="walks_back_take_each_of_parallel_edges_by_its_weight",
    ),
    change(
        "a share of one edge",
        "tempting",
        SIEVE,
        ("if slot > indptr[row] and nbr[slot] != nbr[slot - 1]:", "if slot >= indptr[row]:"),
        check="walks_back_take_each_of_parallel_edges_by_its_weight",
    ),
    change(
        "a sieve of walks that forgets",
        "tempting",
        SIEVE,
        ("words[np.int64(below(pair, np.uint64(words.shape[0])))] |=", "words[np.int64(below(pair, np.uint64(words.shape[0])))] ="),
        check="walks_with_p_and_q_are_node2vecs",
    ),
    change(
        "attempts anew at every host",
        "tempting",
        TOGETHER,
        ("walkers[DONE, walk], walk * room, walkers[ATTEMPTS, walk]", "walkers[DONE, walk], walk * room, 0"),
        check="packed_rows_draw_what_tables_do",
    ),
    change(
        "every share falls on an edge back",
        "tempting",
        TOGETHER,
        ("            if left < 0.0:", "            if left < np.inf:"),
        check="packed_rows_draw_what_tables_do",
    ),
    change(
        "edges back alike in packed rows",
        "tempting",
        TOGETHER,
        ("left -= 1.0 if even else", "left -= 1.0 if even | (heavy > _ZERO) else"),
        check="packed_rows_draw_what_tables_do",
    ),
    change(
        "joined to the node that is left",
        "tempting",
        TOGETHER,
        ("lanes[HEAD, i] if returns else lanes[BEFORE_HEAD, i]", "lanes[HEAD, i]"),
        check="packed_rows_draw_what_tables_do",
    ),
    change(
        "who is not joined counts",
        "tempting",
        TOGETHER,
        ("REFUSED if way.counts_joined else TAKEN\n    for", "TAKEN if way.counts_joined else REFUSED\n    for"),
        check="packed_rows_draw_what_tables_do",
    ),
    change(
        "a step back draws by q",
        "tempting",
        TOGETHER,
        ("most = way.back if found == before else way.sure", "most = way.sure"),
        check="packed_rows_draw_what_tables_do",
    ),
    change(
        "a node of another type is that of before",
        "tempting",
        TOGETHER,
        ("if kind >= 0 and kind != ends[NEAR, edge]:", "if kind > ends.shape[1] + 9:"),
        check="packed_rows_draw_what_tables_do",
    ),
)
