"""PGLBox's YAML configuration: the keys of PGLBox and Graph4Rec, and the ignored ones."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from asterism.calls.metapath_notation import Metapath
from asterism.formats.file_patterns import expand_home
from asterism.yaml_files import read_yaml
from asterism_model.validation import FLAG_WORDS, validate_name
from asterism_proto.errors import InvalidRequest

DEFAULT_RELATION = "to"
"""Relation of an edge type that is written without one: ``u2i`` is ``u:to:i``."""
DONE_MARKER = "to.hadoop.done"
"""File that marks the data of a window as complete."""
_TIME = "%Y%m%d/%H"

_ALIASES = {
    "sample_num_list": "samples",
    "infer_sample_num_list": "infer_samples",
    "batch_pair_size": "batch_size",
    "shard_num": "num_part",
}
"""Graph4Rec's names for PGLBox's keys."""

_IGNORED_GROUPS = {
    "the model": """
        nodeid_slot slot_pool_type feature_mode model_type emb_size embed_size hidden_size
        init_range loss_type margin softsign gcl_loss sage_layer_type sage_alpha sage_act hcl
        res_alpha interact_mode num_nodes token_slot""",
    "the optimizer": """
        sparse_type sparse_lr dense_lr slot_feature_lr lr lazy_mode beta1_decay_rate
        beta2_decay_rate load_filter_slots""",
    "what a training run saves, and where": """
        warm_start_from load_binary_mode save_binary_mode save_model_interval
        save_cache_frequency save_steps dump_node_name dump_node_emb_name working_root
        model_save_path infer_result_path dump_save_path local_model_path local_result_path
        local_dump_path output_dir save_dir log_dir log_steps files2saved task_name""",
    "how PGLBox fits a graph into its memory and feeds it": """
        train_storage_mode gpups_memory_allocated_rate mem_cache_passid_num chunk_num
        sample_times_one_chunk train_pass_cap infer_pass_cap metapath_split_opt num_workers
        pair_stream_shuffle_size dataset_type collatefn debug_mode""",
    "its file system": (
        "hadoop_home graph_data_fs_name graph_data_fs_ugi output_fs_name output_fs_ugi "
        "fs_name fs_ugi"
    ),
}
IGNORED: Mapping[str, str] = {
    key: owner for owner, keys in _IGNORED_GROUPS.items() for key in keys.split()
}
"""Keys without effect here, with the component that they configure."""


def _whole(minimum: int, maximum: int = (1 << 31) - 1) -> Callable[[Any], Any]:
    def parse(value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < minimum:
            raise ValueError(f"an integer, {minimum} or more")
        if value > maximum:
            raise ValueError(f"an integer, {minimum} to {maximum}")
        return value

    return parse


def _flag(value: Any) -> bool:
    value = FLAG_WORDS.get(value.lower(), value) if isinstance(value, str) else value
    if not isinstance(value, bool):
        raise ValueError("True or False")
    return value


def _text(value: Any) -> str:
    if value is not None and not isinstance(value, str):
        raise ValueError("a text")
    return (value or "").strip()


def _counts(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or any(
        not isinstance(n, int) or isinstance(n, bool) or (n < 1 and n != -1) for n in value
    ):
        raise ValueError("a list of neighbors per hop, each 1 or more, or -1 for all")
    return tuple(value)


def _names(value: Any) -> tuple[str, ...]:
    if value is not None and (
        not isinstance(value, list)
        or not all(isinstance(name, str | int) and not isinstance(name, bool) for name in value)
    ):
        raise ValueError("a list of names")
    return tuple(map(str, value or ()))


def _mode(value: Any) -> str:
    if value not in ("train", "online_train"):
        raise ValueError("train or online_train")
    return str(value)


def _time(value: Any) -> datetime | None:
    if value in (None, ""):
        return None
    try:
        return datetime.strptime(str(value), _TIME)
    except ValueError as error:
        raise ValueError("a day and hour, such as 20230217/00") from error


def _features(value: Any) -> tuple[tuple[str, str, str], ...]:
    if value is not None and not isinstance(value, list):
        raise ValueError(f"a list of [node type, name, {' or '.join(_KINDS)}, length]")
    features = []
    for entry in value or ():
        if (
            not isinstance(entry, list)
            or len(entry) < 3
            or not all(isinstance(item, str) for item in entry[:3])
            or entry[2] not in _KINDS
        ):
            raise ValueError(f"a list of [node type, name, {' or '.join(_KINDS)}, length]")
        features.append((entry[0], entry[1], entry[2]))
    return tuple(features)


_KINDS = ("string", "int32", "int64", "float32", "float64")

_READ: Mapping[str, tuple[Callable[[Any], Any], Any]] = {
    "graph_data_local_path": (_text, ""),
    "graph_data_hdfs_path": (_text, ""),
    "etype2files": (_text, ""),
    "ntype2files": (_text, ""),
    "symmetry": (_flag, False),
    "hadoop_shard": (_flag, False),
    "auto_shard": (_flag, False),
    "num_part": (_whole(1), 1000),
    "slots": (_names, ()),
    "nfeat_info": (_features, ()),
    "max_slot_value_size": (_whole(1), None),
    "meta_path": (_text, ""),
    "walk_len": (_whole(1), 24),
    "walk_times": (_whole(1), 10),
    "win_size": (_whole(1), 3),
    "neg_num": (_whole(0), 0),
    "excluded_train_pair": (_text, ""),
    "pair_label": (_text, ""),
    "train_start_nodes": (_text, ""),
    "infer_nodes": (_text, ""),
    "infer_node_type": (_text, ""),
    "weighted_sample": (_flag, False),
    "return_weight": (_flag, False),
    "sage_mode": (_flag, False),
    "samples": (_counts, ()),
    "infer_samples": (_counts, ()),
    "use_degree_norm": (_flag, False),
    "need_train": (_flag, True),
    "need_inference": (_flag, True),
    "need_dump_walk": (_flag, False),
    "epochs": (_whole(1), 1),
    "max_steps": (_whole(0), 0),
    "batch_size": (_whole(1), 80000),
    "batch_node_size": (_whole(1), None),
    "infer_batch_size": (_whole(1), None),
    "train_mode": (_mode, "train"),
    "start_time": (_time, None),
    "newest_time": (_time, None),
    "time_delta": (_whole(1, 1_000_000), 24),
}
"""Keys with an effect: the parser and the default value of each."""

KEYS = frozenset(_READ) | frozenset(_ALIASES)
"""Keys that have an effect, including Graph4Rec's names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Data of one interval of an online training."""

    time: datetime
    folder: Path
    """Folder to pass as ``root`` when loading the window."""
    ready: bool
    """True if the data is complete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Validated configuration."""

    path: Path
    text: str
    root: Path
    """Folder to which file names are relative."""
    edge_files: Mapping[tuple[str, str, str], str]
    """File or folder of each triple (source type, relation, destination type)."""
    node_files: Mapping[str, str]
    metapaths: tuple[Metapath, ...]
    pair_labels: Mapping[tuple[str, str], int]
    infer_types: tuple[str, ...]
    """Node types that inference covers."""
    values: Mapping[str, Any]
    """Value or default of every key that has an effect."""
    ignored: Mapping[str, str]
    """Keys of the file without effect, with the component that they configure."""

    def __getitem__(self, key: str) -> Any:
        return self.values[key]

    @property
    def triples(self) -> tuple[tuple[str, str, str], ...]:
        """Every edge type; with symmetric edges, each is followed by its reverse."""
        directions = [
            (triple, (triple[2], triple[1], triple[0])) if self["symmetry"] else (triple,)
            for triple in self.edge_files
        ]
        return tuple(dict.fromkeys(triple for triples in directions for triple in triples))

    def windows(self) -> list[Window]:
        """Return the existing windows of an online training, in order.

        They start at ``newest_time``, or else at ``start_time``, and end at the first missing
        folder.

        Raises
        ------
        InvalidRequest
            The configuration is not one of an online training.
        """
        time = self["newest_time"] or self["start_time"]
        if self["train_mode"] != "online_train" or time is None:
            raise InvalidRequest(
                f"{self.path}: expected train_mode: online_train and a start_time, for windows"
            )
        windows = []
        while (folder := self.root / time.strftime(_TIME)).is_dir():
            windows.append(Window(time=time, folder=folder, ready=(folder / DONE_MARKER).exists()))
            time += timedelta(hours=self["time_delta"])
        return windows


