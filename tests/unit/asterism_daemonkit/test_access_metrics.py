"""Tests of the metrics of access control."""

from __future__ import annotations

from asterism_access.limits import LimitTable
from asterism_daemonkit.access_metrics import AccessMetrics
from asterism_daemonkit.metrics import Metrics
from asterism_proto.v1 import metad_pb2 as metad_pb


def test_refused_calls_are_counted_for_a_hundred_principals() -> None:
    metrics = Metrics("graphd")
    access = AccessMetrics(metrics.registry, "graphd")
    for _ in range(2):
        for number in range(300):
            access.count_quota_exceeded(f"p{number}", "calls_per_s")
    lines = [
        line
        for line in metrics.render().decode().splitlines()
        if line.startswith("asterism_quota_exceeded_total")
    ]
    assert len(lines) == 101
    head = 'asterism_quota_exceeded_total{daemon="graphd",limit="calls_per_s",principal='
    assert f'{head}"p99"}} 2.0' in lines
    assert f'{head}"other"}} 400.0' in lines


def test_use_of_limits_is_read_when_metrics_are_requested() -> None:
    metrics = Metrics("graphd")
    access = AccessMetrics(metrics.registry, "graphd")
    limits = metad_pb.AccessLimits(
        principal="*", space="shop", calls_per_s=10, rows_per_s=100, concurrent_calls=3
    )
    state = metad_pb.AccessState(limits=[limits])
    table = LimitTable(lambda: state, clock=lambda: 0.0)
    access.add_limit_uses(table.uses)
    assert "quota_available{" not in metrics.render().decode()

    def lines(gauge: str) -> set[str]:
        head = f'asterism_quota_{gauge}{{daemon="graphd",limit="'
        return {
            line.removeprefix(head).replace('",principal="ann",space="shop"}', "")
            for line in metrics.render().decode().splitlines()
            if line.startswith(head)
        }

    with table.admit("ann", "shop", rows=30) as call:
        assert lines("limit") == {"calls_per_s 10.0", "rows_per_s 100.0", "concurrent_calls 3.0"}
        assert lines("available") == {
            "calls_per_s 9.0",
            "rows_per_s 70.0",
            "concurrent_calls 2.0",
        }
        call.settle(rows=250)
    assert lines("available") == {
        "calls_per_s 9.0",
        "rows_per_s -150.0",
        "concurrent_calls 3.0",
    }
    for number in range(300):
        table.admit(f"p{number}", "shop").release()
    text = metrics.render().decode()
    assert text.count('asterism_quota_limit{daemon="graphd",limit="calls_per_s"') == 100


def test_audit_records_are_counted_by_outcome() -> None:
    metrics = Metrics("metad")
    access = AccessMetrics(metrics.registry, "metad")
    for is_written in (True, True, False):
        access.count_audit_record(is_written)
    text = metrics.render().decode()
    assert 'asterism_audit_records_total{daemon="metad",outcome="written"} 2.0' in text
    assert 'asterism_audit_records_total{daemon="metad",outcome="lost"} 1.0' in text


def test_refused_credentials_are_counted_by_port_and_reason() -> None:
    metrics = Metrics("graphd")
    access = AccessMetrics(metrics.registry, metrics.daemon)
    for port in ("http", "http", "grpc"):
        access.count_refused_credential(port, "expired")
    text = metrics.render().decode()
    head = 'asterism_credentials_refused_total{daemon="graphd",port='
    assert f'{head}"http",reason="expired"}} 2.0' in text
    assert f'{head}"grpc",reason="expired"}} 1.0' in text
