"""Requests of every method of metad's services, recorded in this process.

The storageds of the metad are simulated.
"""

from __future__ import annotations

import contextlib

from asterism_proto.errors import AsterismError
from asterism_proto.methods import HEARTBEATS
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from tests.kit.fuzzing.client_requests import Recorder, Request
from tests.kit.metad import InProcessMetad, edge_chunk, node_chunk

FOLDER = "file:///srv/exports"
HOSTS = {"s1": 1, "s2": 3}
"""Incarnations of the storageds, by uuid."""


class FuzzedMetad(InProcessMetad):
    """A metad with spaces, loads, pins and jobs of every kind.

    It has a published space, a restored one, and open and committed loads.
    """

    def __init__(self) -> None:
        super().__init__(allowed_addresses=FOLDER)
        self._recorder = self._transport = Recorder(self.handlers)
        for uuid, incarnation in HOSTS.items():
            self.heartbeat(uuid, incarnation=incarnation)
        self.heartbeat("g1", role=metad_pb.GRAPHD)
        self.create(if_not_exists=True)
        self.create("victim")
        self._load()
        self.submit()
        for uuid, incarnation in HOSTS.items():
            self.build(uuid, incarnation=incarnation)
        self.poll("g1", role=metad_pb.GRAPHD, known_revision=5, wait_s=0.01)
        self.find_dead_loads("s1", 1, 2, 3)
        self._read()
        self._submit()
        self._change_access()

    @property
    def requests(self) -> list[Request]:
        """Return the recorded requests."""
        return self._recorder.requests

    def _load(self) -> None:
        load = self.begin(resume_key="key", source="a.csv")
        self.register(load, edge_chunk(0, 100), node_chunk(1, 5), written=[0])
        self.register(load, edge_chunk(2, 9), written=[1, 2])
        self.ask("get_load", metad_pb.LoadRequest(load_id=load.load_id))
        self.ask(
            "commit_load",
            metad_pb.CommitLoadRequest(load_id=load.load_id, rejected=2, written=[0, 1, 2]),
        )
        self.ask("abandon_load", metad_pb.LoadRequest(load_id=self.begin().load_id))
        second_load = self.begin()
        self.register(second_load, edge_chunk(0, 100))
        self._transport.call(
            HEARTBEATS["admit_load"],
            metad_pb.AdmitLoadRequest(uuid="s1", space_id=1, load_id=second_load.load_id, chunk=0),
            10.0,
        )
        self._transport.call(
            HEARTBEATS["list_fingerprints"],
            metad_pb.ListFingerprintsRequest(uuid="s1", space_id=1, watermark=9, parts=[0, 1]),
            10.0,
        )

    def _read(self) -> None:
        self._transport.call(
            HEARTBEATS["list_log_records"], common_pb.ListLogRecordsRequest(limit=5), 10.0
        )
        self.ask("describe_space", metad_pb.SpaceRequest(space="graph"))
        self.ask("list_spaces", common_pb.Empty())
        self.ask("describe_catalog", common_pb.Empty())
        self.ask("adopt_catalog", metad_pb.AdoptCatalogRequest())
        inventory = metad_pb.InventorySpace(
            space_id=1,
            builds=[metad_pb.InventoryBuild(job_id=1, version=1)],
            checkpoints=[1],
            loads=[1],
        )
        self.report_inventory(
            "s1", [inventory], highest_ids=metad_pb.HighestIds(space_id=1, job_id=1, load_id=1)
        )
        ended = metad_pb.EndedSession(
            session_id="0123456789abcdef" * 2, principal="alice", expires_ms=self.now_ms + 60_000
        )
        self.report("end_session", ended)
        self.ask("list_hosts", common_pb.Empty())
        self.ask("list_commits", metad_pb.ListCommitsRequest(space="graph", after=0))
        self.ask(
            "list_jobs",
            metad_pb.ListJobsRequest(
                space="graph", states=[common_pb.FINISHED], limit=5, before=9, kinds=["build"]
            ),
        )
        self.ask("list_versions", metad_pb.SpaceRequest(space="graph"))
        self.ask("get_manifest", metad_pb.ManifestRequest(space="graph", version=1))
        self.ask("list_pins", metad_pb.ListPinsRequest(space="graph"))
        pin = metad_pb.PinRequest(
            pin_id=self.ask(
                "pin_version",
                metad_pb.PinVersionRequest(space="graph", version=1, term_s=60, owner="me"),
            ).pin_id
        )
        self.ask("renew_pin", pin)
        self.ask("release_pin", pin)
        record = self.ask("export_space", metad_pb.ExportSpaceRequest(space="graph", version=1))
        self.ask(
            "import_space",
            metad_pb.ImportSpaceRequest(name="copy", record=record, address=f"{FOLDER}/a"),
        )
        self.ask("drop_space", metad_pb.DropSpaceRequest(space="victim", if_exists=True))

    def _submit(self) -> None:
        kinds: dict[str, dict[str, str]] = {
            "audit": {},
            "export-tables": {"format": "csv", "to": f"{FOLDER}/x"},
            "compact": {},
            "backup": {"to": f"{FOLDER}/y"},
            "index": {"type": "author", "on": "weight", "kind": "range"},
        }
        for kind, options in kinds.items():
            version = 1 if kind in ("audit", "export-tables", "backup") else 0
            job = self.ask(
                "submit_job",
                metad_pb.SubmitJobRequest(
                    space="graph", kind=kind, options=options, version=version
                ),
            )
        options = {"from": f"{FOLDER}/a", "sha256": "0" * 64}
        self.ask(
            "submit_job", metad_pb.SubmitJobRequest(space="copy", kind="restore", options=options)
        )
        job_request = metad_pb.JobRequest(job_id=job.job_id)
        self.ask("get_job", job_request)
        self.ask("stop_job", job_request)
        with contextlib.suppress(AsterismError):  # the job may have ended
            self.ask("recover_job", job_request)

    def _change_access(self) -> None:
        key = self.access(
            "create_api_key",
            metad_pb.CreateApiKeyRequest(principal="alice", expires_s=3600, description="laptop"),
        ).key
        self.access("list_api_keys", metad_pb.ListApiKeysRequest(principal="alice"))
        self.access("revoke_api_key", metad_pb.RevokeApiKeyRequest(key_id=key.key_id))
        for space in ("graph", "*"):
            self.access(
                "grant_role",
                metad_pb.RoleGrant(principal="alice", space=space, role=metad_pb.ADMIN),
            )
            self.access(
                "set_access_limits",
                metad_pb.AccessLimits(principal="alice", space=space, calls_per_s=5, pins=1),
            )
        listing = metad_pb.ListGrantsRequest(principal="alice", space="graph")
        self.access("list_grants", listing)
        self.access("list_access_limits", listing)
        self.access("revoke_role", metad_pb.RevokeRoleRequest(principal="alice", space="*"))