def read_config(path: str | Path, root: str | Path | None = None) -> Config:
    """Read a configuration of PGLBox or Graph4Rec.

    Parameters
    ----------
    path : str or Path
        YAML file.
    root : str or Path, optional
        Folder to which file names are relative, instead of the configured one.

    Returns
    -------
    Config

    Raises
    ------
    InvalidRequest
        A key is unknown (the message names the closest known one) or has an invalid value.

    Examples
    --------
    >>> read_config("lightgcn.yaml")["meta_path"]  # doctest: +SKIP
    """
    path = expand_home(path)
    text, document = read_yaml(path)
    if not isinstance(document, dict):
        raise InvalidRequest(f"{path}: expected keys and values, as in PGLBox's configurations")
    try:
        return _build_config(path, text, document, root)
    except InvalidRequest as error:
        raise InvalidRequest(f"{path}: {error.message}") from error


def _build_config(
    path: Path, text: str, document: Mapping[Any, Any], root: str | Path | None
) -> Config:
    values = {key: default for key, (_, default) in _READ.items()}
    given: dict[str, str] = {}
    for key, value in document.items():
        name = _ALIASES.get(key, key)
        if given.setdefault(name, key) != key:
            raise InvalidRequest(
                f"{key}={value!r}: expected {given[name]} or {key}, not both, because they are "
                "two names of one key"
            )
        if name not in _READ and name not in IGNORED:
            close_matches = difflib.get_close_matches(str(key), [*KEYS, *IGNORED], n=1)
            raise InvalidRequest(
                f"unknown key {key!r}"
                + (
                    f"; did you mean {close_matches[0]!r}?"
                    if close_matches
                    else "; docs/pglbox.md lists those there are"
                )
            )
        if name in _READ and not (value is None and _READ[name][1] is None):
            try:
                values[name] = _READ[name][0](value)
            except ValueError as error:
                raise InvalidRequest(f"{key}={value!r}: expected {error}") from error
    edge_files: dict[tuple[str, str, str], str] = {}
    for name, files in _parse_files("etype2files", values["etype2files"]).items():
        triple = _parse_triple(name)
        if triple in edge_files:
            raise InvalidRequest(
                f"etype2files: {name!r}: expected each edge type once, {_format_triple(triple)!r} "
                "is there twice"
            )
        edge_files[triple] = files
    node_files = {
        validate_name("node type", name): files
        for name, files in _parse_files("ntype2files", values["ntype2files"]).items()
    }
    if not edge_files or not node_files:
        raise InvalidRequest(
            "etype2files, ntype2files: expected both, the files of edges and of nodes"
        )
    for triple in edge_files:
        for end in (triple[0], triple[2]):
            if end not in node_files:
                raise InvalidRequest(
                    f"etype2files: {'2'.join(triple)!r}: expected node types of ntype2files, "
                    f"{', '.join(node_files)}; found {end!r}"
                )
    if values["sage_mode"] and (
        not values["samples"] or (values["need_inference"] and not values["infer_samples"])
    ):
        raise InvalidRequest(
            "sage_mode=True: expected samples, and infer_samples with need_inference, the numbers "
            "of "
            "neighbors per hop"
        )
    config = Config(
        path=path,
        text=text,
        root=_data_root(path, values, root),
        edge_files=edge_files,
        node_files=node_files,
        metapaths=(),
        pair_labels=_parse_pair_labels(values["pair_label"], node_files),
        infer_types=_parse_infer_types(values["infer_node_type"], node_files),
        values=values,
        ignored={key: IGNORED[key] for key in document if key in IGNORED},
    )
    return replace(config, metapaths=_build_metapaths(values["meta_path"], config))


