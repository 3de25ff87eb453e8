"""Faults of epochs, of the orders that they are in, and of clusters."""

from __future__ import annotations

from tests.law.faults import Mutant, change

EPOCHS, MIXING, CLUSTERS = "asterism.epochs", "asterism.mixing", "asterism.clusters"

MUTANTS: tuple[Mutant, ...] = (
    change(
        "the order of the epoch before",
        "DistributedSampler",
        EPOCHS,
        ("key_of(self.seed, mixing.EPOCH, self.epoch)", "key_of(self.seed, mixing.EPOCH)"),
    ),
    change("an epoch that never ends", "classic", EPOCHS, ("self._begin(self.epoch + 1,", "self._begin(self.epoch,")),
    change("shares without their last number", "off by one", EPOCHS, ("-(-(count - first) // world)", "(count - first) // world")),
    change("every run begins with the same rank", "tempting", EPOCHS, ("first = (rank - before) % world", "first = rank % world")),
    change("ranks that begin anew", "classic", EPOCHS, ("gone = min(position, count)", "gone = 0 * min(position, count)")),
    change("what a run had is taken from the next", "tempting", EPOCHS, ("        position -= gone\n", "        position -= 0\n")),
    change("numbers behind a run's first", "off by one", EPOCHS, ("(wanted - self._offsets[run]) * strides[run]", "(wanted - self._offsets[run])")),
    change(
        "orders by few bits",
        "classic",
        MIXING,
        ("np.argsort(words_of(key_of(seed, SHUFFLE), count), k", "np.argsort(words_of(key_of(seed, SHUFFLE), count) >> np.uint64(62), k"),
    ),
    change("a network of one round", "tempting", MIXING, ("_ROUNDS = 8", "_ROUNDS = 1")),
    change(
        "what falls beyond is cut off", "tempting", MIXING, ("    while beyond.size:\n", "    out[beyond] = np.uint64(size - 1)\n    while False:\n")
    ),
    change("clusters without their last node", "off by one", CLUSTERS, ("self.offsets[name][c + 1]] for", "self.offsets[name][c + 1] - 1] for")),
    change("clusters in the order of their numbers", "tempting", CLUSTERS, ("for c in numbers.tolist())", "for c in sorted(numbers.tolist()))")),
)
