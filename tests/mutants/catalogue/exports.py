"""Faults of exports: chunks, checksums, partitions, resumption and verification.

Each names the test that must fail with it.
"""

from __future__ import annotations

from tests.mutants.mutant import Mutant, change

UNIT = "tests/unit/asterism"
EXPORT = "tests/integration/export"
MODULE = "asterism.export"

MUTANTS: tuple[Mutant, ...] = (
    change(
        "the last chunk of one row lost",
        "tempting",
        f"{MODULE}.chunked_graph_export",
        (
            "range(0, max(count, 1), chunk_rows)",
            "range(0, max(count - 1, 1), chunk_rows)",
        ),
        test=f"{EXPORT}/test_export_chunks.py::test_last_chunk_of_a_single_row_is_written",
        reason="assert [[299], [120], [0]] == [[299, 1], [120], [0]]",
    ),
    change(
        "chunks of one row too many",
        "tempting",
        f"{MODULE}.chunked_graph_export",
        (
            "min(count, low + chunk_rows)",
            "min(count, low + chunk_rows + 1)",
        ),
        test=f"{EXPORT}/test_export_chunks.py::test_last_chunk_of_a_single_row_is_written",
        reason="assert [[300, 1], [120], [0]] == [[299, 1]",
    ),
    change(
        "types of chunks in the order of names",
        "tempting",
        f"{MODULE}.chunked_graph_export",
        (
            "(sorted(kinds, key=lambda kind: kind.type_id) for kinds in",
            "(list(kinds) for kinds in",
        ),
        test=f"{EXPORT}/test_export_chunks.py::test_metadata_has_the_fields_that_dgl_tools_need",
        reason="assert [120, 0, 300] == [300, 120, 0]",
    ),
    change(
        "columns of chunks widened as for DGL",
        "tempting",
        f"{MODULE}.chunked_graph_export",
        (
            "replace(c, dtype=dtypes[c.feature])",
            "c",
        ),
        test=(
            f"{EXPORT}/test_export_chunks.py"
            "::test_space_loaded_from_its_own_chunks_has_equal_digests[csv]"
        ),
        reason="name='year', kind='dense', dtype='int32'",
    ),
    change(
        "features of chunks in the order of the scan",
        "tempting",
        f"{MODULE}.chunked_graph_export",
        (
            "rank = table.rank(batch.ids)",
            "rank = np.arange(len(batch.ids))",
        ),
        test=(
            f"{EXPORT}/test_export_chunks.py::test_sparse_ids_become_dense_in_order_and_are_saved"
        ),
        reason="Arrays are not equal",
    ),
    change(
        "edge features of chunks in the order of the scan",
        "tempting",
        f"{MODULE}.chunked_graph_export",
        (
            "spool, chunk_rows, order)\n    for spool in (src",
            "spool, chunk_rows)\n    for spool in (src",
        ),
        test=(
            f"{EXPORT}/test_export_chunks.py"
            "::test_space_loaded_from_its_own_chunks_has_equal_digests[csv]"
        ),
        reason="Differing items",
    ),
    change(
        "checksums without ids",
        "tempting",
        f"{MODULE}.row_checksums",
        (
            "(as_kernel_array(ids), as_kernel_array(view))",
            "(as_kernel_array(np.zeros_like(ids)), as_kernel_array(view))",
        ),
        test=(
            f"{UNIT}/test_export_row_checksums.py::test_a_sum_depends_on_each_value_and_its_id[words]"
        ),
        reason="assert 2 == 3",
    ),
    change(
        "checksums without the ends of edges",
        "tempting",
        f"{MODULE}.row_checksums",
        (
            "np.stack(related, axis=1) if related else",
            "np.stack(related[:1], axis=1) if related else",
        ),
        test=(
            f"{UNIT}/test_export_row_checksums.py::test_a_sum_depends_on_ids_and_both_ends_not_on_order"
        ),
        reason="assert 5 == 6",
    ),
    change(
        "files verified by size",
        "tempting",
        f"{MODULE}.verify",
        (
            "(size, digest) != (files[path]['bytes'], files[path]['sha256'])",
            "size != files[path]['bytes']",
        ),
        test=f"{EXPORT}/test_export_verify.py::test_flipped_byte_is_found_in_every_file",
        reason="bytes of sha256' in",
    ),
    change(
        "files of others not reported",
        "tempting",
        f"{MODULE}.verify",
        (
            "sorted(present - set(files))",
            "sorted(present - present)",
        ),
        test=f"{EXPORT}/test_export_verify.py::test_missing_and_extra_files_are_found",
        reason="assert 'part1/other: not a file of this export' in",
    ),
    change(
        "checksums computed and not compared",
        "tempting",
        f"{MODULE}.verify",
        (
            "computed.get(name, '0' * 16) != expected",
            "computed.get(name, expected) != expected and False",
        ),
        test=(
            f"{EXPORT}/test_export_verify.py"
            "::test_damage_is_found_even_where_digests_match[a node that two parts own]"
        ),
        reason="assert 'paper: the ids, each once' in ''",
    ),
    change(
        "edges of other parts counted and not compared",
        "tempting",
        f"{MODULE}.verify",
        (
            "if halo is not None and halo != required[part]:",
            "if halo is not None and halo[0] != required[part][0]:",
        ),
        test=(
            f"{EXPORT}/test_export_verify.py"
            "::test_damage_is_found_even_where_digests_match[an outer edge into another node]"
        ),
        reason="assert 'they are not the same ones' in",
    ),
    change(
        "a missing end of an edge has the last id",
        "tempting",
        f"{MODULE}.edges",
        (
            "if mapped.size and mapped.min() < 0:",
            "if False:",
        ),
        test=f"{EXPORT}/test_export_partition.py::test_edge_to_a_missing_node_is_corrupt",
        reason="DID NOT RAISE",
    ),
    change(
        "ids of incoming edges counted from each batch",
        "tempting",
        f"{MODULE}.edges",
        (
            "first + offset + selected], axis=1)",
            "first + selected], axis=1)",
        ),
        test=f"{EXPORT}/test_export_partition.py::test_batches_of_any_size_make_the_same_export",
        reason="diff: b'",
    ),
    change(
        "stored ids of edges unsorted",
        "tempting",
        f"{MODULE}.edges",
        (
            (
                "(rows.eid, sorted_edges.eid)):\n            run.reorder(spool, order, "
                "target.path.name)"
            ),
            (
                "(rows.eid, sorted_edges.eid)):\n            run.reorder(spool, order if spool "
                "is not rows.eid else np.arange(len(order)), target.path.name)"
            ),
        ),
        test=(
            f"{EXPORT}/test_export_partition.py"
            "::test_every_node_edge_and_feature_is_in_its_part_once[1-1-random-dense]"
        ),
        reason="Arrays are not equal",
    ),
    change(
        "a repeated node found within pieces only",
        "tempting",
        f"{MODULE}.nodes",
        (
            (
                "                raise Corrupt(f'version {run.version} gives {kind.name} "
                "{piece[repeats[0]]} twice; build the space again')\n            last_id = "
                "int(piece[-1])"
            ),
            (
                "                raise Corrupt(f'version {run.version} gives {kind.name} "
                "{piece[repeats[0]]} twice; build the space again')\n            last_id = -1"
            ),
        ),
        test=f"{EXPORT}/test_export_partition.py::test_a_node_that_comes_twice_is_corrupt",
        reason="a node came with its features twice",
    ),
    change(
        "ids sorted if the last batch is",
        "tempting",
        f"{MODULE}.nodes",
        (
            "ascending = ascending and int(batch.ids[0]) > last_id and bool(",
            "ascending = int(batch.ids[0]) > last_id and bool(",
        ),
        test=f"{EXPORT}/test_export_partition.py::test_batches_of_any_size_make_the_same_export",
        reason="diff: b'",
    ),
    change(
        "features in order if the last piece is",
        "tempting",
        f"{MODULE}.nodes",
        (
            "is_ordered = is_ordered and bool(",
            "is_ordered = bool(",
        ),
        test=(
            f"{UNIT}/test_export_nodes.py"
            "::test_rows_are_ordered_if_any_piece_is_not[positions1-order1]"
        ),
        reason="assert None == [1, 0, 2, 3, 4]",
    ),
    change(
        "ids of a later stretch as of the first",
        "tempting",
        f"{MODULE}.global_ids",
        (
            "rows = start + order[low:high]",
            "rows = order[low:high]",
        ),
        test=(
            f"{UNIT}/test_export_global_ids.py::test_numbers_of_nodes_do_not_depend_on_the_batch"
        ),
        reason="assert {0: [10, 10, 3], 1: [3, 3]} ==",
    ),
    change(
        "the id after the last one known",
        "tempting",
        f"{MODULE}.global_ids",
        (
            "(ids >= 0) & (ids < id_bound)",
            "(ids >= 0) & (ids <= id_bound)",
        ),
        test=(f"{UNIT}/test_export_global_ids.py::test_a_table_finds_its_ids_and_no_others[dense]"),
        reason="assert",
    ),
    change(
        "an interrupted export continued with other options",
        "tempting",
        f"{MODULE}.lifecycle",
        (
            "if differing:",
            "if False:",
        ),
        test=(f"{EXPORT}/test_export_resumed.py::test_unfinished_export_needs_resume_or_overwrite"),
        reason="ValueError",
    ),
    change(
        "finished steps done again",
        "tempting",
        f"{MODULE}.run_state",
        (
            "if result is None:\n            self.warnings",
            "if True:\n            self.warnings",
        ),
        test=(
            f"{EXPORT}/test_export_resumed.py::test_resumed_export_does_not_repeat_finished_steps"
        ),
        reason="assert",
    ),
    change(
        "digests of files of the first bytes",
        "tempting",
        f"{MODULE}.run_state",
        (
            "file.seek(0)\n",
            "file.seek(min(size, 16))\n",
        ),
        test=(
            f"{EXPORT}/test_export_partition.py::test_manifest_has_size_and_digest_of_every_file"
        ),
        reason="assert",
    ),
    change(
        "the donor of a node not charged",
        "tempting",
        f"{MODULE}.partitioning.empty_parts",
        (
            "counts[donor] -= 1\n        counts[part] += 1",
            "pass",
        ),
        test=f"{UNIT}/test_export_assign.py::test_two_empty_parts_take_nodes_of_two_full_ones",
        reason="assert [0, 3, 2, 1, 1, 1] == [0, 0, 2, 1, 1, 3]",
    ),
    change(
        "assignments of a line too many accepted",
        "tempting",
        f"{MODULE}.partitioning.assignment_files",
        (
            "if line != count:",
            "if line < count:",
        ),
        test=f"{UNIT}/test_export_assign.py::test_a_wrong_line_is_refused_with_file_and_line",
        reason="DID NOT RAISE",
    ),
    change(
        "parts checked against one too many",
        "tempting",
        f"{MODULE}.partitioning.assignment_files",
        (
            "(piece >= parts)",
            "(piece > parts)",
        ),
        test=f"{UNIT}/test_export_assign.py::test_a_wrong_line_is_refused_with_file_and_line",
        reason="DID NOT RAISE",
    ),
    change(
        "outer edges of the next part",
        "tempting",
        f"{MODULE}.halo_parts",
        (
            "sum(counts[:part])",
            "sum(counts[:part + 1])",
        ),
        test=(
            f"{EXPORT}/test_export_partition.py"
            "::test_every_node_edge_and_feature_is_in_its_part_once[1-2-random-dense]"
        ),
        reason="",
    ),
    change(
        "an interrupted export continued from other content",
        "tempting",
        f"{MODULE}.lifecycle",
        (
            "elif working_folder.state['digest'] != digest:",
            "elif False:",
        ),
        test=(
            f"{EXPORT}/test_export_resumed.py"
            "::test_interrupted_export_of_other_content_is_not_resumed"
        ),
        reason="DID NOT RAISE",
    ),
    change(
        "names of a later batch at the first offsets",
        "tempting",
        f"{MODULE}.string_ids",
        (
            "offsets.append(indptr[1:] + total)",
            "offsets.append(indptr[1:])",
        ),
        test=(
            f"{UNIT}/test_export_string_ids.py::test_names_of_later_batches_follow_the_earlier_ones"
        ),
        reason="",
    ),
    change(
        "a bucket's rows placed at the first",
        "tempting",
        f"{MODULE}.external_sort",
        (
            "first += each.keys.rows",
            "first += 0",
        ),
        test=(
            f"{UNIT}/test_export_external_sort.py"
            "::test_positions_are_in_stable_order_of_the_keys[far apart]"
        ),
        reason="Arrays are not equal",
    ),
    change(
        "a hub's edges counted from each piece",
        "tempting",
        f"{MODULE}.external_sort",
        (
            "np.arange(row - first, row - first + len(piece))",
            "np.arange(0, len(piece))",
        ),
        test=(
            f"{UNIT}/test_export_external_sort.py"
            "::test_positions_are_in_stable_order_of_the_keys[a hub]"
        ),
        reason="Arrays are not equal",
    ),
    change(
        "halo nodes without the far ends",
        "tempting",
        f"{MODULE}.halo_parts",
        (
            "        yield batch[:, 0]\n        yield batch[:, 1]",
            "        yield batch[:, 0]",
        ),
        test=(
            f"{EXPORT}/test_export_partition.py"
            "::test_every_node_edge_and_feature_is_in_its_part_once[1-2-random-dense]"
        ),
        reason="",
    ),
)