def _data_root(path: Path, values: Mapping[str, Any], root: str | Path | None) -> Path:
    if root is not None:
        return expand_home(root)
    config_key = (
        "graph_data_hdfs_path"
        if values["train_mode"] == "online_train" and values["graph_data_hdfs_path"]
        else "graph_data_local_path"
    )
    location = str(values[config_key] or values["graph_data_hdfs_path"])
    if location.startswith(("hdfs:", "afs:")):
        raise InvalidRequest(
            f"{config_key}={location!r}: expected local files; copy them to this machine, and "
            f"pass their "
            "folder as `root`"
        )
    return path.parent / expand_home(location)


def _parse_files(key: str, text: str) -> dict[str, str]:
    """Parse ``a:files,b:files`` into a mapping."""
    files_by_type: dict[str, str] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, colon, files = entry.partition(":")
        if not (name.strip() and colon and files.strip()) or name.strip() in files_by_type:
            raise InvalidRequest(
                f"{key}={entry!r}: expected type:file or folder, and each type once"
            )
        files_by_type[name.strip()] = files.strip()
    return files_by_type


def _parse_triple(name: str) -> tuple[str, str, str]:
    """Parse ``u2i`` or ``u2buy2i`` into a triple."""
    parts = name.split("2")
    if len(parts) not in (2, 3) or not all(parts):
        raise InvalidRequest(f"edge type {name!r}: expected a2b or a2relation2b")
    src, relation, dst = (parts[0], DEFAULT_RELATION, parts[1]) if len(parts) == 2 else parts
    return src, validate_name("edge type", relation), dst


def _build_metapaths(text: str, config: Config) -> tuple[Metapath, ...]:
    metapaths = []
    for path in filter(None, (part.strip() for part in text.split(";"))):
        steps = [_parse_triple(triple_text.strip()) for triple_text in path.split("-")]
        for step_number, step in enumerate(steps, 1):
            if step not in config.triples:
                has_reverse = (step[2], step[1], step[0]) in config.triples
                known_types = ", ".join(_format_triple(triple) for triple in config.triples)
                hint = (
                    "symmetry: True creates it in the other direction"
                    if has_reverse
                    else f"there are {known_types}"
                )
                raise InvalidRequest(
                    f"meta_path={path!r}, step {step_number}: expected an edge type, found "
                    f"{_format_triple(step)!r}; {hint}"
                )
            if step_number > 1 and steps[step_number - 2][2] != step[0]:
                raise InvalidRequest(
                    f"meta_path={path!r}, step {step_number}: expected a step that starts at "
                    f"{steps[step_number - 2][2]!r}, it starts at {step[0]!r}"
                )
        types = (*(step[0] for step in steps), steps[-1][2])
        metapaths.append(Metapath(text=path, steps=tuple(map(":".join, steps)), node_types=types))
    return tuple(metapaths)


def _format_triple(triple: tuple[str, str, str]) -> str:
    src, relation, dst = triple
    return f"{src}2{dst}" if relation == DEFAULT_RELATION else f"{src}2{relation}2{dst}"


def _parse_pair_labels(text: str, types: Mapping[str, str]) -> dict[tuple[str, str], int]:
    labels = {}
    for pair_text, label in _parse_files("pair_label", text).items():
        pair = tuple(pair_text.split("2"))
        if len(pair) != 2 or not set(pair) <= set(types) or not label.isdecimal():
            raise InvalidRequest(
                f"pair_label: {pair_text}:{label}: expected a2b:number of node types "
                f"{', '.join(types)}"
            )
        labels[pair[0], pair[1]] = int(label)
    return labels


def _parse_infer_types(text: str, types: Mapping[str, str]) -> tuple[str, ...]:
    names = [name_text.strip() for name_text in text.split(";") if name_text.strip()]
    unknown = [name for name in names if name not in types]
    if unknown:
        raise InvalidRequest(f"infer_node_type={unknown[0]!r}: expected one of {', '.join(types)}")
    return tuple(names or types)
